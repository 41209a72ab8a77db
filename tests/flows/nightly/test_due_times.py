"""Test that a night is the interval between two times at which Prefect's schedule starts a nightly run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import prefect
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prefect.server.schemas.schedules import CronSchedule

from flows.digest.flow import build_digest_id
from flows.nightly.context import compute_previous_due_at
from flows.nightly.run import NightlyRun
from monitors.sources.settings import NightlySettings
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.digest.test_night_digest import get_night_line, morning
from tests.flows.nightly_runs import Nights, talk_at
from tests.servers.slack import SlackServer
from tests.tiers import scale_examples

ZONES = (
    *("Africa/Cairo", "Africa/Casablanca", "Africa/Lagos", "America/Asuncion", "America/Bogota", "America/Chicago"),
    *("America/Havana", "America/Los_Angeles", "America/New_York", "America/Nuuk", "America/Santiago"),
    *("America/Sao_Paulo", "America/St_Johns", "Asia/Beirut", "Asia/Jerusalem", "Asia/Kathmandu", "Asia/Kolkata"),
    *("Asia/Tehran", "Asia/Tokyo", "Atlantic/Azores", "Australia/Lord_Howe", "Australia/Sydney", "Europe/Berlin"),
    *(
        "Europe/Chisinau",
        "Europe/London",
        "Pacific/Apia",
        "Pacific/Auckland",
        "Pacific/Chatham",
        "Pacific/Kiritimati",
    ),
    "UTC",
)
YEAR = (datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC))
SECOND = timedelta(seconds=1)


def night(zone: str, hour: int = 2) -> NightlySettings:
    source = {"kind": "file", "at": "talks.jsonl"}
    return NightlySettings.model_validate({"sources": {"talks": source}, "time_zone": zone, "hour": hour})


def list_scheduled_times(
    zone: str, line: str, since: datetime = YEAR[0], until: datetime = YEAR[1]
) -> list[datetime]:
    """Return the times from ``since`` to ``until`` at which Prefect's server starts a run of the cron ``line``."""
    dates = CronSchedule(cron=line, timezone=zone)._get_dates_generator(start=since, end=until)
    return [datetime.fromtimestamp(moment.timestamp(), UTC) for moment in dates]


@cache
def changes_of(zone: str) -> list[datetime]:
    """Return the times of a year's clock changes in ``zone``, rounded to half an hour."""
    steps = [YEAR[0] + timedelta(minutes=30 * number) for number in range(1, 2 * 8760)]
    zone_info = ZoneInfo(zone)
    return [
        step
        for step in steps
        if step.astimezone(zone_info).utcoffset()
        != (step - timedelta(minutes=30)).astimezone(zone_info).utcoffset()
    ]


def test_thirty_zones_are_tried_with_the_prefect_that_the_schedules_were_measured_with():
    """The installed Prefect has the version whose schedules were measured, and thirty time zones are tested.

    If this test fails after an upgrade of Prefect, the other tests show whether its schedules have changed.
    """
    assert len(set(ZONES)) == 30
    assert prefect.__version__.startswith("3.8.")


@pytest.mark.whole_only
@pytest.mark.parametrize("zone", ZONES)
def test_each_run_that_prefect_starts_has_a_night_of_its_own(zone):
    """Each run that Prefect starts has its own night, even if a clock change skips or repeats the run's hour."""
    for begin in (YEAR[0], *(change - timedelta(days=3) for change in changes_of(zone))):
        for hour in (0, 1, 2, 3, 23):
            of_zone = night(zone, hour)
            runs = list_scheduled_times(zone, f"0 {hour} * * *", begin, begin + timedelta(days=6))
            assert [compute_previous_due_at(run, of_zone) for run in runs] == runs
            assert [compute_previous_due_at(run + 40 * SECOND, of_zone) for run in runs] == runs
            assert len(runs) in {5, 6, 7}  # a day of a clock change has 23 or 25 hours


