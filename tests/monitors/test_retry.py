"""Test that Lookout waits as long as a provider requests, but only up to a limit."""

from __future__ import annotations

import asyncio
from email.utils import format_datetime

import pytest

from monitors.errors import JudgeUnavailable
from monitors.retry import RetryPolicy, TryAgain, parse_retry_after_s, retry_judge_request
from tests.builders import NOON
from tests.monitors.asking import Pauses

PATIENCE = RetryPolicy(deadline_s=60, tries=4, most_pause_s=10)


def failing(times: int, after_s: float | None = None):
    """Return a function that raises an error ``times`` times and then returns "done"."""
    left = [times]

    async def attempt() -> str:
        if left[0]:
            left[0] -= 1
            raise TryAgain("HTTP 529", after_s)
        return "done"

    return attempt


async def test_pauses_double_and_the_last_try_has_none_after_it():
    pauses = Pauses()
    with pytest.raises(JudgeUnavailable, match="HTTP 529, 4 times"):
        await retry_judge_request(failing(9), PATIENCE, provider="m", pause=pauses)
    assert pauses.asked == [0.5, 1.0, 2.0]


async def test_the_pause_requested_by_the_provider_is_waited():
    pauses = Pauses()
    assert await retry_judge_request(failing(2, 7.0), PATIENCE, provider="m", pause=pauses) == "done"
    assert pauses.asked == [7.0, 7.0]


async def test_a_pause_beyond_the_cap_ends_it_at_once():
    pauses = Pauses()
    with pytest.raises(JudgeUnavailable, match="asks Lookout to wait 3600 s"):
        await retry_judge_request(failing(1, 3600.0), PATIENCE, provider="m", pause=pauses)
    assert pauses.asked == []


async def test_the_deadline_is_over_all_tries():
    async def never() -> str:
        await asyncio.Event().wait()
        return "late"

    with pytest.raises(JudgeUnavailable, match=r"no verdict within 0\.05 s"):
        await retry_judge_request(never, RetryPolicy(deadline_s=0.05), provider="m")


async def test_any_other_error_is_not_asked_again():
    async def broken() -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await retry_judge_request(broken, PATIENCE, provider="m")


@pytest.mark.parametrize("said", ["soon", "", "-5", "1e9", "Sun, 01 Mar 2026"])
def test_an_odd_retry_after_is_passed_over(said: str) -> None:
    assert parse_retry_after_s({"retry-after": said, "date": format_datetime(NOON, usegmt=True)}) is None


@pytest.mark.parametrize(("said", "seconds"), [("7", 7), ("0.5", 0.5), ("Sun, 01 Mar 2026 12:01:30 GMT", 90)])
def test_a_retry_after_is_seconds_or_a_time_by_the_server_s_clock(said: str, seconds: float) -> None:
    assert parse_retry_after_s({"retry-after": said, "date": format_datetime(NOON, usegmt=True)}) == seconds
