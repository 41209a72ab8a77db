"""Who watches a run while it goes: the terminal's progress bar, or nobody."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

from monitors.records.runs import CaseResult


class ProgressListener(Protocol):
    """Told of a run as it goes. Must not block; what it raises ends the run."""

    def planned(self, run_id: str, cases: int, kept: int) -> None:
        """The run will come to ``cases`` results, ``kept`` of which an earlier, stopped run already brought."""
        ...

    def told(self, result: CaseResult) -> None:
        """One more result."""
        ...

    def stage(self, name: str) -> None:
        """What the run is doing now, in a few words."""
        ...


class _Silence:
    def planned(self, run_id: str, cases: int, kept: int) -> None:
        del run_id, cases, kept

    def told(self, result: CaseResult) -> None:
        del result

    def stage(self, name: str) -> None:
        del name


_NOBODY = _Silence()

listener: ContextVar[ProgressListener] = ContextVar("listener", default=_NOBODY)
"""A flow's parameters are stored on the server, so what is alive comes beside them."""
