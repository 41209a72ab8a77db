"""Limit the memory and CPU time of the browser's processes, and create their temporary folder.

The limits work only on Linux, because Lookout reads ``/proc``. If the process of a page exceeds a limit, the
process is ended, and the page crashes. If the browser or Playwright exceeds a limit, the browser is ended, and a
new browser starts.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from monitors.child_environment import build_child_environment

FOLDER_PREFIX: Final = ".browser-"
MAX_FOLDER_CHARACTERS: Final = 60
"""Maximum number of characters in the path of the temporary folder.

Chromium adds about 40 characters to the path, and does not start if the result has more than 107 characters.
"""

_folder: ContextVar[str | None] = ContextVar("browser_folder", default=None)


def make_folder_and_remove_stale(inside: Path | None) -> Path:
    """Create a temporary folder in ``inside``, or in the system's temporary folder if the path is too long.

    Temporary folders in ``inside`` whose process has ended are removed.
    """
    if inside is not None and len(str(inside.absolute())) <= MAX_FOLDER_CHARACTERS:
        inside.mkdir(parents=True, exist_ok=True)
        for folder in inside.glob(f"{FOLDER_PREFIX}*"):
            pid = folder.name.removeprefix(FOLDER_PREFIX).partition("-")[0]
            if pid.isdecimal() and not _is_alive(int(pid)):
                remove_folder(folder)
    else:
        inside = None
    return Path(tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-", dir=inside and inside.absolute()))


def remove_folder(folder: Path) -> None:
    """Remove a folder and its content."""
    shutil.rmtree(folder, ignore_errors=True)


def set_playwright_temporary_folder(folder: Path) -> None:
    """Use ``folder`` for the temporary files of Playwright and the browsers that this task starts next.

    Playwright has no option for this folder, so an environment variable is set. The environment of Playwright and
    the browsers contains no secret.
    """
    transport: Any = import_module(
        "playwright._impl.transport"
    )  # private API: the version is pinned and a test checks it
    if getattr(transport.get_driver_env, "__module__", "") != __name__:
        original = transport.get_driver_env

        def build_environment() -> dict[str, str]:
            chosen = _folder.get()
            return {**build_child_environment(original()), **({"TMPDIR": chosen} if chosen else {})}

        transport.get_driver_env = build_environment
    _folder.set(str(folder))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


PAGE_MB: Final = 1_500
"""Maximum memory in MB of the process of a page. Pages of real chat apps took 80 to 250 MB."""
BROWSER_MB: Final = 2_000
"""Maximum memory in MB of the browser's main process, and of Playwright's process.

With 8 open pages, each of these processes took 150 MB.
"""
TREE_MB: Final = 5_000
"""Maximum memory in MB of all processes together, which is enough for a browser with 8 pages."""
SPINNING_S: Final = 60.0
"""Maximum seconds for which a page's process may use a full core without a pause. Real pages needed up to 8 s."""
BUSY_CPU_SHARE: Final = 0.9
POLL_INTERVAL_S: Final = 0.5
"""Seconds between two checks. The time is short, because a page can allocate 1.2 GB in a second."""

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_PROC: Final = Path("/proc")


@dataclass(frozen=True)
class Limits:
    """The limits for the processes of a browser. The constants with the same names explain the values."""

    page_mb: float = PAGE_MB
    browser_mb: float = BROWSER_MB
    tree_mb: float = TREE_MB
    spinning_s: float = SPINNING_S


@dataclass(frozen=True)
class Process:
    """The state of one process. ``cpu_s`` is the CPU time that the process has used so far, in seconds."""

    pid: int
    started: str
    is_page: bool
    is_browser: bool
    rss_mb: float
    cpu_s: float


_Key = tuple[int, str]
_Since = tuple[float, float]


