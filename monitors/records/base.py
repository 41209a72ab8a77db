"""The base class and common types of all records: immutable, no unknown fields, finite numbers, UTC times."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


class Record(BaseModel):
    """An immutable value without unknown fields, NaN or infinity.

    Records with the same values are equal, and ``type(r).model_validate_json(r.model_dump_json()) == r``. Text must
    be valid Unicode. A lone surrogate raises an error. Code that builds a record from outside text must therefore
    replace lone surrogates first.
    """

    # Most processes use few of the records. Building a record at its first use saves 3 MB and 0.1 s at the start.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


def _convert_zoned_time_to_utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("a time must have a time zone; write the time in UTC, such as 2026-01-31T02:00:00Z")
    return value.astimezone(UTC)


UtcTime = Annotated[datetime, AfterValidator(_convert_zoned_time_to_utc)]
"""A point in time. A time in any zone is converted to UTC. A time without a zone raises an error."""

Identifier = Annotated[
    str, Field(max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9_@:+-]*(?:\.[A-Za-z0-9_@:+-]+)*$")
]
"""An id that is safe in a file name.

The id contains letters, digits and ``_ @ : + - .``, but no slash and no two dots in a row.
"""

Probability = Annotated[float, Field(ge=0.0, le=1.0)]
"""A share or score from 0 to 1."""

Milliseconds = Annotated[float, Field(ge=0.0)]
"""A duration in milliseconds."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256 digest in lower-case hexadecimal."""


class Severity(IntEnum):
    """How bad a failure is."""

    MINOR = 1
    MAJOR = 2
    CRITICAL = 3
    """A failure that alerts people at once.

    Examples: disclosed personal data, an irreversible action, or a wrong claim that can cost money.
    """


class Blame(StrEnum):
    """Who caused a failure. Only ``APP`` counts against the application."""

    APP = "app"
    MONITOR = "monitor"
    PROVIDER = "provider"


class Language(StrEnum):
    """The language of a text. Hinglish is Hindi in Latin letters, mixed with English."""

    ENGLISH = "en"
    HINDI = "hi"
    HINGLISH = "hinglish"
    GERMAN = "de"
    FRENCH = "fr"
    SPANISH = "es"
    OTHER = "other"

    @property
    def is_english_hindi_or_hinglish(self) -> bool:
        """Return whether the language is English, Hindi or Hinglish.

        The rule-based graders fully support these languages.
        """
        return self in {Language.ENGLISH, Language.HINDI, Language.HINGLISH}


class Finding(StrEnum):
    """The answer to a yes-or-no question about the app's reply, or the reason why there is no answer."""

    YES = "yes"
    NO = "no"
    UNGRADED = "ungraded"
    """Not graded, because every grader of the question abstained or there was nothing to grade."""
    NOT_NEEDED = "not_needed"
    """The question does not apply to the reply, and is not counted."""
