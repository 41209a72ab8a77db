"""Follows a run while it goes: the terminal's progress bar, or nobody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from monitors.plural import plural
from monitors.records.runs import CaseResult


class ProgressListener(Protocol):
    """Gets the progress of a run. Must not block; what it raises ends the run."""

    def planned(self, run_id: str, cases: int, resumed: int) -> None:
        """The run will have ``cases`` results, of which an earlier, stopped run brought ``resumed``."""
        ...

    def on_result(self, result: CaseResult) -> None:
        """One more result."""
        ...

    def stage(self, name: str) -> None:
        """What the run is doing now, in a few words."""
        ...

    def ended(self, text: str, report: str) -> None:
        """The verdict and what came of the messages in ``text``, and where the ``report`` lies."""
        ...


class _SilentListener:
    def planned(self, run_id: str, cases: int, resumed: int) -> None:
        del run_id, cases, resumed

    def on_result(self, result: CaseResult) -> None:
        del result

    def stage(self, name: str) -> None:
        del name

    def ended(self, text: str, report: str) -> None:
        del text, report


class RunLog:
    """A run as lines of a log: that it begins, and how it ended. Its report has what happens in between."""

    def __init__(self, target: str, write: Callable[[str], None]) -> None:
        self._write = write
        self._target = target
        self._run_id = ""

    def planned(self, run_id: str, cases: int, resumed: int) -> None:
        """The run begins, or goes on."""
        self._run_id = run_id
        answered_before = f", {resumed} of them answered before it was stopped" if resumed else ""
        self._write(f"{self._target}: run {run_id} starts, {plural(cases, 'question')}{answered_before}")

    def on_result(self, result: CaseResult) -> None:
        """Does nothing: a line for each result would bury the rest."""
        del result

    def stage(self, name: str) -> None:
        """Does nothing."""
        del name

    def ended(self, text: str, report: str) -> None:
        """How it ended."""
        self._write(f"{self._target}: run {self._run_id} ended: {text}; report {report}")


NO_LISTENER: Final[ProgressListener] = _SilentListener()
"""Nobody follows the run."""
