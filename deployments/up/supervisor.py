"""Keeps the parts of an installation alive: each a process, one log for all, nothing left behind at the end.

a part dies ────────────────▶ it starts again after a pause that doubles
it dies again and again ────▶ one message to the monitor's owners, and more tries
it stands again ────────────▶ a message too
SIGTERM or SIGINT ──────────▶ every part is stopped, and all that descends from it (see `deployments.up.guard`)
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from deployments.up.guard import adopt_orphans, descendants, end_family

LONGEST_LINE_BYTES: Final = 64 * 1024
READY_POLL_S: Final = 0.5
ORPHANS_GRACE_S: Final = 5.0
LAST_LINES_S: Final = 5.0
"""How long it waits for what still holds the log's pipe after its part is gone."""
OWN_NAME: Final = "up"
CANNOT_START: Final = 126
"""The code that a shell gives."""
STOP_S: Final = 40.0
"""Longer than both grace times of a guard; then its family is killed without it."""


@dataclass(frozen=True)
class SupervisedProcess:
    """One process to keep alive. It is started, and started again, only when ``may_start`` says so.

    One that ``stops_last`` is stopped when those that need it are gone.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    may_start: Callable[[], bool] = lambda: True
    stops_last: bool = False


@dataclass(frozen=True)
class RestartPolicy:
    """How often a part is started again, and when people hear of it. Seconds."""

    first_pause_s: float = 1.0
    longest_pause_s: float = 60.0
    stands_after_s: float = 60.0
    deaths_before_alert: int = 3

    def pause_s(self, deaths: int) -> float:
        """After so many deaths in a row, 1 or more."""
        return min(self.first_pause_s * 2.0 ** min(deaths - 1, 16), self.longest_pause_s)


@dataclass(frozen=True)
class SupervisorLog:
    """Where the supervisor reports: the log, and the monitor's owners."""

    log: Callable[[str, str], None]
    dies_again: Callable[[str, int, int], Coroutine[Any, Any, None]]
    """Name, deaths in a row, the last exit code."""
    stands_again: Callable[[str], Coroutine[Any, Any, None]]


