"""Facts as rows, one JSON object a line, each naming its policy: how extractors and spreadsheets give them.

A row has ``policy_id``, ``policy_name``, ``field`` and, as far as they are known, ``value``, ``unit``, ``quote``,
``clause``, ``confidence``, ``insurer``, ``document``. Other keys are ignored. A row without value whose quote says
that it is "not stated" is a document's silence.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from monitors.errors import GoldSetError
from monitors.goldset.read_line import read_json

SILENCE = re.compile(
    r"\b(?:not|no\b.{1,80}?) (?:stated|mentioned|specified|given|found) ?(?:in|;|\(|$)", re.IGNORECASE
)
"""How a reader of documents writes down that it found nothing: "not stated in X", "no co-payment stated in X"."""

_UNITS = {
    "hours": "hour", "hour": "hour", "days": "day", "day": "day", "months": "month", "month": "month",
    "years": "year", "year": "year",
}  # fmt: skip
"""Units that change how a number is read. Others ("INR", "%", "boolean") only repeat the field's kind."""


class FactRow(BaseModel):
    """A row as far as it is used."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    policy_id: str
    policy_name: str
    field: str
    insurer: str | None = None
    value: JsonValue = None
    unit: str | None = None
    quote: str | None = None
    clause: str | None = None
    confidence: str | None = None
    document: str | None = None


def rows_to_sheets(text: str, *, source: str) -> list[dict[str, Any]]:
    """The rows of a file put together by policy, in the order in which the policies come first.

    Raises `GoldSetError` naming ``source`` and the line of a row that is none.
    """
    sheets: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            row = _row(line, f"{source}, line {number}")
            sheet = sheets.setdefault(row.policy_id, {"id": row.policy_id, "name": row.policy_name, "facts": []})
            for key, value in (("publisher", row.insurer), ("document", row.document)):
                if value:
                    sheet.setdefault(key, value)
            sheet["facts"].append(_fact(row, number))
    return list(sheets.values())


def _row(line: str, where: str) -> FactRow:
    try:
        return FactRow.model_validate(read_json(line))
    except ValidationError as error:
        bad = ", ".join(dict.fromkeys(str(one["loc"][0]) for one in error.errors() if one["loc"])) or "the row"
        raise GoldSetError(
            f"{where}: {bad} cannot be used; a row has policy_id, policy_name, field, and where known value, unit, "
            "quote, clause, confidence, insurer, document"
        ) from error
    except ValueError as error:
        raise GoldSetError(f"{where}: {error}") from error


def _fact(row: FactRow, number: int) -> dict[str, Any]:
    silent = row.value is None and row.quote is not None and SILENCE.search(row.quote) is not None
    fact: dict[str, Any] = {
        "field": row.field,
        "value": row.value,
        "silent": silent,
        "unit": _UNITS.get((row.unit or "").lower()),
        "clause": row.clause,
        "quote": row.quote or None,
        "place": f"line {number}",
    }
    return fact | ({"confidence": row.confidence.lower()} if row.confidence else {})
