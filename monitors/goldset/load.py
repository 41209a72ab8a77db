"""Load suites from JSON lines.

A suite with a bad line is rejected, and the error message lists the first bad lines. This module also computes the
hash of a suite, and finds the gold case whose question a user asked. In this comparison, letter case, spaces and
the final punctuation do not matter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from monitors.errors import GoldSetError
from monitors.facts.text import normalise
from monitors.goldset.lines import ID_ACCEPTED, Unusable, format_value, parse_case_line, refine_guessed_languages
from monitors.problems import format_did_you_mean_hint
from monitors.records.cases import GoldCase, Suite


def hash_cases(cases: Sequence[GoldCase]) -> str:
    """Return the SHA-256 hash that identifies a set of cases.

    White space, the order of keys and lines, and omitted defaults do not change the hash. Everything that
    can change a grade or a report changes the hash.
    """
    fields = [
        case.model_dump(mode="json", exclude_defaults=True) for case in sorted(cases, key=lambda case: case.id)
    ]
    canonical = json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()


MAX_BAD_LINES_SHOWN = 20
"""Maximum number of bad lines that an error message shows."""

MAX_BAD_LINES = 1000
"""Number of bad lines after which reading stops, because the file is probably not a suite."""


@dataclass(frozen=True)
class BadLine:
    """The line number (from 1) of an invalid line, and the problems of this line."""

    number: int
    problems: tuple[str, ...]
    is_issue: bool = False


def load_suite(path: Path, name: str | None = None) -> Suite:
    """Read a suite from a UTF-8 file of JSON lines.

    If ``name`` is ``None``, the suite gets the file's name without its suffix. Raises `GoldSetError` that names
    the file and the first twenty bad lines with their faults.
    """
    return parse_suite_lines(read_suite_text(path).split("\n"), name=name or path.stem, source=str(path))


TEXT_TABLES: Final = (".csv", ".tsv")
TABLES: Final = (*TEXT_TABLES, ".xlsx", ".xls", ".ods")


def read_suite_text(path: Path) -> str:
    """Read the text of a suite's file. Raises `GoldSetError` for tables, JSON arrays and unreadable files."""
    if path.suffix.lower() in TABLES and path.exists():
        table = path if path.suffix.lower() in TEXT_TABLES else f"{path.stem}.csv"
        saved = "" if table is path else "save it as CSV, then "
        raise GoldSetError(
            f"{path} is a table, but a suite must be JSON lines. To convert the columns question, gold, id and "
            f"severity: {saved}`lookout gold import {table} --out {path.stem}.jsonl`"
        )
    text = read_text(path)
    if text.lstrip().startswith("["):
        raise GoldSetError(
            f"{path} is a JSON array, but a suite must be JSON lines (one object on each line). Convert it with "
            "`jq -c '.[]'`. For an array of another project, use `lookout gold import`"
        )
    return text


def parse_suite_lines(lines: Iterable[str], *, name: str, source: str = "suite") -> Suite:
    """Parse JSON lines into a suite.

    ``source`` is the name that error messages use for the lines. Raises `GoldSetError` for bad lines.
    """
    cases: list[GoldCase] = []
    good_lines: list[str] = []
    bad_lines: list[BadLine] = []
    first_lines: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        parsed_line = parse_case_line(line)
        problems = [*parsed_line.problems] if isinstance(parsed_line, Unusable) else []
        case_id = parsed_line.case_id if isinstance(parsed_line, Unusable) else parsed_line.id
        if case_id is not None and first_lines.setdefault(case_id, number) != number:
            problems.append(
                f"line {first_lines[case_id]} already has the id {format_value(case_id)}; use each id once"
            )
        if problems:
            bad_lines.append(BadLine(number, tuple(problems)))
        elif isinstance(parsed_line, GoldCase):
            cases.append(parsed_line)
            good_lines.append(line)
        if len(bad_lines) >= MAX_BAD_LINES:
            break
    if bad_lines:
        raise GoldSetError(describe_bad_lines(source, bad_lines, unit="line"))
    return build_suite(refine_guessed_languages(cases, good_lines), name=name, source=source)


def build_suite(cases: list[GoldCase], *, name: str, source: str) -> Suite:
    """Build a suite from valid cases. Raises `GoldSetError` if there are no cases, or if the name is invalid."""
    if not cases:
        raise GoldSetError(f"{source} has no cases; write one JSON object on each line, or choose another suite")
    try:
        return Suite(name=name, sha256=hash_cases(cases), cases=tuple(cases))
    except ValidationError as error:
        raise GoldSetError(
            f"{source}: {format_value(name)} is not a valid suite name; accepted: {ID_ACCEPTED}"
        ) from error


def read_text(path: Path) -> str:
    """Read a UTF-8 file. Raises `GoldSetError` if the file cannot be read or is not UTF-8."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise GoldSetError(f"{path} cannot be read: {_describe_os_error(path, error)}") from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise GoldSetError(
            f"{path}, line {line}: not UTF-8 at byte {error.start + 1} of the file; save the file as UTF-8"
        ) from error


def _describe_os_error(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError) and path.parent.is_dir():
        hint = format_did_you_mean_hint(path.name, [file.name for file in path.parent.glob("*.jsonl")])
        return f"file not found{hint or '; check the path'}"
    return f"{error.strerror}; check the path"


def describe_bad_lines(source: str, bad_lines: list[BadLine], *, unit: str) -> str:
    """Format the error message: the number of bad lines, and the problems of the first twenty bad lines."""
    count = f"{len(bad_lines)} bad {unit}s" if len(bad_lines) != 1 else f"1 bad {unit}"
    at_least = "at least " if len(bad_lines) >= MAX_BAD_LINES else ""
    lines = [
        f"  {unit} {bad_line.number}: {'; also: '.join(bad_line.problems)}"
        for bad_line in bad_lines[:MAX_BAD_LINES_SHOWN]
    ]
    more = [f"  … and {len(bad_lines) - MAX_BAD_LINES_SHOWN} more"] if len(bad_lines) > MAX_BAD_LINES_SHOWN else []
    return "\n".join([f"{source} cannot be used because of {at_least}{count}:", *lines, *more])


_ENDS: Final = " .?!।…"


class AskedQuestions:
    """An index that finds the gold case that asks a given question.

    For a question that two or more cases ask, no case is found.
    """

    def __init__(self, cases: Iterable[GoldCase] = ()) -> None:
        self._cases: dict[tuple[str, ...], GoldCase | None] = {}
        for case in cases:
            turns = _normalise_turns(case.turns)
            self._cases[turns] = None if turns in self._cases else case

    def find_case(self, turns: Sequence[str]) -> GoldCase | None:
        """Return the case whose questions are ``turns``, the user's messages so far.

        Return ``None`` if there is no such case.
        """
        return self._cases.get(_normalise_turns(turns))


def _normalise_turns(turns: Sequence[str]) -> tuple[str, ...]:
    return tuple(" ".join(normalise(turn).text.casefold().split()).strip(_ENDS) for turn in turns)
