"""Convert a gold case to an entry of a dataset on Langfuse or LangSmith, and back.

The question is in the ``inputs`` of the entry, and the expected answer in its ``outputs``, where people can edit
them. All other keys of the case are in its ``metadata``, with the hash of the case at the last push. If the hash of
the case differs from the stored hash, a person has edited the entry.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import JsonValue

from monitors.goldset.issues import ISSUE_KEYS
from monitors.goldset.lines import Unusable, format_case_line, format_value, parse_case_object
from monitors.goldset.load import hash_cases
from monitors.platforms.platform import Example, Json
from monitors.records.cases import GoldCase

METADATA_KEY: Final = "lookout"
PUSHED: Final = "pushed"
"""The metadata key under which the hash of the case at the last push is stored."""

_NAMESPACE: Final = uuid.UUID("c0a4b7de-53a1-4c86-9d0b-6a5f0c9e2b17")
_INPUT_KEYS: Final = frozenset({"question", "turns", *ISSUE_KEYS} - {"reference"})
_OUTPUT_KEYS: Final = frozenset(
    {
        "gold",
        "alternatives",
        "expected_refusal",
        "expected_citation",
        "alternative_citations",
        "must_say",
        "must_not_say",
        "reference",
    }
)
_MESSAGES: Final = "messages"
_USER_ROLES: Final = frozenset({"user", "human"})


def make_example_id(dataset_id: str, case_id: str) -> str:
    """Return the id of a case's entry in a dataset.

    The id does not change, so that a second push replaces the entry.
    """
    return str(uuid.uuid5(_NAMESPACE, f"{dataset_id}/{case_id}"))


def build_example_from_case(
    case: GoldCase, dataset_id: str, existing: Example | None = None, trace: str | None = None
) -> Example:
    """Build the entry of a case. The splits and other metadata of an ``existing`` entry are not changed.

    ``trace`` is the id of the trace that the case comes from, and is used only for a new entry.
    """
    fields: dict[str, Any] = json.loads(format_case_line(case))
    inputs: Json = {key: value for key, value in fields.items() if key in _INPUT_KEYS}
    if "turns" in inputs:
        del inputs["turns"]
        inputs = {_MESSAGES: [{"role": "user", "content": turn} for turn in case.turns], **inputs}
    rest: Json = {key: value for key, value in fields.items() if key not in _INPUT_KEYS | _OUTPUT_KEYS}
    rest[PUSHED] = hash_case(case)
    metadata = {key: value for key, value in existing.metadata.items() if key != METADATA_KEY} if existing else {}
    metadata[METADATA_KEY] = rest
    return Example(
        id=existing.id if existing else make_example_id(dataset_id, case.id),
        inputs=inputs,
        outputs={key: value for key, value in fields.items() if key in _OUTPUT_KEYS},
        metadata=metadata,
        splits=existing.splits if existing else (),
        source_trace=existing.source_trace if existing else trace,
        modified_at=existing.modified_at if existing else None,
    )


def hash_case(case: GoldCase) -> str:
    """Return the hash of one case, which equals the hash of a suite that has only this case."""
    return hash_cases([case])


def find_case_id(example: Example) -> str | None:
    """Return the id of the case in an entry. Return ``None`` for an entry that a person added."""
    own = _read_lookout_metadata(example)
    case_id = own.get("id") if own is not None else None
    return case_id if isinstance(case_id, str) else None


def read_pushed_sha256(example: Example) -> str | None:
    """Return the hash of the case at the last push. Return ``None`` if the entry has no such hash."""
    pushed = (_read_lookout_metadata(example) or {}).get(PUSHED)
    return pushed if isinstance(pushed, str) else None


def read_case_from_example(example: Example) -> GoldCase | Unusable:
    """Return the case in an entry, with the edits of people. If this case is invalid, return all its problems."""
    rest = {key: value for key, value in (_read_lookout_metadata(example) or {}).items() if key != PUSHED}
    inputs = dict(example.inputs)
    problems = [
        *_describe_repeated_keys(
            ("inputs", inputs), ("outputs", example.outputs or {}), (f"metadata.{METADATA_KEY}", rest)
        )
    ]
    if _MESSAGES in inputs:
        turns, turn_problems = _parse_user_messages(inputs.pop(_MESSAGES))
        problems += turn_problems
        inputs["turns"] = turns
    if problems:
        return Unusable(tuple(problems), find_case_id(example))
    return parse_case_object({**rest, **inputs, **(example.outputs or {})})


def _read_lookout_metadata(example: Example) -> Mapping[str, JsonValue] | None:
    own = example.metadata.get(METADATA_KEY)
    return own if isinstance(own, dict) else None


def _parse_user_messages(messages: JsonValue) -> tuple[list[JsonValue], list[str]]:
    """Return the contents of the user's messages, and the problems in the list of messages."""
    turns, problems = list[JsonValue](), list[str]()
    for message in messages if isinstance(messages, list) else [messages]:
        fields = message if isinstance(message, dict) else {}
        if fields.get("role") not in _USER_ROLES or not isinstance(fields.get("content"), str):
            problems.append(
                f'"messages" cannot contain {format_value(message)}; accepted: the user\'s messages in order, '
                'each as {"role": "user", "content": "…"}'
            )
        else:
            turns.append(fields["content"])
    return turns, problems


def _describe_repeated_keys(*places: tuple[str, Mapping[str, JsonValue]]) -> Iterable[str]:
    """Yield a problem for each key that two parts of the entry contain.

    It is unknown which of the two values is valid.
    """
    first: dict[str, str] = {}
    for place, keys in places:
        for key in keys:
            if key in first:
                yield f"{format_value(key)} is in both {first[key]} and {place}; remove it from {place}"
            first.setdefault(key, place)
