"""Watch a run while it goes: report what breaks it, end what hangs, and ping a watchdog outside.

the run ends by itself ────────────▶ a ping, when it graded something
an exception ──────────────────────▶ one message about the monitor, a ping of failure, the exception goes on
asking takes too long ─────────────▶ (in verify_deploy) stopped, evaluated, reported as any run
nothing moves after that either ───▶ this thread says so and ends the process

The text of an exception goes into Prefect's logs and states. `masked` keeps secrets and personal data out of it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from typing import Final, ParamSpec, TypeVar, cast

from flows.alerting.faults import Fault, fault_of, notify_fault
from flows.alerting.notifier import Notifier
from monitors.alerts.liveness import Beat, Heartbeat
from monitors.alerts.redact import redact
from monitors.errors import MonitorError

Given = ParamSpec("Given")
Result = TypeVar("Result")


class MaskedError(MonitorError):
    """Replaces an error that is not ours and whose text holds something that must not be shown."""


def masked(step: Callable[Given, Awaitable[Result]]) -> Callable[Given, Awaitable[Result]]:
    """Let an exception of ``step`` pass when its text is harmless; replace every other one.

    The replaced exception is cut off, its causes too: a traceback prints them all.
    """

    @wraps(step)
    async def safely(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        try:
            return await step(*args, **kwargs)
        except Exception as error:  # Prefect stores whatever is raised: all of it is redacted
            if all(redact(text) == text for text in _texts(error)):
                raise
            safe = _replaced(error)
        raise safe

    return safely


def _replaced(error: Exception) -> MonitorError:
    if isinstance(error, MonitorError):
        return type(error)(redact(str(error)))
    return MaskedError(f"{type(error).__name__}: {redact(str(error))}")


def _texts(error: BaseException) -> list[str]:
    """What a traceback would print of ``error`` and of all that led to it."""
    texts: list[str] = []
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        texts.append(str(one))
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += cast("tuple[BaseException, ...]", one.exceptions)
    return texts


HUNG_RUN: Final = "HungRun"
MONITOR_BROKE: Final = 4
"""The exit code of every command that failed by itself."""
SAYING_S: Final = 120.0
"""Longer than two waits for the warehouse's lock and one delivery: after that the process ends without a
message."""


class HangWatchdog:
    """A thread that outlives a hung event loop: it calls ``on_hang`` when `done` was not called in time."""

    def __init__(self, after_s: float, on_hang: Callable[[], None]) -> None:
        self._after_s = after_s
        self._on_hang = on_hang
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="run-guard", daemon=True)

    def start(self) -> None:
        """Start to watch."""
        self._thread.start()

    def done(self) -> None:
        """Stop: the run is over."""
        self._done.set()

    def _watch(self) -> None:
        if not self._done.wait(self._after_s):
            self._on_hang()


@asynccontextmanager
async def overseen(
    notifier: Notifier,
    beat: Heartbeat,
    *,
    end_after_s: float,
    stop: Callable[[int], None],
    unreported: tuple[type[Exception], ...] = (),
) -> AsyncGenerator[None]:
    """Watch what happens inside; ``stop`` ends the process with an exit code, whatever hangs in it.

    No message is sent about errors that are ``unreported``: whoever started the run reads them.
    """
    await beat.ping(Beat.STARTED, run_id=notifier.run_id)
    guard = HangWatchdog(end_after_s, lambda: end_hung(notifier, beat, after_s=end_after_s, stop=stop))
    guard.start()
    try:
        yield
    except Exception as error:  # the run's owners hear of any end, whatever it is; it is raised again
        if not isinstance(error, unreported):
            await notify_fault(notifier, fault_of(error))
        await beat.ping(Beat.FAILED, run_id=notifier.run_id, note=type(error).__name__)
        raise
    finally:
        guard.done()


def end_hung(notifier: Notifier, beat: Heartbeat, *, after_s: float, stop: Callable[[int], None]) -> None:
    """Say that the process hangs, then end it; end it too when saying so hangs. For a thread of its own."""
    last_resort = threading.Timer(SAYING_S, stop, [MONITOR_BROKE])
    last_resort.daemon = True
    last_resort.start()
    try:
        asyncio.run(_say_hung(notifier, beat, after_s))
    finally:
        stop(MONITOR_BROKE)


async def _say_hung(notifier: Notifier, beat: Heartbeat, after_s: float) -> None:
    detail = (
        f"The run was not over after {after_s:g} s and did not react: its process was ended. "
        "What was answered is kept, and the next run within the hour goes on from there."
    )
    await asyncio.gather(
        notify_fault(notifier, Fault(HUNG_RUN, detail)),
        beat.ping(Beat.FAILED, run_id=notifier.run_id, note=HUNG_RUN),
    )
