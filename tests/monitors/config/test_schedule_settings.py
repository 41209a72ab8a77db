"""Test which values are accepted as the time of the daily work, and that Prefect accepts each of these values."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings
from pydantic import ValidationError

from monitors.config.sections import ScheduleSettings, is_due_every_day
from tests.tiers import scale_examples

BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


def part(lowest: int, highest: int) -> st.SearchStrategy[str]:
    number = st.integers(lowest, highest)
    span = st.tuples(number, number).map(sorted).map(lambda pair: f"{pair[0]}-{pair[1]}")
    step = st.integers(1, highest)
    stepped = st.tuples(st.just("*") | span, step).map(lambda pair: f"{pair[0]}/{pair[1]}")
    return st.just("*") | number.map(str) | span | stepped


def field(lowest: int, highest: int) -> st.SearchStrategy[str]:
    return st.lists(part(lowest, highest), min_size=1, max_size=3).map(",".join)


LINES = st.tuples(*(field(*bounds) for bounds in BOUNDS)).map(" ".join)


@given(LINES)
@settings(max_examples=scale_examples(200))
@example("*/59 */23 */31 */12 */6")
@example("0 0 1-31/31 1-12/12 0-6/6")
@pytest.mark.whole_only
def test_every_line_that_is_accepted_is_one_to_prefect(line):
    from prefect.client.schemas.schedules import CronSchedule  # seconds to import

    assert ScheduleSettings(verify_cron=line).verify_cron == line
    assert CronSchedule(cron=line, timezone="UTC").cron == line


@pytest.mark.parametrize(
    "line",
    [
        "1 * * *",
        "0 1 * * * *",
        "60 1 * * *",
        "0 24 * * *",
        "0 1 0 * *",
        "0 1 32 * *",
        "0 1 * 13 *",
        "0 1 * * 7",
        "0 1 * * mon",
        "@daily",
        "5-1 1 * * *",
        "*/0 1 * * *",
        "5/2 1 * * *",
        "1, 1 * * *",
        "१ 1 * * *",
        "-1 1 * * *",
    ],
)
def test_an_invalid_cron_line_is_refused_with_an_example(line):
    with pytest.raises(ValidationError, match=r'such as "0 1 \* \* \*", or "" for never'):
        ScheduleSettings(digest_cron=line)


@pytest.mark.parametrize(("line", "parsed"), [("", ""), ("   ", ""), (" 0  1 * *\t* ", "0 1 * * *")])
def test_off_is_empty_and_spaces_do_not_matter(line, parsed):
    assert ScheduleSettings(load_cron=line).load_cron == parsed


@pytest.mark.parametrize(
    ("line", "daily"),
    [("0 1 * * *", True), ("*/5 1-3 * * *", True), ("0 1 * * 1-5", False), ("0 1 1 * *", False), ("", False)],
)
def test_only_what_fires_every_day_is_daily(line, daily):
    assert is_due_every_day(line) is daily


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../UTC", "/etc/passwd"])
def test_a_zone_that_is_none_is_refused(zone):
    with pytest.raises(ValidationError, match="a zone of the tz database"):
        ScheduleSettings(time_zone=zone)


def test_a_time_zone_keeps_its_name():
    assert ScheduleSettings(time_zone="Asia/Kolkata").time_zone == "Asia/Kolkata"
