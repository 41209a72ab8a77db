"""The name of a process that sends, by which other processes can tell that it has ended.

A name is never used again.
"""

from __future__ import annotations

import hashlib
import os
import socket
from functools import cache
from pathlib import Path

_PROC = Path("/proc")
_BOOT = _PROC / "sys" / "kernel" / "random" / "boot_id"


@cache
def worker_name() -> str:
    """This process's name: its machine (until the machine restarts), its number, and when it started."""
    return f"{_machine()}:{os.getpid()}:{_began(os.getpid()) or 0}"


def is_gone(name: str) -> bool:
    """Whether the process has certainly ended; can be true only on this machine, and where ``/proc`` exists."""
    if name == worker_name():
        return False
    parts = name.split(":")
    if len(parts) != 3 or parts[0] != _machine() or not parts[1].isdecimal() or not _BOOT.exists():  # noqa: PLR2004 - as above
        return False
    return str(_began(int(parts[1])) or "none") != parts[2]


@cache
def _machine() -> str:
    """Host, its boot and its view of processes: a number means another process in another container."""
    parts = [socket.gethostname(), _read(_BOOT), _linked(_PROC / "self" / "ns" / "pid")]
    return hashlib.sha256("/".join(parts).encode()).hexdigest()[:16]


def _began(pid: int) -> str | None:
    """Clock ticks from the machine's start to the process's; a process that reuses the number has other ticks."""
    fields = _read(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] != "Z" else None  # noqa: PLR2004 - proc(5): starttime is field 22, the third comes first here


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _linked(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def forget_worker_name() -> None:
    """Let a forked process find its own name: it is another process, perhaps with another view of processes."""
    worker_name.cache_clear()
    _machine.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_worker_name)
