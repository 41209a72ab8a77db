"""Read processes from /proc: the descendants of a process, and their CPU time and memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Seen:
    """The state of one process at one moment. ``cpu_s`` is the sum of its user and system time."""

    pid: int
    parent: int
    command: str
    cpu_s: float
    rss_mb: float

    @property
    def is_browser(self) -> bool:
        """Return whether the process is a Chromium process of any kind."""
        return "chrom" in self.command.partition(" ")[0] or "headless_shell" in self.command.partition(" ")[0]


def all_processes() -> dict[int, Seen]:
    """Return every readable process by its process id.

    Zombies, and processes that end during the call, are omitted.
    """
    return {one.pid: one for one in map(_read, Path("/proc").glob("[0-9]*")) if one is not None}


def descendants(of: int) -> list[Seen]:
    """Return all descendants of the process with the id ``of``."""
    known = all_processes()
    return [one for one in known.values() if of in _ancestors(one, known)]


def _ancestors(one: Seen, known: dict[int, Seen]) -> Iterator[int]:
    at: Seen | None = one
    while at is not None and at.parent:
        yield at.parent
        at = known.get(at.parent)


def _read(folder: Path) -> Seen | None:
    try:
        head, tail = (folder / "stat").read_text().rsplit(")", 1)
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return None
    fields = tail.split()
    if fields[0] == "Z":
        return None
    return Seen(
        pid=int(folder.name),
        parent=int(fields[1]),
        command=command or head.partition("(")[2],
        cpu_s=(int(fields[11]) + int(fields[12])) / TICKS,
        rss_mb=int(fields[21]) * PAGE_BYTES / 1e6,
    )
