"""Keeps the processes of an installation running, and writes their output to one log.

a part ends ───────────────────────▶ it is started again after a pause, which doubles each time
a part ends several times in a row ▶ one alert to the monitor's owners; the part is still started again
the part runs stably again ────────▶ a message that it has recovered
SIGTERM or SIGINT ─────────────────▶ every part and all its descendants are stopped (see `deployments.up.guard`)
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from deployments.up.guard import CANNOT_START_CODE, find_descendants, set_orphan_adoption, terminate_descendants

MAX_LINE_BYTES: Final = 64 * 1024
ORPHANS_GRACE_S: Final = 5.0
LAST_LINES_S: Final = 5.0
"""Maximum time, in seconds, to read the log of an ended part if another process still has the log open."""
SUPERVISOR_NAME: Final = "up"
STOP_S: Final = 40.0
"""Time in seconds after which a guard that has not ended is killed. The guard's own grace times are shorter."""


@dataclass(frozen=True)
class SupervisedProcess:
    """A process to keep running. If ``stops_last`` is true, all other processes are stopped before this one."""

    name: str
    command: tuple[str, ...]
    stops_last: bool = False


@dataclass(frozen=True)
class RestartPolicy:
    """The pauses between restarts of a part, and the number of deaths before an alert. All times are in seconds."""

    first_pause_s: float = 1.0
    max_pause_s: float = 60.0
    stable_after_s: float = 60.0
    deaths_before_alert: int = 3

    def compute_pause_s(self, deaths: int) -> float:
        """Return the pause before a part that ended ``deaths`` times in a row is started again, in seconds.

        ``deaths`` is at least 1.
        """
        return min(self.first_pause_s * 2.0 ** min(deaths - 1, 16), self.max_pause_s)


@dataclass(frozen=True)
class SupervisorLog:
    """Functions that write the supervisor's log lines and send alerts to the monitor's owners."""

    log: Callable[[str, str], None]
    send_crash_loop_alert: Callable[[str, int, int], Coroutine[Any, Any, None]]
    """A function that sends an alert.

    Its arguments are the part's name, the number of times that the part ended in a row, and its last exit code.
    """
    send_recovery_alert: Callable[[str], Coroutine[Any, Any, None]]