@dataclass
class BrowserLimiter:
    """Watches the processes of a browser and ends a process that exceeds a limit.

    The browser is the child process with ``mark`` in its command line. ``ended`` is the reason why a process was
    last ended. The reason is empty if no process was ended.
    """

    mark: str
    limits: Limits = field(default_factory=Limits)
    ended: str = ""
    _commands: dict[int, str] = field(default_factory=dict[int, str])
    _busy: dict[_Key, _Since] = field(default_factory=dict[_Key, _Since])

    async def enforce_limits(self) -> None:
        """Check the processes repeatedly and end each one that exceeds a limit, until the task is cancelled."""
        loop = asyncio.get_running_loop()
        while _PROC.is_dir():
            # The kernel sends no event for a growing process.
            await asyncio.sleep(POLL_INTERVAL_S)
            for process, reason in self.find_processes_over_limit(
                await asyncio.to_thread(self._list_browser_processes), loop.time()
            ):
                self.ended = reason
                # The process ended meanwhile, or belongs to another user.
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process.pid, signal.SIGKILL)

    def find_processes_over_limit(self, tree: list[Process], now_s: float) -> list[tuple[Process, str]]:
        """Return the processes that exceed a limit, with the reason."""
        offenders: list[tuple[Process, str]] = []
        for process in tree:
            max_mb = self.limits.page_mb if process.is_page else self.limits.browser_mb
            if process.rss_mb > max_mb and (process.is_page or process.is_browser):
                owner = "the page" if process.is_page else "the browser"
                offenders.append(
                    (process, f"{owner} used {process.rss_mb:,.0f} MB of memory; the limit is {max_mb:,.0f} MB")
                )
            elif process.is_page and self._measure_full_core_streak_s(process, now_s) > self.limits.spinning_s:
                offenders.append(
                    (process, f"the page used a full CPU core for {self.limits.spinning_s:g} s without a pause")
                )
        total_mb = sum(process.rss_mb for process in tree)
        pages = [process for process in tree if process.is_page]
        if total_mb > self.limits.tree_mb and pages and not offenders:
            largest = max(pages, key=lambda page: page.rss_mb)
            reason = f"the browser used {total_mb:,.0f} MB of memory; the limit is {self.limits.tree_mb:,.0f} MB"
            offenders.append((largest, f"{reason}. This page used {largest.rss_mb:,.0f} MB"))
        alive = {(process.pid, process.started) for process in tree}
        self._busy = {key: since for key, since in self._busy.items() if key in alive}
        return offenders

    def _measure_full_core_streak_s(self, process: Process, now_s: float) -> float:
        """Return for how many seconds the process has used a full core without a pause."""
        key = (process.pid, process.started)
        since_s, cpu_s = self._busy.get(key, (now_s, process.cpu_s))
        busy_s = now_s - since_s
        if busy_s and process.cpu_s - cpu_s < BUSY_CPU_SHARE * busy_s - POLL_INTERVAL_S:
            busy_s = 0.0
            self._busy[key] = (now_s, process.cpu_s)
        else:
            self._busy[key] = (since_s, cpu_s)
        return busy_s

    def _list_browser_processes(self) -> list[Process]:
        """Return the processes of the browser, their child processes and Playwright's process."""
        processes: dict[int, Process] = {}
        for browser in _iterate_descendants(os.getpid()):
            command = self._read_command(browser)
            if browser in processes or self.mark not in command or "--type=" in command:
                continue
            for pid in (_read_parent_pid_unless_own(browser), browser, *_iterate_descendants(browser)):
                process = _read_process(pid, self._read_command(pid)) if pid else None
                if process is not None:
                    processes[pid] = process
        self._commands = {pid: command for pid, command in self._commands.items() if pid in processes}
        return list(processes.values())

    def _read_command(self, pid: int) -> str:
        """Return the command line of a process, or an empty string if it cannot be read.

        The command line is read only once. The exception is a zygote, a process of Chromium that may become the
        process of a page and then has another command line.
        """
        command = self._commands.get(pid)
        if command is None:
            command = _read_text_or_empty(_PROC / str(pid) / "cmdline")
            if command and "--type=zygote" not in command:
                self._commands[pid] = command
        return command


def _iterate_descendants(ancestor_pid: int) -> Iterator[int]:
    for task in _list_file_names(_PROC / str(ancestor_pid) / "task"):
        for child in _read_text_or_empty(_PROC / str(ancestor_pid) / "task" / task / "children").split():
            yield int(child)
            yield from _iterate_descendants(int(child))


def _list_file_names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def _read_text_or_empty(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _read_parent_pid_unless_own(pid: int) -> int:
    fields = _read_text_or_empty(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    parent = int(fields[1]) if fields else 0
    return 0 if parent == os.getpid() else parent


def _read_process(pid: int, command: str) -> Process | None:
    fields = _read_text_or_empty(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    if not fields or fields[0] == "Z":
        return None
    return Process(
        pid=pid,
        started=fields[19],
        is_page="--type=renderer" in command,
        is_browser="--type=" not in command,
        rss_mb=int(fields[21]) * _PAGE_BYTES / 1e6,
        cpu_s=(int(fields[11]) + int(fields[12])) / _TICKS,
    )
