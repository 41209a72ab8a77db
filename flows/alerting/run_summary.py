"""The summary of a finished run, as every message about it shows it."""

from __future__ import annotations

from collections.abc import Sequence

from monitors.alerts.message import short_commit, utc
from monitors.alerts.redact import redact
from monitors.records.explanations import Recheck
from monitors.records.incidents import Alert, IncidentKind, Link, RunSummary
from monitors.records.runs import RunReport, format_uncovered
from monitors.reports.figures import format_causes, format_changes_briefly
from monitors.reports.rechecks import format_recheck_briefly
from monitors.reports.triage_summary import format_dimensions

MAX_EXPLAINING_LINES = 3
"""The most lines of a message about why: what came of asking again, what failures have in common, what changed.

Which deploy passed last is one more.
"""


def run_summary(report: RunReport, links: Sequence[Link], *, account_patterns: Sequence[str] = ()) -> RunSummary:
    """What messages show of a finished run: both scores, its reports on issues, what failed cases share."""
    flat, weighted = report.scores.flat.value, report.scores.weighted.value
    lines = MAX_EXPLAINING_LINES - bool(format_recheck_briefly(report.recheck))
    # That failed cases have nothing in common is no news at night.
    causes = format_causes(report.first_look) if report.first_look and report.first_look.causes else ()
    in_common = causes[: lines - 1]
    changed = [*format_changes_briefly(report.what_changed, most=lines - len(in_common))]
    # Which deploy passed last is what a person rolls back to, unless it is the one that fails now.
    last_pass = report.what_changed
    if last_pass is not None and last_pass.since is not None and last_pass.since_commit is not None:
        same = last_pass.since_commit == report.commit
        deploy = "this same deploy" if same else f"deploy {short_commit(last_pass.since_commit)}"
        changed.append(f"Last PASS: {deploy}, {utc(last_pass.since)}")
    if uncovered := format_uncovered(report.reasons):
        changed.append(f"Not covered: {uncovered}")
    return RunSummary(
        commit=report.commit,
        flat=None if flat is None else f"{flat:.3f}",
        weighted=None if weighted is None else f"{weighted:.3f}",
        dimensions=format_dimensions(report) or None,
        in_common=tuple(redact(cause, account_patterns=account_patterns) for cause in in_common),
        changed=tuple(redact(change, account_patterns=account_patterns) for change in changed),
        links=tuple(links),
    )


def format_recheck_of(alert: Alert, recheck: Recheck, *, account_patterns: Sequence[str] = ()) -> str:
    """What the cases that a message is about came to when they were asked again; of a gate that failed, all."""
    cases = [item.incident.case_id for item in alert.items if item.incident.case_id]
    of_run = alert.kind is IncidentKind.GATE_FAIL
    return redact(format_recheck_briefly(recheck, None if of_run else cases), account_patterns=account_patterns)
