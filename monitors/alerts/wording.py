"""The texts for kinds, severities and reasons, which all messages share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from monitors.plural import plural
from monitors.records.base import Severity
from monitors.records.grades import FAILURE_TO_DO, FAILURE_WORDS, FailureKind
from monitors.records.incidents import AlertItem, Incident, IncidentKind, NotifyReason, Observation

FAILURE_TITLES: Final = {kind: failure.capitalize() for kind, failure in FAILURE_WORDS.items()}

DISPUTED_TITLE: Final = "Rules and judge disagree"
DISPUTED_TO_DO: Final = (
    "Compare the answer with the gold. If the answer is wrong, treat it as a failure. If the answer is right, mark "
    "this alert as a false alarm."
)
"""Advice for an answer that the rules pass and a judge fails."""

KIND_WORDS: dict[IncidentKind, str] = {
    IncidentKind.CASE_FAILURE: "Case failed",
    IncidentKind.HALLUCINATION: "Hallucination blocked by the app",
    IncidentKind.DEPLOY_FAILURE: "Deploy failed",
    IncidentKind.APP_DOWN: "App is down",
    IncidentKind.GATE_FAIL: "Gate FAIL",
    IncidentKind.DRIFT: "Quality drifts",
    IncidentKind.JUDGE_VOID: "Judge's grades do not count",
    IncidentKind.MONITOR_FAULT: "Lookout itself has a fault",
    IncidentKind.DRILL: "Drill",
}

KIND_TO_DO: Final[dict[IncidentKind, str]] = {
    IncidentKind.CASE_FAILURE: "Open the report. Then roll back the deploy, or acknowledge the alert.",
    IncidentKind.HALLUCINATION: "Users ask about this topic. Find the document that is missing or outdated.",
    IncidentKind.DEPLOY_FAILURE: (
        "Read the build's log. If the application is not running now, deploy the last commit that worked."
    ),
    IncidentKind.APP_DOWN: (
        "Open the application in a browser. Lookout cannot check answers until the application answers again."
    ),
    IncidentKind.GATE_FAIL: (
        "Read the new failures in the report. Roll back the deploy that caused them, or fix them."
    ),
    IncidentKind.DRIFT: "Compare the nights before and after the change: lookout sql 'from nightly_trend'",
    IncidentKind.JUDGE_VOID: (
        "Check the judge's provider and the name of its model. Its grades do not count, so these answers are "
        "ungraded."
    ),
}
"""Advice for each kind of incident, in the last line of a message."""

REASON_WORDS: dict[NotifyReason, str] = {
    NotifyReason.FIRST_SEEN: "first seen",
    NotifyReason.WORSE: "worse than before",
    NotifyReason.REGRESSED: "back again after it was resolved",
    NotifyReason.REMINDER: "reminder: still failing",
    NotifyReason.RECOVERED: "recovered",
    NotifyReason.CLOSED: "the case or the target was removed",
    NotifyReason.OPEN_BEFORE: "Lookout found this earlier, but could not send it to Slack then",
    NotifyReason.MISSED: "Slack refused the earlier messages about this",
    NotifyReason.SILENCED: "this happened during a silence, which is now over",
}

SEVERITY_MARKS: dict[Severity, str] = {
    Severity.MINOR: "🟡",
    Severity.MAJOR: "🟠",
    Severity.CRITICAL: "🔴",
}

RECOVERED_MARK = "✅"
UNKNOWN_MARK = "❔"
MONITOR_MARK = "🛠️"

_KINDS_WITH_OWN_TITLE = frozenset({IncidentKind.APP_DOWN, IncidentKind.MONITOR_FAULT})
"""Kinds whose incidents can have a more precise title, such as "Lookout cannot ask" instead of "App is down"."""

_FORMER_KIND_WORDS = frozenset({"Lookout itself is in trouble"})
"""Titles that earlier versions gave to all incidents of a kind. Such a title says no more than the kind."""

ABOUT_THE_MONITOR = frozenset({IncidentKind.MONITOR_FAULT, IncidentKind.JUDGE_VOID})
"""Kinds of incidents about faults of the monitor itself, not of the application."""

ABOUT_AN_ANSWER = frozenset({IncidentKind.CASE_FAILURE, IncidentKind.HALLUCINATION})
"""Kinds of incidents about an answer. A person can mark such an incident as a false alarm."""

TRAFFIC_CASE = "live-traffic:"
"""The beginning of a case id that stands for all conversations of users with the same kind of finding."""

GRAVE_KINDS = frozenset({FailureKind.PII_DISCLOSURE, FailureKind.UNSAFE_ACTION})
"""Failure kinds in which the application disclosed data or took an irreversible action.

Alerts about these failures come first, and are sent even during an outage.
"""


def format_fault(incident: Incident) -> str:
    """Format a fault in a few words: the failure kind, the incident's own title or the incident kind."""
    if incident.kind is IncidentKind.CASE_FAILURE:
        return FAILURE_TITLES[incident.failure_kind] if incident.failure_kind else incident.title
    return incident.title if has_own_title(incident) else KIND_WORDS[incident.kind]


def has_own_title(incident: Incident) -> bool:
    """Return whether the incident's title is more precise than the words for its kind."""
    return (
        incident.kind in _KINDS_WITH_OWN_TITLE
        and incident.title != KIND_WORDS[incident.kind]
        and incident.title not in _FORMER_KIND_WORDS
    )


def format_to_do(item: AlertItem) -> str:
    """Return the advice for ``item``.

    Return an empty string if there is no general advice for the kind of fault.
    """
    incident = item.incident
    if incident.kind is IncidentKind.CASE_FAILURE:
        if incident.failure_kind:
            return FAILURE_TO_DO[incident.failure_kind]
        return DISPUTED_TO_DO if is_disputed(item.observation) else ""
    return "" if has_own_title(incident) else KIND_TO_DO.get(incident.kind, "")


def format_doubt(observation: Observation) -> str:
    """Return why the failure is not certain. Return an empty string if the failure is certain."""
    if not observation.unconfirmed:
        return ""
    return (
        "unconfirmed: a person must decide"
        if is_disputed(observation)
        else ("not confirmed: only one judge found this failure")
    )


def is_disputed(observation: Observation) -> bool:
    """Return whether the rules passed the answer and a judge failed it.

    Such an observation is marked as unconfirmed and has no failure kind.
    """
    return observation.unconfirmed and observation.failure_kind is None


MAX_IDS_NAMED: Final = 6


def format_ids(ids: Sequence[str], limit: int = MAX_IDS_NAMED, *, max_characters: int | None = None) -> str:
    """Return ``a, b, c, d, e, f and 4 more``, or fewer ids if this text is longer than ``max_characters``."""
    for named in range(min(limit, len(ids)), 0, -1):
        more = f" and {len(ids) - named:,} more" if len(ids) > named else ""
        text = ", ".join(ids[:named]) + more
        if max_characters is None or len(text) <= max_characters:
            return text
    return plural(len(ids), "case")
