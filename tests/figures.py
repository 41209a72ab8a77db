"""Write measured figures into a section of a document. Two comments with the section's name mark the section."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import duckdb


def write_section(document: Path, name: str, lines: Sequence[str]) -> None:
    """Replace the lines between ``<!-- figures:name -->`` and ``<!-- /figures:name -->``.

    Raises `SystemExit` if the document does not contain both comments.
    """
    begin, end = f"<!-- figures:{name} -->\n", f"<!-- /figures:{name} -->"
    before, found, rest = document.read_text("utf-8").partition(begin)
    _, also_found, after = rest.partition(end)
    if not (found and also_found):
        raise SystemExit(f"{document}: there is no section {begin.strip()} … {end}")
    body = "\n".join(lines).strip()
    document.write_text(f"{before}{begin}\n{body}\n\n{end}{after}", "utf-8")


def measured_where() -> str:
    """Return the date, hardware, software versions and load of the measurement, without the machine's name."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    load = os.getloadavg()[0]
    return (
        f"Measured on {datetime.now(UTC):%Y-%m-%d} on {cores} cores with {pages:.0f} GB of memory, Python "
        f"{platform.python_version()} and DuckDB {duckdb.__version__}. The load average was {load:.1f}."
    )


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Format a Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return lines + [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
