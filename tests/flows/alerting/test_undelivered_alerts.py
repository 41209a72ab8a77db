"""Test that alerts that were only printed, because Slack was not set up, are sent by the first run with Slack."""

from __future__ import annotations

import json

import pytest

from flows.alerting.pipeline import notify, send_undelivered_alerts_again
from monitors.alerts.wording import FAILURE_TITLES, KIND_WORDS
from monitors.records.base import Severity
from monitors.records.grades import FailureKind
from monitors.records.incidents import IncidentKind, NotifyReason, RunSummary
from tests.flows.chat import RIGHT, Chat, watched
from tests.flows.messages import format_stable_messages, load_alerts_in
from tests.monitors.alerts.sample_observations import observation, outage, scope
from tests.servers.slack import TOKEN

QUIET = RunSummary()
WRONG = "The waiting period is 36 months. [Source: Gold, clause 4.2]"


def texts(slack):
    return [message.text for message in slack.messages]


@pytest.mark.prefect
@pytest.mark.whole_only
def test_printed_alerts_are_sent_once_by_the_first_run_with_slack(tmp_path, lookout, slack, snapshot):
    """Alerts that two runs without a Slack token printed are sent once, by the first run with a token."""
    alerts = f'[alerts]\nslack_channel = "C0ALERTS"\nslack_api_url = "{slack.api_url}"\n'
    with Chat(WRONG, RIGHT) as chat:
        watched(tmp_path, chat, cases=2, more=alerts)
        by_hand = [lookout("gate", "--target", "demo", cwd=tmp_path) for _ in range(2)]
        assert texts(slack) == []
        with_slack = [lookout("verify", "demo", "--fresh", cwd=tmp_path, SLACK_BOT_TOKEN=TOKEN) for _ in range(2)]
    assert [done.returncode for done in (*by_hand, *with_slack)] == [1, 1, 1, 1], by_hand[0].stderr
    (message,) = slack.messages
    shown = json.dumps(message.blocks, ensure_ascii=False)
    assert "waiting-0" in shown
    assert "36 months" in shown
    assert KIND_WORDS[IncidentKind.GATE_FAIL] in shown
    *printed, sent = load_alerts_in(tmp_path)
    assert sorted((alert.kind, alert.reason) for alert in printed) == [
        (IncidentKind.CASE_FAILURE, NotifyReason.FIRST_SEEN),
        (IncidentKind.GATE_FAIL, NotifyReason.FIRST_SEEN),
    ]
    assert len({alert.run_id for alert in printed}) == 1
    assert (sent.reason, sent.severity, len(sent.items)) == (NotifyReason.OPEN_BEFORE, Severity.CRITICAL, 2)
    runs = {"printed_by": printed[0].run_id, "sent_by": sent.run_id}
    assert format_stable_messages([message], tmp_path, **runs) == snapshot
    ends = [" ".join((done.stdout + done.stderr).split()) for done in (*by_hand, *with_slack)]
    assert ["2 already known" in end for end in ends] == [False, True, False, True]


@pytest.mark.whole_only
@pytest.mark.prefect
@pytest.mark.a_slice(1)  # always in the quick tier, whatever slice of the file it takes
def test_a_failed_gate_names_the_wrong_price_in_slack_with_asked_expected_and_got(
    tmp_path, lookout, slack, snapshot
):
    """The message about a failed gate contains the wrong answer, the question and the expected answer of a case.

    The case has severity 2, so it has no message of its own.
    """
    alerts = f'[alerts]\nslack_channel = "C0ALERTS"\nslack_api_url = "{slack.api_url}"\n'
    source = "[Source: Gold, clause 4.2]"
    with Chat(f"The premium is ₹4,800 a year. {source}", f"The premium is ₹8,400 a year. {source}") as chat:
        watched(tmp_path, chat, cases=2, gold="The premium is ₹8,400 a year.", more=alerts)
        suite = tmp_path / "suite.jsonl"
        priced = suite.read_text(encoding="utf-8").replace("waiting period", "premium")
        suite.write_text(priced.replace('"severity": 3', '"severity": 2'), encoding="utf-8")
        done = lookout("verify", "demo", cwd=tmp_path, SLACK_BOT_TOKEN=TOKEN)
    assert done.returncode == 1, done.stderr
    (message,) = slack.messages
    (alert,) = load_alerts_in(tmp_path)
    (item,) = alert.items
    assert (alert.kind, alert.severity, alert.reason) == (
        IncidentKind.GATE_FAIL,
        Severity.MAJOR,
        NotifyReason.FIRST_SEEN,
    )
    assert [(one.case_id, one.asked is not None) for one in item.observation.examples] == [("waiting-0", True)]
    assert format_stable_messages([message], tmp_path, run_id=alert.run_id) == snapshot


