"""Who is sending: a process by a name that no other one ever has, so that its end can be known."""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path

_PROC = Path("/proc")
_BOOT = _PROC / "sys" / "kernel" / "random" / "boot_id"


def worker_name() -> str:
    """This process: its machine (until that starts anew), number, and when it began."""
    return f"{_machine()}:{os.getpid()}:{_began(os.getpid()) or 0}"


def is_gone(name: str) -> bool:
    """Whether the process is known to have ended: only one of this machine can be, and where the system tells."""
    parts = name.split(":")
    if len(parts) != 3 or parts[0] != _machine() or not parts[1].isdecimal() or not _BOOT.exists():  # noqa: PLR2004 - as above
        return False
    return str(_began(int(parts[1])) or "none") != parts[2]


def _machine() -> str:
    """Host, its start, and its view of processes: a number means something else in another container."""
    seen = [socket.gethostname(), _read(_BOOT), _linked(_PROC / "self" / "ns" / "pid")]
    return hashlib.sha256("/".join(seen).encode()).hexdigest()[:16]


def _began(pid: int) -> str | None:
    """Clock ticks from the machine's start to the process's; a number that is used again has another."""
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
