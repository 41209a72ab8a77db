"""Test the Slack messages of a week of scheduled nightly runs, which docs/traffic.md shows."""

from __future__ import annotations

from itertools import groupby

import pytest

from monitors.records.base import Severity
from monitors.records.incidents import IncidentKind, NotifyReason
from tests.flows.messages import load_alerts_in
from tests.flows.week_of_nights import DOCS, PER_DAY, WEEK, Week, page, shown

pytestmark = [pytest.mark.prefect, pytest.mark.whole_only]

_, BURST, DOWN, VOID, DRIFT, BACK, EMPTY = range(7)


@pytest.fixture(scope="module")
def week(tmp_path_factory, prefect_environment):
    """Run seven nightly runs, each followed by its digest, on the Prefect server of the tests.

    Return the results of the nightly runs, the results of the digests, and all alerts.
    """
    folder = tmp_path_factory.mktemp("week")
    happened = list(Week(folder, prefect_environment).run())
    nights, digests = happened[::2], happened[1::2]
    assert {one.flow for one in nights} == {"grade-traffic"}
    assert {one.flow for one in digests} == {"digest"}
    assert len(nights) == len(WEEK) == 7
    return nights, digests, load_alerts_in(folder)


def texts(happened):
    return [sent.text for sent in happened.sent]


def places(happened):
    """Return the channel and kind of each message."""
    return [(sent.channel, sent.kind) for sent in happened.sent]


def test_each_night_ends_as_what_it_was(week):
    """A nightly run ends as Graded, as Partial if the judge failed or was void, or as Empty if nobody asked."""
    nights, digests, _ = week
    named = ["Graded", "Graded", "Partial", "Partial", "Graded", "Graded", "Empty"]
    assert [one.state for one in nights] == [("COMPLETED", name) for name in named]
    assert "0 of 100" in nights[DOWN].message
    assert "100" in nights[VOID].message
    assert {one.state for one in digests} == {("COMPLETED", "Completed")}


def test_few_messages_each_in_its_owners_channel(week):
    """Besides the digests, the week has five messages and four replies in threads.

    Those about the application are in one channel, and those about the monitor in another one.
    """
    nights, digests, alerts = week
    message, reply = "message", "reply in its thread"
    assert [sorted(places(one)) for one in nights] == [
        [],
        [("#alerts", message)],
        [("#alerts", reply), ("#monitor", message)],
        [("#monitor", message), ("#monitor", reply)],
        [("#alerts", message), ("#monitor", reply)],
        [("#alerts", reply)],
        [("#monitor", message)],
    ]
    days = [[one for one in alerts if one.created_at.date() == night.at.date()] for night in nights]
    new, over = NotifyReason.FIRST_SEEN, NotifyReason.RECOVERED
    assert [sorted((one.kind, one.reason, one.severity) for one in day) for day in days] == [
        [],
        [(IncidentKind.CASE_FAILURE, new, Severity.MAJOR)],
        [(IncidentKind.CASE_FAILURE, over, Severity.MAJOR), (IncidentKind.MONITOR_FAULT, new, Severity.MAJOR)],
        [(IncidentKind.JUDGE_VOID, new, Severity.MAJOR), (IncidentKind.MONITOR_FAULT, over, Severity.MAJOR)],
        [(IncidentKind.DRIFT, new, Severity.MAJOR), (IncidentKind.JUDGE_VOID, over, Severity.MAJOR)],
        [(IncidentKind.DRIFT, over, Severity.MAJOR)],
        [(IncidentKind.MONITOR_FAULT, new, Severity.MAJOR)],
    ]
    assert [places(digest) for digest in digests] == [[("#alerts", "message")]] * 7


def test_the_first_line_of_each_digest_says_how_it_stands(week, snapshot):
    """The first line of each digest states the result of the night, because a lock screen shows only this line."""
    _, digests, _ = week
    lines = [texts(one)[0].splitlines()[0] for one in digests]
    assert [line[0] for line in lines] == ["✅", "🟠", "❔", "❔", "🟠", "✅", "❔"]
    assert lines == snapshot


def test_messages_state_true_facts(week):
    """The times, counts, rates and intervals in the messages are correct, and unknown rates are called unknown."""
    nights, digests, _ = week
    (burst,) = texts(nights[BURST])
    for value in (
        "found 2026-03-03 02:00 UTC",
        "25 of 300",
        "8.3 %",
        "2026-03-02 14:02",
        "2026-03-02 15:57",
        "0 of 300",
    ):
        assert value in burst
    assert "overloaded_error" in burst
    morning = texts(digests[BURST])[0]
    (rate,) = [line for line in morning.splitlines() if line.startswith("*any failure*")]
    assert "CI 8.3 to " in rate, "no less than rules counted in all of them"
    assert morning.count("shown as an answer") == 2, "as a figure and as an incident"
    fault = texts(nights[DOWN])[0]
    assert "HTTP 500" in fault
    for digest in (digests[DOWN], digests[VOID]):
        assert "*any failure* unknown" in texts(digest)[0]
        assert "*drift*" not in texts(digest)[0]
    drift = texts(nights[DRIFT])[0]
    for value in ("since 2026-03-06", "1.0 %", "CI 0.1 to 3.7", "41.0 %", "31.3 to 51.3"):
        assert value in drift
    assert "*Asked*" in drift, "an example says what is meant"
    assert "*Got*" in drift
    assert "2.0 % since 2026-03-07" in texts(nights[BACK])[0]
    (nothing,) = texts(nights[EMPTY])
    assert "2026-03-08 02:00 UTC" in nothing
    assert f"({2 * PER_DAY} in total)" in nothing


def test_no_message_is_sent_twice(week):
    nights, digests, _ = week
    every = [text for pair in zip(nights, digests, strict=True) for one in pair for text in texts(one)]
    assert all(sum(1 for _ in same) == 1 for _, same in groupby(sorted(every)))


def test_the_page_shows_this_week(week, snapshot):
    """docs/traffic.md shows the messages of this week. An update of the snapshots also updates the page."""
    nights, digests, _ = week
    made = page(shown([one for pair in zip(nights, digests, strict=True) for one in pair]))
    if snapshot.session.update_snapshots:
        DOCS.write_text(made, encoding="utf-8")
    assert made == DOCS.read_text(encoding="utf-8")
