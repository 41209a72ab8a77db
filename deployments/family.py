"""A process and all that descend from it, also those in sessions of their own, which no group signal reaches.

On Linux orphans can be adopted: what a killed process leaves behind becomes a child of the nearest ancestor that
asked for it, so nothing leaves the family. Elsewhere only the process group is known.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

PR_SET_CHILD_SUBREAPER: Final = 36
"""From Linux' <sys/prctl.h>."""
PROCESSES: Final = Path("/proc")
PAUSE_S: Final = 0.05


def adopt_orphans(*, wanted: bool = True) -> None:
    """From now on what a descendant leaves behind becomes this process's child, or no longer, if not ``wanted``.

    Linux only; elsewhere nothing.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0)


def descendants(ancestor: int) -> frozenset[int]:
    """The living ones; those that ended and wait for their parent are none. Empty where there is no ``/proc``."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    waiting = [ancestor]
    while waiting:
        new = [pid for pid in children.get(waiting.pop(), ()) if pid not in found]
        found.update(new)
        waiting.extend(new)
    return frozenset(found)


def end_family(ancestor: int, *, spare: Collection[int] = (), grace_s: float) -> None:
    """End all descendants but ``spare`` and theirs: SIGTERM, and SIGKILL to what lives after ``grace_s``."""
    end = time.monotonic() + grace_s
    signal_number, asked, seen = signal.SIGTERM, frozenset[int](), frozenset[int]()
    while left := _without(descendants(ancestor), spare):
        if time.monotonic() > end:
            signal_number, asked = signal.SIGKILL, frozenset()
        send(left - asked, signal_number)
        asked, seen = asked | left, seen | left
        _reap(left)
        time.sleep(PAUSE_S)
    _reap(seen)


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """A signal to each that still lives."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _without(pids: frozenset[int], spare: Collection[int]) -> frozenset[int]:
    return pids.difference(spare, *(descendants(one) for one in spare))


def _reap(pids: Iterable[int]) -> None:
    """An adopted orphan that ended waits for us; somebody else's child waits for him."""
    for pid in pids:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _parents() -> Iterable[tuple[int, int]]:
    """Each living process and its parent. The name in ``stat`` may hold anything, so what is behind it counts."""
    for folder in PROCESSES.glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            state, parent, *_ = (
                (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            )
            if state not in "ZX":
                yield int(folder.name), int(parent)
