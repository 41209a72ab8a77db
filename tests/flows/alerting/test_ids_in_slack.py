"""Test that Slack shows complete case ids, which can be copied into a command, also in a shortened list."""

from __future__ import annotations

import re

import pytest

from tests.flows.chat import Chat, watched
from tests.servers.slack import SlackServer
from tests.servers.slack_rules import texts

WRONG = "The waiting period is 36 months. [Source: Gold, clause 4.2]"

pytestmark = pytest.mark.prefect


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.mark.whole_only
def test_an_id_with_colons_can_be_copied_from_slack_into_a_command(tmp_path, lookout, slack):
    """A case id with colons can be copied from Slack into a command.

    Commands also accept the id with the replacement character that earlier versions of Lookout displayed.
    """
    case_id = "cedar::ped-waiting::en"
    with Chat(WRONG) as chat:
        config = watched(tmp_path, chat, cases=1, more=f'[alerts]\nslack_api_url = "{slack.api_url}"\n')
        suite = tmp_path / "suite.jsonl"
        suite.write_text(suite.read_text(encoding="utf-8").replace("waiting-0", case_id), encoding="utf-8")
        lookout("verify", "demo", cwd=tmp_path, SLACK_WEBHOOK_URL=slack.webhook_url)
        (message, *_) = slack.messages
        shown = [message.text, *texts(message.blocks)]
        assert sum(case_id in text for text in shown) >= 2, shown
        assert not any("\ua789" in text for text in shown)
        for written in (case_id, case_id.replace("::", "\ua789:")):
            shrunk = lookout("shrink", written, "--config", str(config), "--budget", "12", cwd=tmp_path)
            assert shrunk.returncode == 0, shrunk.stderr


@pytest.mark.whole_only
def test_a_list_of_ids_is_cut_between_them_with_the_number_of_the_others(tmp_path, lookout, slack):
    """A long list of ids in a notification contains only complete ids, and ends with the number of omitted ids."""
    count, name = 30, "waiting-period-of-plan"
    with Chat(WRONG) as chat:
        watched(tmp_path, chat, cases=count, more=f'[alerts]\nslack_api_url = "{slack.api_url}"\n')
        suite = tmp_path / "suite.jsonl"
        text = suite.read_text(encoding="utf-8").replace('"severity": 3', '"severity": 2')
        suite.write_text(re.sub(r'"waiting-(\d+)"', rf'"{name}-\1"', text), encoding="utf-8")
        lookout("verify", "demo", cwd=tmp_path, SLACK_WEBHOOK_URL=slack.webhook_url)
    (message,) = slack.messages
    listed = re.search(r"also failed: (.+?) and (\d+) more\b", message.text)
    assert listed is not None, message.text
    named = listed[1].split(", ")
    assert all(re.fullmatch(rf"{name}-\d+", case_id) for case_id in named), named
    assert len(named) + int(listed[2]) == count - 1
