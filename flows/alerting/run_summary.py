"""Builds the summary of a finished run for its Slack messages."""

from __future__ import annotations

from collections.abc import Sequence

from monitors.alerts.message import format_utc, shorten_commit
from monitors.alerts.redact import redact
from monitors.records.explanations import Recheck
from monitors.records.incidents import Alert, IncidentKind, Link, RunSummary
from monitors.records.runs import RunReport, format_uncovered_cases
from monitors.reports.figures import format_changes_since_pass_briefly, format_common_causes
from monitors.reports.rechecks import format_recheck_briefly
from monitors.reports.triage_summary import format_triage_changes_or_figures

MAX_EXPLAINING_LINES = 3
"""Maximum number of lines that explain a failure: the recheck, common causes, and what changed.

The lines about the last deploy that passed and about cases without coverage are not counted.
"""


def build_run_summary(
    report: RunReport, links: Sequence[Link], *, account_patterns: Sequence[str] = ()
) -> RunSummary:
    """Build the summary of a finished run: scores, ratings of issue reports, and common causes of failures."""
    flat, weighted = report.scores.flat.value, report.scores.weighted.value
    lines = MAX_EXPLAINING_LINES - bool(format_recheck_briefly(report.recheck))
    # On-call readers do not need a line that says that failed cases have nothing in common.
    causes = format_common_causes(report.first_look) if report.first_look and report.first_look.causes else ()
    in_common = causes[: lines - 1]
    changed = [*format_changes_since_pass_briefly(report.what_changed, limit=lines - len(in_common))]
    # People roll back to the last deploy that passed, unless it is the deploy that fails now.
    last_pass = report.what_changed
    if last_pass is not None and last_pass.since is not None and last_pass.since_commit is not None:
        same = last_pass.since_commit == report.commit
        deploy = "this same deploy" if same else f"deploy {shorten_commit(last_pass.since_commit)}"
        changed.append(f"Last PASS: {deploy}, {format_utc(last_pass.since)}")
    if uncovered := format_uncovered_cases(report.reasons):
        changed.append(f"Not covered: {uncovered}")
    return RunSummary(
        commit=report.commit,
        flat=None if flat is None else f"{flat:.3f}",
        weighted=None if weighted is None else f"{weighted:.3f}",
        dimensions=format_triage_changes_or_figures(report) or None,
        in_common=tuple(redact(cause, account_patterns=account_patterns) for cause in in_common),
        changed=tuple(redact(change, account_patterns=account_patterns) for change in changed),
        links=tuple(links),
    )


def format_alert_recheck(alert: Alert, recheck: Recheck, *, account_patterns: Sequence[str] = ()) -> str:
    """Format the result of rechecking the cases of an alert.

    For an alert about a failed gate, format the result for all rechecked cases of the run.
    """
    cases = [item.incident.case_id for item in alert.items if item.incident.case_id]
    of_run = alert.kind is IncidentKind.GATE_FAIL
    return redact(format_recheck_briefly(recheck, None if of_run else cases), account_patterns=account_patterns)
