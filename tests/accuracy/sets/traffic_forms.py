"""Measures how well `lookout conversations` reads logged conversations in the formats of common loggers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.accuracy.figure import Measured, TellingError, build_share
from tests.accuracy.rows import read_rows

NAME = "traffic forms"
COMMAND = (str(Path(sys.executable).parent / "lookout"), "conversations")
TARGET = 0.95
"""Minimum share of conversations that must be read correctly: 57 of 60."""


def measure(data: Path) -> Measured:
    """Measure the share of conversations that are read as a careful reader would read them.

    Question, answer, passages, time and usability must all be right.
    """
    folder = data / "owners"
    logged = (folder / "traffic_forms.jsonl").read_bytes()
    done = subprocess.run(COMMAND, input=logged, capture_output=True, check=True)
    answers = {answer["line"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    errors: list[TellingError] = []
    for row in read_rows(folder / "traffic_forms_expected.jsonl"):
        wrong = [name for name in PARTS if not _is_same(name, answers[row["line"]], row)]
        if not row["usable"] and "usable" not in wrong:
            wrong = []
        total[row["form"]] += 1
        right[row["form"]] += not wrong
        if wrong:
            what = f"{row['form']}: {', '.join(wrong)} read otherwise"
            errors.append(TellingError(NAME, row["id"], what, "Lookout does not know this logger's form"))
    figures = [build_share(NAME, "read as a careful reader does", right.total(), total.total(), target=TARGET)]
    figures += [build_share(NAME, form, right[form], total[form]) for form in sorted(total)]
    return Measured(tuple(figures), tuple(errors))


PARTS = ("usable", "question", "answer", "context_passages", "completed_at")


def _is_same(name: str, answer: dict[str, Any], row: dict[str, Any]) -> bool:
    return _flatten(name, answer[name]) == _flatten(name, row[name])


def _flatten(name: str, value: Any) -> Any:
    """Normalise the value of the field ``name``, so that unimportant differences disappear.

    Each run of white space becomes one space. Fractions of a second are removed from times.
    """
    if name == "completed_at":
        return datetime.fromisoformat(value).replace(microsecond=0) if value else None
    if isinstance(value, list):
        return [_flatten(name, inner) for inner in value]
    return " ".join(value.split()) if isinstance(value, str) else value
