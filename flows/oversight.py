"""A run is watched while it goes: what breaks it is told, what hangs is ended, and a watchdog outside hears of it.

the run ends by itself ────────────▶ a ping, when it graded something
an exception ──────────────────────▶ one message about the monitor, a ping of failure, the exception goes on
asking takes too long ─────────────▶ (in verify_deploy) stopped, weighed, told as any run
nothing moves after that either ───▶ this thread says so and ends the process
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final

from flows.desk import Desk
from flows.monitor_fault import Fault, fault_of, tell_fault
from monitors.alerts.heartbeat import Beat, Heartbeat

HUNG_RUN: Final = "HungRun"
MONITOR_BROKE: Final = 4
"""The exit code of every command that failed by itself."""
SAYING_S: Final = 120.0
"""Longer than two waits for the warehouse's lock and one delivery: then the process ends unsaid."""


class Guard:
    """A thread that outlives a hung event loop: ``on_hang`` is called in it when `done` was not in time."""

    def __init__(self, after_s: float, on_hang: Callable[[], None]) -> None:
        self._after_s = after_s
        self._on_hang = on_hang
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="run-guard", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def done(self) -> None:
        """The run is over."""
        self._done.set()

    def _watch(self) -> None:
        if not self._done.wait(self._after_s):
            self._on_hang()


@asynccontextmanager
async def overseen(
    desk: Desk,
    beat: Heartbeat,
    *,
    end_after_s: float,
    stop: Callable[[int], None],
    untold: tuple[type[Exception], ...] = (),
) -> AsyncGenerator[None]:
    """Watch what happens inside; ``stop`` ends the process with an exit code, whatever hangs in it.

    Errors that are ``untold`` are somebody's who is looking: no message is sent about them.
    """
    await beat.ping(Beat.STARTED, run_id=desk.run_id)
    guard = Guard(end_after_s, lambda: end_hung(desk, beat, after_s=end_after_s, stop=stop))
    guard.start()
    try:
        yield
    except Exception as error:
        if not isinstance(error, untold):
            await tell_fault(desk, fault_of(error))
        await beat.ping(Beat.FAILED, run_id=desk.run_id, note=type(error).__name__)
        raise
    finally:
        guard.done()


def end_hung(desk: Desk, beat: Heartbeat, *, after_s: float, stop: Callable[[int], None]) -> None:
    """Say that the process hangs, then end it; it ends too when saying hangs as well. For a thread of its own."""
    last_resort = threading.Timer(SAYING_S, stop, [MONITOR_BROKE])
    last_resort.daemon = True
    last_resort.start()
    try:
        asyncio.run(_say_hung(desk, beat, after_s))
    finally:
        stop(MONITOR_BROKE)


async def _say_hung(desk: Desk, beat: Heartbeat, after_s: float) -> None:
    detail = (
        f"The run was not over after {after_s:g} s and did not react: its process was ended. "
        "What was answered is kept, and the next run within the hour goes on from there."
    )
    await asyncio.gather(
        tell_fault(desk, Fault(HUNG_RUN, detail)), beat.ping(Beat.FAILED, run_id=desk.run_id, note=HUNG_RUN)
    )
