"""Respect the request limit of an app: wait as long as the app demands, then ask more slowly.

A refused question (HTTP 429) is not a failed attempt and not a fault of the app. Lookout learns from the refusals
how many questions per minute the app accepts, and then asks at most this number.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from monitors.plural import plural

FIRST_PAUSE_S: Final = 5.0
"""Seconds to wait after a refusal that specifies no wait time. The wait doubles with each refusal in a row."""
MAX_PAUSE_S: Final = 60.0
"""Maximum seconds to wait after a refusal that specifies no wait time. Most limits are for one minute."""
MAX_INTERVAL_S: Final = 60.0
"""Maximum time between two questions in seconds. Lookout computes this time from the refusals of the app."""
DEFAULT_PATIENCE_S: Final = 3600.0
"""Maximum seconds to wait for the end of a request limit, if the run has no end time."""
MINUTE_S: Final = 60.0

OnPause = Callable[[float], None]
"""A function that is called at the start of a wait, with the length of the wait in seconds."""


class RequestLimit:
    """The request limit of an app during one run. Use it in one event loop only.

    ``ends_at`` is the time when the run must end, in seconds of the event loop's clock. If the limit lasts longer,
    the remaining questions are not asked.
    """

    def __init__(
        self,
        requests_per_minute: float | None = None,
        *,
        ends_at: float | None = None,
        on_pause: OnPause = lambda _: None,
    ) -> None:
        self._interval_s = MINUTE_S / requests_per_minute if requests_per_minute else 0.0
        self._ends_at = _read_event_loop_time() + DEFAULT_PATIENCE_S if ends_at is None else ends_at
        self._on_pause = on_pause
        self._next_at = self._paused_at = self._paused_until = 0.0
        self._window_from: float | None = None
        self._taken = 0
        self._refusals_in_a_row = 0
        self.pauses = 0
        self.waited_s = 0.0

    async def wait_until_question_allowed(self, requests: int) -> float:
        """Wait until a question that needs this many requests may be sent.

        Return the current time of the event loop's clock.
        """
        # A refusal during the wait postpones this question. Therefore, the time is checked again.
        while (now := _read_event_loop_time()) < (starts_at := max(self._next_at, self._paused_until)):  # noqa: ASYNC110 - see above
            await asyncio.sleep(starts_at - now)  # until the time of this question
        self._next_at = now + self._interval_s * requests
        return now

    def count_accepted_question(self, requests: int, asked_at: float) -> None:
        """Count a question that the app accepted."""
        if self._window_from is None or (self._refusals_in_a_row and asked_at >= self._paused_until):
            self._window_from, self._taken, self._refusals_in_a_row = asked_at, 0, 0
        self._taken += requests

    def pause_questions_after_refusal(self, retry_after_s: float | None, asked_at: float) -> bool:
        """Pause all questions after a refusal. Return False if the limit lasts longer than the run.

        ``asked_at`` is the time of the refused question. If that question was sent before the last pause began, no
        new pause begins.
        """
        now = _read_event_loop_time()
        is_new = asked_at >= self._paused_at and now >= self._paused_until
        if is_new:
            self._refusals_in_a_row += 1
        doubled = 2 ** min(self._refusals_in_a_row - 1, 6)
        own_s = min(MAX_PAUSE_S, (FIRST_PAUSE_S if retry_after_s is None else 1.0) * doubled)
        until = now + max(retry_after_s or 0.0, own_s)
        if until >= self._ends_at:
            return False
        if is_new or (retry_after_s is not None and until > self._paused_until):
            self.waited_s += until - max(now, self._paused_until)
            self._paused_until = until
        if is_new:
            self._paused_at = now
            self.pauses += 1
            if self._window_from is not None and self._taken:  # learn how many questions the app accepts
                learned_s = min(MAX_INTERVAL_S, (until - self._window_from) / self._taken)
                self._interval_s = max(self._interval_s, learned_s)
            self._on_pause(until - now)
        return True

    def explain_too_long_limit(self, retry_after_s: float | None) -> str:
        """Return the reason why the run does not wait for the end of the limit."""
        wait = f"for {retry_after_s:.0f} s" if retry_after_s is not None else "for an unknown time"
        left_s = self._ends_at - _read_event_loop_time()
        return f"the app refuses requests (HTTP 429) {wait}, but the run has only {left_s:.0f} s left"

    def describe_waits(self) -> str:
        """Return a sentence about the waits in this run. The result is empty if Lookout did not wait."""
        if not self.pauses:
            return ""
        pace = (
            f", then asked {plural(round(MINUTE_S / self._interval_s), 'question')} per minute"
            if self._interval_s
            else ""
        )
        times = "once" if self.pauses == 1 else f"{self.pauses} times"
        return f"the app limits requests (HTTP 429): Lookout waited {times}, {self.waited_s:.0f} s in total{pace}"


def _read_event_loop_time() -> float:
    return asyncio.get_running_loop().time()
