"""Paths into parsed JSON, such as ``choices.0.message.content``. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, cast


def values_at(document: Any, path: str) -> list[Any]:
    """Everything that stands at ``path`` in parsed JSON, in order; nothing where it leads nowhere.

    Steps are names and list positions (negative ones count from the end), ``*`` is every item: ``sources.*.title``.
    The empty path is the document itself.
    """
    steps = _steps(path)
    if steps and isinstance(document, dict) and steps[0] not in document and steps[0] != "*":
        return []  # most paths of a long list of names lead nowhere: this halves the time of a reading
    found: list[Any] = [document]
    for step in steps:
        found = [value for item in found for value in _step(item, step)]
    return found


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.split(".")) if path else ()


def _step(item: Any, step: str) -> list[Any]:
    if isinstance(item, dict):
        known = cast("dict[str, Any]", item)
        return list(known.values()) if step == "*" else [known[step]] if step in known else []
    if isinstance(item, list):
        many = cast("list[Any]", item)
        if step == "*":
            return many
        if re.fullmatch(r"-?\d{1,9}", step) and -len(many) <= int(step) < len(many):
            return [many[int(step)]]
    return []
