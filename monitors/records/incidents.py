"""Incidents over time, the messages about them, and what a person did about a message, as the message shows it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NewType

from pydantic import Field

from monitors.records.base import Blame, Identifier, Record, Severity, Sha256, UtcTime
from monitors.records.exchanges import Origin
from monitors.records.grades import FailureKind

Name = Annotated[str, Field(min_length=1, max_length=200)]


class ActionKind(StrEnum):
    """What a person can do about an incident."""

    ACKNOWLEDGE = "acknowledge"
    """Seen: no reminder until it is worse."""
    FALSE_ALARM = "false_alarm"
    """The answer was right after all: a human label, and quiet about this finding for a while."""
    ADD_TO_GOLD = "add_to_gold"
    """Draft a gold case of it."""
    RESOLVE = "resolve"
    """It is over."""


class ActionVia(StrEnum):
    """How a person reached us."""

    SLACK = "slack"
    COMMAND = "command"
    SITE = "site"


class OperatorMark(Record):
    """Who did what about which incidents of a message. ``by`` is a Slack user id when it was done there."""

    kind: ActionKind
    by: Name
    via: ActionVia
    at: UtcTime
    fingerprints: tuple[Sha256, ...]


Redacted = NewType("Redacted", str)
"""Text that is safe to send: made only by ``monitors.alerts.redact``, so that the type checker refuses raw text."""


class IncidentKind(StrEnum):
    """What an incident is about."""

    CASE_FAILURE = "case_failure"
    HALLUCINATION = "hallucination"
    DEPLOY_FAILURE = "deploy_failure"
    APP_DOWN = "app_down"
    GATE_FAIL = "gate_fail"
    DRIFT = "drift"
    JUDGE_VOID = "judge_void"
    MONITOR_FAULT = "monitor_fault"
    DRILL = "drill"
    """A planted wrong answer on its way to people: nothing about any application."""


class Capability(StrEnum):
    """The part of the monitor that opened an incident: only it can show that a fault of the monitor is over."""

    VERIFY = "verify"
    NIGHTLY = "nightly"
    HALLUCINATION_LOG = "hallucination_log"
    DEPLOYS = "deploys"
    DIGEST = "digest"
    MAINTENANCE = "maintenance"
    REPEATABILITY = "repeatability"
    DELIVERY = "delivery"
    UP = "up"
    DRILL = "drill"


class IncidentState(StrEnum):
    """The state of an incident."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"


class NotifyReason(StrEnum):
    """Why a message was sent: printed in it and stored with it."""

    FIRST_SEEN = "first_seen"
    WORSE = "worse"
    REGRESSED = "regressed"
    REMINDER = "reminder"
    RECOVERED = "recovered"
    OPEN_BEFORE = "open_before"
    """It was open, and had only ever been printed, when a channel to people was set up."""


class FailedCase(Record):
    """A failed case as the summary of its run names it. Texts are redacted. ``is_report`` as in `Observation`."""

    case_id: Identifier
    severity: Severity
    title: Redacted
    asked: Redacted | None = None
    expected: Redacted | None = None
    answered: Redacted | None = None
    is_report: bool = False


class Observation(Record):
    """One failure as a run saw it, before it is folded into an incident.

    Its ``fingerprint`` is stable across runs: the same fault of the same target has the same one, whatever the run,
    the wording of the answer or the commit. Texts are already redacted. ``flaky`` says how often a case that was
    asked several times was right, where it was right at all. ``origin`` is who asked: what a probe asked is a gold
    case already, what a real user asked is not. ``multiplied`` says that the fault is a rate, and is several times
    what it was at the last alert. ``examples`` are the worst cases of a gate that failed, of those that have no
    message of their own, and ``others`` says in words which are not among them. ``failed_cases`` are all its failed
    cases by id, ``cases_with_alerts`` those of them that have an alert of their own, and ``verdict_reasons`` the
    kinds of what decided its verdict. ``owner`` is the part of the monitor that saw it. ``is_report`` is true of an
    agent's report on an issue: ``asked`` is the issue then, ``expected`` what is known about it, ``answered`` the
    report.
    """

    fingerprint: Sha256
    kind: IncidentKind
    target: Identifier
    run_id: Identifier
    seen_at: UtcTime
    severity: Severity
    blame: Blame
    failure_kind: FailureKind | None = None
    case_id: Identifier | None = None
    policy_row: str | None = None
    commit: Identifier | None = None
    title: Redacted
    asked: Redacted | None = None
    expected: Redacted | None = None
    answered: Redacted | None = None
    reason: Redacted
    unconfirmed: bool = False
    flaky: str = ""
    origin: Origin = Origin.PROBE
    multiplied: bool = False
    examples: tuple[FailedCase, ...] = ()
    others: str = ""
    failed_cases: tuple[Identifier, ...] = ()
    cases_with_alerts: tuple[Identifier, ...] = ()
    verdict_reasons: tuple[str, ...] = ()
    owner: Capability = Capability.VERIFY
    is_report: bool = False
    right_answers: tuple[tuple[Identifier, Sha256], ...] = ()
    """Of each failed case `GoldCase.right_answer_sha256`."""
    address: str = ""
    """The target's configured address, which stays readable in ``reason``: it is not the application's text."""


