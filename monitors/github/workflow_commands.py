"""Lines that GitHub's runner reads out of a job's log: notes on lines of files, and switching that off and on.

The runner obeys such a line whoever printed it, and it looks for them in everything a step prints. So while texts
of an application may be printed, commands are off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from monitors.records.base import Record

MOST_OF_A_LEVEL: Final = 10
"""GitHub keeps ten notes of each level from one step, and drops the rest without a word."""
_IN_VALUES: Final = {"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"}


class Level(StrEnum):
    """How a note is shown."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


class Annotation(Record):
    """A note on a line (from 1) of a file, its path relative to the repository; on the step where no file is named.

    ``text`` is redacted already.
    """

    level: Level
    title: str
    text: str
    file: str | None = None
    line: Annotated[int, Field(ge=1)] | None = None


def commands_of(annotations: Sequence[Annotation]) -> Iterator[str]:
    """A line for each, in order; of each level at most ten, the tenth of more says how many are missing."""
    for level in Level:
        same = [one for one in annotations if one.level is level]
        if len(same) <= MOST_OF_A_LEVEL:
            yield from map(command_of, same)
            continue
        shown = MOST_OF_A_LEVEL - 1
        yield from map(command_of, same[:shown])
        rest = Annotation(level=level, title=f"and {len(same) - shown} more", text="The report has them all.")
        yield command_of(rest)


def command_of(annotation: Annotation) -> str:
    """``::error file=suite.jsonl,line=3,title=…::text``, on one line whatever the text holds."""
    values = {"file": annotation.file, "line": annotation.line, "title": annotation.title}
    said = ",".join(f"{name}={_value(str(value))}" for name, value in values.items() if value is not None)
    return f"::{annotation.level} {said}::{_text(annotation.text)}"


def switch_off(nonce: str) -> str:
    """From this line on the runner obeys nothing until `switch_on` with the same, unguessable ``nonce``."""
    return f"::stop-commands::{nonce}"


def switch_on(nonce: str) -> str:
    """The end of `switch_off`."""
    return f"::{nonce}::"


def _value(text: str) -> str:
    return "".join(_IN_VALUES.get(character, character) for character in text)


def _text(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
