"""Test the judge end to end: with the command, a chat, a local provider and Slack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from monitors.records.incidents import IncidentKind, NotifyReason
from tests.flows.chat import Chat, watched
from tests.flows.judged_run import TEETH, TEETH_WRONG
from tests.flows.messages import load_alerts_in
from tests.servers.anthropic import KEY, AnthropicServer
from tests.servers.slack import TOKEN, SlackServer

pytestmark = [pytest.mark.prefect]


def configured(folder: Path, chat: Chat, judge: AnthropicServer, slack: SlackServer) -> None:
    """Write a configuration with a judge, and two severity-3 cases that no rule can grade."""
    more = (
        f'[alerts]\nslack_api_url = "{slack.api_url}"\nslack_channel = "#alerts"\n'
        f'slack_monitor_channel = "#monitor"\n[[judge.models]]\nbase_url = "{judge.url}"\n'
    )
    path = watched(folder, chat, cases=2, gold=TEETH, more=more)
    text = path.read_text(encoding="utf-8").replace("[targets.demo]\n", '[targets.demo]\nmodel_family = "gpt"\n')
    path.write_text(text, encoding="utf-8")


def verify(lookout, folder: Path, slack: SlackServer, commit: str, **key: str):
    """Run `lookout verify` once. Return the process, the messages that were sent, and the folder of the run."""
    before = len(slack.messages)
    done = lookout("verify", "demo", "--commit", commit, cwd=folder, SLACK_BOT_TOKEN=TOKEN, **key)
    messages = [json.dumps(message.blocks) for message in slack.messages[before:]]
    return done, messages, max(folder.glob("data/runs/*/results.md")).parent


@pytest.mark.whole_only
def test_a_fooled_judge_is_void_and_an_honest_one_pages(tmp_path, lookout):
    """If the judge passes a canary, its grades are void, and the only alert is about the judge.

    An honest judge fails the same wrong answers, and causes an alert about the application.
    """
    with Chat(TEETH_WRONG) as chat, AnthropicServer() as judge, SlackServer() as slack:
        configured(tmp_path, chat, judge, slack)

        judge.judge.passes_all = True
        void, messages, _ = verify(lookout, tmp_path, slack, "aaa1111", ANTHROPIC_API_KEY=KEY)
        assert void.returncode == 3, void.stderr
        assert len(messages) == 1
        assert [alert.kind for alert in load_alerts_in(tmp_path)] == [IncidentKind.JUDGE_VOID]
        assert {message.channel for message in slack.messages} == {"C0MONITOR"}

        judge.judge.passes_all = False
        honest, messages, _ = verify(lookout, tmp_path, slack, "bbb2222", ANTHROPIC_API_KEY=KEY)
        assert honest.returncode == 1, honest.stderr
        assert any("waiting-0" in message and "not confirmed" in message for message in messages)
        judged = [alert.reason for alert in load_alerts_in(tmp_path) if alert.kind is IncidentKind.JUDGE_VOID]
        assert judged == [NotifyReason.FIRST_SEEN, NotifyReason.RECOVERED]

    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(KEY.encode() in content for content in written)
    assert KEY not in void.stdout + void.stderr + honest.stdout + honest.stderr


@pytest.mark.whole_only
def test_without_a_key_the_terminal_and_every_report_say_so(tmp_path, lookout):
    with Chat(TEETH_WRONG) as chat, AnthropicServer() as judge, SlackServer() as slack:
        configured(tmp_path, chat, judge, slack)
        off, _, folder = verify(lookout, tmp_path, slack, "ccc3333")
        assert not judge.asked
    assert off.returncode == 3, off.stderr
    said = "the judge is off (ANTHROPIC_API_KEY is not set)"
    assert said in " ".join((off.stdout + off.stderr).split())
    for name in ("results.md", "report.html", "results.json"):
        assert said in (folder / name).read_text(encoding="utf-8").replace("\\", ""), name
