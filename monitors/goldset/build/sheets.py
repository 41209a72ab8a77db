"""Read fact sheets: lists of the facts of one document about one policy.

Each fact has a field, such as the waiting period, and a value. A fact may also have the number of its clause and a
quote from the document. The schema defines the fields, their units and their other names.

Facts can also be rows of a ``.jsonl`` file: one JSON object on each line, with ``policy_id``, ``policy_name`` and
``field``, and optionally ``value``, ``unit``, ``quote``, ``clause``, ``confidence``, ``insurer`` and ``document``.
If a row has no value, and its quote is a phrase such as "not stated", the document does not state the value.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from monitors.domains.pack import SCHEMA, find_pack_folder, read_pack_file
from monitors.errors import GoldSetError
from monitors.facts.quantities.fact import Bound
from monitors.facts.quantities.locales import validate_currency
from monitors.goldset.lines import format_value, parse_strict_json
from monitors.goldset.load import read_text
from monitors.records.base import Identifier, Language, Record

Localised = dict[Language, Annotated[str, Field(min_length=1)]]
"""A text in several languages, keyed by language."""


class FieldKind(StrEnum):
    """The kind of a field's value."""

    DURATION = "duration"
    """A number of hours, days, months or years."""
    MONEY = "money"
    """An amount of money in the field's currency."""
    PERCENT = "percent"
    COUNT = "count"
    COVER = "cover"
    """True or false: whether something is covered, offered or allowed."""
    CHOICE = "choice"
    """One of a few fixed words. Each word has a translation in each language."""
    TEXT = "text"
    """Free text, which is used unchanged."""


class DurationUnit(StrEnum):
    """The unit of a duration."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"
    YEAR = "year"


class FactField(Record):
    """The definition of one field of a fact sheet.

    - ``unit`` is the unit of the field's numbers. A fact can have its own unit instead.
    - ``currency`` is the ISO 4217 code of the field's amounts. Without ``currency``, the quote must name the
      currency.
    - ``bound`` states whether the number is a limit. For example, ``at_most`` becomes "up to" in the answer.
    - ``many`` is true if a fact can have a list of values.
    - ``aliases`` are other names of the field.
    """

    kind: FieldKind
    means: Annotated[str, Field(min_length=1)]
    unit: DurationUnit | None = None
    currency: Annotated[str, AfterValidator(validate_currency)] | None = None
    bound: Bound = Bound.EXACT
    many: bool = False
    choices: dict[str, Localised] = Field(default_factory=dict)
    aliases: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _require_settings_of_kind(self) -> Self:
        if (self.kind is FieldKind.DURATION) != (self.unit is not None):
            raise ValueError(
                'a field of kind "duration" must have a "unit" (hour, day, month or year). Other fields must not '
                'have a "unit"'
            )
        if self.currency is not None and self.kind is not FieldKind.MONEY:
            raise ValueError('only a field of kind "money" may have a "currency"')
        if (self.kind is FieldKind.CHOICE) != bool(self.choices):
            raise ValueError('a field of kind "choice" must have "choices". Other fields must not have "choices"')
        return self


class FactSchema(Record):
    """``schema.toml`` of a domain pack: all fields by name."""

    name: Identifier
    version: Annotated[int, Field(ge=1)]
    fields: Annotated[dict[Identifier, FactField], Field(min_length=1)]

    @model_validator(mode="after")
    def _require_unique_names(self) -> Self:
        fields_by_name: dict[str, str] = {}
        for name, field in self.fields.items():
            for alias in (name, *field.aliases):
                if alias in fields_by_name:
                    raise ValueError(f'"{alias}" is a name of two fields, {fields_by_name[alias]} and {name}')
                fields_by_name[alias] = name
        return self

    def find_field_by_alias(self, name: str) -> str | None:
        """Return the name that the schema uses for the field ``name``, which may be one of the field's aliases.

        Return ``None`` if the schema has no such field.
        """
        if name in self.fields:
            return name
        return next((field for field, fact_field in self.fields.items() if name in fact_field.aliases), None)


def load_fact_schema(pack: str) -> FactSchema:
    """Read the schema of a domain pack.

    Raises `GoldSetError` that names the file, the key and the accepted values.
    """
    return read_pack_file(find_pack_folder(pack) / SCHEMA, FactSchema, GoldSetError)


def describe_sheet_error(error: ValidationError) -> str:
    """Describe the first five problems that pydantic found, each with its key."""
    details = error.errors(include_url=False, include_input=False)
    return "; ".join(
        f"{'.'.join(map(str, detail['loc'])) or 'the file'}: {detail['msg']}" for detail in details[:5]
    )


SILENCE = re.compile(
    r"\b(?:not|no\b.{1,80}?) (?:stated|mentioned|specified|given|found) ?(?:in|;|\(|$)", re.IGNORECASE
)
"""Phrases that extractors write if a document does not state a value: "not stated in X"."""

_UNITS = {
    "hours": "hour", "hour": "hour", "days": "day", "day": "day", "months": "month", "month": "month",
    "years": "year", "year": "year",
}  # fmt: skip
"""Units that decide the meaning of a number.

