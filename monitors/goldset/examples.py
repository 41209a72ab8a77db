"""A gold case as an entry of a platform's dataset, and back, with nothing lost.

The keys of a case lie in three places, each in one alone, so that no two copies can contradict: what is asked in
``inputs``, what is expected in ``outputs``, where a platform shows both and people edit them; the rest under one
key of the ``metadata``, with the hash of the case as it was pushed last: an entry whose case has another hash
was edited by a person.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import JsonValue

from monitors.goldset.issues import ISSUE_KEYS
from monitors.goldset.lines import Unusable, case_from_object, line_of, shown
from monitors.goldset.load import cases_sha256
from monitors.platforms.platform import Example, Json
from monitors.records.cases import GoldCase

METADATA_KEY: Final = "lookout"
PUSHED: Final = "pushed"
"""The key beside those of the case: the hash of the case that was pushed last."""

_NAMESPACE: Final = uuid.UUID("c0a4b7de-53a1-4c86-9d0b-6a5f0c9e2b17")
_ASKED: Final = frozenset({"question", "turns", *ISSUE_KEYS} - {"reference"})
_EXPECTED: Final = frozenset(
    {"gold", "alternatives", "expected_refusal", "expected_citation", "must_say", "must_not_say", "reference"}
)
_MESSAGES: Final = "messages"
_USER_ROLES: Final = frozenset({"user", "human"})


def example_id(dataset_id: str, case_id: str) -> str:
    """The id of a case's entry in a dataset: the same at every push, so that a retry writes the same entry."""
    return str(uuid.uuid5(_NAMESPACE, f"{dataset_id}/{case_id}"))


def example_of(case: GoldCase, dataset_id: str, there: Example | None = None, trace: str | None = None) -> Example:
    """The entry of a case. Of the entry that is ``there`` already, people's splits and other metadata stay.

    ``trace`` is the one that the case was made of, for a new entry.
    """
    fields: dict[str, Any] = json.loads(line_of(case))
    inputs: Json = {key: value for key, value in fields.items() if key in _ASKED}
    if "turns" in inputs:
        del inputs["turns"]
        inputs = {_MESSAGES: [{"role": "user", "content": turn} for turn in case.turns], **inputs}
    rest: Json = {key: value for key, value in fields.items() if key not in _ASKED | _EXPECTED}
    rest[PUSHED] = case_sha256(case)
    metadata = _without_ours(there.metadata) if there else {}
    metadata[METADATA_KEY] = rest
    return Example(
        id=there.id if there else example_id(dataset_id, case.id),
        inputs=inputs,
        outputs={key: value for key, value in fields.items() if key in _EXPECTED},
        metadata=metadata,
        splits=there.splits if there else (),
        source_trace=there.source_trace if there else trace,
        modified_at=there.modified_at if there else None,
    )


def case_sha256(case: GoldCase) -> str:
    """What a case is compared by: its hash, as a suite of this case alone has it."""
    return cases_sha256([case])


def our_id(example: Example) -> str | None:
    """The id of the case that an entry holds; ``None`` for one that a person added."""
    ours = _ours(example)
    case_id = ours.get("id") if ours is not None else None
    return case_id if isinstance(case_id, str) else None


def pushed_sha256(example: Example) -> str | None:
    """The hash of the case as it was pushed last."""
    mark = (_ours(example) or {}).get(PUSHED)
    return mark if isinstance(mark, str) else None


def case_in(example: Example) -> GoldCase | Unusable:
    """The case of an entry of ours, as people have edited it; or all that is wrong with it."""
    rest = {key: value for key, value in (_ours(example) or {}).items() if key != PUSHED}
    asked = dict(example.inputs)
    problems = [*_twice(("inputs", asked), ("outputs", example.outputs or {}), (f"metadata.{METADATA_KEY}", rest))]
    if _MESSAGES in asked:
        turns, wrong = _turns(asked.pop(_MESSAGES))
        problems += wrong
        asked["turns"] = turns
    if problems:
        return Unusable(tuple(problems), our_id(example))
    return case_from_object({**rest, **asked, **(example.outputs or {})})


def _ours(example: Example) -> Mapping[str, JsonValue] | None:
    found = example.metadata.get(METADATA_KEY)
    return found if isinstance(found, dict) else None


def _without_ours(metadata: Mapping[str, JsonValue]) -> Json:
    return {key: value for key, value in metadata.items() if key != METADATA_KEY}


def _turns(messages: JsonValue) -> tuple[list[JsonValue], list[str]]:
    """The user's messages, and what is wrong with the list."""
    turns, problems = list[JsonValue](), list[str]()
    for message in messages if isinstance(messages, list) else [messages]:
        found = message if isinstance(message, dict) else {}
        if found.get("role") not in _USER_ROLES or not isinstance(found.get("content"), str):
            problems.append(
                f'"messages" cannot hold {shown(message)}; accepted: the user\'s messages in order, each as '
                '{"role": "user", "content": "…"}'
            )
        else:
            turns.append(found["content"])
    return turns, problems


def _twice(*places: tuple[str, Mapping[str, JsonValue]]) -> Iterable[str]:
    """Keys that stand in two places: nobody can say which of the two counts."""
    first: dict[str, str] = {}
    for place, keys in places:
        for key in keys:
            if key in first:
                yield f"{shown(key)} stands in {first[key]} and in {place}; leave it in {first[key]} alone"
            first.setdefault(key, place)
