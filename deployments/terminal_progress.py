"""A run in the terminal: a bar, and a line for each case that is not right."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from monitors.alerts.redact import redact
from monitors.records.grades import CaseOutcome
from monitors.records.runs import CaseResult

MARKS = {CaseOutcome.FAILED: "[red]✗[/]", CaseOutcome.NO_ANSWER: "[yellow]∅[/]", CaseOutcome.UNTOLD: "[blue]?[/]"}
MOST_LINES = 40
"""A page of lines says enough while the run goes; the report has them all."""


class TerminalProgress:
    """A `ProgressListener` on ``console``. Use as a context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[wrong]}"),
            TimeElapsedColumn(),
            console=console,
        )
        self._task: TaskID | None = None
        self._wrong = 0
        self.run_id: str | None = None
        self.answered = 0
        self.cases = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._bar.stop()

    def planned(self, run_id: str, cases: int, kept: int) -> None:
        """Say what will be asked."""
        self.run_id, self.cases, self.answered = run_id, cases, kept
        if kept:
            self._console.print(
                f"Going on with run {run_id}: {kept} of {cases} were answered before it was stopped "
                "and are not asked again (--fresh starts anew)."
            )
        self._task = self._bar.add_task("Asking", total=cases, completed=kept, wrong="")

    def told(self, result: CaseResult) -> None:
        """One step further, with a line when it is not right."""
        self.answered += 1
        if result.assessment.outcome is not CaseOutcome.CORRECT:
            self._wrong += 1
            self._say(result)
        if self._task is not None:
            wrong = f"[red]{self._wrong} not right[/]" if self._wrong else ""
            self._bar.update(self._task, advance=1, wrong=wrong)

    def stage(self, name: str) -> None:
        """What is done now."""
        if self._task is not None:
            self._bar.update(self._task, description=name.capitalize())

    def _say(self, result: CaseResult) -> None:
        if self._wrong > MOST_LINES:
            return
        assessment = result.assessment
        what = ", ".join(assessment.failure_kinds) or assessment.outcome.value
        line = f"S{assessment.severity.value} {what}  {assessment.case_id}: {redact(assessment.reason)}"
        self._console.print(f" {MARKS[assessment.outcome]} {escape(line)}", highlight=False)
        if self._wrong == MOST_LINES:
            self._console.print("   … further ones are in the report")
