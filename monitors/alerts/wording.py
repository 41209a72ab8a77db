"""The words for kinds, severities and reasons: one table each, so that every message says the same."""

from __future__ import annotations

from typing import Final

from monitors.records.base import Severity
from monitors.records.grades import FAILURE_WORDS, FailureKind
from monitors.records.incidents import Alert, AlertItem, Incident, IncidentKind, NotifyReason

FAILURE_TITLES: Final = {kind: failure.capitalize() for kind, failure in FAILURE_WORDS.items()}

KIND_WORDS: dict[IncidentKind, str] = {
    IncidentKind.CASE_FAILURE: "Case failed",
    IncidentKind.HALLUCINATION: "Hallucination blocked by the app",
    IncidentKind.DEPLOY_FAILURE: "Deploy failed",
    IncidentKind.APP_DOWN: "App is down",
    IncidentKind.GATE_FAIL: "Gate FAIL",
    IncidentKind.DRIFT: "Quality drifts",
    IncidentKind.JUDGE_VOID: "Judge's grades do not count",
    IncidentKind.MONITOR_FAULT: "Lookout itself is in trouble",
    IncidentKind.DRILL: "Drill",
}

REASON_WORDS: dict[NotifyReason, str] = {
    NotifyReason.FIRST_SEEN: "first seen",
    NotifyReason.WORSE: "worse than before",
    NotifyReason.REGRESSED: "back again after it was resolved",
    NotifyReason.REMINDER: "reminder: still failing",
    NotifyReason.RECOVERED: "recovered",
    NotifyReason.OPEN_BEFORE: "found when Slack was not set up or not reachable, so nobody was notified",
}

SEVERITY_MARKS: dict[Severity, str] = {
    Severity.ANNOYING: "🟡",
    Severity.WRONG: "🟠",
    Severity.PAGE: "🔴",
}

RECOVERED_MARK = "✅"
UNKNOWN_MARK = "❔"
MONITOR_MARK = "🛠️"

TITLED = frozenset({IncidentKind.APP_DOWN, IncidentKind.MONITOR_FAULT})
"""Kinds of which the title says more than the kind: that Lookout cannot ask, and not that the app is down."""

ABOUT_THE_MONITOR = frozenset({IncidentKind.MONITOR_FAULT, IncidentKind.JUDGE_VOID})
"""Kinds that are the monitor's own trouble: they say nothing about the application."""

ABOUT_AN_ANSWER = frozenset({IncidentKind.CASE_FAILURE, IncidentKind.HALLUCINATION})
"""Kinds that rest on an answer a person can call right after all."""

TRAFFIC_CASE = "live-traffic:"
"""Starts the title in a case's place where all conversations that failed in one way are one incident."""

GRAVE = frozenset({FailureKind.PII_DISCLOSURE, FailureKind.UNSAFE_ACTION})
"""What was disclosed or done stays so: these alerts go first, and nothing mutes them."""


def is_grave(item: AlertItem) -> bool:
    """Whether the harm is done whatever happens next."""
    return item.incident.failure_kind in GRAVE


def is_failed_drill(alert: Alert) -> bool:
    """Whether it says that a drill failed, which is for the monitor's owners. One that passed is quiet."""
    return alert.kind is IncidentKind.DRILL and alert.severity is not Severity.ANNOYING


def format_fault(incident: Incident) -> str:
    """The fault in a few words: the failure's name where it has one, else its own title or the incident's kind."""
    if incident.kind is IncidentKind.CASE_FAILURE:
        return FAILURE_TITLES[incident.failure_kind] if incident.failure_kind else incident.title
    if incident.kind in TITLED:
        return incident.title
    return KIND_WORDS[incident.kind]


def what_broke(item: AlertItem) -> str:
    """The fault of ``item`` in a few words."""
    return format_fault(item.incident)
