"""Observations of what is not one failed case: the run's verdict, the app's state, the judge, the monitor."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from monitors.alerts.excerpt import excerpt
from monitors.alerts.fingerprint import fingerprint
from monitors.alerts.settings import AlertSettings
from monitors.alerts.wording import KIND_WORDS
from monitors.records.base import Blame, Record, Severity
from monitors.records.exchanges import Origin
from monitors.records.incidents import IncidentKind, Observation, Redacted
from monitors.records.runs import ReasonKind, RunReport, VerdictReason

REASON_CHARACTERS: Final = 500
HALLUCINATION_ROW: Final = "hallucination_log>=3"
"""The row that sets an entry's severity: the application itself held the reply back."""


class Sighting(Record):
    """When and where something was seen: what every observation starts with."""

    target: str
    run_id: str
    seen_at: datetime
    commit: str | None = None
    account_patterns: tuple[str, ...] = ()


def app_down(at: Sighting, *, detail: str) -> Observation:
    """The application does not answer: unreachable, or the run stopped early because nothing came back."""
    return _observation(at, IncidentKind.APP_DOWN, Severity.PAGE, Blame.APP, detail)


def deploy_failed(at: Sighting, *, detail: str) -> Observation:
    """The deploy did not come up: a build or runtime error, paused, or not serving until the deadline."""
    return _observation(at, IncidentKind.DEPLOY_FAILURE, Severity.PAGE, Blame.APP, detail)


def gate_failed(report: RunReport, at: Sighting) -> Observation:
    """A run whose verdict is FAIL. Severity 3 with a veto (some severity-3 case failed), else 2."""
    decisive = [reason for reason in report.reasons if reason.decisive]
    vetoed = any(reason.kind is ReasonKind.VETO for reason in decisive)
    severity = Severity.PAGE if vetoed else Severity.WRONG
    return _observation(at, IncidentKind.GATE_FAIL, severity, Blame.APP, _why(decisive))


def judge_void(at: Sighting, *, detail: str) -> Observation:
    """The judge missed its canaries: its grades of this batch are void, and nothing is said about the app."""
    return _observation(at, IncidentKind.JUDGE_VOID, Severity.WRONG, Blame.PROVIDER, detail)


def drift(at: Sighting, *, metric: str, detail: str) -> Observation:
    """A rate moved against its trailing window. ``metric`` names which; ``detail`` says how far and since when."""
    return _observation(at, IncidentKind.DRIFT, Severity.WRONG, Blame.APP, detail, metric)


def monitor_fault(at: Sighting, *, what: str, detail: str) -> Observation:
    """The monitor is in trouble. ``what`` is the fault's stable name (``WarehouseDamaged``, ``hung_run``)."""
    return _observation(at, IncidentKind.MONITOR_FAULT, Severity.WRONG, Blame.MONITOR, detail, what)


def hallucination(
    at: Sighting,
    *,
    entry_id: str,
    user_text: str,
    blocked_reply: str,
    reasons: Sequence[str],
    unsupported_claims: Sequence[str],
    settings: AlertSettings,
    chunk_count: int | None = None,
    top_score: float | None = None,
    policy_ids: Sequence[str] = (),
    place: str = "",
) -> Observation:
    """One entry of the application's own hallucination log.

    ``entry_id`` is what makes the entry this one wherever its file is moved to (a hash of the line, say): each is
    told once. ``place`` says in words where it stands.
    """

    def short(text: str) -> Redacted:
        return excerpt(text, limit=settings.excerpt_characters, account_patterns=at.account_patterns)

    grounds = "; ".join(reasons) or "the app gave no reason"
    detail = grounds + _support(chunk_count, top_score, policy_ids) + (f"; {place}" if place else "")
    seen = _observation(at, IncidentKind.HALLUCINATION, Severity.PAGE, Blame.APP, detail, entry_id)
    told = _Told(
        asked=short(user_text) or None,
        expected=short("; ".join(unsupported_claims)) or None,
        answered=short(blocked_reply) or None,
        policy_row=HALLUCINATION_ROW,
    )
    return seen.model_copy(update=dict(told))


class _Told(Record):
    """What an entry of the log adds to an observation. ``expected`` are the claims that nothing supports."""

    asked: Redacted | None
    expected: Redacted | None
    answered: Redacted | None
    policy_row: str
    origin: Origin = Origin.LOG


def _support(chunk_count: int | None, top_score: float | None, policy_ids: Sequence[str]) -> str:
    known = [
        f"{chunk_count} chunks" if chunk_count is not None else "",
        f"top score {top_score:.2f}" if top_score is not None else "",
        f"policies {', '.join(policy_ids)}" if policy_ids else "",
    ]
    found = ", ".join(piece for piece in known if piece)
    return f" ({found})" if found else ""


def _why(decisive: Sequence[VerdictReason]) -> str:
    return "; ".join(reason.text for reason in decisive) or "the gate gave no reason"


def _observation(
    at: Sighting, kind: IncidentKind, severity: Severity, blame: Blame, detail: str, *parts: str
) -> Observation:
    return Observation(
        fingerprint=fingerprint(at.target, kind, *parts),
        kind=kind,
        target=at.target,
        run_id=at.run_id,
        seen_at=at.seen_at,
        severity=severity,
        blame=blame,
        commit=at.commit,
        title=excerpt(KIND_WORDS[kind], limit=REASON_CHARACTERS),
        reason=excerpt(detail or KIND_WORDS[kind], limit=REASON_CHARACTERS, account_patterns=at.account_patterns),
    )
