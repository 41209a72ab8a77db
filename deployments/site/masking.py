"""Functions that mask personal data in records: in given fields, or in all free texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin

from pydantic.fields import FieldInfo

from monitors.records.base import Record

MaskText = Callable[[str], str]
_Record = TypeVar("_Record", bound=Record)


def mask_fields(record: _Record, mask: MaskText, *names: str) -> _Record:
    """Return ``record`` with the given fields masked by ``mask``. Each field is a text or a tuple of texts."""
    return record.model_copy(update={name: _mask_value(getattr(record, name), mask) for name in names})


def mask_all_texts(record: _Record, mask: MaskText) -> _Record:
    """Return the record with all free texts masked, including inner records. Ids and digests are not masked."""
    names = _list_free_text_fields(type(record))
    return mask_fields(record, mask, *names) if names else record


def _mask_value(value: object, mask: MaskText) -> object:
    match value:
        case Enum():
            return value
        case str():
            return mask(value)
        case Record():
            return mask_all_texts(value, mask)
        case tuple():
            return tuple(_mask_value(item, mask) for item in cast("tuple[object, ...]", value))
        case Mapping():
            mapping = cast("Mapping[object, object]", value)
            return {name: _mask_value(item, mask) for name, item in mapping.items()}
        case _:
            return value


@cache
def _list_free_text_fields(kind: type[Record]) -> tuple[str, ...]:
    """Return the names of the fields that may contain free text, because no pattern limits their texts."""
    return tuple(
        name
        for name, info in kind.model_fields.items()
        if not _is_limited_by_pattern(info.annotation, tuple(info.metadata))
    )


def _is_limited_by_pattern(kind: Any, metadata: tuple[Any, ...]) -> bool:
    """Return whether texts of this type must match a pattern. Such texts, for example ids, are not masked."""
    inner = get_args(kind)
    if get_origin(kind) is Annotated:
        return _is_limited_by_pattern(inner[0], (*inner[1:], *metadata))
    bounds = [
        bound
        for annotation in metadata
        for bound in (annotation.metadata if isinstance(annotation, FieldInfo) else [annotation])
    ]
    values = inner[-1:] if isinstance(get_origin(kind), type) and issubclass(get_origin(kind), Mapping) else inner
    return any(getattr(bound, "pattern", None) for bound in bounds) or any(
        _is_limited_by_pattern(annotation, ()) for annotation in values
    )
