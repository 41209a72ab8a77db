"""Hypothesis strategies that generate valid records of every class from its fields."""

from __future__ import annotations

import types
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

PATTERNS = {
    "identifier": st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_@:+-]{0,20}(\.[A-Za-z0-9_@:+-]{1,5}){0,2}\Z"),
    "sha256": st.from_regex(r"\A[0-9a-f]{64}\Z"),
    "space": st.from_regex(r"\A[A-Za-z0-9][a-z0-9.-]{0,8}/[a-z0-9.-]{1,8}\Z"),
    "url": st.from_regex(r"\Ahttps?://[a-z]{1,8}(:[0-9]{2,4})?/[a-z]{0,5}\Z"),
}
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8))])
TIMES = st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1), timezones=ZONES)  # noqa: DTZ001 - bounds have none
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
"""Values for the dictionaries of a record, which can contain any JSON."""


@cache
def record(model: type[BaseModel]) -> st.SearchStrategy[BaseModel]:
    """Return a strategy for valid records of one class; values that its validators reject are omitted."""
    fields = {name: _field(info) for name, info in model.model_fields.items()}
    return (
        st.fixed_dictionaries(fields).map(lambda values: _made(model, values)).filter(lambda made: made is not None)
    )


def _made(model: type[BaseModel], values: dict[str, Any]) -> BaseModel | None:
    try:
        return model(**values)
    except ValidationError:
        return None


def _field(info: FieldInfo) -> st.SearchStrategy[Any]:
    return _of(info.annotation, info.metadata)


def _of(annotation: Any, metadata: list[Any]) -> st.SearchStrategy[Any]:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _of(inner[0], [*_constraints(inner[1:]), *metadata])
    if origin is Literal:
        return st.sampled_from(inner)
    if origin in (Union, types.UnionType):
        return st.one_of([_of(part, metadata) for part in inner])
    if origin is tuple:
        least = max((getattr(m, "min_length", None) or 0 for m in metadata), default=0)
        return st.lists(_of(inner[0], []), min_size=least, max_size=max(least, 2)).map(tuple)
    if origin is dict:
        return st.dictionaries(TEXTS, JSON_VALUES, max_size=2)
    if origin is Mapping:
        return st.dictionaries(TEXTS, _of(inner[1], []), max_size=2)
    if isinstance(annotation, NewType):
        return _of(annotation.__supertype__, metadata)
    return _plain(annotation, metadata)


def _constraints(metadata: tuple[Any, ...]) -> list[Any]:
    return [c for m in metadata for c in (m.metadata if isinstance(m, FieldInfo) else [m])]


def _plain(kind: Any, metadata: list[Any]) -> st.SearchStrategy[Any]:
    low = next((v for m in metadata if (v := getattr(m, "ge", getattr(m, "gt", None))) is not None), None)
    high = next((v for m in metadata if (v := getattr(m, "le", getattr(m, "lt", None))) is not None), None)
    if kind is str:
        return _text(metadata)
    if kind is bool:
        return st.booleans()
    if kind is int:
        return st.integers(low if low is not None else -9, high if high is not None else 99)
    if kind is float:
        return st.floats(low, high, allow_nan=False, allow_infinity=False)
    if kind is Decimal:
        return st.decimals(low if low is not None else 0, high if high is not None else 9999, places=3)
    if kind is datetime:
        return TIMES
    if kind is type(None):
        return st.none()
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    return st.deferred(lambda: record(kind))


def _text(metadata: list[Any]) -> st.SearchStrategy[str]:
    pattern = next((p for m in metadata if (p := getattr(m, "pattern", None))), None)
    if pattern is None:
        least = max((getattr(m, "min_length", None) or 0 for m in metadata), default=0)
        return TEXTS if not least else TEXTS.filter(lambda text: len(text) >= least)
    marks = {"[0-9a-f]{64}": "sha256", "https?": "url", "/[": "space"}
    return PATTERNS[next((name for mark, name in marks.items() if mark in pattern), "identifier")]
