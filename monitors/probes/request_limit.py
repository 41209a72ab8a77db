"""Respect an application's limit of requests: wait as long as the app asks for, then send more slowly.

A refusal (HTTP 429) does not count as a try of the question or as a fault. The pace that an application accepts
is learned: the questions that it accepted since the last wait, over the time until it accepts the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

FIRST_PAUSE_S: Final = 5.0
"""The wait after a refusal without a time; it doubles while refusals follow each other."""
MAX_PAUSE_S: Final = 60.0
"""The longest wait that Lookout chooses: most limits are per minute. The application may ask for a longer wait."""
MAX_INTERVAL_S: Final = 60.0
"""The longest learned interval between two questions."""
DEFAULT_PATIENCE_S: Final = 3600.0
"""How long to wait for a limit to end if the run has no end time."""
MINUTE_S: Final = 60.0

OnPause = Callable[[float], None]
"""Called with the seconds of a wait that begins."""


class RequestLimit:
    """The pace of one run's questions. Belongs to one event loop.

    ``ends_at`` is the time when the run must end, in seconds of the loop's clock. A limit beyond this time opens
    the circuit.
    """

    def __init__(
        self,
        requests_per_minute: float | None = None,
        *,
        ends_at: float | None = None,
        on_pause: OnPause = lambda _: None,
    ) -> None:
        self._interval_s = MINUTE_S / requests_per_minute if requests_per_minute else 0.0
        self._ends_at = _now() + DEFAULT_PATIENCE_S if ends_at is None else ends_at
        self._on_pause = on_pause
        self._next_at = self._paused_at = self._paused_until = 0.0
        self._window_from: float | None = None
        self._taken = 0
        self._refusals_in_a_row = 0
        self.pauses = 0
        self.waited_s = 0.0

    async def wait_for_turn(self, requests: int) -> float:
        """Wait until a question of so many requests may be sent; return that time by the loop's clock."""
        # A refusal moves the time, and no event marks the new time.
        while (now := _now()) < (starts_at := max(self._next_at, self._paused_until)):  # noqa: ASYNC110 - see above
            await asyncio.sleep(starts_at - now)  # until the time of this question
        self._next_at = now + self._interval_s * requests
        return now

    def count_answer(self, requests: int, asked_at: float) -> None:
        """Count a question that the application accepted."""
        if self._window_from is None or (self._refusals_in_a_row and asked_at >= self._paused_until):
            self._window_from, self._taken, self._refusals_in_a_row = asked_at, 0, 0
        self._taken += requests

    def pause(self, retry_after_s: float | None, asked_at: float) -> bool:
        """Pause all questions after a refusal; return false if the limit lasts longer than the run.

        Refusals of questions that were already under way at the start of a pause belong to the same limit.
        """
        now = _now()
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
            self._learn_request_interval(until)
            self._on_pause(until - now)
        return True

    def _learn_request_interval(self, until: float) -> None:
        if self._window_from is not None and self._taken:
            learned_s = min(MAX_INTERVAL_S, (until - self._window_from) / self._taken)
            self._interval_s = max(self._interval_s, learned_s)

    def explain_end(self, retry_after_s: float | None) -> str:
        """Return why waiting for the limit to end is not possible."""
        wait = f"Retry-After says {retry_after_s:.0f} s" if retry_after_s is not None else "the wait is unknown"
        return (
            f"the app limits requests (HTTP 429); {wait}, but the run has only {self._ends_at - _now():.0f} s left"
        )

    def describe(self) -> str:
        """Describe the waits for the limit; empty without any."""
        if not self.pauses:
            return ""
        pace = f", then asked {MINUTE_S / self._interval_s:.0f} a minute" if self._interval_s else ""
        times = "once" if self.pauses == 1 else f"{self.pauses} times"
        return f"the app limits requests (HTTP 429): waited {times}, {self.waited_s:.0f} s in all{pace}"


def _now() -> float:
    return asyncio.get_running_loop().time()
