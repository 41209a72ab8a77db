"""Plain values out of an item of traffic: texts, times, numbers, thumbs. Nothing that stands there raises."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, cast

from pydantic import TypeAdapter, ValidationError

from monitors.json_path import values_at
from monitors.records.traffic import Thumb

_TIME: Final[TypeAdapter[datetime]] = TypeAdapter(datetime)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Each unit begins where the one before it would lie beyond the year 5138.
_PER_SECOND: Final = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (0.0, 1.0))
_PART_TEXTS: Final = ("text", "content", "value", "message", "kwargs.content")
_DEEPEST: Final = 6

_UP: Final = (
    *("up", "thumbs_up", "thumbs-up", "thumbs up", "thumbsup", "like", "liked"),
    *("positive", "good", "helpful", "yes", "true", "1", "+1", "👍"),
)
_DOWN: Final = (
    *("down", "thumbs_down", "thumbs-down", "thumbs down", "thumbsdown", "dislike", "disliked"),
    *("negative", "bad", "unhelpful", "not helpful", "no", "false", "0", "-1", "👎"),
)


def found(item: Any, paths: tuple[str, ...]) -> Iterator[Any]:
    """What stands at the paths, in their order, without what is empty."""
    for path in paths:
        yield from (value for value in values_at(item, path) if value is not None and value != "")


def text_of(value: Any, depth: int = 0) -> str | None:
    """A text, or the texts of a message's parts joined; ``None`` where there is none. Never half a character."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, list) and depth < _DEEPEST:
        parts = [text for part in cast("list[Any]", value) if (text := text_of(part, depth + 1))]
        return "\n".join(parts) or None
    if isinstance(value, dict) and depth < _DEEPEST:
        texts = (text_of(inner, depth + 1) for inner in found(value, _PART_TEXTS))
        return next((text for text in texts if text), None)
    return None


def whole(text: str) -> str:
    """The text as UTF-8 can hold it: lone surrogates become U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def first_text(item: Any, paths: tuple[str, ...]) -> str | None:
    """The first text at the paths."""
    return next((text for value in found(item, paths) if (text := text_of(value))), None)


def first_name(item: Any, paths: tuple[str, ...]) -> str | None:
    """The first name or number at the paths: ids and versions may be either."""
    for value in found(item, paths):
        if isinstance(value, str) and value.strip():
            return whole(value.strip())
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return None


def texts(item: Any, paths: tuple[str, ...]) -> tuple[str, ...]:
    """All texts of the first path that has some; what is no text stands as JSON."""
    for path in paths:
        values: list[Any] = []
        for value in values_at(item, path):
            values += cast("list[Any]", value) if isinstance(value, list) else [value]
        said = tuple(_said(value) for value in values if value not in (None, "", {}, []))
        if said:
            return said
    return ()


def _said(value: Any) -> str:
    keyed = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    named = next(found(keyed, ("title", "name", "source", "page_content")), None)
    text = text_of(value) or (named if isinstance(named, str) else None)
    return text if text is not None else whole(json.dumps(value, ensure_ascii=False, default=str, sort_keys=True))


def first_number(item: Any, paths: tuple[str, ...]) -> float | None:
    """The first number from zero upwards."""
    for value in found(item, paths):
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            number = float(value) if abs(value) < 1e300 else math.inf  # noqa: PLR2004 - beyond what a float holds
            if math.isfinite(number) and number >= 0:
                return number
    return None


def first_time(item: Any, paths: tuple[str, ...]) -> datetime | None:
    """The first point in time at the paths, in UTC; without a zone it is UTC already."""
    return next((time for value in found(item, paths) if (time := time_of(value))), None)


def time_of(value: Any) -> datetime | None:
    """ISO 8601, or the seconds (milli-, micro-, nanoseconds by their size) since 1970."""
    try:
        if isinstance(value, datetime):
            return _in_utc(value)
        if isinstance(value, str):
            return _from_text(value.strip())
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            return _from_epoch(float(value))
    except (ValueError, OverflowError, ArithmeticError):
        return None
    return None


def _from_text(text: str) -> datetime | None:
    try:
        return _from_epoch(float(text))
    except ValueError:
        pass
    try:
        return _in_utc(_TIME.validate_python(text))
    except ValidationError:
        return None


def _from_epoch(number: float) -> datetime | None:
    if not math.isfinite(number) or number <= 0:
        return None
    per_second = next(per for least, per in _PER_SECOND if number >= least)
    return _EPOCH + timedelta(seconds=number / per_second)


def _in_utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def first_flag(item: Any, paths: tuple[str, ...]) -> bool:
    """Whether the first value at the paths means yes."""
    value = next(found(item, paths), False)
    return value.strip().lower() in {"true", "yes", "1"} if isinstance(value, str) else value in (True, 1)


def first_thumb(item: Any, paths: tuple[str, ...]) -> Thumb | None:
    """The first value at the paths that is a thumb."""
    return next((thumb for value in found(item, paths) if (thumb := thumb_of(value))), None)


def thumb_of(value: Any) -> Thumb | None:
    """Up for true, 1 and words like it; down for false, 0, -1 and theirs. Stars and other scales are neither."""
    if isinstance(value, bool):
        return Thumb.UP if value else Thumb.DOWN
    if isinstance(value, int | float):
        return Thumb.UP if value == 1 else Thumb.DOWN if value in (0, -1) else None
    word = value.strip().lower() if isinstance(value, str) else ""
    return Thumb.UP if word in _UP else Thumb.DOWN if word in _DOWN else None
