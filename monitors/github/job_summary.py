"""What a job says on its own page: Markdown at the end of a file that the runner names."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from monitors.errors import NotifyRejected

MOST_BYTES: Final = 1024 * 1024
"""Of one step's summary; GitHub shows nothing at all of a larger one."""
CUT: Final = "\n\n*Cut here: a job's page takes no more. The report has the rest.*\n"


def add_summary(file: Path, markdown: str) -> None:
    """Add ``markdown`` to the summary, cut at a line where it would grow too large. Raises `NotifyRejected`."""
    try:
        before = file.stat().st_size if file.exists() else 0
        with file.open("ab") as summary:
            summary.write(_within(markdown, MOST_BYTES - before).encode())
    except OSError as error:
        raise NotifyRejected(f"the job's summary cannot be written ({error.strerror})") from error


def _within(markdown: str, room: int) -> str:
    whole = markdown if markdown.endswith("\n") else markdown + "\n"
    raw = whole.encode()
    if len(raw) <= room:
        return whole
    left = room - len(CUT.encode())
    if left <= 0:
        return ""
    kept, _, _ = raw[:left].rpartition(b"\n")
    return kept.decode() + CUT
