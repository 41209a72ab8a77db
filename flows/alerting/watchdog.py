"""Watches a run: reports exceptions, ends a process that hangs, and pings an external heartbeat.

    the run ends normally ─────────────▶ send a success ping if it graded an answer
    the run raises an exception ───────▶ send an alert about Lookout and a failure ping; raise the exception again
    asking takes too long ─────────────▶ `verify_deploy` stops asking and evaluates the answers so far
    the process still does not end ────▶ the watchdog thread sends an alert and ends the process

Prefect shows the texts of exceptions in its logs and states. Therefore `redact_errors` redacts secrets and personal
data in them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from typing import Final, ParamSpec, TypeVar, cast

from flows.alerting.faults import Fault, build_fault_from_error, notify_fault
from flows.alerting.notifier import Notifier
from monitors.alerts.liveness import Beat, Heartbeat
from monitors.alerts.redact import redact
from monitors.errors import MonitorError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class RedactedError(MonitorError):
    """Replaces a library's error whose text contains secrets or personal data."""


def redact_errors(step: Callable[Parameters, Awaitable[Result]]) -> Callable[Parameters, Awaitable[Result]]:
    """Decorate an async function so that its exceptions contain no secrets or personal data.

    An exception with such data is replaced by a redacted exception without causes, because a traceback would also
    print the causes.
    """

    @wraps(step)
    async def run_redacted(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return await step(*args, **kwargs)
        except Exception as error:  # Prefect stores the text of every exception
            if all(redact(text) == text for text in _collect_error_texts(error)):
                raise
            safe = _redact_error(error)
        raise safe

    return run_redacted


def _redact_error(error: Exception) -> MonitorError:
    if isinstance(error, MonitorError):
        return type(error)(redact(str(error)))
    return RedactedError(f"{type(error).__name__}: {redact(str(error))}")


def _collect_error_texts(error: BaseException) -> list[str]:
    """Collect the texts that a traceback of ``error`` would print: those of the error and of its causes."""
    texts: list[str] = []
    visited_ids: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        error_to_read = waiting.pop()
        if error_to_read is None or id(error_to_read) in visited_ids:
            continue
        visited_ids.add(id(error_to_read))
        texts.append(str(error_to_read))
        waiting += [error_to_read.__cause__, error_to_read.__context__]
        if isinstance(error_to_read, BaseExceptionGroup):
            waiting += cast("tuple[BaseException, ...]", error_to_read.exceptions)
    return texts


HUNG_RUN: Final = "HungRun"
MONITOR_BROKE_EXIT_CODE: Final = 4
"""The exit code of every command that failed because Lookout itself broke."""
REPORT_TIMEOUT_S: Final = 120.0
"""Maximum time to report a hung run, in seconds. After this time, the process ends without an alert.

The time is long enough for two waits for the warehouse's lock and for one delivery.
"""


class HangWatchdog:
    """A thread that calls ``on_hang`` if `cancel` is not called within ``after_s`` seconds.

    The thread works even if the event loop hangs.
    """

    def __init__(self, after_s: float, on_hang: Callable[[], None]) -> None:
        self._after_s = after_s
        self._on_hang = on_hang
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="run-guard", daemon=True)

    def start(self) -> None:
        """Start the watchdog thread."""
        self._thread.start()

    def cancel(self) -> None:
        """Stop the watchdog, because the run has ended."""
        self._done.set()

    def _watch(self) -> None:
        if not self._done.wait(self._after_s):
            self._on_hang()


@asynccontextmanager
async def run_under_watchdog(
    notifier: Notifier,
    beat: Heartbeat,
    *,
    end_after_s: float,
    stop: Callable[[int], None],
    unreported: tuple[type[Exception], ...] = (),
) -> AsyncGenerator[None]:
    """Run the ``with`` block and report its errors. If the block hangs, end the process with ``stop``.

    A block hangs if it runs for longer than ``end_after_s`` seconds. ``stop`` is called with the exit code. Errors
    of the types ``unreported`` cause no alert, because the person who started the run sees them.
    """
    await beat.ping(Beat.STARTED, run_id=notifier.run_id)
    watchdog = HangWatchdog(
        end_after_s, lambda: report_and_end_hung_process(notifier, beat, after_s=end_after_s, stop=stop)
    )
    watchdog.start()
    try:
        yield
    except Exception as error:  # every error is reported to the owners of the run, and raised again
        if not isinstance(error, unreported):
            await notify_fault(notifier, build_fault_from_error(error))
        await beat.ping(Beat.FAILED, run_id=notifier.run_id, note=type(error).__name__)
        raise
    finally:
        watchdog.cancel()


def report_and_end_hung_process(
    notifier: Notifier, beat: Heartbeat, *, after_s: float, stop: Callable[[int], None]
) -> None:
    """Report that the process hangs, then end the process. The process also ends if reporting hangs.

    Call this from a separate thread.
    """
    last_resort = threading.Timer(REPORT_TIMEOUT_S, stop, [MONITOR_BROKE_EXIT_CODE])
    last_resort.daemon = True
    last_resort.start()
    try:
        asyncio.run(_report_hang(notifier, beat, after_s))
    finally:
        stop(MONITOR_BROKE_EXIT_CODE)


async def _report_hang(notifier: Notifier, beat: Heartbeat, after_s: float) -> None:
    detail = (
        f"The run did not end within {after_s:g} s, so Lookout stopped it. All answers so far are stored. A run "
        "that starts within the next hour reuses these answers."
    )
    await asyncio.gather(
        notify_fault(notifier, Fault(HUNG_RUN, detail)),
        beat.ping(Beat.FAILED, run_id=notifier.run_id, note=HUNG_RUN),
    )
