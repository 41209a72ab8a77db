"""The guard: one part of ``lookout up`` with everything that descends from it.

It runs as ``python -m deployments.up.guard COMMAND …``. Standard input is a pipe from the process that started it.
When it closes, on purpose or because that process died, the command gets SIGTERM, and what is left after a grace
time is killed. When the command ends by itself, the guard ends what it left behind, so that a successor never meets
it.

A family is a process and all that descend from it, also those in sessions of their own, which no group signal
reaches. On Linux orphans can be adopted: what a killed process leaves behind becomes a child of the nearest
ancestor that asked for it, so nothing leaves the family. Elsewhere only the process group is known.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Final

PR_SET_CHILD_SUBREAPER: Final = 36
"""The option of Linux's `prctl` that makes this process the parent of orphaned descendants (<sys/prctl.h>)."""
PROCESSES: Final = Path("/proc")
POLL_S: Final = 0.05


def adopt_orphans(*, enabled: bool = True) -> None:
    """Make this process the parent of orphaned descendants, or stop that if not ``enabled``.

    Linux only; does nothing elsewhere.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(enabled), 0, 0, 0)


def find_descendants(ancestor: int) -> frozenset[int]:
    """Return the ids of all living descendants, zombies excluded. Empty where there is no ``/proc``."""
    children: dict[int, list[int]] = {}
    for pid, parent in _list_processes():
        children.setdefault(parent, []).append(pid)
    pids: set[int] = set()
    waiting = [ancestor]
    while waiting:
        new = [pid for pid in children.get(waiting.pop(), ()) if pid not in pids]
        pids.update(new)
        waiting.extend(new)
    return frozenset(pids)


def terminate_descendants(ancestor: int, *, spare: Collection[int] = (), grace_s: float) -> None:
    """End all descendants but ``spare`` and theirs: SIGTERM, and SIGKILL to what lives after ``grace_s``."""
    end = time.monotonic() + grace_s
    signal_number, signalled, all_pids = signal.SIGTERM, frozenset[int](), frozenset[int]()
    while remaining := find_descendants(ancestor).difference(spare, *(find_descendants(pid) for pid in spare)):
        if time.monotonic() > end:
            signal_number, signalled = signal.SIGKILL, frozenset()
        send_signal(remaining - signalled, signal_number)
        signalled, all_pids = signalled | remaining, all_pids | remaining
        _reap_children(remaining)
        # Processes that are not children send no event when they end.
        time.sleep(POLL_S)
    _reap_children(all_pids)


def send_signal(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each process that is still alive."""
    for pid in pids:
        # It ended meanwhile, or its number belongs to another process.
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _reap_children(pids: Iterable[int]) -> None:
    """Reap adopted orphans that ended; children of other processes are left to their parents."""
    for pid in pids:
        # Another process's child, see the docstring.
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _list_processes() -> Iterable[tuple[int, int]]:
    """Yield each living process's id and its parent's. The name in ``stat`` may hold anything, so it is skipped."""
    for folder in PROCESSES.glob("[0-9]*"):
        # The process ended while it was read.
        with suppress(OSError, ValueError, IndexError):
            state, parent, *_ = (
                (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            )
            if state not in "ZX":
                yield int(folder.name), int(parent)


GRACE_S: Final = 20.0
"""Seconds between SIGTERM and SIGKILL for the command: a receiver finishes its answers in this time."""
ORPHANS_GRACE_S: Final = 5.0
"""Seconds between SIGTERM and SIGKILL for processes that outlive the command."""


def main() -> int:
    """Run the command and return its exit code; 128 plus the signal's number when a signal ended it."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _ignore_signal)
    adopt_orphans()
    command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603 - ours
    ended = threading.Event()
    threading.Thread(
        target=_terminate_when_stdin_closes, args=(command.pid, ended), name="line", daemon=True
    ).start()
    code = _wait_for_command(command)
    ended.set()
    terminate_descendants(os.getpid(), grace_s=ORPHANS_GRACE_S)
    return code if code >= 0 else 128 - code


def _wait_for_command(command: subprocess.Popen[bytes]) -> int:
    """Wait for the command and return its exit code; orphans that end before are reaped."""
    while command.returncode is None:
        pid, status = os.waitpid(-1, 0)
        if pid == command.pid:
            command.returncode = os.waitstatus_to_exitcode(status)
    return command.returncode


def _ignore_signal(_number: int, _frame: FrameType | None) -> None:
    """Ignore the signal: only the pipe counts. The command would inherit ``SIG_IGN`` and then never stop."""


def _terminate_when_stdin_closes(command: int, ended: threading.Event) -> None:
    while os.read(0, 1024):
        pass
    send_signal([command], signal.SIGTERM)
    if not ended.wait(GRACE_S):
        send_signal([command], signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
