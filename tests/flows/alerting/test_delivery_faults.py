"""Test faults in the delivery of alerts, with a real warehouse and a faulty Slack server."""

from __future__ import annotations

import json

import pytest

from flows.alerting.edits import add_summary_to_sent_alerts
from flows.alerting.faults import Fault, notify_fault
from flows.alerting.pipeline import notify, resolve_incidents_and_send_alerts, send_waiting_alerts
from monitors.alerts.redact import redact
from monitors.alerts.wording import FAILURE_TITLES
from monitors.records.base import Severity
from monitors.records.grades import FailureKind
from monitors.records.incidents import Alert, Incident, IncidentKind, IncidentState, Link, NotifyReason, RunSummary
from tests.flows.messages import ALERT_ID, format_messages
from tests.monitors.alerts.sample_observations import observation, outage, scope
from tests.servers.slack import SlackServer
from tests.warehouse.decisions import OutboxDecision, decide
from warehouse.database.retention import compact_segments, remove_personal_data

QUIET = RunSummary()


def said(slack: SlackServer) -> str:
    return json.dumps([m.text for m in slack.messages] + [m.blocks for m in slack.messages], ensure_ascii=False)


@pytest.mark.whole_only
async def test_f02_an_outage_of_slack_delays_the_page_and_doubles_nothing(testbed, slack):
    """An alert that cannot be sent during a Slack outage is sent once by the first run after the outage.

    During the outage, each run tries again and gets HTTP 500.
    """
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
    """If Slack refuses an alert because the token is revoked, the alert and the refusal are printed and stored."""
    slack.always = "token_revoked"
    await notify(testbed.notifier(), [observation()], summary=QUIET)
    assert slack.messages == []
    assert ALERT_ID.sub("ALERT_ID", testbed.printed.getvalue()) == snapshot
    assert [alert.kind for alert in testbed.alerts()] == [IncidentKind.CASE_FAILURE, IncidentKind.MONITOR_FAULT]
    assert {status for status, _ in testbed.receipts()} == {"rejected"}


@pytest.mark.whole_only
async def test_f03_each_run_retries_a_refused_alert_until_it_is_sent_once(testbed, slack):
    """Until Slack accepts a refused alert, each run sends it again, even a run that has no other alert."""
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
    assert FAILURE_TITLES[FailureKind.PII_DISCLOSURE] in message.text
    (sent,) = [alert for alert in testbed.alerts() if alert.id in message.text]
    assert sent.reason is NotifyReason.OPEN_BEFORE


def list_refused_kinds(testbed) -> list[object]:
    """Check that Slack refused all alerts in `unsent_alerts`, and return their kinds."""
    rows = testbed.store.query("select kind, state from unsent_alerts order by kind").rows
    assert {state for _, state in rows} <= {"refused"}
    return [kind for kind, _ in rows]


def list_incidents(alert: Alert) -> list[Incident]:
    return [alert.select_item(key).incident for key in alert.fingerprints]


async def test_f92_what_slack_refused_comes_as_one_alert_and_one_summary_once_it_works(testbed, slack, snapshot):
    """When Slack works again, two messages arrive: an alert about the open severe cases, and a summary.

    The summary is about the other refused alerts: the failed gate, the resolved case leak-2, and the recovery of
    price-1. The case leak-1 is still open.
    """
    await notify(testbed.notifier("before"), [observation("price-1", FailureKind.WRONG_FACT)], summary=QUIET)
    slack.always = "channel_not_found"
    testbed.skip(hours=1)
    gate = outage(IncidentKind.GATE_FAIL, run_id="refused", severity=Severity.MAJOR, title=redact("Gate FAIL"))
    opened = [observation("leak-1", run_id="refused"), observation("leak-2", run_id="refused"), gate]
    right = scope("refused", "price-1", began_at=testbed.now, ended_at=testbed.now)
    await notify(testbed.notifier("refused"), opened, summary=QUIET, scope=right)
    testbed.skip(hours=1)
    right = scope("closed", "leak-2", began_at=testbed.now, ended_at=testbed.now)
    await notify(testbed.notifier("closed"), [], summary=QUIET, scope=right)
    assert set(list_refused_kinds(testbed)) == {"case_failure", "gate_fail", "monitor_fault"}
    slack.always = None
    before = len(slack.messages)
    testbed.skip(hours=1)
    sent = await notify(testbed.notifier("works"), [], summary=QUIET)
    assert [(alert.severity, alert.reason, len(alert.items)) for alert in sent] == [
        (Severity.CRITICAL, NotifyReason.OPEN_BEFORE, 1),
        (Severity.MAJOR, NotifyReason.MISSED, 3),
    ]
    ended = {incident.case_id: incident.state for incident in list_incidents(sent[1])}
    assert ended == {None: IncidentState.OPEN, "leak-2": IncidentState.RESOLVED, "price-1": IncidentState.RESOLVED}
    assert list_refused_kinds(testbed) == []
    assert [message.thread_ts for message in slack.messages[before:]] == [None, None]
    assert format_messages(slack.messages[before:]) == snapshot
    assert IncidentKind.MONITOR_FAULT not in {
        incident.kind for incident in testbed.store.list_open_incidents("demo")
    }
    testbed.skip(hours=1)
    assert await notify(testbed.notifier("again"), [], summary=QUIET) == ()
    assert len(slack.messages) == before + 2


