"""Cases from elsewhere: a table of questions and golds, or a JSON array of another project.

A row of an array is a question with its answer, or an issue with what is known about it. Such rows have no
severity, and ids that may repeat. A table (CSV, also with semicolons or tabs) has a suite's keys as its header.

The rule: severity is never guessed, so the caller gives it row by row; an id that comes again gets a suffix
(``::2``, ``::3`` …) in the order of the file, and each renaming is returned so that it can be shown.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from monitors.errors import GoldSetError
from monitors.goldset.issues import foreign_issue_row, is_issue
from monitors.goldset.lines import Unusable, case_from_object, of_validation, read_json, shown
from monitors.goldset.load import TEXT_TABLES, BadLine, describe, read_text, suite_of
from monitors.records.base import Record, Severity
from monitors.records.cases import GoldCase, Pipeline, Suite


class ForeignCase(BaseModel):
    """A row of the array, as far as it is used; other keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    question: str
    expected_answer: str
    expected_refusal: bool = False
    question_type: str
    language: str = "en"
    policy_id: str | None = None
    source_field: str | None = None
    difficulty: str | None = None
    generated_by: str | None = None


class RenamedRow(Record):
    """A row (from 1) whose id was taken."""

    row: int = Field(ge=1)
    given: str
    id: str


class ImportedSuite(Record):
    """The suite, and the rows that got another id."""

    suite: Suite
    renamed: tuple[RenamedRow, ...] = ()


def import_gold_array(
    path: Path, *, severity_for: Callable[[str, str], Severity], name: str | None = None
) -> ImportedSuite:
    """Read a JSON array or a table; ``severity_for`` gives the severity of a row that has none, by its type and id.

    Raises `GoldSetError` naming file, row (from 1), key, value and what is accepted.
    """
    cases: list[GoldCase] = []
    renamed: list[RenamedRow] = []
    bad: list[BadLine] = []
    taken: set[str] = set()
    for row, value in enumerate(_rows(path), start=1):
        fields = _fields(value, row)
        case = fields if isinstance(fields, Unusable) else _case(fields, severity_for, taken)
        if isinstance(case, Unusable):
            bad.append(BadLine(row, case.problems))
            continue
        if not isinstance(fields, Unusable) and case.id != str(fields["id"]):
            renamed.append(RenamedRow(row=row, given=str(fields["id"]), id=case.id))
        taken.add(case.id)
        cases.append(case)
    if bad:
        raise GoldSetError(describe(str(path), bad, unit="row"))
    suite = suite_of(cases, name=name or path.stem, source=str(path))
    return ImportedSuite(suite=suite, renamed=tuple(renamed))


def _rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a table, an array, or JSON lines."""
    text = read_text(path)
    try:
        if path.suffix.lower() in TEXT_TABLES:
            return list(_table_rows(text))
        rows = _lines(text) if _is_lines(text) else read_json(text)
    except ValueError as error:
        raise GoldSetError(f"{path}: {error}") from error
    if not isinstance(rows, list):
        raise GoldSetError(f"{path}: an array of objects is accepted, this is {shown(rows)}")
    rows = cast("list[object]", rows)
    strange = next((number for number, row in enumerate(rows, start=1) if not isinstance(row, dict)), None)
    if strange is not None:
        raise GoldSetError(f"{path}, row {strange}: an object is accepted, this is {shown(rows[strange - 1])}")
    return cast("list[dict[str, Any]]", rows)


def _is_lines(text: str) -> bool:
    """Whether a file has an object on each of its lines; one object over several lines is no suite."""
    lines = [line for line in text.split("\n") if line.strip()]
    return bool(lines) and all(line.lstrip().startswith("{") for line in lines)


def _lines(text: str) -> list[object]:
    return [read_json(line) for line in text.split("\n") if line.strip()]


def _table_rows(text: str) -> Iterator[dict[str, Any]]:
    """Each row by the names of the header; an empty cell is left out. Raises ``ValueError`` naming the row."""
    header = text.lstrip().partition("\n")[0]
    delimiter = max(",;\t", key=header.count)
    table = csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""), delimiter=delimiter, strict=True)
    names = [name.strip().lower() for name in next(table, list[str]())]
    if missing := [name for name in ("question", "gold") if name not in names]:
        raise ValueError(
            f"the header has no column {' and no '.join(missing)}; question and gold are needed, and id, severity, "
            f"expected_refusal and alternatives (a | b) are read. It has: {', '.join(names) or 'none'}"
        )
    try:
        for number, cells in enumerate(table, start=1):
            if len(cells) > len(names):
                raise ValueError(f"row {number} has {len(cells)} cells, the header {len(names)}")
            row = {name: cell.strip() for name, cell in zip(names, cells, strict=False) if name and cell.strip()}
            if row:
                yield {name: _CELLS.get(name, str)(cell) for name, cell in row.items()}
    except csv.Error as error:
        raise ValueError(f"row {table.line_num}: {error}") from error


def _is_true(cell: str) -> bool | str:
    lowered = cell.lower()
    return lowered in _TRUE if lowered in _TRUE | _FALSE else cell


_TRUE, _FALSE = frozenset({"true", "yes", "1", "x"}), frozenset({"false", "no", "0"})
_CELLS: dict[str, Callable[[str], object]] = {
    "expected_refusal": _is_true,
    "alternatives": lambda cell: [one.strip() for one in cell.split("|") if one.strip()],
}


def _fields(value: dict[str, Any], row: int) -> dict[str, Any] | Unusable:
    if is_issue(value):
        return foreign_issue_row(value)
    if "gold" in value and "expected_answer" not in value:
        if str(value.get("severity", 2)).strip() not in {"1", "2", "3"}:
            return Unusable((f"severity cannot be {shown(value['severity'])}; accepted: 1, 2 or 3",))
        return {"id": f"row-{row}", **value}
    return _question_fields(value)


def _question_fields(value: dict[str, Any]) -> dict[str, Any] | Unusable:
    try:
        row = ForeignCase.model_validate(value)
    except ValidationError as error:
        return Unusable(tuple(of_validation(error)))
    return {
        "id": row.id,
        "question": row.question,
        "gold": row.expected_answer,
        "expected_refusal": row.expected_refusal,
        "language": row.language,
        "type": row.question_type,
        "cluster": row.policy_id,
        "provenance": {
            "pipeline": Pipeline.IMPORTED.value,
            "document": row.policy_id,
            "field": row.source_field,
        },
    }


def _case(
    fields: dict[str, Any], severity_for: Callable[[str, str], Severity], taken: set[str]
) -> GoldCase | Unusable:
    """A case with an id that nobody has, and the severity that its row or the caller gives it."""
    given = str(fields["id"])
    severity = fields.get("severity")
    if isinstance(severity, str) and severity.strip().isdecimal():
        severity = int(severity)
    if not isinstance(severity, int):
        severity = int(severity_for(str(fields.get("type", "")), given))
    return case_from_object({**fields, "id": _free(given, taken), "severity": severity})


def _free(given: str, taken: set[str]) -> str:
    """``given``, or with the first suffix that nobody has."""
    if given not in taken:
        return given
    count = 2
    while f"{given}::{count}" in taken:
        count += 1
    return f"{given}::{count}"