class Supervisor:
    """Runs the parts of an installation until `stop`."""

    def __init__(
        self, parts: Sequence[SupervisedProcess], reports: SupervisorLog, policy: RestartPolicy | None = None
    ) -> None:
        self._parts = tuple(parts)
        self._reports = reports
        self._policy = policy or RestartPolicy()
        self._stop_requested = asyncio.Event()
        self._stopped = {part.name: asyncio.Event() for part in self._parts}
        self._running: dict[str, Process] = {}
        self._earlier_pids: frozenset[int] = frozenset()
        self._start_lock = asyncio.Lock()
        self._alert_tasks: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        """Request that `run` stops all parts and returns."""
        self._stop_requested.set()

    async def run(self) -> None:
        """Keep all parts running until `stop`. Then end the parts and their descendants.

        Processes that were already running before this call are not ended.
        """
        self._earlier_pids = find_descendants(os.getpid())
        set_orphan_adoption()
        try:
            await self._run_until_stop()
        finally:
            set_orphan_adoption(enabled=False)

    async def _run_until_stop(self) -> None:
        keepers = [asyncio.create_task(self._run_with_restarts(part)) for part in self._parts]
        await self._stop_requested.wait()
        self._reports.log(SUPERVISOR_NAME, "stopping")
        await asyncio.gather(*keepers)
        for task in self._alert_tasks:
            task.cancel()
        await asyncio.to_thread(terminate_descendants, os.getpid(), spare=self._earlier_pids, grace_s=0.0)
        self._reports.log(SUPERVISOR_NAME, "stopped")

    async def _run_with_restarts(self, part: SupervisedProcess) -> None:
        deaths = 0
        while not self._stop_requested.is_set():
            stood, code = await self._run_once(part, deaths)
            if self._stop_requested.is_set():
                break
            deaths = 1 if stood else deaths + 1
            pause_s = self._policy.compute_pause_s(deaths)
            self._reports.log(part.name, f"ended with code {code}; restart in {pause_s:g} s")
            if deaths == self._policy.deaths_before_alert:
                self._send_in_background(self._reports.send_crash_loop_alert(part.name, deaths, code))
            await self._sleep_unless_stopped(pause_s)
        self._stopped[part.name].set()

    async def _run_once(self, part: SupervisedProcess, deaths: int) -> tuple[bool, int]:
        """Run a part until it ends or `stop` is called. Return whether it was stable, and its exit code.

        A part is stable if it has run for ``stable_after_s`` seconds. If it becomes stable after it ended several
        times in a row, send the message that it has recovered.
        """
        try:
            process, log = await self._start_part_under_guard(part)
        except OSError as error:
            self._reports.log(part.name, f"cannot start: {error.strerror}")
            return False, CANNOT_START_CODE
        copying = asyncio.create_task(self._copy_log(part.name, log))
        ending = asyncio.create_task(process.wait())
        stopping = asyncio.create_task(self._wait_for_stop(part))
        stood = await self._wait_for_stability(ending, stopping)
        if stood and deaths >= self._policy.deaths_before_alert:
            self._send_in_background(self._reports.send_recovery_alert(part.name))
        await asyncio.wait({ending, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not ending.done():
            await self._stop_process(process)
        code = await ending
        await self._clean_up_ended_part(part, copying, code)
        return stood, code

    async def _wait_for_stability(self, *ends: asyncio.Task[Any]) -> bool:
        """Wait up to ``stable_after_s`` seconds. Return true if no task in ``ends`` has ended in this time."""
        done, _ = await asyncio.wait(ends, timeout=self._policy.stable_after_s, return_when=asyncio.FIRST_COMPLETED)
        return not done

    async def _wait_for_stop(self, part: SupervisedProcess) -> None:
        await self._stop_requested.wait()
        if part.stops_last:
            for needed_part in self._parts:
                if not needed_part.stops_last:
                    await self._stopped[needed_part.name].wait()

    def _send_in_background(self, alert: Coroutine[Any, Any, None]) -> None:
        """Send an alert in its own task, because Slack may be slow and must not delay the start of a part."""
        task = asyncio.create_task(alert)
        self._alert_tasks.add(task)
        task.add_done_callback(self._log_failed_alert)

    def _log_failed_alert(self, task: asyncio.Task[None]) -> None:
        self._alert_tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._reports.log(SUPERVISOR_NAME, f"the alert could not be sent: {type(error).__name__}")

    async def _start_part_under_guard(self, part: SupervisedProcess) -> tuple[Process, int]:
        """Start a part's guard. Return the guard and the file descriptor of its log."""
        line = (sys.executable, "-m", "deployments.up.guard", *part.command)
        log, log_end = os.pipe()  # with asyncio's own pipe, `wait` would also wait for orphans
        try:
            async with self._start_lock:
                process = await asyncio.create_subprocess_exec(
                    *line,
                    stdin=PIPE,
                    stdout=log_end,
                    stderr=STDOUT,
                    start_new_session=True,
                )
                self._running[part.name] = process
        except OSError:
            os.close(log)
            raise
        finally:
            os.close(log_end)
        return process, log

    async def _stop_process(self, process: Process) -> None:
        """Close the pipe to the guard, which then ends the part.

        A guard that does not end in time is killed. `_clean_up_ended_part` then ends the guard's descendants.
        """
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(STOP_S):
                await process.wait()
        except TimeoutError:
            # The process has ended in the meantime.
            with suppress(ProcessLookupError):
                process.kill()

    async def _clean_up_ended_part(self, part: SupervisedProcess, copying: asyncio.Task[None], code: int) -> None:
        """Read the log of an ended part to its end. If its guard was killed, also end the guard's descendants."""
        del self._running[part.name]
        if code < 0:
            async with self._start_lock:
                spare = [*self._earlier_pids, *(process.pid for process in self._running.values())]
                await asyncio.to_thread(terminate_descendants, os.getpid(), spare=spare, grace_s=ORPHANS_GRACE_S)
        await asyncio.wait({copying}, timeout=LAST_LINES_S)
        copying.cancel()
        await asyncio.gather(copying, return_exceptions=True)

    async def _copy_log(self, name: str, log: int) -> None:
        stream = asyncio.StreamReader()
        pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(log, "rb", buffering=0)
        )
        try:
            async for line in _read_lines(stream):
                self._reports.log(name, line)
        finally:
            pipe.close()

    async def _sleep_unless_stopped(self, seconds: float) -> None:
        # A timeout means that nobody has called `stop`.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop_requested.wait()


async def _read_lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    """Yield the lines of a stream. A line that is too long is cut, to limit memory."""
    rest = b""
    while chunk := await stream.read(MAX_LINE_BYTES):
        *whole, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            whole, rest = [*whole, rest], b""
        for line in whole:
            yield line.decode("utf-8", "replace").rstrip("\r")
    if rest:
        yield rest.decode("utf-8", "replace")
