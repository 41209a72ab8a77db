"""Read the passages that an app received for an answer: retrieved documents and tool results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, cast

from monitors.json_path import collect_items
from monitors.sources.traffic.names import get_names, to_snake_case
from monitors.sources.traffic.unify import Unified, format_with_original_keys, parse_and_unify_json_text
from monitors.sources.traffic.values import find_values, replace_surrogates, select_reachable_paths

_TEXTS: Final = get_names("passages", "texts")
_LISTS: Final = get_names("passages", "lists")
_TOOLS: Final = get_names("passages", "tools")
_CITED: Final = get_names("passages", "cited")
_SPANS: Final = get_names("passages", "spans")
_SPAN_KINDS: Final = frozenset(get_names("passages", "span_kinds"))
_KIND_PATHS: Final = get_names("spans", "kind")
_OUTPUTS: Final = get_names("passages", "outputs")
_WRAPPERS: Final = get_names("passages", "values")
_TITLES: Final = ("title", "name", "source")
_MAX_DEPTH: Final = 6
_BLANK: Final = re.compile(r"\s")


def find_passages(source_item: Any, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tool results, and the texts of the documents at the first path that has documents."""
    documents: list[str] = []
    for path in select_reachable_paths(source_item, paths):
        documents = [text for value in collect_items(source_item, path) for text in _read_documents(value)]
        if documents:
            break
    if not documents:
        sources = (
            value
            for path in select_reachable_paths(source_item, _CITED)
            for value in collect_items(source_item, path)
        )
        documents = [text for value in map(parse_and_unify_json_text, sources) for text in _read_cited_texts(value)]
    tools = (
        value for path in select_reachable_paths(source_item, _TOOLS) for value in collect_items(source_item, path)
    )
    return (
        *documents,
        *(text for value in (*tools, *_find_span_outputs(source_item)) for text in read_tool_result(value)),
    )


def _find_span_outputs(source_item: Any) -> Iterator[Any]:
    """Yield the outputs of tools and searches in a trace."""
    for path in select_reachable_paths(source_item, _SPANS):
        for span in collect_items(source_item, path):
            kinds = (to_snake_case(kind) for kind in find_values(span, _KIND_PATHS) if isinstance(kind, str))
            if not _SPAN_KINDS.isdisjoint(kinds):
                yield parse_and_unify_json_text(next(find_values(span, _OUTPUTS), None))
            else:
                yield from _find_span_outputs(span)


def read_tool_result(value: Any, depth: int = 0) -> list[str]:
    """Return the texts in the result of a tool call: the plain text, or the text of each document.

    Any other result is returned as one JSON text.
    """
    if isinstance(value, str):
        return [replace_surrogates(value)] if value.strip() else []
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if items and all(_is_text_part(source_item) for source_item in items):
            text = "".join(
                str(source_item["text"]) if isinstance(source_item, Unified) else str(source_item)
                for source_item in items
            )
            return [replace_surrogates(text)] if text.strip() else []
        if items and all(is_document(source_item) for source_item in items):
            return [text for source_item in items for text in _read_documents(source_item)]
    if isinstance(value, Unified) and depth < _MAX_DEPTH:
        named = [name for name in _WRAPPERS if name in value]
        rest = set(value) - {"type", "id", "tool_call_id", "tool_use_id", "name", "is_error", "status"}
        if len(named) == 1 and rest == set(named):
            return read_tool_result(value[named[0]], depth + 1)
    return [] if value in (None, [], {}) else [replace_surrogates(format_with_original_keys(value))]


def is_document(value: Any) -> bool:
    """Return whether an object is a retrieved document.

    A retrieved document has a text with metadata or a score, but no author.
    """
    if not isinstance(value, Unified) or "role" in value:
        return False
    if "page_content" in value or "document" in value or isinstance(value.get("node"), dict):
        return True
    has_text = any(isinstance(text, str) for text in find_values(value, _TEXTS[:8]))
    return has_text and bool(
        {"metadata", "score", "similarity", "distance", "source", "filename", "doc_id"} & value.keys()
    )


def _is_text_part(source_item: Any) -> bool:
    return isinstance(source_item, str) or (
        isinstance(source_item, dict)
        and isinstance(cast("dict[str, Any]", source_item).get("text"), str)
        and not is_document(source_item)
    )


def _read_documents(value: Any, depth: int = 0) -> Iterator[str]:
    value = parse_and_unify_json_text(value) if depth == 0 else value
    if isinstance(value, list):
        for source_item in cast("list[Any]", value):
            yield from _read_documents(source_item, depth + 1)
    elif not isinstance(value, Unified):
        if isinstance(value, str) and value:
            yield replace_surrogates(value)
    elif depth < _MAX_DEPTH:
        yield from _read_document(value, depth)


def _read_document(value: Unified, depth: int) -> Iterator[str]:
    lists: list[Any] = [inner for inner in find_values(value, _LISTS) if isinstance(inner, list | Unified)]
    text = next(find_values(value, _TEXTS), None)
    if isinstance(text, str) and text.strip():
        yield replace_surrogates(text)
    elif isinstance(text, Unified | list) and text:
        yield from _read_documents(text, depth + 1)
    elif lists:
        yield from _read_documents(lists[0], depth + 1)
    elif isinstance(title := next(find_values(value, _TITLES), None), str):
        yield replace_surrogates(title)
    elif value and not _has_only_ids(value):
        yield replace_surrogates(format_with_original_keys(value))


def _has_only_ids(value: Unified) -> bool:
    """Return whether an object contains only ids, numbers and single words, and no text of several words."""
    return all(
        inner is None
        or isinstance(inner, int | float)
        or (isinstance(inner, str) and not _BLANK.search(inner.strip()))
        for inner in value.values()
    )


def _read_cited_texts(value: Any) -> Iterator[str]:
    """Yield the text of a cited source, if the source has a text in addition to its name."""
    for source_item in cast("list[Any]", value) if isinstance(value, list) else [value]:
        text = next(find_values(source_item, _TEXTS[:8]), None) if isinstance(source_item, Unified) else None
        if isinstance(text, str) and text.strip():
            yield replace_surrogates(text)