@pytest.mark.whole_only
@pytest.mark.parametrize("closed_by", ["its run", "a later check"])
async def test_f92_an_alert_that_slack_refused_is_in_a_summary_when_its_incident_is_over(testbed, slack, closed_by):
    slack.always = "channel_not_found"
    fault = observation() if closed_by == "its run" else outage()
    await notify(testbed.notifier(), [fault], summary=QUIET)
    slack.always = None
    testbed.skip(minutes=1)
    if closed_by == "its run":
        right = scope("run-2", "leak-1", began_at=testbed.now, ended_at=testbed.now)
        await notify(testbed.notifier("run-2"), [], summary=QUIET, scope=right)
    else:
        ending = {fault.fingerprint: "It answers again."}
        await resolve_incidents_and_send_alerts(testbed.notifier("run-2"), ending, began_at=testbed.now)
    (message,) = slack.messages
    (sent,) = [alert for alert in testbed.alerts() if alert.id in message.text]
    assert (sent.reason, sent.items[0].incident.state) == (NotifyReason.MISSED, IncidentState.RESOLVED)
    assert testbed.store.list_open_incidents("demo") == ()


@pytest.mark.whole_only
async def test_f92_a_refused_recovery_is_a_fault_and_comes_with_the_next_visit(testbed, slack):
    """If Slack refuses a recovery message, this opens a Slack fault, and a later run sends the recovery.

    Runs that follow within minutes do not try again if nothing else is pending.
    """
    await notify(testbed.notifier(), [outage()], summary=QUIET)
    slack.always = "channel_not_found"
    testbed.skip(hours=1)
    await resolve_incidents_and_send_alerts(
        testbed.notifier("over"), {outage().fingerprint: "It answers."}, began_at=testbed.now
    )
    assert [incident.kind for incident in testbed.store.list_open_incidents("demo")] == [IncidentKind.MONITOR_FAULT]
    asked = len(slack.requests)
    for _ in range(2):
        testbed.skip(minutes=2)
        await send_waiting_alerts(testbed.notifier("visit"))
    assert len(slack.requests) == asked
    slack.always = None
    for visit in range(2):
        testbed.skip(hours=2)
        await send_waiting_alerts(testbed.notifier(f"visit-{visit}"))
    _, summary = slack.messages
    (sent,) = [alert for alert in testbed.alerts() if alert.id in summary.text]
    assert (sent.reason, [incident.kind for incident in list_incidents(sent)]) == (
        NotifyReason.MISSED,
        [IncidentKind.APP_DOWN],
    )
    assert testbed.store.list_open_incidents("demo") == ()


async def test_f92_the_fault_of_the_refusals_ends_when_nothing_else_was_missed(testbed, slack):
    """If Slack refused only the reminder of a known incident, the next run reports and closes the Slack fault."""
    await notify(testbed.notifier(), [observation()], summary=QUIET)
    slack.always = "channel_not_found"
    testbed.skip(days=1)
    await notify(testbed.notifier("day-2"), [observation(run_id="day-2")], summary=QUIET)
    assert list_refused_kinds(testbed) == ["monitor_fault"]
    slack.always = None
    for run_id in ("works", "again"):
        testbed.skip(hours=1)
        await notify(testbed.notifier(run_id), [observation(run_id=run_id)], summary=QUIET)
    _, fault = slack.messages
    assert list_refused_kinds(testbed) == []
    assert "channel_not_found" in json.dumps(fault.blocks)
    assert [incident.kind for incident in testbed.store.list_open_incidents("demo")] == [IncidentKind.CASE_FAILURE]


async def test_f92_what_a_person_acknowledged_is_not_sent(testbed, slack):
    slack.always = "channel_not_found"
    await notify(testbed.notifier(), [observation()], summary=QUIET)
    (incident,) = [i for i in testbed.store.list_open_incidents("demo") if i.kind is IncidentKind.CASE_FAILURE]
    decide(
        testbed.store,
        testbed.store.journal,
        "demo",
        lambda _: OutboxDecision(incidents=(incident.acknowledge(),)),
        wait_s=5,
    )
    slack.always = None
    testbed.skip(hours=1)
    await notify(testbed.notifier("works"), [], summary=QUIET)
    assert "leak-1" not in said(slack)
    assert list_refused_kinds(testbed) == []
    assert IncidentKind.MONITOR_FAULT not in {
        incident.kind for incident in testbed.store.list_open_incidents("demo")
    }


