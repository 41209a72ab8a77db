"""The guard runs one part of ``lookout up``, and ends all processes that this part started.

The guard runs as ``python -m deployments.up.guard COMMAND …``. Its standard input is a pipe from the process that
started the guard. If the pipe closes, on purpose or because that process died, the guard sends SIGTERM to the
command, and kills all processes that still run after a grace period. If the command ends by itself, the guard ends
the processes that the command left running, so that they cannot disturb the next start.

A signal to a process group does not reach descendants in other sessions. Therefore the guard on Linux adopts
orphans: if their parent dies, they become children of the guard, which can then find and end them. On
systems without ``/proc``, the guard cannot find descendants.

A guard runs as long as its part, so this module imports only small modules. With `subprocess`, `pathlib` and
`typing`, a guard would use 9 MB of memory instead of 7 MB.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from types import FrameType

PR_SET_CHILD_SUBREAPER = 36
"""The option of Linux's `prctl` that lets this process adopt orphaned descendants (<sys/prctl.h>)."""
PROCESSES = "/proc"
POLL_S = 0.05


def set_orphan_adoption(*, enabled: bool = True) -> None:
    """Let this process adopt orphaned descendants, or stop adopting them if ``enabled`` is false.

    This works only on Linux. On other systems, this function does nothing.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(enabled), 0, 0, 0)


def find_descendants(ancestor: int) -> frozenset[int]:
    """Return the process ids of all living descendants of the process ``ancestor``, without zombies.

    The result is empty on systems without ``/proc``.
    """
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
    """End all descendants of the process ``ancestor``, except the processes in ``spare`` and their descendants.

    Send SIGTERM and, after ``grace_s`` seconds, SIGKILL.
    """
    end = time.monotonic() + grace_s
    signal_number, signalled, all_pids = signal.SIGTERM, frozenset[int](), frozenset[int]()
    while remaining := find_descendants(ancestor).difference(spare, *(find_descendants(pid) for pid in spare)):
        if time.monotonic() > end:
            signal_number, signalled = signal.SIGKILL, frozenset()
        send_signal(remaining - signalled, signal_number)
        signalled, all_pids = signalled | remaining, all_pids | remaining
        _reap_children(remaining)
        # The system reports the end of a child process only, so the descendants are polled.
        time.sleep(POLL_S)
    _reap_children(all_pids)


def send_signal(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each process that is still alive."""
    for pid in pids:
        # The process may have ended, and another process may have its id now.
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _reap_children(pids: Iterable[int]) -> None:
    """Collect the exit codes of adopted orphans that ended. Children of other processes are not affected."""
    for pid in pids:
        # The process is a child of another process.
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _list_processes() -> Iterable[tuple[int, int]]:
    """Yield the ids of each living process and of its parent.

    The process name in ``stat`` is skipped, because it may contain any characters.
    """
    try:
        names = os.listdir(PROCESSES)  # noqa: PTH208 - pathlib takes memory
    except OSError:
        return
    for name in filter(str.isdecimal, names):
        # The process ended while it was being read.
        with suppress(OSError, ValueError, IndexError):
            with open(f"{PROCESSES}/{name}/stat", "rb") as file:  # noqa: PTH123 - pathlib takes memory
                state, parent, *_ = file.read().rpartition(b")")[2].split()
            if state not in b"ZX":
                yield int(name), int(parent)


CANNOT_START_CODE = 126
"""The exit code of a command that cannot be started. Shells use the same code."""
GRACE_S = 20.0
"""How long the command may run after SIGTERM before SIGKILL, in seconds.

In this time, a receiver finishes its responses.
"""
ORPHANS_GRACE_S = 5.0
"""How long processes that outlive the command may run after SIGTERM before SIGKILL, in seconds."""


def main() -> int:
    """Run the command. Return its exit code or, if a signal ended the command, 128 plus the signal's number."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _ignore_signal)
    set_orphan_adoption()
    command = _start_command(sys.argv[1:])
    ended = threading.Event()
    threading.Thread(target=_terminate_when_stdin_closes, args=(command, ended), name="line", daemon=True).start()
    code = _wait_for_command(command)
    ended.set()
    terminate_descendants(os.getpid(), grace_s=ORPHANS_GRACE_S)
    return code if code >= 0 else 128 - code


def _start_command(command: list[str]) -> int:
    """Start the command in a new session, with /dev/null as standard input. Return its process id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execvp(command[0], command)  # noqa: S606 - our own command
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(CANNOT_START_CODE)


def _wait_for_command(command: int) -> int:
    """Wait for the command, and return its exit code. Orphans that end earlier are reaped."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == command:
            return os.waitstatus_to_exitcode(status)


def _ignore_signal(_number: int, _frame: FrameType | None) -> None:
    """Ignore the signal, because only the closed pipe stops the command.

    ``SIG_IGN`` is not used, because the command would inherit it and then also ignore SIGTERM.
    """


def _terminate_when_stdin_closes(command: int, ended: threading.Event) -> None:
    while os.read(0, 1024):
        pass
    send_signal([command], signal.SIGTERM)
    if not ended.wait(GRACE_S):
        send_signal([command], signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
