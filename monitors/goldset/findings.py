"""What a look at a suite found: where, what, and what to do about it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from monitors.records.base import Record


class Check(StrEnum):
    """What was looked for."""

    UNREADABLE = "unreadable"
    SEVERITY = "severity"
    DUPLICATE = "duplicate"
    CONTRADICTION = "contradiction"
    DISCLOSURE = "disclosure"
    LANGUAGE = "language"
    SELF = "self"
    QUOTE = "quote"
    TWINS = "twins"
    BALANCE = "balance"


class Weight(StrEnum):
    """Whether a finding keeps a suite from being used."""

    MUST = "must"
    """The suite lies, leaks or does not load until this is changed."""
    SHOULD = "should"
    """The suite works; a person should look."""


class Place(Record):
    """A line of the suite (from 1) and the case that stands there, where it could be read."""

    line: Annotated[int, Field(ge=1)]
    case_id: str | None = None


class GoldFinding(Record):
    """One thing about one or more lines. ``what`` and ``do`` never repeat personal data."""

    check: Check
    weight: Weight
    places: tuple[Place, ...] = ()
    what: str
    do: str