@pytest.mark.whole_only
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
    open_now = {one.kind.value for one in testbed.store.list_open_incidents("demo")}
    assert "monitor_fault" in open_now

    slack.refusing.clear()
    testbed.skip(hours=1)
    await notify(testbed.notifier("run-3", ways), [observation("leak-3", run_id="run-3")], summary=QUIET)
    assert slack.messages[-1].channel == "C0ALERTS"
    assert "monitor_fault" not in {one.kind.value for one in testbed.store.list_open_incidents("demo")}
    assert len(slack.messages) == 4


async def test_f03_a_second_webhook_takes_over_from_a_revoked_token(testbed, slack):
    slack.misbehave("token_revoked")
    await notify(testbed.notifier(paths=[testbed.bot(), testbed.webhook()]), [observation()], summary=QUIET)
    assert [m.by for m in slack.messages] == ["webhook", "bot"]
    assert FAILURE_TITLES[FailureKind.PII_DISCLOSURE] in slack.messages[0].text


async def test_f03_a_temporary_fault_uses_no_fallback(testbed, slack):
    """After a temporary fault such as HTTP 500, the message waits for the main channel.

    The fallback is not used.
    """
    slack.misbehave("500")
    ways = [testbed.bot(), testbed.bot(slack_channel="C0SECOND")]
    await notify(testbed.notifier(paths=ways), [observation()], summary=QUIET)
    assert slack.messages == []
    testbed.skip(minutes=2)
    await notify(testbed.notifier("run-2", ways), [], summary=QUIET)
    assert [m.channel for m in slack.messages] == ["C0ALERTS"]


@pytest.mark.whole_only
async def test_f11_later_failures_grow_the_first_message(testbed, slack, snapshot):
    """Fifty failures that a run reports in five batches appear in one message, which each later batch edits.

    The message keeps its first id, and finally contains the scores.
    """
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
    assert (
        await add_summary_to_sent_alerts(notifier, RunSummary(flat="0.900", weighted="0.612", links=(report,)))
        == ()
    )
    (message,) = slack.messages
    assert "weighted score 0.612" in said(slack)
    assert "https://lookout.example/run-1" in said(slack)
    assert (message.edits, message.metadata["event_payload"]["id"]) == (5, first_id)
    assert format_messages(slack.messages) == snapshot
    assert [status for status, _ in testbed.receipts()] == ["sent"] * 5


async def test_an_alert_about_a_case_that_was_right_at_other_times_is_marked_flaky_at_the_end(
    testbed, slack, snapshot
):
    """If a case whose alert was sent turns out to be flaky, the message is edited at the end of the run to say so.

    A case is flaky if its other answers are right.
    """
    notifier = testbed.notifier()
    await notify(notifier, [observation("leak-1"), observation("leak-2")], summary=QUIET)
    assert "flaky" not in said(slack)
    odd = {"leak-1": "right in 2 of 3 asks"}
    await add_summary_to_sent_alerts(notifier, RunSummary(flat="0.900", weighted="0.612", links=()), flaky=odd)
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
    assert await add_summary_to_sent_alerts(notifier, RunSummary(flat="0.9", weighted="0.8", links=())) == ()


async def test_an_acknowledged_message_is_not_edited(testbed, slack):
    notifier = testbed.notifier()
    await notify(notifier, [observation("leak-1")], summary=QUIET)
    (known,) = testbed.store.list_open_incidents("demo")
    taken = known.model_copy(update={"state": IncidentState.ACKNOWLEDGED})
    decide(testbed.store, testbed.store.journal, "demo", lambda _: OutboxDecision(incidents=(taken,)), wait_s=5)
    await add_summary_to_sent_alerts(notifier, RunSummary(flat="0.900", weighted="0.612", links=()))
    assert slack.messages[0].edits == 0


async def test_f14_a_purge_while_it_still_fails_says_nothing(testbed, slack):
    """If all older data is purged while a case still fails, its next failure is not reported as a new incident."""
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
    """A storage fault is alerted even if nothing can be stored.

    In this test, a file takes the place of the journal's folder.
    """
    (tmp_path / "journal").write_text("in the way", encoding="utf-8")
    await notify_fault(testbed.notifier(), Fault("WarehouseUnwritable", "cannot write /data: no space left"))
    (message,) = slack.messages
    assert "no space left" in json.dumps(message.blocks)


async def test_a_fault_is_printed_when_nothing_can_be_stored_or_sent(testbed, slack, tmp_path):
    (tmp_path / "journal").write_text("in the way", encoding="utf-8")
    slack.always = "500"
    await notify_fault(testbed.notifier(), Fault("WarehouseUnwritable", "cannot write /data: no space left"))
    assert "no space left" in testbed.printed.getvalue()