class Incident(Record):
    """A fault over time. ``occurrences`` counts runs that saw it since it was last opened.

    ``first_commit`` is the deploy that it appeared with. ``thread`` is Slack's ``ts`` of its first message,
    where one was sent. ``last_notified_at`` is when anything was last said about it. ``owner`` is the part of the
    monitor that opened it. Of a gate that fails, ``failed_cases`` and ``verdict_reasons`` are those of the last run
    that saw it, and ``notified_cases`` all cases that failed when a message about it was sent since it was opened.
    """

    fingerprint: Sha256
    kind: IncidentKind
    target: Identifier
    state: IncidentState
    severity: Severity
    title: Redacted
    case_id: Identifier | None = None
    failure_kind: FailureKind | None = None
    opened_at: UtcTime
    last_seen_at: UtcTime
    last_notified_at: UtcTime | None = None
    resolved_at: UtcTime | None = None
    occurrences: Annotated[int, Field(ge=1)] = 1
    first_commit: Identifier | None = None
    last_run_id: Identifier
    thread: str | None = None
    channel: str | None = None
    owner: Capability = Capability.VERIFY
    failed_cases: tuple[Identifier, ...] = ()
    notified_cases: tuple[Identifier, ...] = ()
    verdict_reasons: tuple[str, ...] = ()
    right_answers: tuple[tuple[Identifier, Sha256], ...] = ()
    """What its failed cases were held against when they last failed (`GoldCase.right_answer_sha256`)."""


class Link(Record):
    """A place where more stands: a local path or an address, with its label."""

    label: str
    href: str


class AlertItem(Record):
    """One incident inside an alert, with what a person needs to judge it.

    ``new_cases`` are the failed cases that no earlier message about the open incident has reported, and
    ``severity_before`` what it had before it got more severe.
    """

    incident: Incident
    observation: Observation
    reason: NotifyReason
    new_cases: tuple[Identifier, ...] = ()
    severity_before: Severity | None = None


class CaseAlert(Record):
    """The last message about a failed case that has an alert of its own."""

    case_id: Identifier
    alert_id: Identifier


class Alert(Record):
    """One message: stored before it is sent. ``id`` is shown in it, so that a duplicate is recognisable.

    It groups the incidents of one kind that one run brought. ``flat`` and ``weighted`` are the run's scores as
    shown (``0.952``), or ``None`` before the run is complete. ``dimensions`` says how a run's reports on issues did
    and what moved against the baseline; ``None`` for a run without issues. ``in_common`` is what its failed cases
    share, a line a cause; ``changed`` what differs from the last accepted run. ``under_way`` is true of what was
    sent before its run was over. ``own_alerts`` are where a gate that failed refers to. ``production`` says that
    the configuration calls the target so.
    """

    id: Identifier
    kind: IncidentKind
    target: Identifier
    run_id: Identifier
    created_at: UtcTime
    severity: Severity
    reason: NotifyReason
    items: Annotated[tuple[AlertItem, ...], Field(min_length=1)]
    commit: Identifier | None = None
    flat: str | None = None
    weighted: str | None = None
    dimensions: str | None = None
    in_common: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    under_way: bool = False
    own_alerts: tuple[CaseAlert, ...] = ()
    production: bool = False
    marks: tuple[OperatorMark, ...] = ()
    """What people did about it since: added where it is shown again, never stored with it."""
    again: str = ""
    """What its cases came to when they were asked again: added where it is shown again, never stored with it."""


class DeliveryStatus(StrEnum):
    """How a delivery ended."""

    SENT = "sent"
    PRINTED = "printed"
    """No credentials: shown in the terminal instead."""
    FAILED = "failed"
    """Stored for the next try."""
    REJECTED = "rejected"
    """The service will not take it however often it is tried."""


class Receipt(Record):
    """What became of an alert. ``thread`` is Slack's ``ts`` of the message, for replies in its thread."""

    alert_id: Identifier
    status: DeliveryStatus
    at: UtcTime
    channel: str | None = None
    thread: str | None = None
    detail: str = ""
