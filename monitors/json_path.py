"""Read values from parsed JSON by a path such as ``choices.0.message.content``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, cast

_TITLES: Final = (
    *("title", "name", "source", "document", "doc", "document_name", "file", "filename", "file_name", "label"),
    *("metadata.title", "metadata.name", "metadata.source", "metadata.file_name"),
    *("id", "document_id", "doc_id", "source_id", "file_id", "chunk_id"),
)
_ADDRESSES: Final = ("url", "uri", "href", "link", "metadata.url")
_PASSAGES: Final = ("text", "content", "quote", "snippet", "page_content")
_NOTHING: Final = frozenset({"none", "null", "nil", "undefined", "n/a"})
_MAX_DEPTH: Final = 20
_MAX_KEYS: Final = 64
"""Maximum number of keys of an object for which the result of `select_paths_by_first_key` is cached."""


def collect_values(document: Any, path: str) -> list[Any]:
    """Return all values at ``path`` in parsed JSON, in order.

    The path contains names and list positions with dots between them. Negative positions count from the end.
    ``*`` means all items of a list: ``sources.*.title``. The empty path is the whole document.
    """
    values: list[Any] = [document]
    for step in _split_path(path):
        values = [value for item in values for value in _follow_step(item, step)]
    return values


def select_paths_by_first_key(document: Any, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of ``paths`` that may have a value in the document.

    Paths whose first name is not a key of the document are omitted. If the document is not an object, or has more
    than `_MAX_KEYS` keys, all paths are returned.
    """
    if not isinstance(document, dict):
        return paths
    keys = tuple(cast("dict[str, Any]", document))
    return _select_by_first_step(keys, paths) if len(keys) <= _MAX_KEYS else paths


@lru_cache(maxsize=2048)
def _select_by_first_step(keys: tuple[str, ...], paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path for path in paths if not path or (first := _split_path(path)[0]) == "*" or first in keys)


def collect_items(document: Any, path: str) -> list[Any]:
    """Return the values at ``path``. Lists are replaced by their items, and nulls are skipped.

    For example, the paths ``sources`` and ``sources.*`` give the same items. An empty list gives no items.
    """
    return [item for value in collect_values(document, path) for item in _flatten_items(value)]


def collect_sources(document: Any, path: str) -> tuple[str, ...]:
    """Return the names of the sources at ``path``, in order. Each item of a list is one source.

    - If a source is a string or a number, the source itself is the name.
    - The name of an object is its title, name, source, file or id, followed by the address of the source in
      brackets.
    - If an object has none of these values, the names in its inner objects and lists are used. If there are none,
      the name is the quoted passage in the object, such as its ``text``, or else its JSON.
    - Empty values, and words such as ``null``, are not sources.
    """
    return tuple(name for item in collect_items(document, path) for name in _iterate_source_names(item, 0))


def join_text_parts(value: Any) -> str:
    """Return a value as text. The parts of a list are joined, because some chat APIs send a text as a list.

    A part with a ``type`` adds only its ``text``. Any other object is added as JSON.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_get_part_text(item) for item in _flatten_items(cast("list[Any]", value)))
    return json.dumps(value, ensure_ascii=False)


def _get_part_text(item: Any) -> str:
    typed = cast("dict[str, Any]", item) if isinstance(item, dict) and "type" in item else None
    if typed is None:
        return join_text_parts(item)
    text = typed.get("text")
    return text if isinstance(text, str) else ""


def _flatten_items(value: Any) -> Iterator[Any]:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending += reversed(cast("list[Any]", item))
        elif item is not None:
            yield item


def _iterate_source_names(item: Any, depth: int) -> Iterator[str]:
    if not isinstance(item, dict):
        text = "" if isinstance(item, bool) else str(item).strip()
        if text.casefold() not in _NOTHING and any(map(str.isalnum, text)):
            yield text
        return
    title, address, passage = (_find_first_name(item, paths) for paths in (_TITLES, _ADDRESSES, _PASSAGES))
    if title or address:
        yield f"{title} ({address})" if title and address and title != address else title or address
        return
    members = list(cast("dict[str, Any]", item).values())
    nested_items = [
        nested_item for value in members for nested_item in _flatten_items(value) if isinstance(value, dict | list)
    ]
    nested = [
        name
        for nested_item in nested_items
        if depth < _MAX_DEPTH
        for name in _iterate_source_names(nested_item, depth + 1)
    ]
    if nested or passage:
        yield from nested or [passage]
    elif any(isinstance(value, str) and value.strip() for value in members):
        yield json.dumps(item, ensure_ascii=False)


def _find_first_name(item: Any, paths: tuple[str, ...]) -> str:
    values = (value for path in paths for value in collect_values(item, path) if isinstance(value, str | int))
    return next((name for value in values for name in _iterate_source_names(value, 0)), "")


@lru_cache(maxsize=1024)
def _split_path(path: str) -> tuple[str, ...]:
    return tuple(path.split(".")) if path else ()


def _follow_step(item: Any, step: str) -> list[Any]:
    if isinstance(item, dict):
        mapping = cast("dict[str, Any]", item)
        return list(mapping.values()) if step == "*" else [mapping[step]] if step in mapping else []
    if isinstance(item, list):
        values = cast("list[Any]", item)
        if step == "*":
            return values
        if re.fullmatch(r"-?\d{1,9}", step) and -len(values) <= int(step) < len(values):
            return [values[int(step)]]
    return []