class Supervisor:
    """Runs parts until `stop`."""

    def __init__(
        self, parts: Sequence[SupervisedProcess], voice: SupervisorLog, patience: RestartPolicy | None = None
    ) -> None:
        self._parts = tuple(parts)
        self._voice = voice
        self._patience = patience or RestartPolicy()
        self._stop_requested = asyncio.Event()
        self._gone = {part.name: asyncio.Event() for part in self._parts}
        self._running: dict[str, Process] = {}
        self._others: frozenset[int] = frozenset()
        self._one_starts = asyncio.Lock()
        self._saying: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        """Make `run` end soon."""
        self._stop_requested.set()

    async def run(self) -> None:
        """Keep all parts alive until `stop`; then end them, and all they left. What ran before is left alone."""
        self._others = descendants(os.getpid())
        adopt_orphans()
        try:
            await self._restart_all()
        finally:
            adopt_orphans(wanted=False)

    async def _restart_all(self) -> None:
        keepers = [asyncio.create_task(self._restart(part)) for part in self._parts]
        await self._stop_requested.wait()
        self._voice.log(OWN_NAME, "stopping")
        await asyncio.gather(*keepers)
        for task in self._saying:
            task.cancel()
        await asyncio.to_thread(end_family, os.getpid(), spare=self._others, grace_s=0.0)
        self._voice.log(OWN_NAME, "stopped")

    async def _restart(self, part: SupervisedProcess) -> None:
        deaths = 0
        while await self._until_it_may_start(part):
            stood, code = await self._live(part, deaths)
            if self._stop_requested.is_set():
                break
            deaths = 1 if stood else deaths + 1
            pause_s = self._patience.pause_s(deaths)
            self._voice.log(part.name, f"ended with code {code}; started again in {pause_s:g} s")
            if deaths == self._patience.deaths_before_alert:
                self._say(self._voice.dies_again(part.name, deaths, code))
            await self._stop_requested_within(pause_s)
        self._gone[part.name].set()

    async def _live(self, part: SupervisedProcess, deaths: int) -> tuple[bool, int]:
        """Run a part once: whether it stayed up, and its exit code."""
        try:
            process, log = await self._start(part)
        except OSError as error:
            self._voice.log(part.name, f"cannot be started: {error.strerror}")
            return False, CANNOT_START
        copying = asyncio.create_task(self._copy(part.name, log))
        ending = asyncio.create_task(process.wait())
        stopping = asyncio.create_task(self._stop_requested_for(part))
        stood = await self._stands(ending, stopping)
        if stood and deaths >= self._patience.deaths_before_alert:
            self._say(self._voice.stands_again(part.name))
        await asyncio.wait({ending, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not ending.done():
            await self._end(process)
        code = await ending
        await self._bury(part, copying, code)
        return stood, code

    async def _stands(self, *ends: asyncio.Task[Any]) -> bool:
        """Whether it lives on for as long as it takes to be sure."""
        done, _ = await asyncio.wait(
            ends, timeout=self._patience.stands_after_s, return_when=asyncio.FIRST_COMPLETED
        )
        return not done

    async def _stop_requested_for(self, part: SupervisedProcess) -> None:
        await self._stop_requested.wait()
        if part.stops_last:
            for other in self._parts:
                if not other.stops_last:
                    await self._gone[other.name].wait()

    def _say(self, saying: Coroutine[Any, Any, None]) -> None:
        """Speak in a task of its own: Slack may be slow, and must not hold up a part's start."""
        task = asyncio.create_task(saying)
        self._saying.add(task)
        task.add_done_callback(self._said)

    def _said(self, task: asyncio.Task[None]) -> None:
        self._saying.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._voice.log(OWN_NAME, f"nobody could be notified: {type(error).__name__}")

    async def _start(self, part: SupervisedProcess) -> tuple[Process, int]:
        """Start its guard; return it, and where its log is read. With asyncio's pipe, `wait` waits for orphans."""
        line = (sys.executable, "-m", "deployments.up.guard", *part.command)
        log, log_end = os.pipe()
        try:
            async with self._one_starts:
                process = await asyncio.create_subprocess_exec(
                    *line,
                    env=dict(part.environment),
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

    async def _end(self, process: Process) -> None:
        """Close the line to its guard, which does the rest. A guard that does not is killed, its family later."""
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(STOP_S):
                await process.wait()
        except TimeoutError:
            # It ended meanwhile.
            with suppress(ProcessLookupError):
                process.kill()

    async def _bury(self, part: SupervisedProcess, copying: asyncio.Task[None], code: int) -> None:
        """Clean up after a part: end the family that a killed guard left, and read the part's log to its end."""
        del self._running[part.name]
        if code < 0:
            async with self._one_starts:
                spare = [*self._others, *(one.pid for one in self._running.values())]
                await asyncio.to_thread(end_family, os.getpid(), spare=spare, grace_s=ORPHANS_GRACE_S)
        await asyncio.wait({copying}, timeout=LAST_LINES_S)
        copying.cancel()
        await asyncio.gather(copying, return_exceptions=True)

    async def _copy(self, name: str, log: int) -> None:
        stream = asyncio.StreamReader()
        pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(log, "rb", buffering=0)
        )
        try:
            async for line in _lines(stream):
                self._voice.log(name, line)
        finally:
            pipe.close()

    async def _until_it_may_start(self, part: SupervisedProcess) -> bool:
        """Wait until the part may start; false when there is nothing to start any more."""
        while not self._stop_requested.is_set():
            if await asyncio.to_thread(part.may_start):
                return True
            await self._stop_requested_within(READY_POLL_S)
        return False

    async def _stop_requested_within(self, seconds: float) -> None:
        # The end of the time is a result: nobody asked to stop.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop_requested.wait()


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    """The lines of what comes; one that does not end is cut, so that memory stays flat."""
    rest = b""
    while chunk := await stream.read(LONGEST_LINE_BYTES):
        *whole, rest = (rest + chunk).split(b"\n")
        if len(rest) > LONGEST_LINE_BYTES:
            whole, rest = [*whole, rest], b""
        for line in whole:
            yield line.decode("utf-8", "replace").rstrip("\r")
    if rest:
        yield rest.decode("utf-8", "replace")
