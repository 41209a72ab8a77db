"""What a fact sheet may say: the fields, their kinds and units, and other names under which sources give them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, ValidationError, model_validator

from monitors.errors import GoldSetError
from monitors.facts.fact import Bound
from monitors.goldset.load import read_text
from monitors.goldset.read_line import read_json
from monitors.records.base import Identifier, Language, Record

SHIPPED_SCHEMA = Path(__file__).parent / "pipeline_a" / "health_insurance.schema.json"
"""62 fields of an Indian health policy: the example, and the default."""

Words = dict[Language, Annotated[str, Field(min_length=1)]]
"""One thing said in several languages."""


class FieldKind(StrEnum):
    """What the value of a field is."""

    DURATION = "duration"
    """A number of hours, days, months or years."""
    MONEY = "money"
    """A number of rupees."""
    PERCENT = "percent"
    COUNT = "count"
    COVER = "cover"
    """true or false: whether something is covered, offered, allowed."""
    CHOICE = "choice"
    """One of a few words, each with its wording per language."""
    TEXT = "text"
    """Free words, taken over as they are."""


class TimeUnit(StrEnum):
    """What a duration is counted in."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"
    YEAR = "year"


class FactField(Record):
    """One field. ``unit`` is what its number counts unless the fact says otherwise; ``many`` allows a list.

    ``bound`` is how its number limits (``at_most``, ``at_least``) and becomes "up to", "at least" in the words.
    ``aliases`` are names that sources give it.
    """

    kind: FieldKind
    means: Annotated[str, Field(min_length=1)]
    unit: TimeUnit | None = None
    bound: Bound = Bound.EXACT
    many: bool = False
    choices: dict[str, Words] = Field(default_factory=dict)
    aliases: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.kind is FieldKind.DURATION) != (self.unit is not None):
            raise ValueError('a field of kind "duration", and no other, has a "unit": hour, day, month or year')
        if (self.kind is FieldKind.CHOICE) != bool(self.choices):
            raise ValueError('a field of kind "choice", and no other, has "choices"')
        return self


class FactSchema(Record):
    """All fields by name."""

    name: Identifier
    version: Annotated[int, Field(ge=1)]
    fields: Annotated[dict[Identifier, FactField], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_are_given_once(self) -> Self:
        seen: dict[str, str] = {}
        for name, field in self.fields.items():
            for known in (name, *field.aliases):
                if known in seen:
                    raise ValueError(f'"{known}" names two fields, {seen[known]} and {name}')
                seen[known] = name
        return self

    def canonical(self, name: str) -> str | None:
        """The field that a source calls ``name``; ``None`` for one that the schema does not know."""
        if name in self.fields:
            return name
        return next((field for field, found in self.fields.items() if name in found.aliases), None)


def load_schema(path: Path = SHIPPED_SCHEMA) -> FactSchema:
    """Read a schema from JSON. Raises `GoldSetError` naming the file, the key and what is accepted."""
    try:
        return FactSchema.model_validate(read_json(read_text(path)))
    except ValidationError as error:
        raise GoldSetError(f"{path} is no schema of facts: {in_words(error)}") from error
    except ValueError as error:
        raise GoldSetError(f"{path}: {error}") from error


def in_words(error: ValidationError) -> str:
    """What pydantic found, key by key, in one line each."""
    details = error.errors(include_url=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, one['loc'])) or 'the file'}: {one['msg']}" for one in details[:5])
