"""How many questions are under way at once: a fixed number, or what the machine has room for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from monitors.probes.settings import ProbeSettings, compute_concurrency

MAX_AUTOMATIC_CONCURRENCY: Final = 8
"""No application is asked more than this at once unless its owner configured it."""

IDLE_SHARE_TO_INCREASE: Final = 0.35
"""Share of the cores' time idle above which one more is started.

A page that asks a Gradio 6 bot (1 s a reply, a new context each) used 0.53 of a core alone, 0.42 as one of two,
0.32 as one of four, and 1.7 to 1.9 CPU seconds a question: a quarter of two cores at most. Measured over 16
questions each with the CPU meter of the benches, on two cores that other work shared.
"""

IDLE_SHARE_TO_DECREASE: Final = 0.05
"""Share below which one fewer is started: from there on the time of an answer is the monitor's own."""

ADJUST_INTERVAL_S: Final = 2.0
"""The time between two changes: shorter than most answers, long enough that one page's load is not the run's."""

IdleShare = Callable[[], float | None]
"""The share of all cores' time, since it was last asked, in which nothing ran: 0 to 1, ``None`` where unknown."""


class Pace:
    """Turns to ask. ``allowed`` is how many are given at once now; it starts at ``initial`` and follows ``idle``.

    With ``minimum`` equal to ``maximum`` it never changes. A turn that is cancelled is given back like any other.
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
        """Always ``number`` at once."""
        return cls(initial=number, minimum=number, maximum=number, idle=lambda: None)

    async def __aenter__(self) -> Self:
        """Wait for a turn."""
        await self._turns.acquire()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back, and see whether there is room for more."""
        self._adjust(asyncio.get_running_loop().time())
        self._give_back()

    def _adjust(self, now_s: float) -> None:
        if self._changed_at_s is None:
            self._idle()  # from here on
            self._changed_at_s = now_s
        if self._minimum == self.maximum or now_s - self._changed_at_s < ADJUST_INTERVAL_S:
            return
        self._changed_at_s = now_s
        share = self._idle()
        if share is not None and share > IDLE_SHARE_TO_INCREASE and self.allowed < self.maximum:
            self.allowed += 1
            self._give_back()
        elif share is not None and share < IDLE_SHARE_TO_DECREASE and self.allowed > self._minimum:
            self.allowed -= 1
            self._excess_turns += 1

    def _give_back(self) -> None:
        if self._excess_turns:
            self._excess_turns -= 1
        else:
            self._turns.release()


def build_pace(settings: ProbeSettings, cores: int, idle: IdleShare) -> Pace:
    """The configured pace, else two for each core at first, then by what the cores have left, eight at the most."""
    if settings.concurrency is not None:
        return Pace.with_fixed_size(settings.concurrency)
    initial = min(compute_concurrency(settings, cores), MAX_AUTOMATIC_CONCURRENCY)
    return Pace(initial=initial, minimum=min(cores, initial), maximum=MAX_AUTOMATIC_CONCURRENCY, idle=idle)


class CpuTimes:
    """Reads the idle share of this machine's cores from Linux's ``/proc/stat``; elsewhere nobody knows."""

    def __init__(self, stat: Path = Path("/proc/stat")) -> None:
        self._stat = stat
        self._before: tuple[int, int] | None = None

    def __call__(self) -> float | None:
        """The share since the call before; ``None`` at the first one, and where the file is not as expected."""
        now = self._read()
        before, self._before = self._before, now
        if now is None or before is None or now[1] <= before[1]:
            return None
        return max(0.0, min(1.0, (now[0] - before[0]) / (now[1] - before[1])))

    def _read(self) -> tuple[int, int] | None:
        """Idle ticks (waiting for disks counts as idle) and all ticks, of all cores together."""
        try:
            name, *ticks = self._stat.read_text("ascii").splitlines()[0].split()
            spent = [int(tick) for tick in ticks[:8]]  # guest time, behind these, is part of user time
        except (OSError, ValueError, IndexError):
            return None
        return (spent[3] + spent[4], sum(spent)) if name == "cpu" and len(spent) > 4 else None  # noqa: PLR2004 - fields 4 and 5 are idle and iowait, proc(5)
