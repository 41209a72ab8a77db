"""Rows 1 to 18 where the flow itself is concerned: a real warehouse, a real Slack that misbehaves, real receipts."""

from __future__ import annotations

import json

import pytest

from flows.alerting.edits import finish_first_alerts
from flows.alerting.faults import Fault, notify_fault
from flows.alerting.pipeline import notify
from monitors.records.incidents import IncidentKind, IncidentState, Link, NotifyReason, RunSummary
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.messages import ALERT_ID, format_messages
from tests.monitors.alerts.sample_observations import observation, scope
from tests.servers.slack import SlackServer
from tests.warehouse.decisions import OutboxDecision, decide
from warehouse.database.retention import compact_segments, remove_personal_data

QUIET = RunSummary()


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def testbed(tmp_path, slack):
    return AlertingTestbed(tmp_path, slack)


def said(slack: SlackServer) -> str:
    return json.dumps([m.text for m in slack.messages] + [m.blocks for m in slack.messages], ensure_ascii=False)


@pytest.mark.whole_only
async def test_f02_an_outage_of_slack_delays_the_page_and_doubles_nothing(testbed, slack):
    """Ten minutes of 500s, a visit every three; the first visit after them sends it, the next ones nothing."""
    slack.always = "500"
    await notify(testbed.notifier(), [observation()], summary=QUIET)
    for visit in range(3):
        testbed.skip(minutes=3)
        await notify(testbed.notifier(f"visit-{visit}"), [], summary=QUIET)
    assert slack.messages == []
    slack.always = None
    for visit in range(2):
        testbed.skip(minutes=2)
        await notify(testbed.notifier(f"after-{visit}"), [], summary=QUIET)
    assert len(slack.messages) == 1
    assert [status for status, _ in testbed.receipts()] == ["failed"] * 4 + ["sent"]


async def test_f03_a_refused_message_is_stored_and_printed(testbed, slack, snapshot):
    """With a revoked token nothing reaches Slack: the terminal shows alert and reason, the warehouse stores both."""
    slack.always = "token_revoked"
    await notify(testbed.notifier(), [observation()], summary=QUIET)
    assert slack.messages == []
    assert ALERT_ID.sub("ALERT_ID", testbed.printed.getvalue()) == snapshot
    assert [alert.kind for alert in testbed.alerts()] == [IncidentKind.CASE_FAILURE, IncidentKind.MONITOR_FAULT]
    assert {status for status, _ in testbed.receipts()} == {"rejected"}


@pytest.mark.whole_only
async def test_f03_each_run_retries_a_refused_alert_until_it_is_sent_once(testbed, slack):
    """A fault that every run sees is known already; with nothing new to prove the channel, it was never sent."""
    slack.always = "token_revoked"
    for run in range(3):
        await notify(testbed.notifier(f"run-{run}"), [observation(run_id=f"run-{run}")], summary=QUIET)
        testbed.skip(minutes=1)
    slack.always = None
    assert slack.messages == []
    for run in range(3, 5):
        await notify(testbed.notifier(f"run-{run}"), [observation(run_id=f"run-{run}")], summary=QUIET)
        testbed.skip(minutes=1)
    (message,) = slack.messages
    assert "Personal data disclosed" in message.text
    (sent,) = [alert for alert in testbed.alerts() if alert.id in message.text]
    assert sent.reason is NotifyReason.OPEN_BEFORE


async def test_f03_a_refused_alert_recovers_without_a_message(testbed, slack):
    slack.always = "token_revoked"
    await notify(testbed.notifier(), [observation()], summary=QUIET)
    slack.always = None
    testbed.skip(minutes=1)
    case = str(observation().case_id)
    right = scope("run-2", case, began_at=testbed.now, ended_at=testbed.now)
    await notify(testbed.notifier("run-2"), [], summary=QUIET, scope=right)
    assert [m.text for m in slack.messages if "Recovered" in m.text] == []
    assert not any(one.kind.value == "case_failure" for one in testbed.store.open_incidents("demo"))


