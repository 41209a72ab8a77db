"""Listeners that show the progress of a run: in a progress bar, in the log, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from monitors.plural import plural
from monitors.records.runs import CaseResult


class ProgressListener(Protocol):
    """Receives the progress of a run. A listener must not block. An exception in a listener ends the run."""

    def on_planned(self, run_id: str, cases: int, resumed: int) -> None:
        """Handle the plan of the run.

        ``cases`` is the number of planned results. ``resumed`` is the number of results from a stopped run.
        """
        ...

    def on_result(self, result: CaseResult) -> None:
        """Handle a new result."""
        ...

    def on_stage(self, name: str) -> None:
        """Handle the start of a stage. ``name`` describes the stage in a few words."""
        ...

    def on_ended(self, text: str, report: str) -> None:
        """Handle the end of the run.

        ``text`` contains the verdict and the notifications. ``report`` is the path of the report.
        """
        ...


class _SilentListener:
    def on_planned(self, run_id: str, cases: int, resumed: int) -> None:
        del run_id, cases, resumed

    def on_result(self, result: CaseResult) -> None:
        del result

    def on_stage(self, name: str) -> None:
        del name

    def on_ended(self, text: str, report: str) -> None:
        del text, report


class RunLog:
    """Logs the start and the end of a run."""

    def __init__(self, target: str, write: Callable[[str], None]) -> None:
        self._write = write
        self._target = target
        self._run_id = ""

    def on_planned(self, run_id: str, cases: int, resumed: int) -> None:
        """Log the start of the run."""
        self._run_id = run_id
        answered_before = f", {resumed} of them already answered" if resumed else ""
        self._write(f"{self._target}: run {run_id} starts, {plural(cases, 'question')}{answered_before}")

    def on_result(self, result: CaseResult) -> None:
        """Do nothing, because a line for each result would hide all other lines."""
        del result

    def on_stage(self, name: str) -> None:
        """Do nothing."""
        del name

    def on_ended(self, text: str, report: str) -> None:
        """Log the end of the run."""
        self._write(f"{self._target}: run {self._run_id} ended: {text}; report {report}")


NO_LISTENER: Final[ProgressListener] = _SilentListener()
"""A listener that ignores the progress."""
