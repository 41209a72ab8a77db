"""A suite as it stands in its file: every case with its line, and the lines that give none.

`load_suite` refuses a suite with one bad line, as a run must. A person who is mending a suite wants to see all that
is wrong with it at once, so here a bad line is a value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from monitors.errors import GoldSetError
from monitors.goldset.findings import Place
from monitors.goldset.load import BadLine, read_text
from monitors.goldset.read_line import Unusable, case_from_line
from monitors.records.cases import GoldCase


@dataclass(frozen=True)
class NumberedCase:
    """A case and its line (from 1)."""

    line: int
    case: GoldCase

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(line=self.line, case_id=self.case.id)


@dataclass(frozen=True)
class Numbered:
    """The cases of a file in its order, and its bad lines. An id that comes again is a case here."""

    cases: tuple[NumberedCase, ...]
    bad: tuple[tuple[BadLine, str | None], ...] = ()
    """Each bad line with the id that could be read in it."""


def read_numbered(path: Path) -> Numbered:
    """Read a suite's file. Raises `GoldSetError` when it cannot be read at all, or holds no line."""
    text = read_text(path)
    if text.lstrip().startswith("["):
        raise GoldSetError(
            f"{path} is a JSON array; a suite is JSON lines: `lookout gold import` makes one of another's array"
        )
    found = numbered_lines(text.split("\n"))
    if not found.cases and not found.bad:
        raise GoldSetError(f"{path} holds no case; write one JSON object a line, or name another suite")
    return found


def numbered_lines(lines: Iterable[str]) -> Numbered:
    """Read JSON lines; blank ones are counted and skipped."""
    cases: list[NumberedCase] = []
    bad: list[tuple[BadLine, str | None]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        read = case_from_line(line)
        if isinstance(read, Unusable):
            bad.append((BadLine(number, read.problems), read.case_id))
        else:
            cases.append(NumberedCase(number, read))
    return Numbered(tuple(cases), tuple(bad))