async def test_f03_a_refused_message_goes_to_the_fallback_once(testbed, slack):
    slack.refusing["C0ALERTS"] = "is_archived"
    ways = [testbed.bot(slack_monitor_channel="C0MONITOR"), testbed.bot(slack_channel="C0SECOND")]
    await notify(testbed.notifier(paths=ways), [observation()], summary=QUIET)
    page, fault = slack.messages
    assert (page.channel, fault.channel) == ("C0SECOND", "C0MONITOR")
    assert "unarchive" in json.dumps(fault.blocks)
    assert "sent by way 2" in testbed.receipts()[0][1]

    testbed.skip(hours=1)
    await notify(testbed.notifier("run-2", ways), [observation("leak-2", run_id="run-2")], summary=QUIET)
    assert [m.channel for m in slack.messages[2:]] == ["C0SECOND"], "the same refusal does not alert again"
    open_now = {one.kind.value for one in testbed.store.open_incidents("demo")}
    assert "monitor_fault" in open_now

    slack.refusing.clear()
    testbed.skip(hours=1)
    await notify(testbed.notifier("run-3", ways), [observation("leak-3", run_id="run-3")], summary=QUIET)
    assert slack.messages[-1].channel == "C0ALERTS"
    assert "monitor_fault" not in {one.kind.value for one in testbed.store.open_incidents("demo")}
    assert len(slack.messages) == 4


async def test_f03_a_second_webhook_takes_over_from_a_revoked_token(testbed, slack):
    slack.misbehave("token_revoked")
    await notify(testbed.notifier(paths=[testbed.bot(), testbed.webhook()]), [observation()], summary=QUIET)
    assert [m.by for m in slack.messages] == ["webhook", "bot"]
    assert "Personal data disclosed" in slack.messages[0].text


async def test_f03_a_temporary_fault_uses_no_fallback(testbed, slack):
    """A 500 is no refusal: the message waits for the main channel."""
    slack.misbehave("500")
    ways = [testbed.bot(), testbed.bot(slack_channel="C0SECOND")]
    await notify(testbed.notifier(paths=ways), [observation()], summary=QUIET)
    assert slack.messages == []
    testbed.skip(minutes=2)
    await notify(testbed.notifier("run-2", ways), [], summary=QUIET)
    assert [m.channel for m in slack.messages] == ["C0ALERTS"]


@pytest.mark.whole_only
async def test_f11_later_failures_grow_the_first_message(testbed, slack, snapshot):
    """Fifty in one run, sent in five batches: one message, edited, with its first id, and the scores at the end."""
    notifier = testbed.notifier()
    for batch in range(5):
        seen = [observation(f"leak-{batch}-{number}") for number in range(10)]
        await notify(notifier, seen, summary=RunSummary(commit="c0ffee1"))
        testbed.skip(minutes=1)
    (message,) = slack.messages
    first_id = message.metadata["event_payload"]["id"]
    assert message.edits == 4
    assert "50 ×" in message.text
    assert first_id in message.text

    report = Link(label="Report", href="https://lookout.example/run-1")
    assert await finish_first_alerts(notifier, RunSummary(flat="0.900", weighted="0.612", links=(report,))) == ()
    (message,) = slack.messages
    assert "score 0.612 weighted" in said(slack)
    assert "https://lookout.example/run-1" in said(slack)
    assert (message.edits, message.metadata["event_payload"]["id"]) == (5, first_id)
    assert format_messages(slack.messages) == snapshot
    assert [status for status, _ in testbed.receipts()] == ["sent"] * 5


async def test_an_alert_about_a_case_that_was_right_at_other_times_is_marked_flaky_at_the_end(
    testbed, slack, snapshot
):
    """When the first ask was alerted on, the others were still to come."""
    notifier = testbed.notifier()
    await notify(notifier, [observation("leak-1"), observation("leak-2")], summary=QUIET)
    assert "flaky" not in said(slack)
    odd = {"leak-1": "right in 2 of 3 asks"}
    await finish_first_alerts(notifier, RunSummary(flat="0.900", weighted="0.612", links=()), flaky=odd)
    assert said(slack).count(odd["leak-1"]) == 1
    assert format_messages(slack.messages) == snapshot


