"""Read single values, such as names, numbers and thumbs, from an item with unified keys (see `unify_item_keys`).

Invalid values do not raise errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from monitors.json_path import collect_items, collect_sources, collect_values, select_paths_by_first_key
from monitors.records.traffic import Thumb
from monitors.sources.traffic.names import to_snake_paths
from monitors.sources.traffic.unify import Unified

_UP_WORDS: Final = (
    *("up", "thumbs_up", "thumbs-up", "thumbs up", "thumbsup", "like", "liked"),
    *("positive", "good", "helpful", "yes", "true", "1", "+1", "👍"),
)
_DOWN_WORDS: Final = (
    *("down", "thumbs_down", "thumbs-down", "thumbs down", "thumbsdown", "dislike", "disliked"),
    *("negative", "bad", "unhelpful", "not helpful", "no", "false", "0", "-1", "👎"),
)


def select_reachable_paths(source_item: Any, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return, in lower snake case, the paths whose first key the object has. Other paths cannot have a value."""
    return _select_by_keys(tuple(source_item), paths) if isinstance(source_item, Unified) else ()


@lru_cache(maxsize=8192)
def _select_by_keys(keys: tuple[str, ...], paths: tuple[str, ...]) -> tuple[str, ...]:
    return select_paths_by_first_key(dict.fromkeys(keys), to_snake_paths(paths))


def find_values(source_item: Any, paths: tuple[str, ...]) -> Iterator[Any]:
    """Yield the values at the paths in order. Null values and empty strings are omitted."""
    for path in select_reachable_paths(source_item, paths):
        yield from (value for value in collect_values(source_item, path) if value is not None and value != "")


def has_any_path(source_item: Any, paths: tuple[str, ...]) -> bool:
    """Return whether one of the paths exists, with or without a value."""
    return any(collect_values(source_item, path) for path in select_reachable_paths(source_item, paths))


def find_flattened_values(source_item: Any, paths: tuple[str, ...]) -> Iterator[Any]:
    """Yield the same values as `find_values`, but yield the elements of a list one by one."""
    for path in select_reachable_paths(source_item, paths):
        yield from (value for value in collect_items(source_item, path) if value != "")


def replace_surrogates(text: str) -> str:
    """Return the text with lone surrogates replaced by U+FFFD. UTF-8 can encode the result."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def find_first_name(source_item: Any, paths: tuple[str, ...]) -> str | None:
    """Return the first name or number at the paths as a string, or ``None`` if there is none."""
    return next(find_names(source_item, paths), None)


def find_names(source_item: Any, paths: tuple[str, ...]) -> Iterator[str]:
    """Yield the names and numbers at the paths as strings."""
    for value in find_flattened_values(source_item, paths):
        if isinstance(value, str) and value.strip():
            yield replace_surrogates(value.strip())
        elif isinstance(value, int) and not isinstance(value, bool):
            yield str(value)


def find_source_names(source_item: Any, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the sources at the first path that has sources."""
    leading = select_reachable_paths(source_item, paths)
    return tuple(
        map(
            replace_surrogates,
            next((names for path in leading if (names := collect_sources(source_item, path))), ()),
        )
    )


def find_first_non_negative_number(source_item: Any, paths: tuple[str, ...]) -> float | None:
    """Return the first number at the paths that is not negative, or ``None`` if there is none."""
    for value in find_flattened_values(source_item, paths):
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            number = float(value) if abs(value) < 1e300 else math.inf  # noqa: PLR2004 - more than a float holds
            if math.isfinite(number) and number >= 0:
                return number
    return None


def is_flag_set(source_item: Any, paths: tuple[str, ...]) -> bool:
    """Return whether the first value at the paths means yes (see `is_yes`)."""
    return is_yes(next(find_flattened_values(source_item, paths), False))


def is_yes(value: Any) -> bool:
    """Return whether a value means yes: true, 1, or a string such as ``yes``."""
    return value.strip().lower() in {"true", "yes", "1"} if isinstance(value, str) else value in (True, 1)


def find_thumb(source_item: Any, paths: tuple[str, ...]) -> Thumb | None:
    """Return the first thumbs up or thumbs down at the paths, or ``None`` if there is none."""
    return next(
        (thumb for value in find_flattened_values(source_item, paths) if (thumb := parse_thumb(value))), None
    )


def parse_thumb(value: Any) -> Thumb | None:
    """Return the thumb that ``value`` means: up for true, 1 or "like", down for false, 0, -1 or "bad".

    Return ``None`` for any other value, such as a number of stars.
    """
    if isinstance(value, bool):
        return Thumb.UP if value else Thumb.DOWN
    if isinstance(value, int | float):
        return Thumb.UP if value == 1 else Thumb.DOWN if value in (0, -1) else None
    word = value.strip().lower() if isinstance(value, str) else ""
    return Thumb.UP if word in _UP_WORDS else Thumb.DOWN if word in _DOWN_WORDS else None
