"""Gives each process that sends alerts a unique name.

Other processes use this name to find out whether the named process has ended.
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
    """Return the unique name of this process: machine, process id, and start time."""
    return f"{_compute_machine_id()}:{os.getpid()}:{_read_start_ticks(os.getpid()) or 0}"


def has_worker_ended(name: str) -> bool:
    """Return whether the process with this name has certainly ended.

    The result is always false for processes on other machines, and on systems without ``/proc``.
    """
    if name == get_worker_name():
        return False
    parts = name.split(":")
    if len(parts) != 3 or parts[0] != _compute_machine_id() or not parts[1].isdecimal() or not _BOOT.exists():  # noqa: PLR2004 - see `get_worker_name`
        return False
    return str(_read_start_ticks(int(parts[1])) or "none") != parts[2]


@cache
def _compute_machine_id() -> str:
    """Return a hash of host name, boot id and pid namespace.

    The namespace matters, because processes in two containers can have the same pid.
    """
    parts = [socket.gethostname(), _read_text_or_empty(_BOOT), _read_link_or_empty(_PROC / "self" / "ns" / "pid")]
    return hashlib.sha256("/".join(parts).encode()).hexdigest()[:16]


def _read_start_ticks(pid: int) -> str | None:
    """Read the start time of a process in clock ticks since boot, or ``None`` if the process does not run."""
    fields = _read_text_or_empty(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] != "Z" else None  # noqa: PLR2004 - proc(5): starttime is field 22, and ``fields`` starts with field 3


def _read_text_or_empty(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _read_link_or_empty(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


def clear_cached_worker_name() -> None:
    """Clear the cached worker name in a forked child process, because the child needs its own name."""
    get_worker_name.cache_clear()
    _compute_machine_id.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=clear_cached_worker_name)