async def test_f11_a_first_message_that_is_gone_is_answered_by_a_new_one(testbed, slack):
    notifier = testbed.notifier()
    await notify(notifier, [observation("leak-1")], summary=QUIET)
    slack.forget(slack.messages[0].ts)
    await notify(notifier, [observation("leak-2")], summary=QUIET)
    (message,) = slack.messages
    assert "leak-2" in said(slack)
    assert message.thread_ts is None


async def test_f11_an_edit_that_is_lost_is_made_again(testbed, slack):
    notifier = testbed.notifier()
    await notify(notifier, [observation("leak-1")], summary=QUIET)
    slack.misbehave("lost")
    await notify(notifier, [observation("leak-2")], summary=QUIET)
    testbed.skip(minutes=2)
    await notify(notifier, [], summary=QUIET)
    (message,) = slack.messages
    assert "2 ×" in message.text


async def test_f11_a_webhook_cannot_edit_and_says_what_is_new(testbed, slack):
    notifier = testbed.notifier(paths=[testbed.webhook()])
    await notify(notifier, [observation("leak-1")], summary=QUIET)
    await notify(notifier, [observation("leak-2")], summary=QUIET)
    assert ["leak-1" in m.text + json.dumps(m.blocks) for m in slack.messages] == [True, False]
    assert await finish_first_alerts(notifier, RunSummary(flat="0.9", weighted="0.8", links=())) == ()


async def test_an_acknowledged_message_is_not_edited(testbed, slack):
    notifier = testbed.notifier()
    await notify(notifier, [observation("leak-1")], summary=QUIET)
    (known,) = testbed.store.open_incidents("demo")
    taken = known.model_copy(update={"state": IncidentState.ACKNOWLEDGED})
    decide(testbed.store, testbed.store.journal, "demo", lambda _: OutboxDecision(incidents=(taken,)), wait_s=5)
    await finish_first_alerts(notifier, RunSummary(flat="0.900", weighted="0.612", links=()))
    assert slack.messages[0].edits == 0


async def test_f14_a_purge_while_it_still_fails_says_nothing(testbed, slack):
    """Everything older than now is compacted and aged; the same failure in the next run is no news."""
    await notify(testbed.notifier(), [observation()], summary=QUIET)
    testbed.skip(days=0.5)
    compact_segments(testbed.store, before=testbed.now, wait_s=5, unfinished=True)
    report = remove_personal_data(testbed.store, before=testbed.now, key=b"0123456789abcdef", wait_s=5)
    assert report.segments > 0
    await notify(testbed.notifier("run-2"), [observation(run_id="run-2", seen_at=testbed.now)], summary=QUIET)
    assert len(slack.messages) == 1
    testbed.skip(hours=2)
    ended = scope("run-3", "leak-1", began_at=testbed.now, ended_at=testbed.now)
    await notify(testbed.notifier("run-3"), [], summary=QUIET, scope=ended)
    assert slack.messages[1].thread_ts == slack.messages[0].ts, "its thread is still known"


async def test_a_storage_fault_is_alerted(testbed, slack, tmp_path):
    """The journal's folder is a file: the message goes out all the same."""
    (tmp_path / "journal").write_text("in the way", encoding="utf-8")
    await notify_fault(testbed.notifier(), Fault("WarehouseUnwritable", "cannot write /data: no space left"))
    (message,) = slack.messages
    assert "no space left" in json.dumps(message.blocks)


async def test_a_fault_is_printed_when_nothing_can_be_stored_or_sent(testbed, slack, tmp_path):
    (tmp_path / "journal").write_text("in the way", encoding="utf-8")
    slack.always = "500"
    await notify_fault(testbed.notifier(), Fault("WarehouseUnwritable", "cannot write /data: no space left"))
    assert "no space left" in testbed.printed.getvalue()
