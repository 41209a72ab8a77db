"""Which of an agent's calls it had made before."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from monitors.records.exchanges import Step


class ToolCall(NamedTuple):
    """One call that an agent made: of a tool, or of another agent. ``arguments`` are any JSON."""

    name: str
    arguments: object = None


def calls_of(steps: Sequence[Step]) -> tuple[ToolCall, ...]:
    """The calls among an agent's steps that can be compared: of others nothing is known, or their beginning."""
    return tuple(ToolCall(step.name, step.detail) for step in steps if step.detail and not step.cut)


def repeated(calls: Sequence[ToolCall]) -> tuple[int, ...]:
    """The places (from 0) of calls with the name and the arguments of an earlier one.

    Arguments are compared as values: the order of keys, blanks, 2 or 2.0, JSON inside a text make no difference.
    """
    return tuple(_first_calls(tuple(enumerate(calls))))


def repeated_steps(steps: Sequence[Step]) -> Mapping[int, int]:
    """Where each repeating step's first call stands (places from 0). A step of unknown arguments repeats none."""
    return _first_calls(
        tuple(
            (at, ToolCall(step.name, step.detail)) for at, step in enumerate(steps) if step.detail and not step.cut
        )
    )


def _first_calls(calls: Sequence[tuple[int, ToolCall]]) -> dict[int, int]:
    """The place of each call that was made before, with the place where it was made first."""
    first: dict[str, int] = {}
    found: dict[int, int] = {}
    for at, call in calls:
        key = json.dumps([call.name, _plain(call.arguments)], sort_keys=True)
        if key in first:
            found[at] = first[key]
        first.setdefault(key, at)
    return found


def _plain(value: object) -> object:
    """A value in the one way it is compared."""
    match value:
        case str():
            return _plain_text(value)
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {str(key): _plain(item) for key, item in cast("dict[object, object]", value).items()}
        case list() | tuple():
            return [_plain(item) for item in cast("Sequence[object]", value)]
        case _:
            return value


def _plain_text(text: str) -> object:
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return _plain(json.loads(text))
    except (ValueError, RecursionError):
        return text
