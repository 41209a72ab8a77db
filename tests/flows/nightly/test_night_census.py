"""Test the census of a night: rules check every conversation, so that a burst of errors alerts and recovers."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from monitors.records.incidents import NotifyReason
from monitors.records.nightly import CensusKind, CensusRate, NightlyReport
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.messages import format_messages
from tests.flows.nightly_runs import LEAK, LEAKED, PLAIN_REPLY, Nights, file_source, stable_report, talk
from tests.monitors.alerts.sample_observations import NIGHT
from tests.servers.slack import SlackServer

ERROR = "Error code: 429 - {'error': {'message': 'Rate limit reached for requests', 'type': 'requests'}}"


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def nights(tmp_path, slack):
    """Return nightly runs that sample ten conversations, as by default."""
    (tmp_path / "data").mkdir()
    return Nights(
        tmp_path,
        AlertingTestbed(tmp_path / "data", slack, slack_monitor_channel="C0MONITOR"),
        sampling={"number": 10},
    )


def day(number: int, count: int, errors: int, reply: str = ERROR) -> list[str]:
    """Return log lines of ``count`` conversations, a minute apart, on the day before the night ``number``.

    In the middle of the day, ``errors`` conversations have the reply ``reply``.
    """
    begin = (count - errors) // 2
    return [
        talk(
            number * 10_000 + one,
            reply if begin <= one < begin + errors else PLAIN_REPLY,
            completed_at=(NIGHT + timedelta(days=number, hours=-22, minutes=one)).isoformat(),
        )
        for one in range(count)
    ]


def about_the_app(slack: SlackServer):
    return [message for message in slack.messages if message.channel == "C0ALERTS"]


def shown(message) -> str:
    return json.dumps(message.blocks, ensure_ascii=False)


def find_rate(report: NightlyReport, kind: CensusKind) -> CensusRate:
    return next(rate for rate in report.census if rate.kind is kind)


async def test_every_conversation_is_counted_whatever_was_sampled(nights, snapshot):
    nights.append(*day(0, 552, 140))
    report = await nights.grade()
    assert report.sampled == 10
    errors = find_rate(report, CensusKind.ERROR_LEAK)
    assert (errors.found, errors.graded, round(errors.finding_share, 3)) == (140, 552, 0.254)
    assert (f"{errors.first_at:%H:%M}", f"{errors.last_at:%H:%M}") == ("07:26", "09:45")
    assert errors.example_id == "talk-206"
    assert {one.kind: one.found for one in report.census if one.kind is not CensusKind.ERROR_LEAK} == dict.fromkeys(
        set(CensusKind) - {CensusKind.ERROR_LEAK}, 0
    )
    assert stable_report(report) == snapshot


async def test_census_counts_outlive_the_checkpoint_without_personal_data(nights):
    nights.append(*day(0, 50, 3, LEAK))
    report = await nights.grade()
    nights.testbed.store.load_pending(5)
    assert (await nights.grade()).census == report.census
    assert find_rate(report, CensusKind.DISCLOSURE).found == 3
    assert LEAKED.encode() not in nights.stored_bytes()


@pytest.mark.whole_only
async def test_an_error_burst_is_one_alert_and_over_when_it_is_over(nights, slack, snapshot):
    """A day with 140 provider errors in 552 replies causes one alert, which recovers the next day."""
    for number, errors in enumerate((0, 0, 140, 0, 0)):
        nights.append(*day(number, 552, errors))
        await nights.grade(number)
    burst, over = about_the_app(slack)
    for value in ("140 of 552", "25.4 %", "2026-03-02 07:26", "2026-03-02 09:45 UTC", "0 of 1,104", "talk-20206"):
        assert value in shown(burst)
    assert over.thread_ts == burst.ts
    assert [alert.reason for alert in nights.testbed.alerts()] == [NotifyReason.FIRST_SEEN, NotifyReason.RECOVERED]
    assert format_messages([burst, over]) == snapshot
    assert nights.testbed.store.list_open_incidents("demo") == ()


@pytest.mark.whole_only
async def test_a_burst_of_errors_is_no_second_drift(nights, slack):
    """A burst of errors, which has its own alert, is not reported as drift."""
    nights.settings = nights.settings.model_copy(
        update={"sampling": nights.settings.sampling.model_copy(update={"number": 200})}
    )
    for number, errors in enumerate((0, 0, 0, 140, 140, 0)):
        nights.append(*day(number, 552, errors))
        report = await nights.grade(number)
        assert not report.drift_reading.drifted
    assert not [message for message in about_the_app(slack) if "drift" in shown(message).lower()]


@pytest.mark.whole_only
async def test_a_rate_that_multiplies_is_worse(nights, slack, snapshot):
    """An error rate that increases from 0.2 % to 2.5 % is reported as worse once.

    Later nights with a similar rate report nothing.
    """
    for number, errors in enumerate((1, 2, 14, 15, 13)):
        nights.append(*day(number, 552, errors))
        await nights.grade(number)
    reasons = nights.loaded("select reason from alerts where kind = 'case_failure' order by created_at")
    assert [str(reason) for (reason,) in reasons] == ["first_seen", "reminder", "worse", "reminder", "reminder"]
    worse = about_the_app(slack)[2]
    assert all(value in shown(worse) for value in ("14 of 552", "2.5 %", "3 of 1,104"))
    assert format_messages([worse]) == snapshot


@pytest.mark.whole_only
async def test_one_of_many_that_is_not_seen_in_a_small_night_is_not_over(nights, slack):
    """A night without failures resolves an incident only if the night has enough conversations.

    After 5 failures in 552 conversations, 40 conversations without a failure are too few, but 640 are enough.
    """
    for number, (count, errors) in enumerate(((552, 5), (40, 0), (600, 0))):
        nights.append(*day(number, count, errors))
        await nights.grade(number)
        standing = nights.testbed.store.list_open_incidents("demo")
        assert len(standing) == (1 if number < 2 else 0)
    assert " 640 " in shown(about_the_app(slack)[-1])


@pytest.mark.whole_only
async def test_a_night_that_cannot_be_read_resolves_nothing(nights, slack, tmp_path):
    """If one of two sources cannot be read, the night resolves no incident."""
    nights.append(*day(0, 552, 140))
    await nights.grade()
    nights.sources["other"] = file_source(tmp_path / "away.jsonl")
    nights.append(*day(1, 552, 0))
    assert (await nights.grade(1)).interrupted
    assert [one.case_id for one in nights.testbed.store.list_open_incidents("demo")][:1] == [
        "live-traffic:error_leak"
    ]


@pytest.mark.whole_only
async def test_refusals_alert_when_there_are_many_more_than_usual_and_recover(nights, slack, snapshot):
    """A refusal rate of 20 % opens an incident if the usual rate is 3 %.

    When the rate is usual again, the incident is resolved.
    """
    refused = "I'm sorry, I can't help with that request."
    for number, refusals in enumerate((9, 11, 8, 60, 63, 10)):
        nights.append(*day(number, 300, refusals, refused))
        await nights.grade(number)
        assert len(nights.testbed.store.list_open_incidents("demo")) == (1 if number in {3, 4} else 0)
    first, again, over = about_the_app(slack)
    assert "60 of 300" in shown(first)
    assert "28 of 900" in shown(first)
    assert "28 of 900" in shown(again), "the nights that are odd are not what is usual"
    assert "10 of 300" in shown(over)
    assert format_messages([first, over]) == snapshot


async def test_messages_without_an_answer_are_an_incident_of_their_own(nights, slack, snapshot):
    """Messages without an answer have their own incident, because a missing answer is not a wrong answer."""
    silent = [
        {"question": "How long is the waiting period?", "answer": PLAIN_REPLY},
        {"question": "And for teeth?"},
    ]
    nights.append(*day(0, 40, 0), *(talk(900 + one, turns=silent) for one in range(5)))
    await nights.grade()
    (message,) = about_the_app(slack)
    assert "5 of 45" in shown(message)
    assert "And for teeth?" in shown(message)
    assert format_messages([message]) == snapshot
