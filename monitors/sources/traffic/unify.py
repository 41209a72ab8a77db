"""Convert items of any logger to one form: keys in snake case, and nested objects instead of keys with dots."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, cast

from pydantic_core import from_json

from monitors.sources.traffic.names import get_names, to_snake_case

_ENVELOPES: Final = get_names("inside", "item")
_NODE_PARENTS: Final = get_names("inside", "parent")
_LIST_PARENTS: Final = get_names("inside", "list_parent")
_SPAN_PARENTS: Final = ("parent_id", "parent_span_id", "parent_run_id", "parent_observation_id")
_VALUE_KEYS: Final = (
    "string_value",
    "int_value",
    "double_value",
    "bool_value",
    "array_value",
    "values",
    "kvlist_value",
)
_MAX_DEPTH: Final = 60
_MAX_ENVELOPES: Final = 3


class Unified(dict[str, Any]):
    """A JSON object whose keys are in the unified form. ``raw`` is the object as it was logged.

    ``raw`` is ``None`` if the object was created from keys with dots.
    """

    raw: Any = None


def unify_keys(value: Any, depth: int = 0) -> Any:
    """Return the value with unified keys at all levels. OpenTelemetry attributes become an object."""
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, list):
        items = cast("list[Any]", value)
        attributes = _convert_key_value_list(items)
        return (
            unify_keys(attributes, depth)
            if attributes
            else [unify_keys(source_item, depth + 1) for source_item in items]
        )
    if not isinstance(value, dict):
        return value
    unified = Unified()
    unified.raw = value
    for key, inner in cast("dict[Any, Any]", value).items():
        name = to_snake_case(str(key))
        steps = name.split(".")
        if len(steps) > 1 and all(steps) and " " not in name:
            _insert_at_path(unified, steps, unify_keys(inner, depth + 1))
        elif unified.get(name) in (None, ""):
            unified[name] = unify_keys(inner, depth + 1)
    return _convert_numbered_keys_to_lists(unified)


def _insert_at_path(unified: Unified, steps: Sequence[str], value: Any) -> None:
    """Store ``value`` in nested objects. ``steps`` are the parts of a key with dots.

    A value on the path that is not an object, such as a string, is replaced with an object.
    """
    target = unified
    for step in steps[:-1]:
        nested = target.get(step)
        if not isinstance(nested, Unified):
            nested = target[step] = Unified()
        target = nested
    if not isinstance(target.get(steps[-1]), Unified):
        target[steps[-1]] = value


def _convert_numbered_keys_to_lists(unified: Unified) -> Any:
    """Convert each object whose keys are list positions (``0``, ``1``, …) to a list.

    Such objects come from keys with dots, such as ``messages.0``.
    """
    for key, inner in unified.items():
        if isinstance(inner, Unified) and inner.raw is None:
            unified[key] = _convert_numbered_keys_to_lists(inner)
    if unified.raw is None and unified and all(key.isdecimal() for key in unified):
        return [unified[key] for key in sorted(unified, key=int)]
    return unified


def _convert_key_value_list(items: list[Any]) -> dict[str, Any] | None:
    """Convert OpenTelemetry's list of keys and values to one object.

    Returns ``None`` for any other list.
    """
    attributes: dict[str, Any] = {}
    for source_item in items:
        if not isinstance(source_item, dict) or set(cast("dict[str, Any]", source_item)) != {"key", "value"}:
            return None
        attribute = cast("dict[str, Any]", source_item)
        attributes[str(attribute["key"])] = _read_attribute_value(attribute["value"])
    return attributes or None


def _read_attribute_value(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    held = {to_snake_case(key): inner for key, inner in cast("dict[str, Any]", value).items()}
    inner = next((held[key] for key in _VALUE_KEYS if key in held), None)
    if inner is None:
        return cast("Any", value)
    if isinstance(inner, list):
        return [_read_attribute_value(source_item) for source_item in cast("list[Any]", inner)]
    return _read_attribute_value(inner) if isinstance(inner, dict) else inner


def unify_item_keys(source_item: Any) -> Any:
    """Return an item with unified keys. Keys of inner objects such as ``attributes`` are added to the item."""
    unified = unify_keys(source_item)
    if isinstance(unified, Unified):
        add_enveloped_keys(unified)
    return unified


def add_enveloped_keys(unified: Unified) -> None:
    """Copy into the item the keys of its inner objects such as ``attributes``, and those of a trace's root span."""
    spans = unified.get("spans")
    for span in cast("list[Any]", spans) if isinstance(spans, list) else []:
        if isinstance(span, Unified) and not any(span.get(name) for name in _SPAN_PARENTS):
            for key, value in span.items():
                unified.setdefault(key, value)
    for _ in range(_MAX_ENVELOPES):
        before = len(unified)
        for name in _ENVELOPES:
            inner = parse_and_unify_json_text(unified.get(name))
            if isinstance(inner, Unified):
                for key, value in inner.items():
                    unified.setdefault(key, value)
        if len(unified) == before:
            break


def parse_and_unify_json_text(value: Any) -> Any:
    """Return the unified object or list in a JSON text. Any other value is returned unchanged."""
    if isinstance(value, str) and (text := value.strip()) and text[0] + text[-1] in ("{}", "[]"):
        try:
            return unify_keys(from_json(text))
        except ValueError:
            return value
    return value


def format_with_original_keys(value: Any) -> str:
    """Return a unified value as JSON, with the original keys of its logger."""
    return json.dumps(_restore_original_keys(value), ensure_ascii=False, default=str)


def _restore_original_keys(value: Any) -> Any:
    if isinstance(value, Unified):
        return (
            value.raw
            if value.raw is not None
            else {key: _restore_original_keys(inner) for key, inner in value.items()}
        )
    if isinstance(value, list):
        return [_restore_original_keys(source_item) for source_item in cast("list[Any]", value)]
    return value


def select_branch(nodes: Any, leaf: str | None) -> list[Any] | None:
    """Return the messages of a tree from its root to the message ``leaf``, or to the newest message.

    Returns ``None`` for a plain list. A tree is an object whose messages are keyed by id, or a list in which
    each message contains the id of the preceding message.
    """
    names = _LIST_PARENTS if isinstance(nodes, list) else _NODE_PARENTS
    by_id = _map_nodes_by_id_if_linked(nodes, names)
    if by_id is None:
        return None
    parents = {key: next((node[name] for name in names if node.get(name)), None) for key, node in by_id.items()}
    branched = len({parent for parent in parents.values() if parent in by_id}) < sum(
        parent in by_id for parent in parents.values()
    )
    if isinstance(nodes, list) and not branched and leaf is None:
        return None  # a plain list, in its own order
    place: Any = leaf if leaf in by_id else next(reversed(by_id), None)
    branch: list[Any] = []
    while place in by_id and len(branch) <= len(by_id):
        branch.append(by_id[place])
        place = parents[place]
    return branch[::-1]


def _map_nodes_by_id_if_linked(nodes: Any, names: Sequence[str]) -> dict[Any, Unified] | None:
    if isinstance(nodes, Unified):
        items = [(key, node) for key, node in nodes.items() if isinstance(node, Unified)]
    elif isinstance(nodes, list):
        messages = [node for node in cast("list[Any]", nodes) if isinstance(node, Unified)]
        items = [(node.get("id") or node.get("message_id"), node) for node in messages]
    else:
        return None
    if not items or not any(name in node for _, node in items for name in names):
        return None
    by_id: dict[Any, Unified] = {}
    for key, node in items:
        if not isinstance(key, str | int):
            return None
        by_id[key] = node
    return by_id