All other units ("INR", "%", "boolean") only repeat the kind of the field.
"""


# GivenFact has the same fields. This class is the format of another program, and its values are not checked yet.
class FactRow(BaseModel):
    """One row of a ``.jsonl`` file of facts. Other keys are ignored."""

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


def parse_fact_rows_by_policy(text: str, *, source: str) -> list[dict[str, Any]]:
    """Group the rows of a file by policy. The policies are in the order of their first rows.

    Raises `GoldSetError` naming ``source`` and the line of a bad row.
    """
    sheets: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            row = _parse_fact_row(line, f"{source}, line {number}")
            sheet = sheets.setdefault(row.policy_id, {"id": row.policy_id, "name": row.policy_name, "facts": []})
            for key, value in (("publisher", row.insurer), ("document", row.document)):
                if value:
                    sheet.setdefault(key, value)
            sheet["facts"].append(_build_fact_fields(row, number))
    return list(sheets.values())


def _parse_fact_row(line: str, place: str) -> FactRow:
    try:
        return FactRow.model_validate(parse_strict_json(line))
    except ValidationError as error:
        bad_keys = (
            ", ".join(dict.fromkeys(str(detail["loc"][0]) for detail in error.errors() if detail["loc"]))
            or "the row"
        )
        raise GoldSetError(
            f"{place}: missing or not valid: {bad_keys}. A row must have policy_id, policy_name and field. A row "
            "may also have value, unit, quote, clause, confidence, insurer and document"
        ) from error
    except ValueError as error:
        raise GoldSetError(f"{place}: {error}") from error


def _build_fact_fields(row: FactRow, number: int) -> dict[str, Any]:
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


Text = Annotated[str, Field(min_length=1)]


class Confidence(StrEnum):
    """How certain a fact is, according to its source. The values are in ascending order."""

    LOW = "low"
    UNRATED = "unrated"
    MEDIUM = "medium"
    HIGH = "high"


class GivenFact(Record):
    """One fact of a sheet, as its source states the fact.

    ``silent`` means that the document does not state the value. ``unit`` and ``bound`` are set if they differ from
    the field's unit and bound. ``clause`` is the number of the clause, and ``quote`` is the text of the clause.
    ``place`` is the line in the source file.
    """

    field: Text
    value: JsonValue = None
    silent: bool = False
    unit: str | None = None
    bound: Bound | None = None
    clause: str | None = None
    quote: str | None = None
    confidence: Confidence = Confidence.UNRATED
    place: str = ""

    def with_field(self, field: str) -> Self:
        """Return a copy of the fact that belongs to the field with the name ``field``."""
        return self.model_copy(update={"field": field})


class FactSheet(Record):
    """All facts of one document about one policy. ``names`` are the policy's names in other languages."""

    id: Identifier
    name: Text
    names: dict[Language, Text] = Field(default_factory=dict[Language, Text])
    publisher: Text | None = None
    document: Text | None = None
    facts: tuple[GivenFact, ...] = ()

    @model_validator(mode="after")
    def _require_unique_fields(self) -> FactSheet:
        names = [fact.field for fact in self.facts]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated:
            raise ValueError(f'the field "{repeated}" occurs twice; give each field once')
        return self

    def with_facts(self, facts: tuple[GivenFact, ...]) -> Self:
        """Return a copy of the sheet with ``facts`` instead of its own facts."""
        return self.model_copy(update={"facts": facts})


def read_fact_sheets(path: Path, schema: FactSchema) -> tuple[FactSheet, ...]:
    """Read fact sheets from a folder of ``*.json`` files, from one JSON file, or from ``*.jsonl`` rows.

    Aliases of fields are replaced by the names in the schema. Raises `GoldSetError` for invalid files, unknown
    fields and repeated ids.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise GoldSetError(
            f"{path} has no *.json files; give a folder of fact sheets, a single sheet, or rows (*.jsonl)"
        )
    sheets = [sheet for file in files for sheet in _read_fact_sheet_file(file)]
    sheet_ids: set[str] = set()
    for sheet in sheets:
        if sheet.id in sheet_ids:
            raise GoldSetError(
                f"{path}: two sheets have the id {format_value(sheet.id)}; give each sheet a unique id"
            )
        sheet_ids.add(sheet.id)
    return tuple(_replace_field_aliases(sheet, schema, path) for sheet in sheets)


def _read_fact_sheet_file(path: Path) -> list[FactSheet]:
    text = read_text(path)
    if path.suffix == ".jsonl":
        return [_parse_fact_sheet(raw, path) for raw in parse_fact_rows_by_policy(text, source=str(path))]
    try:
        value = parse_strict_json(text)
    except ValueError as error:
        raise GoldSetError(f"{path}: {error}") from error
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    return [_parse_fact_sheet(value, path) for value in values]


def _parse_fact_sheet(value: object, path: Path) -> FactSheet:
    try:
        return FactSheet.model_validate(value)
    except ValidationError as error:
        sheet_id: Any = cast("dict[str, object]", value).get("id") if isinstance(value, dict) else value
        raise GoldSetError(f"{path}, sheet {format_value(sheet_id)}: {describe_sheet_error(error)}") from error


def _replace_field_aliases(sheet: FactSheet, schema: FactSchema, path: Path) -> FactSheet:
    facts: list[GivenFact] = []
    for fact in sheet.facts:
        field = schema.find_field_by_alias(fact.field)
        if field is None:
            where = f" ({fact.place})" if fact.place else ""
            raise GoldSetError(
                f"{path}, sheet {format_value(sheet.id)}{where}: the schema {schema.name} has no field "
                f"{format_value(fact.field)}; correct the name, or add the field or an alias to the schema"
            )
        facts.append(fact.with_field(field))
    return sheet.with_facts(tuple(facts))
