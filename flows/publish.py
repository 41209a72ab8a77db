"""What a person sees of a run in Prefect's pages: a summary, a table of failures, links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from prefect.artifacts import acreate_markdown_artifact, acreate_table_artifact

from monitors.records.grades import CaseOutcome
from monitors.records.runs import CaseResult, RunReport
from monitors.reports.write import ReportPaths

MOST_ROWS: Final = 100
"""Rows of the table of failures; results.json has them all."""


async def publish_artifacts(report: RunReport, results: Sequence[CaseResult], paths: ReportPaths) -> None:
    """The Markdown summary and the table of what was not right. Needs a flow run."""
    key = f"verify-{report.target.name}".lower().replace("_", "-")
    await acreate_markdown_artifact(
        key=key, markdown=paths.markdown.read_text(encoding="utf-8"), description=f"{report.verdict}: {paths.html}"
    )
    rows = [_row(r) for r in results if r.assessment.outcome is not CaseOutcome.CORRECT]
    if rows:
        worst_first = sorted(rows, key=lambda row: str(row["severity"]), reverse=True)
        await acreate_table_artifact(
            key=f"{key}-failures", table=worst_first[:MOST_ROWS], description="what was not right, worst first"
        )


def _row(result: CaseResult) -> dict[str, str]:
    assessment = result.assessment
    return {
        "case": assessment.case_id,
        "outcome": assessment.outcome.value,
        "severity": str(assessment.severity.value),
        "kinds": ", ".join(assessment.failure_kinds),
        "row": assessment.policy_row,
        "reason": assessment.reason,
    }
