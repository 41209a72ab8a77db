"""Import gold cases from a CSV table, or from a JSON array of another project.

A row is a question with its answer, or an issue with its known facts. A table can be separated by commas,
semicolons or tabs. The names of its columns are keys of a suite.

If a row has no severity, a function that the caller passes chooses the severity. If two rows have the same id, the
id of the second row gets a suffix such as ``.2``, and the result lists the change.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from monitors.errors import GoldSetError
from monitors.goldset.issues import convert_issue_row_to_line_keys, is_issue_row
from monitors.goldset.lines import (
    Unusable,
    describe_validation_error,
    format_value,
    parse_case_object,
    parse_strict_json,
)
from monitors.goldset.load import TEXT_TABLES, BadLine, build_suite, describe_bad_lines, read_text
from monitors.records.base import Record, Severity
from monitors.records.cases import GoldCase, Pipeline, Suite


class ForeignCase(BaseModel):
    """The keys that Lookout reads from a row of another project's file. Other keys of the row are ignored."""

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
    """A row that got another id, because an earlier row has the same id. Row numbers start at 1."""

    row: int = Field(ge=1)
    given: str
    id: str


class ImportedSuite(Record):
    """The imported suite and the rows that got another id."""

    suite: Suite
    renamed: tuple[RenamedRow, ...] = ()


def read_suite_from_rows(
    path: Path, *, severity_for: Callable[[str, str], Severity], name: str | None = None
) -> ImportedSuite:
    """Read a suite from a JSON array or a table.

    If a row has no severity, ``severity_for`` is called with the row's type and id, and returns the severity.
    Raises `GoldSetError` that names the row, the key, its value and the accepted values.
    """
    cases: list[GoldCase] = []
    renamed: list[RenamedRow] = []
    bad_rows: list[BadLine] = []
    taken_ids: set[str] = set()
    for row, value in enumerate(_read_rows(path), start=1):
        fields = _convert_row_to_fields(value, row)
        case = fields if isinstance(fields, Unusable) else _build_case(fields, severity_for, taken_ids)
        if isinstance(case, Unusable):
            bad_rows.append(BadLine(row, case.problems))
            continue
        if not isinstance(fields, Unusable) and case.id != str(fields["id"]):
            renamed.append(RenamedRow(row=row, given=str(fields["id"]), id=case.id))
        taken_ids.add(case.id)
        cases.append(case)
    if bad_rows:
        raise GoldSetError(describe_bad_lines(str(path), bad_rows, unit="row"))
    suite = build_suite(cases, name=name or path.stem, source=str(path))
    return ImportedSuite(suite=suite, renamed=tuple(renamed))


def _read_rows(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a file: a table, a JSON array, or JSON lines."""
    text = read_text(path)
    try:
        if path.suffix.lower() in TEXT_TABLES:
            return list(_parse_table(text))
        lines = [line for line in text.split("\n") if line.strip()]
        is_json_lines = bool(lines) and all(line.lstrip().startswith("{") for line in lines)
        rows = [parse_strict_json(line) for line in lines] if is_json_lines else parse_strict_json(text)
    except ValueError as error:
        raise GoldSetError(f"{path}: {error}") from error
    if not isinstance(rows, list):
        raise GoldSetError(f"{path}: expected an array of objects, found {format_value(rows)}")
    rows = cast("list[object]", rows)
    bad_number = next((number for number, row in enumerate(rows, start=1) if not isinstance(row, dict)), None)
    if bad_number is not None:
        raise GoldSetError(
            f"{path}, row {bad_number}: expected an object, found {format_value(rows[bad_number - 1])}"
        )
    return cast("list[dict[str, Any]]", rows)


def _parse_table(text: str) -> Iterator[dict[str, Any]]:
    """Yield each row as a dictionary of its cells that are not empty. Raises ``ValueError`` for a bad row."""
    header = text.lstrip().partition("\n")[0]
    delimiter = max(",;\t", key=header.count)
    table = csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""), delimiter=delimiter, strict=True)
    names = [name.strip().lower() for name in next(table, list[str]())]
    if missing := [name for name in ("question", "gold") if name not in names]:
        raise ValueError(
            f"missing columns: {', '.join(missing)}. A table must have question and gold. It may have id, "
            f"severity, expected_refusal and alternatives (a | b). The header has: {', '.join(names) or 'none'}"
        )
    try:
        for number, cells in enumerate(table, start=1):
            if len(cells) > len(names):
                raise ValueError(f"row {number} has {len(cells)} cells, but the header has {len(names)} columns")
            row = {name: cell.strip() for name, cell in zip(names, cells, strict=False) if name and cell.strip()}
            if row:
                yield {name: _CELL_PARSERS.get(name, str)(cell) for name, cell in row.items()}
    except csv.Error as error:
        raise ValueError(f"row {table.line_num}: {error}") from error


def _parse_bool_or_keep_text(cell: str) -> bool | str:
    lowered = cell.lower()
    return lowered in _TRUE if lowered in _TRUE | _FALSE else cell


_TRUE, _FALSE = frozenset({"true", "yes", "1", "x"}), frozenset({"false", "no", "0"})
_CELL_PARSERS: dict[str, Callable[[str], object]] = {
    "expected_refusal": _parse_bool_or_keep_text,
    "alternatives": lambda cell: [text.strip() for text in cell.split("|") if text.strip()],
}


def _convert_row_to_fields(value: dict[str, Any], row: int) -> dict[str, Any] | Unusable:
    if is_issue_row(value):
        return convert_issue_row_to_line_keys(value)
    if "gold" in value and "expected_answer" not in value:
        if str(value.get("severity", 2)).strip() not in {"1", "2", "3"}:
            return Unusable((f"severity {format_value(value['severity'])} is not valid; accepted: 1, 2 or 3",))
        return {"id": f"row-{row}", **value}
    return _convert_foreign_row_to_fields(value)


def _convert_foreign_row_to_fields(value: dict[str, Any]) -> dict[str, Any] | Unusable:
    try:
        row = ForeignCase.model_validate(value)
    except ValidationError as error:
        return Unusable(tuple(describe_validation_error(error)))
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


def _build_case(
    fields: dict[str, Any], severity_for: Callable[[str, str], Severity], taken_ids: set[str]
) -> GoldCase | Unusable:
    """Build a case with a unique id. If the row has no severity, ``severity_for`` chooses it."""
    row_id = str(fields["id"])
    severity = fields.get("severity")
    if isinstance(severity, str) and severity.strip().isdecimal():
        severity = int(severity)
    if not isinstance(severity, int):
        severity = int(severity_for(str(fields.get("type", "")), row_id))
    return parse_case_object({**fields, "id": _find_free_id(row_id, taken_ids), "severity": severity})


def _find_free_id(row_id: str, taken_ids: set[str]) -> str:
    """Return the id unchanged if it is free. If it is in ``taken_ids``, return it with a suffix such as ``.2``."""
    if row_id not in taken_ids:
        return row_id
    count = 2
    while f"{row_id}.{count}" in taken_ids:
        count += 1
    return f"{row_id}.{count}"
