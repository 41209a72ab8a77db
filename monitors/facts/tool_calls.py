"""Find the tool calls that an agent repeats."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from monitors.records.exchanges import Step


class ToolCall(NamedTuple):
    """One call of a tool or of another agent. ``arguments`` are any JSON value."""

    name: str
    arguments: object = None


def collect_calls_with_known_arguments(steps: Sequence[Step]) -> tuple[ToolCall, ...]:
    """Return the calls in an agent's steps. A call is omitted if its arguments are unknown or truncated."""
    return tuple(ToolCall(step.name, step.detail) for step in steps if step.detail and not step.cut)


def find_repeated_call_indexes(calls: Sequence[ToolCall]) -> tuple[int, ...]:
    """Return the indexes of calls with the name and the arguments of an earlier call.

    Arguments are compared as values. The order of keys and the number of spaces do not matter. 2 equals 2.0, and an
    object equals its JSON string.
    """
    return tuple(_map_repeats_to_first(tuple(enumerate(calls))))


def map_repeated_steps_to_first(steps: Sequence[Step]) -> Mapping[int, int]:
    """Map the index of each step that repeats a call to the index of the step with the first call.

    A step with unknown arguments is not a repetition.
    """
    return _map_repeats_to_first(
        tuple(
            (at, ToolCall(step.name, step.detail)) for at, step in enumerate(steps) if step.detail and not step.cut
        )
    )


def _map_repeats_to_first(calls: Sequence[tuple[int, ToolCall]]) -> dict[int, int]:
    """Map the index of each repeated call to the index of the first call with the same name and arguments."""
    first: dict[str, int] = {}
    repeats: dict[int, int] = {}
    for at, call in calls:
        key = json.dumps([call.name, _to_comparable_json(call.arguments)], sort_keys=True)
        if key in first:
            repeats[at] = first[key]
        first.setdefault(key, at)
    return repeats


def _to_comparable_json(value: object) -> object:
    """Convert a value to a form in which equal values compare equal."""
    match value:
        case str():
            return _parse_json_or_keep_text(value)
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {
                str(key): _to_comparable_json(item) for key, item in cast("dict[object, object]", value).items()
            }
        case list() | tuple():
            return [_to_comparable_json(item) for item in cast("Sequence[object]", value)]
        case _:
            return value


def _parse_json_or_keep_text(text: str) -> object:
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return _to_comparable_json(json.loads(text))
    except (ValueError, RecursionError):
        return text
