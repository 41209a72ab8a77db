"""Cases from a JSON array of another project: question, expected answer, no severity, ids that may repeat.

The rule: severity is never guessed, so the caller gives it row by row; an id that comes again gets a suffix
(``::2``, ``::3`` …) in the order of the file, and each renaming is returned so that it can be shown.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from monitors.errors import GoldSetError
from monitors.goldset.lines import Unusable, case_from_object, of_validation, read_json, shown
from monitors.goldset.load import BadLine, describe, read_text, suite_of
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
    path: Path, *, severity_for: Callable[[ForeignCase], Severity], name: str | None = None
) -> ImportedSuite:
    """Read a JSON array of gold questions; ``severity_for`` says how severe a failure of each row would be.

    Raises `GoldSetError` naming file, row (from 1), key, value and what is accepted.
    """
    cases: list[GoldCase] = []
    renamed: list[RenamedRow] = []
    bad: list[BadLine] = []
    taken: set[str] = set()
    for row, value in enumerate(_rows(path), start=1):
        case = _case(value, severity_for, taken)
        if isinstance(case, Unusable):
            bad.append(BadLine(row, case.problems))
            continue
        if case.id != value.get("id"):
            renamed.append(RenamedRow(row=row, given=str(value["id"]), id=case.id))
        taken.add(case.id)
        cases.append(case)
    if bad:
        raise GoldSetError(describe(str(path), bad, unit="row"))
    suite = suite_of(cases, name=name or path.stem, source=str(path))
    return ImportedSuite(suite=suite, renamed=tuple(renamed))


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        value = read_json(read_text(path))
    except ValueError as error:
        raise GoldSetError(f"{path}: {error}") from error
    if not isinstance(value, list):
        raise GoldSetError(f"{path}: an array of objects is accepted, this is {shown(value)}")
    rows = cast("list[object]", value)
    strange = next((number for number, row in enumerate(rows, start=1) if not isinstance(row, dict)), None)
    if strange is not None:
        raise GoldSetError(f"{path}, row {strange}: an object is accepted, this is {shown(rows[strange - 1])}")
    return cast("list[dict[str, Any]]", rows)


def _case(
    value: dict[str, Any], severity_for: Callable[[ForeignCase], Severity], taken: set[str]
) -> GoldCase | Unusable:
    try:
        row = ForeignCase.model_validate(value)
    except ValidationError as error:
        return Unusable(tuple(of_validation(error)))
    return case_from_object(
        {
            "id": _free(row.id, taken),
            "question": row.question,
            "gold": row.expected_answer,
            "expected_refusal": row.expected_refusal,
            "severity": int(severity_for(row)),
            "language": row.language,
            "type": row.question_type,
            "cluster": row.policy_id,
            "provenance": {
                "pipeline": Pipeline.IMPORTED.value,
                "document": row.policy_id,
                "field": row.source_field,
            },
        }
    )


def _free(given: str, taken: set[str]) -> str:
    """``given``, or with the first suffix that nobody has."""
    if given not in taken:
        return given
    count = 2
    while f"{given}::{count}" in taken:
        count += 1
    return f"{given}::{count}"
