"""Convert examples to items of a Langfuse dataset and back, without loss.

An item has an input, an expected output, metadata, a source trace and a status. The metadata contain, under
``_lookout``, the other parts of an example:

- the splits;
- whether the outputs or the trace are missing, because writing null in Langfuse does not delete an old value;
- the exact JSON text of parts that Langfuse's databases would change, such as control characters and integers
  beyond 2^53. If a person has changed such a part in Langfuse, the person's version is used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal, cast

from pydantic import JsonValue

from monitors.platforms.langfuse.client import LangfuseRecord
from monitors.platforms.platform import Example, Json

LOOKOUT_KEY: Final = "_lookout"
_UNSTORABLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_MAX_INTEGER: Final = 2**53 - 1


class DatasetItem(LangfuseRecord):
    """A dataset item in the form that Langfuse uses.

    An item that a person created may contain any JSON instead of Lookout's objects.
    """

    id: str
    dataset_name: str
    status: Literal["ACTIVE", "ARCHIVED"] = "ACTIVE"
    input: JsonValue = None
    expected_output: JsonValue = None
    metadata: JsonValue = None
    source_trace_id: str | None = None
    updated_at: datetime | None = None


def build_item_from_example(dataset: str, example: Example) -> Json:
    """Convert an example to an item of the dataset with the name ``dataset``."""
    parts = {"input": example.inputs, "expectedOutput": example.outputs or {}, "metadata": example.metadata}
    storable = {name: _to_storable_object(part) for name, part in parts.items()}
    exact = {name: json.dumps(part) for name, part in parts.items() if storable[name] != part}
    own: Json = {
        "splits": json.dumps(example.splits) if example.splits else None,
        "no_outputs": example.outputs is None or None,
        "no_trace": example.source_trace is None or None,
        "exact": cast("JsonValue", exact) or None,
    }
    metadata: Json = {
        **storable["metadata"],
        LOOKOUT_KEY: {name: value for name, value in own.items() if value is not None},
    }
    return {
        "datasetName": dataset,
        "id": example.id,
        "status": "ACTIVE",
        "input": storable["input"],
        "expectedOutput": storable["expectedOutput"],
        "metadata": metadata,
        "sourceTraceId": example.source_trace,
    }


def build_example_from_item(item: DatasetItem) -> Example:
    """Convert an item to an example.

    If the input, output or metadata is not an object, it becomes an object with one key: ``input``, ``output`` or
    ``metadata``.
    """
    metadata = wrap_as_json_object(item.metadata, "metadata")
    own = metadata.pop(LOOKOUT_KEY, None)
    own = own if isinstance(own, dict) else {}
    stored = {"input": item.input, "expectedOutput": item.expected_output, "metadata": metadata}
    restored = {
        name: _restore_exact_part_if_unchanged(own.get("exact"), name, part) for name, part in stored.items()
    }
    splits = _parse_json_text_or_none(own.get("splits"))
    return Example(
        id=item.id,
        inputs=wrap_as_json_object(restored["input"], "input"),
        outputs=_parse_outputs(restored["expectedOutput"], absent=bool(own.get("no_outputs"))),
        metadata=wrap_as_json_object(restored["metadata"], "metadata"),
        splits=tuple(split for split in splits if isinstance(split, str)) if isinstance(splits, list) else (),
        source_trace=None if own.get("no_trace") else item.source_trace_id or None,
        modified_at=item.updated_at,
    )


def _parse_outputs(stored: JsonValue, *, absent: bool) -> Json | None:
    if stored is None or (absent and stored == {}):
        return None
    return wrap_as_json_object(stored, "output")


def wrap_as_json_object(value: JsonValue, name: str) -> Json:
    """Return a copy of ``value`` if it is an object, and an empty object for ``None``.

    Any other value becomes an object with the single key ``name``.
    """
    if value is None:
        return {}
    return dict(value) if isinstance(value, dict) else {name: value}


def _restore_exact_part_if_unchanged(texts: JsonValue, name: str, stored: JsonValue) -> JsonValue:
    """Return the exact original of the part ``name``, or ``stored`` if a person changed this part in Langfuse."""
    exact = _parse_json_text_or_none(texts.get(name)) if isinstance(texts, dict) else None
    return exact if isinstance(exact, dict) and _to_storable_object(exact) == stored else stored


def _parse_json_text_or_none(text: JsonValue) -> JsonValue:
    """Parse JSON text. Return ``None`` if it is not valid JSON, for example because a person changed the text."""
    try:
        return cast("JsonValue", json.loads(text)) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _to_storable_object(part: Mapping[str, JsonValue]) -> Json:
    """Return the part without Lookout's own key. Values that Langfuse would change are replaced."""
    return {
        _replace_unstorable_characters(name): _to_storable(value)
        for name, value in part.items()
        if name != LOOKOUT_KEY
    }


def _to_storable(value: Any) -> JsonValue:
    match value:
        case str():
            return _replace_unstorable_characters(value)
        case bool() | None | float():
            return value
        case int():
            return value if abs(value) <= _MAX_INTEGER else str(value)
        case list():
            return [_to_storable(inner) for inner in cast("list[Any]", value)]
        case _:
            return {
                _replace_unstorable_characters(name): _to_storable(inner)
                for name, inner in cast("dict[str, Any]", value).items()
            }


def _replace_unstorable_characters(text: str) -> str:
    return _UNSTORABLE.sub("�", text)
