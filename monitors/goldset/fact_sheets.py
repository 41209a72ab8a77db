"""Fact sheets: what one document says about one thing (a policy), field by field, with clause and quote."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field, JsonValue, ValidationError, model_validator

from monitors.errors import GoldSetError
from monitors.facts.fact import Bound
from monitors.goldset.fact_rows import rows_to_sheets
from monitors.goldset.fact_schema import FactSchema, in_words
from monitors.goldset.line_problems import shown
from monitors.goldset.load import read_text
from monitors.goldset.read_line import read_json
from monitors.records.base import Identifier, Language, Record

Text = Annotated[str, Field(min_length=1)]


class Confidence(StrEnum):
    """How sure whoever read the fact was, from least to most."""

    LOW = "low"
    UNRATED = "unrated"
    MEDIUM = "medium"
    HIGH = "high"


class GivenFact(Record):
    """One field as a source gives it.

    ``silent`` says that somebody looked and the document does not state it; that is another thing than a field that
    is not there at all, about which nobody knows anything. ``unit`` and ``bound`` are given where they are not the
    field's own. ``clause`` is its number in the document, ``quote`` its words. ``place`` is the line of the source.
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


class FactSheet(Record):
    """All facts of one document about one thing. ``names`` are its name in other languages."""

    id: Identifier
    name: Text
    names: dict[Language, Text] = Field(default_factory=dict[Language, Text])
    publisher: Text | None = None
    document: Text | None = None
    facts: tuple[GivenFact, ...] = ()

    @model_validator(mode="after")
    def _fields_are_given_once(self) -> FactSheet:
        names = [fact.field for fact in self.facts]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise ValueError(f'the field "{twice}" is given twice')
        return self


def read_sheets(path: Path, schema: FactSchema) -> tuple[FactSheet, ...]:
    """All sheets of a folder of ``*.json`` (by name), a JSON file (a sheet, or a list), or ``*.jsonl`` rows.

    Fields are renamed to the schema's own; one that a sheet gives under two aliases is there twice. Raises
    `GoldSetError` naming the file, the line or key, and what is accepted: also for an unknown field, an id or a
    field that is given twice.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise GoldSetError(f"{path} holds no *.json; give a folder of fact sheets, one sheet, or rows (*.jsonl)")
    sheets = [sheet for file in files for sheet in _file(file)]
    seen: set[str] = set()
    for sheet in sheets:
        if sheet.id in seen:
            raise GoldSetError(f"{path}: the sheet {shown(sheet.id)} is there twice; ids are given once")
        seen.add(sheet.id)
    return tuple(_canonical(sheet, schema, path) for sheet in sheets)


def _file(path: Path) -> list[FactSheet]:
    text = read_text(path)
    if path.suffix == ".jsonl":
        return [_sheet(raw, path) for raw in rows_to_sheets(text, source=str(path))]
    try:
        value = read_json(text)
    except ValueError as error:
        raise GoldSetError(f"{path}: {error}") from error
    many = cast("list[object]", value) if isinstance(value, list) else [value]
    return [_sheet(one, path) for one in many]


def _sheet(value: object, path: Path) -> FactSheet:
    try:
        return FactSheet.model_validate(value)
    except ValidationError as error:
        named: Any = cast("dict[str, object]", value).get("id") if isinstance(value, dict) else value
        raise GoldSetError(f"{path}, sheet {shown(named)}: {in_words(error)}") from error


def _canonical(sheet: FactSheet, schema: FactSchema, path: Path) -> FactSheet:
    facts: list[GivenFact] = []
    for fact in sheet.facts:
        field = schema.canonical(fact.field)
        if field is None:
            where = f" ({fact.place})" if fact.place else ""
            raise GoldSetError(
                f"{path}, sheet {shown(sheet.id)}{where}: the schema {schema.name} has no field "
                f"{shown(fact.field)}; correct the name, or add the field or an alias to the schema"
            )
        facts.append(fact.model_copy(update={"field": field}))
    return sheet.model_copy(update={"facts": tuple(facts)})