@pytest.mark.whole_only
async def test_of_several_kinds_there_is_one_message_and_another_about_the_monitor(testbed, slack, snapshot):
    gate = outage(IncidentKind.GATE_FAIL, run_id="by-hand")
    fault = outage(IncidentKind.MONITOR_FAULT, run_id="by-hand")
    seen = [observation(), observation("price-1", FailureKind.WRONG_FACT), gate, fault]
    await notify(testbed.notifier("by-hand", [testbed.terminal]), seen, summary=QUIET, scope=scope("by-hand"))
    testbed.skip(hours=1)
    sent = await send_undelivered_alerts_again(testbed.notifier("up"))
    assert {one.reason for one in sent} == {NotifyReason.OPEN_BEFORE}
    assert sorted(len(one.items) for one in sent) == [1, 3]
    assert sorted(message.text for message in slack.messages) == snapshot
    testbed.skip(hours=1)
    await send_undelivered_alerts_again(testbed.notifier("up-again"))
    await notify(testbed.notifier("nightly"), [observation(run_id="nightly")], summary=QUIET)
    assert len(slack.messages) == 2


@pytest.mark.whole_only
async def test_a_fault_fixed_before_the_first_run_with_slack_is_not_sent(testbed, slack):
    by_hand = testbed.notifier("by-hand", [testbed.terminal])
    await notify(by_hand, [observation(), observation("price-1")], summary=QUIET, scope=scope("by-hand"))
    testbed.skip(hours=3)
    under_way = [observation("price-1", run_id="nightly")]
    await notify(testbed.notifier("nightly"), under_way, summary=RunSummary(under_way=True))
    assert texts(slack) == [], "the run may still find it fixed"
    after = scope("nightly", "leak-1", began_at=testbed.now, ended_at=testbed.now)
    await notify(testbed.notifier("nightly"), under_way, summary=QUIET, scope=after)
    assert ["price-1" in text for text in texts(slack)] == [True], (
        "nobody had heard of it, so nobody hears of its end"
    )
    testbed.skip(hours=1)
    later = scope("next", "price-1", began_at=testbed.now, ended_at=testbed.now)
    await notify(testbed.notifier("next"), [], summary=QUIET, scope=later)
    assert slack.messages[1].thread_ts == slack.messages[0].ts, "what was sent ends where it was sent"


@pytest.mark.whole_only
async def test_a_refused_message_is_sent_once_the_channel_works(testbed, slack):
    slack.refusing = {"C0ALERTS": "is_archived"}
    await notify(testbed.notifier("refused"), [observation()], summary=QUIET)
    assert slack.messages == []
    slack.refusing = {}
    testbed.skip(hours=1)
    await notify(testbed.notifier("fixed"), [observation("other-1", run_id="fixed")], summary=QUIET)
    testbed.skip(minutes=1)
    await send_undelivered_alerts_again(testbed.notifier("after"))
    assert any("leak-1" in text for text in texts(slack))
    count = len(slack.messages)
    testbed.skip(minutes=1)
    await send_undelivered_alerts_again(testbed.notifier("again"))
    assert len(slack.messages) == count


async def test_a_manual_run_does_not_consume_alerts_waiting_for_slack(testbed, slack):
    slack.always = "500"
    await notify(testbed.notifier("nightly"), [observation()], summary=QUIET)
    testbed.skip(minutes=5)
    await notify(testbed.notifier("by-hand", [testbed.terminal]), [], summary=QUIET)
    assert "leak-1" not in testbed.printed.getvalue()
    slack.always = None
    testbed.skip(minutes=5)
    await notify(testbed.notifier("next"), [], summary=QUIET)
    assert len(slack.messages) == 1


async def test_without_slack_the_terminal_prints_a_repeated_failure_once(testbed, slack):
    """Without Slack, the terminal prints a repeated failure once, and no alert waits for delivery."""
    for number in range(3):
        await notify(
            testbed.notifier(f"by-hand-{number}", [testbed.terminal]),
            [observation(run_id=f"by-hand-{number}")],
            summary=QUIET,
        )
        testbed.skip(hours=1)
    assert testbed.printed.getvalue().count(FAILURE_TITLES[FailureKind.PII_DISCLOSURE]) == 1
    assert slack.messages == []
