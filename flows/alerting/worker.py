"""Names a process that sends alerts, so that other processes can tell whether it has ended.

A name is never reused.
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
def get_worker_name() -> str:
    """Return the name of this process: machine and boot, process id, and start time."""
    return f"{_identify_machine()}:{os.getpid()}:{_read_start_ticks(os.getpid()) or 0}"


def is_gone(name: str) -> bool:
    """Whether the process has certainly ended.

    Only true for processes of this machine and where ``/proc`` exists.
    """
    if name == get_worker_name():
        return False
    parts = name.split(":")
    if len(parts) != 3 or parts[0] != _identify_machine() or not parts[1].isdecimal() or not _BOOT.exists():  # noqa: PLR2004 - as above
        return False
    return str(_read_start_ticks(int(parts[1])) or "none") != parts[2]


@cache
def _identify_machine() -> str:
    """Return a hash of host, boot and pid namespace: the same pid is another process in another container."""
    parts = [socket.gethostname(), _read_text(_BOOT), _read_link(_PROC / "self" / "ns" / "pid")]
    return hashlib.sha256("/".join(parts).encode()).hexdigest()[:16]


def _read_start_ticks(pid: int) -> str | None:
    """Read a process's start time in clock ticks since boot; a process that reuses the pid has another one."""
    fields = _read_text(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] != "Z" else None  # noqa: PLR2004 - proc(5): starttime is field 22, the third comes first here


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _read_link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def forget_worker_name() -> None:
    """Clear the cached name after a fork: the child is another process, perhaps in another pid namespace."""
    get_worker_name.cache_clear()
    _identify_machine.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_worker_name)
