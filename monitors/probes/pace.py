"""Limit the parallel questions to a fixed number, or to the number that the CPU of this machine allows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from monitors.probes.settings import ProbeSettings, compute_concurrency

MAX_AUTOMATIC_CONCURRENCY: Final = 8
"""Maximum number of parallel questions to one app, unless the setting ``probe.concurrency`` is set."""

IDLE_SHARE_TO_INCREASE: Final = 0.35
"""If more than this share of the CPU is idle, Lookout asks one more question at the same time.

One more question then fits: with a Gradio bot that answers in 1 s, a question used at most a quarter of 2 cores.
"""

IDLE_SHARE_TO_DECREASE: Final = 0.05
"""If less than this share of the CPU is idle, Lookout asks one question less, because the load delays answers."""

ADJUST_INTERVAL_S: Final = 2.0
"""Minimum seconds between two changes of the limit.

Most answers take longer than this time, but loading a page takes less time.
"""

IdleShare = Callable[[], float | None]
"""A function that returns which share of the CPU (0 to 1) was idle since its last call.

It returns ``None`` if the share is unknown.
"""


class Pace:
    """Limit the parallel questions. Each question runs in ``async with pace``.

    ``allowed`` is the current limit. It starts at ``initial`` and changes between ``minimum`` and ``maximum``,
    depending on the idle share of the CPU that ``idle`` returns.
    """

    def __init__(self, *, initial: int, minimum: int, maximum: int, idle: IdleShare) -> None:
        if not 1 <= minimum <= initial <= maximum:
            raise ValueError(f"expected 1 ≤ minimum ≤ initial ≤ maximum, got {minimum}, {initial}, {maximum}")
        self.allowed, self.maximum = initial, maximum
        self._minimum, self._idle = minimum, idle
        self._turns = asyncio.Semaphore(initial)
        self._excess_turns = 0
        self._changed_at_s: float | None = None

    @classmethod
    def with_fixed_size(cls, number: int) -> Pace:
        """Return a pace that always allows ``number`` parallel questions."""
        return cls(initial=number, minimum=number, maximum=number, idle=lambda: None)

    async def __aenter__(self) -> Self:
        """Wait until one more question may run."""
        await self._turns.acquire()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the question, and adjust the number of parallel questions."""
        self._adjust_concurrency_to_idle_cpu(asyncio.get_running_loop().time())
        self._release_turn_unless_excess()

    def _adjust_concurrency_to_idle_cpu(self, now_s: float) -> None:
        if self._changed_at_s is None:
            self._idle()  # the next call measures from now on
            self._changed_at_s = now_s
        if self._minimum == self.maximum or now_s - self._changed_at_s < ADJUST_INTERVAL_S:
            return
        self._changed_at_s = now_s
        share = self._idle()
        if share is not None and share > IDLE_SHARE_TO_INCREASE and self.allowed < self.maximum:
            self.allowed += 1
            self._release_turn_unless_excess()
        elif share is not None and share < IDLE_SHARE_TO_DECREASE and self.allowed > self._minimum:
            self.allowed -= 1
            self._excess_turns += 1

    def _release_turn_unless_excess(self) -> None:
        if self._excess_turns:
            self._excess_turns -= 1
        else:
            self._turns.release()


def build_pace(settings: ProbeSettings, cores: int, idle: IdleShare) -> Pace:
    """Return a pace that allows the number of parallel questions in ``settings.concurrency``.

    If this setting is not set, the pace starts with two questions for each core and adapts to the load of the CPU.
    The maximum is then `MAX_AUTOMATIC_CONCURRENCY` questions.
    """
    if settings.concurrency is not None:
        return Pace.with_fixed_size(settings.concurrency)
    initial = min(compute_concurrency(settings, cores), MAX_AUTOMATIC_CONCURRENCY)
    return Pace(initial=initial, minimum=min(cores, initial), maximum=MAX_AUTOMATIC_CONCURRENCY, idle=idle)


class CpuTimes:
    """Measure how much of the CPU is idle, from ``/proc/stat`` of Linux."""

    def __init__(self, stat: Path = Path("/proc/stat")) -> None:
        self._stat = stat
        self._before: tuple[int, int] | None = None

    def __call__(self) -> float | None:
        """Return the idle share since the last call; ``None`` at the first call and on systems other than Linux."""
        now = self._read_idle_and_total_ticks()
        before, self._before = self._before, now
        if now is None or before is None or now[1] <= before[1]:
            return None
        return max(0.0, min(1.0, (now[0] - before[0]) / (now[1] - before[1])))

    def _read_idle_and_total_ticks(self) -> tuple[int, int] | None:
        """Return the idle time and the total time of all cores, in ticks of the kernel."""
        try:
            name, *ticks = self._stat.read_text("ascii").splitlines()[0].split()
            spent = [int(tick) for tick in ticks[:8]]  # the guest times after these are part of user time
        except (OSError, ValueError, IndexError):
            return None
        return (spent[3] + spent[4], sum(spent)) if name == "cpu" and len(spent) > 4 else None  # noqa: PLR2004 - fields 4 and 5 are idle and iowait, proc(5)
