"""Publishes a run in Prefect's UI: a summary, a table of failures, links.

A run does not depend on this: without the server it goes on.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID

from prefect.artifacts import (
    acreate_link_artifact,
    acreate_markdown_artifact,
    acreate_progress_artifact,
    acreate_table_artifact,
    aupdate_progress_artifact,
)

from flows.server.prefect_server import is_server_gone
from monitors.records.grades import CaseOutcome, format_policy_row
from monitors.records.runs import CaseResult, RunReport
from monitors.reports.write import ReportPaths

MAX_ROWS: Final = 100
"""Rows of the table of failures; results.json has them all."""

STEP_PERCENT: Final = 5.0
"""Minimum progress between two updates; each costs a request of about 10 ms."""

PAGE_TIMEOUT_S: Final = 10.0
"""How long a run waits for one request; Prefect's client would try for a minute."""


@asynccontextmanager
async def _ignore_lost_server() -> AsyncGenerator[None]:
    try:
        async with asyncio.timeout(PAGE_TIMEOUT_S):
            yield
    except Exception as error:  # Prefect raises its own, httpx's and sqlite's errors; all others are raised again
        if not is_server_gone(error):
            raise


async def publish_artifacts(report: RunReport, results: Sequence[CaseResult], paths: ReportPaths) -> None:
    """Publish the Markdown summary and the table of cases that were not right. Needs a flow run."""
    async with _ignore_lost_server():
        await _create_artifacts(_build_artifact_key(report.target.name), report, results, paths)


async def _create_artifacts(key: str, report: RunReport, results: Sequence[CaseResult], paths: ReportPaths) -> None:
    await acreate_markdown_artifact(
        key=key, markdown=paths.markdown.read_text(encoding="utf-8"), description=f"{report.verdict}: {paths.html}"
    )
    await acreate_link_artifact(
        key=f"{key}-report", link=paths.html.absolute().as_uri(), link_text="Report", description="the whole run"
    )
    rows = [_build_row(r) for r in results if r.assessment.outcome is not CaseOutcome.CORRECT]
    if rows:
        worst_first = sorted(rows, key=lambda row: str(row["severity"]), reverse=True)
        await acreate_table_artifact(
            key=f"{key}-failures",
            table=worst_first[:MAX_ROWS],
            description="cases that are not correct, worst first",
        )


def _build_artifact_key(target: str) -> str:
    """Build an artifact's key, which may hold lower-case letters, digits and hyphens."""
    return f"verify-{re.sub(r'[^a-z0-9]+', '-', target.lower()).strip('-')}"


class ProgressPage:
    """Shows the run's progress in Prefect's UI, in steps. Needs a task run."""

    def __init__(self, target: str) -> None:
        self._key = f"{_build_artifact_key(target)}-progress"
        self._shown = 0.0
        self._artifact: UUID | None = None

    async def start(self, done: int, cases: int) -> None:
        """Create the progress artifact with the progress so far."""
        self._shown = _compute_percent(done, cases)
        async with _ignore_lost_server():
            self._artifact = await acreate_progress_artifact(
                self._shown, key=self._key, description="questions asked"
            )

    async def show(self, done: int, cases: int) -> None:
        """Update the progress to ``done`` of ``cases`` results."""
        percent = _compute_percent(done, cases)
        artifact = self._artifact
        due = percent - self._shown >= STEP_PERCENT or (done == cases and percent > self._shown)
        if artifact is not None and due:
            self._shown, self._artifact = percent, None  # where this one fails, no other is tried
            async with _ignore_lost_server():
                await aupdate_progress_artifact(artifact, percent)
                self._artifact = artifact


def _compute_percent(done: int, cases: int) -> float:
    return min(100.0, 100.0 * done / max(1, cases))


def _build_row(result: CaseResult) -> dict[str, str]:
    assessment = result.assessment
    return {
        "case": assessment.case_id,
        "outcome": assessment.outcome.value,
        "severity": str(assessment.severity.value),
        "kinds": ", ".join(assessment.failure_kinds),
        "severity because": format_policy_row(assessment.policy_row),
        "reason": assessment.reason,
    }
