"""A run's results in little room: the orchestrating process must not grow with the suite."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar, overload

from pydantic import BaseModel, TypeAdapter

from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, ProbeResult
from monitors.records.grades import Assessment
from monitors.records.runs import CaseResult

_RESULT: Final[TypeAdapter[ProbeResult]] = TypeAdapter(ProbeResult)
FAST: Final = 1
"""Level of compression: a result of 18 kB as objects and 3 kB as JSON becomes 1.2 kB, in 0.1 ms each way."""

Key = tuple[str, int]
Model = TypeVar("Model", bound=BaseModel)


class KeptResults(Sequence[CaseResult]):
    """Results by case and repeat, in the order in which they first came. Each look makes its records anew.

    Go through it rather than make a list of it. Safe while it grows: a look sees what was there when it began.
    """

    def __init__(self) -> None:
        self._packed: dict[Key, _Packed] = {}

    def put(self, result: CaseResult) -> None:
        """Keep a result in place of the one before it."""
        self._packed[result.case.id, result.result.repeat] = _Packed(result)

    @property
    def keys(self) -> Sequence[Key]:
        """Case and repeat of each."""
        return tuple(self._packed)

    @property
    def has_answers(self) -> bool:
        """Whether anything was answered."""
        return any(one.is_answer for one in tuple(self._packed.values()))

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[CaseResult]:
        return (one.whole() for one in tuple(self._packed.values()))

    @overload
    def __getitem__(self, index: int) -> CaseResult: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[CaseResult]: ...
    def __getitem__(self, index: int | slice) -> CaseResult | Sequence[CaseResult]:
        chosen = tuple(self._packed.values())[index]
        return chosen.whole() if isinstance(chosen, _Packed) else tuple(one.whole() for one in chosen)


class _Packed:
    __slots__ = ("_assessment", "_case", "_result", "is_answer")

    def __init__(self, told: CaseResult) -> None:
        self._case: GoldCase = told.case
        self._result = zlib.compress(told.result.model_dump_json().encode(), FAST)
        self._assessment = zlib.compress(told.assessment.model_dump_json().encode(), FAST)
        self.is_answer = isinstance(told.result, Exchange)

    def whole(self) -> CaseResult:
        return CaseResult(
            case=self._case,
            result=_slim(_RESULT.validate_json(zlib.decompress(self._result))),
            assessment=_slim(Assessment.model_validate_json(zlib.decompress(self._assessment))),
        )


_NAMES: Final[dict[frozenset[str], set[str]]] = {}


def _slim(record: Model) -> Model:
    """The same record, its sets of field names shared with its likes: they are half of what it weighs.

    Records are frozen, so that nobody changes such a set; a copy of a record gets a copy of it.
    """
    names = record.model_fields_set
    object.__setattr__(record, "__pydantic_fields_set__", _NAMES.setdefault(frozenset(names), names))
    for value in record.__dict__.values():
        for part in value if isinstance(value, tuple) else (value,):  # pyright: ignore[reportUnknownVariableType] - of any record
            if isinstance(part, BaseModel):
                _slim(part)
    return record
