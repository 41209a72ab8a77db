"""Test that a run that is INCONCLUSIVE because too few cases were graded alerts once."""

from __future__ import annotations

import pytest

from monitors.records.base import Severity
from monitors.records.incidents import IncidentKind, NotifyReason
from tests.flows.chat import RIGHT, Chat, watched
from tests.flows.messages import format_stable_messages, load_alerts_in
from tests.servers.slack import TOKEN, Posted, SlackServer

pytestmark = pytest.mark.prefect

OPEN = "Last year the waiting period was 24 months. [Source: Gold, clause 4.2]"


@pytest.fixture
def verify(tmp_path, lookout):
    """Return a function that runs the suite once, and returns the exit code and the sent messages."""
    with SlackServer() as slack:

        def run(chat: Chat) -> tuple[int, list[Posted]]:
            more = (
                f'coverage_floor = 0.9\n[alerts]\nslack_api_url = "{slack.api_url}"\nslack_channel = "C0ALERTS"\n'
                'slack_monitor_channel = "C0MONITOR"\n'
            )
            watched(tmp_path, chat, cases=4, more=more)
            before = len(slack.messages)
            done = lookout("verify", "demo", cwd=tmp_path, SLACK_BOT_TOKEN=TOKEN)
            return done.returncode, slack.messages[before:]

        yield run


@pytest.mark.whole_only
def test_answers_that_no_rule_can_settle_are_the_monitors_matter_until_they_are_settled(tmp_path, verify, snapshot):
    with Chat(RIGHT) as chat:
        chat.by_question["What is the waiting period of plan 2?"] = OPEN
        code, (alert,) = verify(chat)
        assert code == 3
        assert alert.channel == "C0MONITOR"
        assert "waiting-2" in str(alert.blocks)
        assert verify(chat) == (3, [])
        chat.by_question.clear()
        code, (recovery,) = verify(chat)
    assert code == 0
    assert "got answers" not in str(recovery.blocks), "all its questions had answers before"
    alerts = load_alerts_in(tmp_path)
    assert [(one.kind, one.severity, one.reason) for one in alerts] == [
        (IncidentKind.MONITOR_FAULT, Severity.MAJOR, NotifyReason.FIRST_SEEN),
        (IncidentKind.MONITOR_FAULT, Severity.MAJOR, NotifyReason.RECOVERED),
    ]
    runs = {"first_run": alerts[0].run_id, "last_run": alerts[1].run_id}
    assert format_stable_messages([alert, recovery], tmp_path, **runs) == snapshot
