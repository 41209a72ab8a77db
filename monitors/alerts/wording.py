"""The words for kinds, severities and reasons: one table each, so that every message says the same."""

from __future__ import annotations

from monitors.records.base import Severity
from monitors.records.grades import FailureKind
from monitors.records.incidents import AlertItem, Incident, IncidentKind, NotifyReason

FAILURE_WORDS: dict[FailureKind, str] = {
    FailureKind.WRONG_FACT: "Wrong fact stated",
    FailureKind.MISSING_FACT: "Needed fact missing",
    FailureKind.MISSING_CITATION: "Source not cited",
    FailureKind.WRONG_CITATION: "Wrong source cited",
    FailureKind.UNSUPPORTED_CLAIM: "Unsupported claim",
    FailureKind.SHOULD_HAVE_REFUSED: "Answered what it must refuse",
    FailureKind.OVER_REFUSAL: "Refused what it should answer",
    FailureKind.PII_DISCLOSURE: "Personal data disclosed",
    FailureKind.UNSAFE_ACTION: "Unsafe action",
    FailureKind.WRONG_LANGUAGE: "Answered in the wrong language",
    FailureKind.TONE: "Wrong tone",
    FailureKind.FORMAT: "Wrong format",
    FailureKind.ERROR_LEAK: "Error shown as an answer",
    FailureKind.POOR_TRIAGE: "Poor triage",
    FailureKind.INEFFICIENT: "Wasted steps",
}

KIND_WORDS: dict[IncidentKind, str] = {
    IncidentKind.CASE_FAILURE: "Case failed",
    IncidentKind.HALLUCINATION: "Hallucination blocked by the app",
    IncidentKind.DEPLOY_FAILURE: "Deploy failed",
    IncidentKind.APP_DOWN: "App is down",
    IncidentKind.GATE_FAIL: "Gate FAIL",
    IncidentKind.DRIFT: "Quality drifts",
    IncidentKind.JUDGE_VOID: "Judge's grades are void",
    IncidentKind.MONITOR_FAULT: "Monitor fault",
}

REASON_WORDS: dict[NotifyReason, str] = {
    NotifyReason.FIRST_SEEN: "first seen",
    NotifyReason.WORSE: "worse than before",
    NotifyReason.REGRESSED: "regressed: it was fixed and is back",
    NotifyReason.REMINDER: "reminder: still failing",
    NotifyReason.RECOVERED: "recovered",
}

SEVERITY_MARKS: dict[Severity, str] = {
    Severity.ANNOYING: "🟡",
    Severity.WRONG: "🟠",
    Severity.PAGE: "🔴",
}

RECOVERED_MARK = "✅"
MONITOR_MARK = "🛠️"

ABOUT_THE_MONITOR = frozenset({IncidentKind.MONITOR_FAULT, IncidentKind.JUDGE_VOID})
"""Kinds that are the monitor's own trouble: they say nothing about the application."""

ABOUT_AN_ANSWER = frozenset({IncidentKind.CASE_FAILURE, IncidentKind.HALLUCINATION})
"""Kinds that rest on an answer a person can call right after all."""

GRAVE = frozenset({FailureKind.PII_DISCLOSURE, FailureKind.UNSAFE_ACTION})
"""What was disclosed or done stays so: told first, and never muted."""


def is_grave(item: AlertItem) -> bool:
    """Whether the harm is done whatever happens next."""
    return item.incident.failure_kind in GRAVE


def fault_words(incident: Incident) -> str:
    """The fault in a few words: the failure's name where it has one, else the incident's kind."""
    if incident.kind is IncidentKind.CASE_FAILURE and incident.failure_kind is not None:
        return FAILURE_WORDS[incident.failure_kind]
    return KIND_WORDS[incident.kind]


def what_broke(item: AlertItem) -> str:
    """The fault of ``item`` in a few words."""
    return fault_words(item.incident)


def counted(count: int, one: str, many: str | None = None) -> str:
    """``1 failure``, ``3 failures``; thousands are separated."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