@pytest.mark.parametrize("zone", ZONES)
def test_each_moment_of_a_year_lies_in_exactly_one_night(zone):
    @settings(max_examples=scale_examples(200), deadline=None)
    @given(
        moment=st.timedeltas(timedelta(0), YEAR[1] - YEAR[0]).map(lambda since: YEAR[0] + since),
        hour=st.integers(0, 23),
    )
    def law(moment, hour):
        of_zone = night(zone, hour)
        began = compute_previous_due_at(moment, of_zone)
        ended = compute_previous_due_at(began + timedelta(hours=36), of_zone)
        assert began <= moment < ended
        assert timedelta(hours=22) <= ended - began <= timedelta(hours=26)
        assert compute_previous_due_at(ended - SECOND, of_zone) == began
        assert compute_previous_due_at(ended, of_zone) == ended

    law()


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"])
def test_the_moments_around_a_clock_change_lie_in_exactly_one_night(zone):
    """Every time in the three days around each clock change of 2027 is in exactly one night."""
    for hour in range(4):
        of_zone = night(zone, hour)
        for change in changes_of(zone):
            around_change = (change - timedelta(days=3), change + timedelta(days=3))
            due_times = list_scheduled_times(zone, f"0 {hour} * * *", *around_change)
            moments = [change + timedelta(minutes=5 * number) for number in range(-430, 430)]
            begins = [compute_previous_due_at(moment, of_zone) for moment in moments]
            assert begins == sorted(begins)
            assert set(begins) <= set(due_times)


@pytest.fixture
def nights(tmp_path):
    (tmp_path / "data").mkdir()
    with SlackServer() as slack:
        yield Nights(tmp_path, AlertingTestbed(tmp_path / "data", slack))


@pytest.mark.parametrize("zone", ["Europe/Berlin", pytest.param("America/New_York", marks=pytest.mark.whole_only)])
@pytest.mark.whole_only
async def test_the_nights_around_both_clock_changes_are_graded_once_each_and_the_digest_does_not_doubt(
    nights, tmp_path, zone
):
    """Around a clock change, each night is graded once, and the digest does not report a missing night."""
    nights.settings = nights.settings.model_copy(update={"time_zone": zone})
    number, reports = 0, []
    for change in changes_of(zone):
        runs = list_scheduled_times(zone, "0 2 * * *", change - timedelta(days=2), change + timedelta(days=2))
        asked = [runs[0] - timedelta(hours=hours) for hours in range(1, 24, 3)]
        asked += [
            runs[0] + timedelta(hours=hours)
            for hours in range(1, int((runs[-1] - runs[0]).total_seconds()) // 3600, 3)
        ]
        nights.append(*(talk_at(number + place, moment) for place, moment in enumerate(asked)))
        for run in runs:
            due_at = compute_previous_due_at(run + 5 * SECOND, nights.settings)
            reports.append(await NightlyRun(nights.wire_at(due_at)).run())
            assert reports[-1].due_at == run
            nights.testbed.now = run + timedelta(hours=5)
            assert "is the schedule alive" not in get_night_line(morning(nights, tmp_path))
        assert sum(report.read for report in reports) == number + len(asked)
        number += len(asked)
    assert all(report.read for report in reports)
    assert len({report.run_id for report in reports}) == len(reports)


@pytest.mark.parametrize(
    "zone",
    [
        *("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Auckland"),
        *("America/Santiago", "Pacific/Kiritimati"),
    ],
)
def test_each_due_time_of_a_year_has_a_digest_of_its_own_and_each_machine_gives_it_the_same_id(zone):
    """Each due time of a year has its own digest, with the same id on every machine.

    The schedules in this test include two o'clock, because clock changes skip and repeat this hour.
    """
    for line in ("0 2 * * *", "0 7,19 * * *"):
        runs = list_scheduled_times(zone, line)
        ids = [build_digest_id("bot", run) for run in runs]
        assert len(set(ids)) == len(runs) >= 365
        elsewhere = [run.astimezone(ZoneInfo("Asia/Tokyo")) for run in runs]
        assert [build_digest_id("bot", run) for run in elsewhere] == ids
