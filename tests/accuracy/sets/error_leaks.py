"""Measures how well Lookout detects errors of SDKs, servers and frameworks that are shown as answers.

The set also contains answers that only mention errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from monitors.facts.error_leaks import find_error_leak
from tests.accuracy.figure import Figure, Measured, TellingError, build_share
from tests.accuracy.rows import read_rows

NAME = "error leaks"

OWN_ROWS = Path("tests/monitors/facts/error_leak_rows.jsonl")
BARE = "{}"
"""The value of ``wrapper`` in a row with a bare error, which has no text around it."""


def measure(data: Path) -> Measured:
    """Measure the share of detected errors, and the share of false alarms.

    Bare errors, errors inside an application's own text, and the project's own rows are also measured separately.
    """
    errors = list(read_rows(data / "error_leaks" / "errors.jsonl"))
    answers = list(read_rows(data / "error_leaks" / "answers.jsonl"))
    bare = [row for row in errors if row["wrapper"] == BARE]
    dressed = [row for row in errors if row["wrapper"] != BARE]
    figures = (
        build_share(NAME, "errors found", _count_found(errors), len(errors), target=0.93, baseline=0.908),
        build_share(NAME, "errors found, bare", _count_found(bare), len(bare)),
        build_share(NAME, "errors found, in a wrapper", _count_found(dressed), len(dressed)),
        build_share(
            NAME, "false alarms", _count_found(answers), len(answers), target=0.015, at_most=True, baseline=0.608
        ),
        *_read_own(),
    )
    wrong = [(row, "missed") for row in errors if not _is_error_shown(row)]
    wrong += [(row, "false alarm") for row in answers if _is_error_shown(row)]
    lesson = "an error is distinguished from an answer about one by its shape, by what else is said, and by what was asked"
    return Measured(figures, tuple(TellingError(NAME, row["id"], label, lesson) for row, label in wrong[:2]))


def _read_own() -> tuple[Figure, ...]:
    """Measure the project's own rows, separately for each half.

    The first half was written before the rules, the second half after them.
    """
    figures: list[Figure] = []
    for half in ("first", "second"):
        rows = [row for row in read_rows(OWN_ROWS) if row["half"] == half]
        errors = [row for row in rows if row["error_leak"]]
        answers = [row for row in rows if not row["error_leak"]]
        figures.append(build_share(NAME, f"own rows, {half} half: errors found", _count_found(errors), len(errors)))
        alarms = build_share(
            NAME, f"own rows, {half} half: false alarms", _count_found(answers), len(answers), at_most=True
        )
        figures.append(alarms)
    return tuple(figures)


def _count_found(rows: Sequence[dict[str, Any]]) -> int:
    return sum(map(_is_error_shown, rows))


def _is_error_shown(row: dict[str, Any]) -> bool:
    return find_error_leak(row["answer"], row["question"]) is not None
