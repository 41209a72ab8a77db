"""Publishes a run in Prefect's UI: a summary, a table of failures, and links.

A run does not need Prefect's UI, and continues without the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from prefect.artifacts import (
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)

from flows.artifacts import build_artifact_key, continue_without_prefect_server, publish_report_artifact
from monitors.records.grades import CaseOutcome, format_policy_row
from monitors.records.runs import CaseResult, RunReport
from monitors.reports.write import ReportPaths

MAX_ROWS: Final = 100
"""Maximum number of rows in the table of failures. The file results.json contains all failures."""

STEP_PERCENT: Final = 5.0
"""Minimum progress between two updates, in percent. Updates are rare, because each takes a request of 10 ms."""


async def publish_artifacts(
    name: str, report: RunReport, results: Sequence[CaseResult], paths: ReportPaths, link: str | None
) -> None:
    """Publish the Markdown report, the link to the report page, and a table of wrong or ungraded answers.

    Call this function in a flow run.
    """
    await publish_report_artifact(name, paths, link=link, description=f"{report.verdict}: {paths.html}")
    rows = [_build_case_row(r) for r in results if r.assessment.outcome is not CaseOutcome.CORRECT]
    if rows:
        worst_first = sorted(rows, key=lambda row: str(row["severity"]), reverse=True)
        async with continue_without_prefect_server():
            await acreate_table_artifact(
                key=f"{build_artifact_key(name)}-failures",
                table=worst_first[:MAX_ROWS],
                description="cases without a correct answer, worst first",
            )


class ProgressPage:
    """Shows the run's progress in Prefect's UI, in steps. Use an instance in a task run."""

    def __init__(self, name: str) -> None:
        self._key = f"{build_artifact_key(name)}-progress"
        self._shown = 0.0
        self._artifact: UUID | None = None

    async def start(self, done: int, cases: int) -> None:
        """Create the progress artifact with the progress so far."""
        self._shown = _compute_percent(done, cases)
        async with continue_without_prefect_server():
            self._artifact = await acreate_progress_artifact(
                self._shown, key=self._key, description="questions asked"
            )

    async def show(self, done: int, cases: int) -> None:
        """Set the progress to ``done`` of ``cases`` results."""
        percent = _compute_percent(done, cases)
        artifact = self._artifact
        due = percent - self._shown >= STEP_PERCENT or (done == cases and percent > self._shown)
        if artifact is not None and due:
            self._shown, self._artifact = percent, None  # if this update fails, do not try another update
            async with continue_without_prefect_server():
                await aupdate_progress_artifact(artifact, percent)
                self._artifact = artifact


def _compute_percent(done: int, cases: int) -> float:
    return min(100.0, 100.0 * done / max(1, cases))


def _build_case_row(result: CaseResult) -> dict[str, str]:
    assessment = result.assessment
    return {
        "case": assessment.case_id,
        "outcome": assessment.outcome.value,
        "severity": str(assessment.severity.value),
        "kinds": ", ".join(assessment.failure_kinds),
        "severity because": format_policy_row(assessment.policy_row),
        "reason": assessment.reason,
    }
