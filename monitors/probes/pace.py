"""Limit the number of concurrent questions: a fixed number, or as many as the machine has idle CPU for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from monitors.probes.settings import ProbeSettings, compute_concurrency

MAX_AUTOMATIC_CONCURRENCY: Final = 8
"""Maximum of concurrent questions to one application, unless the settings contain a number."""

IDLE_SHARE_TO_INCREASE: Final = 0.35
"""Above this idle share of the cores, one more question is started.

A page that asks a Gradio 6 bot (1 s a reply, a new context each) used 0.53 of a core alone, 0.42 as one of two,
0.32 as one of four, and 1.7 to 1.9 CPU seconds a question: a quarter of two cores at most. Measured over 16
questions each with the CPU meter of the benches, on two cores that other work shared.
"""

IDLE_SHARE_TO_DECREASE: Final = 0.05
"""Below this idle share, one fewer question is started: answer times would then measure the monitor itself."""

ADJUST_INTERVAL_S: Final = 2.0
"""The time between two changes: shorter than most answers, longer than the load of one page."""

IdleShare = Callable[[], float | None]
"""Return the idle share of all cores since the last call: 0 to 1, ``None`` if unknown."""


class Pace:
    """A semaphore for questions. ``allowed`` is its current size; it starts at ``initial`` and follows ``idle``.

    If ``minimum`` equals ``maximum``, the size never changes. A cancelled question releases its turn like any
    other.
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
        """Return a pace that always allows ``number`` concurrent questions."""
        return cls(initial=number, minimum=number, maximum=number, idle=lambda: None)

    async def __aenter__(self) -> Self:
        """Wait for a turn."""
        await self._turns.acquire()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the turn, and adapt the number of turns."""
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
    """Build the configured pace, or else one that starts at two per core and follows idle CPU, eight at most."""
    if settings.concurrency is not None:
        return Pace.with_fixed_size(settings.concurrency)
    initial = min(compute_concurrency(settings, cores), MAX_AUTOMATIC_CONCURRENCY)
    return Pace(initial=initial, minimum=min(cores, initial), maximum=MAX_AUTOMATIC_CONCURRENCY, idle=idle)


class CpuTimes:
    """Read the idle share of this machine's cores from Linux's ``/proc/stat``; unknown on other systems."""

    def __init__(self, stat: Path = Path("/proc/stat")) -> None:
        self._stat = stat
        self._before: tuple[int, int] | None = None

    def __call__(self) -> float | None:
        """Return the share since the last call; ``None`` at the first call, or for an unexpected file format."""
        now = self._read()
        before, self._before = self._before, now
        if now is None or before is None or now[1] <= before[1]:
            return None
        return max(0.0, min(1.0, (now[0] - before[0]) / (now[1] - before[1])))

    def _read(self) -> tuple[int, int] | None:
        """Return idle ticks (including waiting for disks) and all ticks, of all cores together."""
        try:
            name, *ticks = self._stat.read_text("ascii").splitlines()[0].split()
            spent = [int(tick) for tick in ticks[:8]]  # the guest times after these are part of user time
        except (OSError, ValueError, IndexError):
            return None
        return (spent[3] + spent[4], sum(spent)) if name == "cpu" and len(spent) > 4 else None  # noqa: PLR2004 - fields 4 and 5 are idle and iowait, proc(5)
