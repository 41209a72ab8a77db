"""Test a followed log from line to message: each line is redacted and alerted once, even after a fault."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flows.alerting.faults import Fault, notify_fault
from monitors.errors import SourceUnavailable, WarehouseBusy
from monitors.records.incidents import Capability, IncidentKind, NotifyReason
from monitors.sources.logs.files import LogFiles
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.followed_logs import Followed, entry
from tests.flows.messages import ALERT_ID
from tests.servers.slack import Posted, SlackServer
from tests.servers.slack_rules import texts
from tests.stable_text import replace_volatile


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def testbed(tmp_path, slack):
    (tmp_path / "data").mkdir()
    return AlertingTestbed(tmp_path / "data", slack, slack_monitor_channel="C0MONITOR")


@pytest.fixture
def followed(tmp_path, testbed):
    log = Followed(tmp_path, testbed)
    log.append(entry(-1))
    return log


def about_the_app(slack: SlackServer):
    return [message for message in slack.messages if message.channel == "C0ALERTS"]


def reasons(testbed: AlertingTestbed, kind: IncidentKind) -> list[NotifyReason]:
    """Return the reason of each stored alert about incidents of ``kind``."""
    return [alert.reason for alert in testbed.alerts() if alert.kind is kind]


def shown(messages: Iterable[Posted], folder: Path) -> str:
    """Return the text in the blocks of the messages, without the notification text, which may be shortened."""
    lines = "\n".join(text for message in messages for text in texts(message.blocks))
    return ALERT_ID.sub("ALERT_ID", replace_volatile(lines, folder)) + "\n"


def about_the_monitor(slack: SlackServer):
    return [message for message in slack.messages if message.channel == "C0MONITOR"]


async def test_lines_from_before_the_first_poll_are_stored_without_an_alert(followed, slack):
    looked = await followed.look()
    assert (looked.found.history, looked.found.entries) == (1, 0)
    assert followed.stored() == [-1]
    assert slack.messages == []


async def test_entries_between_registering_and_the_first_poll_are_one_message(tmp_path, testbed, slack):
    """Entries that are written between the registration of a log and its first poll are reported in one message.

    Earlier entries are history, and a second registration changes nothing.
    """
    followed = Followed(tmp_path, testbed)
    followed.append(entry(-1))
    followed.follower().reader.store_first_position()
    followed.append(entry(1))
    followed.append(entry(2))
    followed.follower().reader.store_first_position()
    looked = await followed.look()
    assert (looked.found.history, looked.found.entries, len(looked.alerts)) == (1, 2, 1)
    (message,) = about_the_app(slack)
    assert re.search(r"first seen.{1,5}since \d{4}-\d\d-\d\d \d\d:\d\d UTC", " ".join(texts(message.blocks)))


async def test_a_new_entry_is_one_message_with_what_a_person_needs(followed, slack):
    await followed.look()
    followed.append(entry(1))
    looked = await followed.look()
    (message,) = about_the_app(slack)
    shown = json.dumps(message.blocks, ensure_ascii=False)
    for needed in ("Question 1: what is covered?", "Reply 1: up to ₹80,000.", "unsupported_amount", "6 chunks"):
        assert needed in shown
    assert "top score 0.41" in shown
    assert followed.settings.at in shown
    assert looked.alerts[0] in shown
    assert (await followed.look()).alerts == ()
    assert len(slack.messages) == 1


@pytest.mark.whole_only
async def test_a_follower_fault_recovers_once_it_follows_again_and_others_stay(followed, slack, testbed):
    own, other = (
        Fault("WarehouseUnwritable", "no space is left"), Fault("BrowserMissing", "there is no browser"),
    )  # fmt: skip
    await notify_fault(followed.follower().notifier, own)
    await notify_fault(testbed.notifier(), other)
    stopped = {one.title for one in testbed.store.list_open_incidents("demo")}
    await followed.look()
    (left,) = testbed.store.list_open_incidents("demo")
    assert left.owner is Capability.VERIFY
    assert left.title in stopped
    (ended,) = [
        one for one in about_the_monitor(slack) if "Lookout follows the log again" in json.dumps(one.blocks)
    ]
    assert ended.thread_ts is not None


@pytest.mark.whole_only
async def test_a_burst_is_one_message_that_grows(followed, slack, testbed):
    await followed.look()
    for number in range(1, 40):
        followed.append(entry(number))
        if number % 13 == 0:
            await followed.look()
            testbed.skip(minutes=1)
    (message,) = about_the_app(slack)
    assert message.edits == 2
    assert "39" in message.text


@pytest.mark.parametrize("span", [{"minutes": 31}, {"days": -3}], ids=["later", "the clock was set back"])
@pytest.mark.whole_only
async def test_after_the_time_of_a_burst_a_new_message_rings(followed, slack, testbed, span):
    await followed.look()
    followed.append(entry(1))
    await followed.look()
    testbed.skip(**span)
    followed.append(entry(2))
    await followed.look()
    assert len(about_the_app(slack)) == 2


@pytest.mark.whole_only
async def test_a_follower_that_lives_on_begins_a_message_for_each_burst_and_each_fault(followed, slack, testbed):
    """A follower that runs for hours, as in `lookout watch`, sends a new message for each burst and each fault.

    New entries are not added to an alert from hours ago.
    """
    watch = followed.follower()
    await watch.poll()
    for number in (1, 2):
        followed.append(entry(number), "no entry\n")
        await watch.poll()
        testbed.skip(minutes=29)
        followed.append(entry(number + 10))
        await watch.poll()
        testbed.skip(hours=26)
        followed.path.unlink()
        await watch.poll()
        followed.append(entry(number + 20))
        testbed.skip(hours=26)
        await watch.poll()
    assert [message.edits for message in about_the_app(slack)] == [1, 2, 0]
    assert [message.edits for message in about_the_monitor(slack)] == [0] * len(about_the_monitor(slack))
    first = [message for message in about_the_monitor(slack) if message.thread_ts is None]
    assert sum("no longer exists" in json.dumps(one.blocks) for one in first) == 2


@pytest.mark.whole_only
async def test_a_thousand_entries_at_once_are_one_message_with_all_of_them(followed, slack):
    await followed.look()
    followed.append(*(entry(number) for number in range(1_200)))
    await followed.look()
    assert followed.stored() == [-1, *range(1_200)]
    assert len(about_the_app(slack)) == 1
    assert "1,200" in about_the_app(slack)[0].text


@pytest.mark.whole_only
async def test_personal_data_is_masked_before_it_is_stored(followed, slack):
    await followed.look()
    followed.append(
        entry(
            1,
            user_text="I am asha.rao@example.org",
            session={"mail": ["asha.rao@example.org"]},
            reasons=["pan ABCPE1234F"],
        )
    )
    await followed.look()
    everything = "".join(str(row) for row in followed.testbed.store.query("select * from hallucinations").rows)
    journal = "".join(file.read_text() for file in (followed.path.parent / "data" / "journal").rglob("*.jsonl"))
    for text in (everything, journal, str(slack.messages)):
        assert "asha.rao" not in text
        assert "ABCPE1234F" not in text
    assert "[e-mail]" in everything


async def test_raw_texts_are_stored_where_that_is_wished_and_masked_in_the_message_all_the_same(
    tmp_path, testbed, slack
):
    followed = Followed(tmp_path, testbed, store_raw=True)
    followed.append(entry(1, user_text="I am asha.rao@example.org"))
    await followed.look()
    followed.append(entry(2, user_text="I am asha.rao@example.org"))
    await followed.look()
    assert "asha.rao" in str(followed.testbed.store.query("select user_text from hallucinations").rows)
    assert "asha.rao" not in str(slack.messages)
    assert len(slack.messages) == 1


async def test_a_deleted_log_alerts_once_and_recovers_in_its_thread(followed, slack, snapshot):
    """A deleted log causes one alert, and its recovery is a reply in the thread of that alert (fault f75)."""
    await followed.look()
    followed.path.unlink()
    await followed.look()
    await followed.look()
    (gone,) = about_the_monitor(slack)
    followed.append(entry(1))
    await followed.look()
    again = about_the_monitor(slack)[-1]
    assert again.thread_ts == gone.ts
    faults = reasons(followed.testbed, IncidentKind.MONITOR_FAULT)
    assert (faults[0], faults[-1]) == (NotifyReason.FIRST_SEEN, NotifyReason.RECOVERED)
    assert shown([gone, again], followed.path.parent) == snapshot
    assert len(about_the_app(slack)) == 1


async def test_a_missing_log_is_reported_unless_it_may_be_missing(tmp_path, testbed, slack):
    await Followed(tmp_path, testbed, may_be_missing=True).look()
    assert slack.messages == []
    log = Followed(tmp_path, testbed)
    await log.look()
    assert len(about_the_monitor(slack)) == 1
    log.append(entry(1))
    await log.look()
    assert len(about_the_app(slack)) == 1, "the first entry of a log that was watched for is news"


async def test_lost_lines_are_reported_once(followed, slack):
    await followed.look()
    followed.path.write_text(entry(7) + entry(8))
    await followed.look()
    (message,) = about_the_monitor(slack)
    assert "are lost" in json.dumps(message.blocks)
    await followed.look()
    assert len(about_the_monitor(slack)) == 1
    assert followed.stored() == [-1, 7, 8]


@pytest.mark.whole_only
async def test_lines_that_are_no_entries_alert_without_a_word_of_them(followed, slack, snapshot):
    await followed.look()
    followed.append("{my password is hunter2\n", entry(1))
    await followed.look()
    (unreadable,) = about_the_monitor(slack)
    assert "hunter2" not in json.dumps(unreadable.blocks)
    await followed.look()
    assert len(about_the_monitor(slack)) == 1, "nothing new was read: it is neither repeated nor over"
    followed.append(entry(2))
    await followed.look()
    assert reasons(followed.testbed, IncidentKind.MONITOR_FAULT) == [
        NotifyReason.FIRST_SEEN,
        NotifyReason.RECOVERED,
    ]
    assert shown(about_the_monitor(slack), followed.path.parent) == snapshot


@pytest.mark.whole_only
async def test_f23_a_silent_log_alerts_and_ends_with_the_next_entry(followed, slack, testbed, snapshot):
    await followed.look()
    for number in range(25):
        followed.append(entry(number, ts=f"{testbed.now:%Y-%m-%dT%H:%M:%SZ}"))
        await followed.look()
        testbed.skip(minutes=20)
    testbed.skip(hours=7)
    await followed.look()
    assert len(about_the_monitor(slack)) == 1
    followed.append(entry(99, ts=f"{testbed.now:%Y-%m-%dT%H:%M:%SZ}"))
    await followed.look()
    assert reasons(testbed, IncidentKind.MONITOR_FAULT) == [NotifyReason.FIRST_SEEN, NotifyReason.RECOVERED]
    assert shown(about_the_monitor(slack), followed.path.parent) == snapshot


async def test_an_application_whose_clock_is_wrong_is_not_called_silent(followed, slack):
    await followed.look()
    for number in range(25):
        followed.append(entry(number, ts="2019-03-01T01:59:00Z"))
    await followed.look()
    assert about_the_monitor(slack) == []


async def test_killed_between_keeping_and_telling_the_next_look_tells(followed, slack, testbed):
    await followed.look()
    followed.append(entry(1))
    followed.follower().reader.poll()
    assert slack.messages == []
    await followed.look()
    assert len(about_the_app(slack)) == 1


async def test_killed_between_deciding_and_sending_a_look_that_finds_nothing_new_sends(
    followed, slack, monkeypatch
):
    """If a process is killed after it stored an alert and before it sent the alert, the next poll sends it.

    In this test, the next poll finds no new entry. Without this rule, the alert could wait for hours for another
    run.
    """
    await followed.look()
    followed.append(entry(1))

    async def killed(_notifier):
        raise KeyboardInterrupt

    monkeypatch.setattr("flows.alerting.pipeline.send_outbox", killed)
    with pytest.raises(KeyboardInterrupt):
        await followed.look()
    monkeypatch.undo()
    assert slack.messages == []
    looked = await followed.look()
    assert (looked.found.entries, looked.alerts) == (0, ())
    assert len(about_the_app(slack)) == 1


@pytest.mark.whole_only
async def test_quiet_polls_retry_unsent_alerts_a_minute_later(followed, slack, testbed):
    await followed.look()
    followed.append(entry(1))
    slack.always = "reset"
    await followed.look()
    await followed.look()
    tries = "select count(*) from receipts where status = 'failed'"
    assert testbed.store.query(tries).rows[0][0] == 1, "not at every look"
    slack.always = None
    testbed.skip(minutes=2)
    await followed.look()
    assert len(about_the_app(slack)) == 1


async def test_slack_away_the_message_waits_and_goes_once(followed, slack):
    await followed.look()
    followed.append(entry(1))
    slack.always = "reset"
    await followed.look()
    assert slack.messages == []
    slack.always = None
    await followed.look()
    await followed.night_delivers()
    assert len(about_the_app(slack)) == 1


async def test_a_log_that_cannot_be_read_is_a_fault_of_the_monitor_and_recovers(
    tmp_path, testbed, slack, monkeypatch, snapshot
):
    monkeypatch.setattr("flows.hallucination_log.follower.RETRY_AFTER_S", 0.0)
    followed = Followed(tmp_path, testbed)
    followed.append(entry(1))
    await followed.look()
    followed.path.rename(tmp_path / "moved")
    followed.path.symlink_to(followed.path)  # a loop: it cannot be opened, by root neither
    looked = await followed.look()
    assert looked.unreadable is not None
    with pytest.raises(SourceUnavailable):
        followed.follower().reader.poll()
    assert len(about_the_monitor(slack)) == 1
    followed.path.unlink()
    (tmp_path / "moved").rename(followed.path)
    await followed.look()
    assert reasons(testbed, IncidentKind.MONITOR_FAULT) == [NotifyReason.FIRST_SEEN, NotifyReason.RECOVERED]
    assert shown(about_the_monitor(slack), tmp_path) == snapshot


@pytest.mark.whole_only
async def test_a_locked_warehouse_loses_nothing(followed, slack, monkeypatch):
    await followed.look()
    followed.append(entry(1))
    monkeypatch.setattr("flows.hallucination_log.follower.LOAD_WAIT_S", 0.0)
    with followed.testbed.store.database.hold_lock(5):
        poll = await followed.follower().poll_and_report_errors()
    assert (poll.skipped, poll.broken) == (True, False)
    assert about_the_monitor(slack) == []
    monkeypatch.undo()
    await followed.look()
    assert followed.stored() == [-1, 1]
    assert len(about_the_app(slack)) == 1


class _FaultyPlace:
    """A log source whose poll raises the given error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    @contextmanager
    def poll(self) -> Iterator[LogFiles]:
        raise self.error
        yield LogFiles(None, ())


@pytest.mark.whole_only
@pytest.mark.parametrize(
    "error",
    [ValueError("x"), RuntimeError("x"), MemoryError(), OSError(5, "Input/output error"), WarehouseBusy("x")],
)
async def test_f95_an_error_of_any_type_is_reported_and_polled_again(tmp_path, testbed, error):
    log = Followed(tmp_path, testbed, place=_FaultyPlace(error))
    poll = await log.follower().poll_and_report_errors()
    assert poll.unreadable
    (incident,) = testbed.store.list_open_incidents("demo")
    assert (incident.kind, incident.owner) == (IncidentKind.MONITOR_FAULT, Capability.HALLUCINATION_LOG)
    working = Followed(tmp_path, testbed)
    working.append(entry(1))
    working.begin_at(10)
    assert (await working.follower().poll_and_report_errors()).unreadable is None
    assert testbed.store.list_open_incidents("demo") == ()
