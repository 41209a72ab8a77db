"""Incidents over time, the messages about them, and what a person did about a message, as the message shows it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, NewType, Self

from pydantic import Field

from monitors.records.base import Blame, Identifier, Record, Severity, Sha256, UtcTime
from monitors.records.exchanges import Origin
from monitors.records.grades import FailureKind

Name = Annotated[str, Field(min_length=1, max_length=200)]


class ActionKind(StrEnum):
    """What a person can do about an incident."""

    ACKNOWLEDGE = "acknowledge"
    """No reminder until it is worse."""
    FALSE_ALARM = "false_alarm"
    """The answer was right: a human label, and no alert about this finding for a while."""
    ADD_TO_GOLD = "add_to_gold"
    """Draft a gold case from it."""
    RESOLVE = "resolve"
    """It is over."""


class ActionVia(StrEnum):
    """Where a person took the action."""

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
"""Text that is safe to send. Only ``monitors.alerts.redact`` makes it, so that type checks refuse raw text."""


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
    """A drill with a planted wrong answer: it says nothing about an application."""


class Capability(StrEnum):
    """The part of the monitor that opened an incident: only this part can resolve a fault of the monitor."""

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
    """Why a message was sent: shown in it and stored with it."""

    FIRST_SEEN = "first_seen"
    WORSE = "worse"
    REGRESSED = "regressed"
    REMINDER = "reminder"
    RECOVERED = "recovered"
    OPEN_BEFORE = "open_before"
    """It was open and nobody had been notified of it when a channel to people was set up, or worked again."""
    MISSED = "missed"
    """Slack refused its messages: in the summary of what opened, closed and recovered meanwhile."""
    SILENCED = "silenced"
    """It was withheld within a period of a recurring silence: in the summary after the period's end."""
    CLOSED = "closed"
    """Its case left the suite or its target the configuration: whether the fault is gone is not known."""

    @property
    def is_ending(self) -> bool:
        """Whether the message says that the incident is over."""
        return self in {NotifyReason.RECOVERED, NotifyReason.CLOSED}


class FailedCase(Record):
    """A failed case in the summary of its run. Texts are redacted. For ``is_report`` see `Observation`."""

    case_id: Identifier
    severity: Severity
    title: Redacted
    asked: Redacted | None = None
    expected: Redacted | None = None
    answered: Redacted | None = None
    is_report: bool = False


class FaultIdentity(Record):
    """The identity of a fault: the common fields of an observation and its incident.

    ``fingerprint`` is stable across runs: the same fault of the same target has the same one, whatever the run, the
    wording of the answer or the commit. ``owner`` is the part of the monitor that saw it first. For a gate that
    fails, ``failed_cases`` are the ids of its failed cases, ``verdict_reasons`` the kinds of its decisive reasons.
    """

    fingerprint: Sha256
    kind: IncidentKind
    target: Identifier
    severity: Severity
    title: Redacted
    case_id: Identifier | None = None
    failure_kind: FailureKind | None = None
    owner: Capability = Capability.VERIFY
    failed_cases: tuple[Identifier, ...] = ()
    verdict_reasons: tuple[str, ...] = ()
    right_answers: tuple[tuple[Identifier, Sha256], ...] = ()
    """The hash of each failed case's gold when it last failed (`GoldCase.right_answer_sha256`)."""


class Observation(FaultIdentity):
    """One failure that a run saw, before it is folded into an incident.

    Texts are already redacted. ``flaky`` says how often a flaky case was right. ``origin`` is who asked: a probe's
    question is a gold case already, a real user's is not. ``multiplied`` says that the fault is a rate that has
    multiplied since the last alert. ``examples`` are the worst cases of a failed gate without their own alert,
    and ``others`` names the other ones; ``cases_with_alerts`` have an alert of their own. ``is_report`` is true for
    an agent's report on an issue: then ``asked`` is the issue, ``expected`` the reference, ``answered`` the report.
    """

    run_id: Identifier
    seen_at: UtcTime
    blame: Blame
    policy_row: str | None = None
    commit: Identifier | None = None
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
    cases_with_alerts: tuple[Identifier, ...] = ()
    is_report: bool = False
    address: str = ""
    """The target's configured address, which is not redacted in ``reason``: it is not the application's text."""

    def to_rate_example(self, fingerprint: Sha256, case_id: str, reason: Redacted) -> Self:
        """Return the observation as an example of all failures of its kind, one fault with ``case_id``."""
        return self.model_copy(
            update={"fingerprint": fingerprint, "case_id": case_id, "expected": None, "reason": reason}
        )

    def remove_cases(self, right: Collection[str], reason: Redacted) -> Self:
        """Return the observation without the cases that are ``right`` now; ``reason`` names those that are left."""
        return self.model_copy(
            update={
                "failed_cases": tuple(case for case in self.failed_cases if case not in right),
                "cases_with_alerts": tuple(case for case in self.cases_with_alerts if case not in right),
                "examples": tuple(case for case in self.examples if case.case_id not in right),
                "others": "",
                "reason": reason,
            }
        )


class Incident(FaultIdentity):
    """A fault over time. ``occurrences`` counts runs that saw it since it was last opened.

    ``first_commit`` is the deploy with which it appeared. ``thread`` is Slack's ``ts`` of its first message, if one
    was sent. ``last_notified_at`` is the time of the last alert about it, ``None`` while an alert is withheld.
    ``notified_cases`` are all cases that failed at an alert since it was opened. Its state changes only through its
    methods. Who changed it and why is stored in the action, because an older version refuses unknown fields.
    """

    state: IncidentState
    opened_at: UtcTime
    last_seen_at: UtcTime
    last_notified_at: UtcTime | None = None
    resolved_at: UtcTime | None = None
    """Not cleared when the same fault opens the incident again: use ``is_resolved`` to check whether it is over."""
    occurrences: Annotated[int, Field(ge=1)] = 1
    first_commit: Identifier | None = None
    last_run_id: Identifier
    thread: str | None = None
    channel: str | None = None
    notified_cases: tuple[Identifier, ...] = ()

    @classmethod
    def open(cls, observation: Observation) -> Self:
        """Open an incident with its first ``observation``."""
        return cls(
            fingerprint=observation.fingerprint,
            kind=observation.kind,
            target=observation.target,
            state=IncidentState.OPEN,
            severity=observation.severity,
            title=observation.title,
            case_id=observation.case_id,
            failure_kind=observation.failure_kind,
            opened_at=observation.seen_at,
            last_seen_at=observation.seen_at,
            first_commit=observation.commit,
            last_run_id=observation.run_id,
            owner=observation.owner,
            failed_cases=observation.failed_cases,
            verdict_reasons=observation.verdict_reasons,
            right_answers=observation.right_answers,
        )

    def reopen(self, observation: Observation) -> Self:
        """Open a resolved incident again; ``resolved_at`` stays if it is the same fault as before.

        A gate may fail again for another reason; other faults are always the same. Failed cases are compared if
        there are any, because every failed case lowers the same score.
        """
        if self.failed_cases and observation.failed_cases:
            earlier = {*self.failed_cases, *self.notified_cases}
            is_same = not earlier.isdisjoint(observation.failed_cases)
        elif self.failed_cases or observation.failed_cases:
            is_same = False
        else:
            reasons = set(self.verdict_reasons)
            is_same = self.verdict_reasons == observation.verdict_reasons or not reasons.isdisjoint(
                observation.verdict_reasons
            )
        opened = self.open(observation)
        return opened.model_copy(update={"resolved_at": self.resolved_at}) if is_same else opened

    def update_from(self, observation: Observation) -> Self:
        """Update the open incident by ``observation``; an acknowledged one is opened again if it is worse.

        The severity never falls while it is open, so that a flapping fault is not "worse" every other night.
        """
        return self.model_copy(
            update={
                "state": IncidentState.OPEN if self.is_worsened_by(observation) else self.state,
                "severity": max(self.severity, observation.severity),
                "title": observation.title,
                "last_seen_at": max(self.last_seen_at, observation.seen_at),
                "occurrences": self.occurrences + (observation.run_id != self.last_run_id),
                "last_run_id": observation.run_id,
                "failed_cases": observation.failed_cases,
                "verdict_reasons": observation.verdict_reasons,
                "right_answers": tuple(dict((*self.right_answers, *observation.right_answers)).items()),
            }
        )

    def is_worsened_by(self, observation: Observation) -> bool:
        """Whether it got worse: more severe, a rate that multiplied, or a failed case without an alert so far.

        A run reports it once. A case from an earlier message is not new until the incident was resolved.
        """
        multiplied = observation.multiplied and observation.run_id != self.last_run_id
        return observation.severity > self.severity or multiplied or bool(self.find_unreported_cases(observation))

    def find_unreported_cases(self, observation: Observation) -> tuple[str, ...]:
        """Return the failed cases that no message about it has reported and that have no alert of their own."""
        reported = {*self.notified_cases, *observation.cases_with_alerts}
        return tuple(case for case in observation.failed_cases if case not in reported)

    @property
    def is_resolved(self) -> bool:
        """Whether it is over."""
        return self.state is IncidentState.RESOLVED

    def record_alert(self, at: datetime, cases: Iterable[str] = ()) -> Self:
        """Record an alert at ``at``, about the failed ``cases`` too."""
        reported = tuple(dict.fromkeys((*self.notified_cases, *cases)))
        return self.model_copy(update={"last_notified_at": at, "notified_cases": reported})

    def withhold_alert(self) -> Self:
        """Withhold its alert because of a silence or an outage; the next observation may send it."""
        return self.model_copy(update={"last_notified_at": None})

    def acknowledge(self) -> Self:
        """Acknowledge it: no reminder until it is worse."""
        return self.model_copy(update={"state": IncidentState.ACKNOWLEDGED})

    def leave_alerts_to_original(self) -> Self:
        """Leave its alerts to the installation that this folder was copied from: none until it is worse."""
        quiet = {"state": IncidentState.ACKNOWLEDGED, "last_notified_at": None, "thread": None, "channel": None}
        return self.model_copy(update=quiet)

    def resolve(self, at: datetime) -> Self:
        """Resolve it. ``resolved_at`` is never before the fault was last seen."""
        return self.model_copy(update={"state": IncidentState.RESOLVED, "resolved_at": max(at, self.last_seen_at)})

    def place_in_thread(self, thread: str | None, channel: str | None) -> Self:
        """Put later alerts below the message ``thread`` of ``channel``; ``None`` without threads."""
        return self.model_copy(update={"thread": thread, "channel": channel})


class Link(Record):
    """A link to details: a local path or an address, with its label."""

    label: str
    href: str


class AlertItem(Record):
    """One incident in an alert, with its observation.

    ``new_cases`` are the failed cases that no earlier message about the open incident has reported;
    ``severity_before`` is its severity before it got more severe.
    """

    incident: Incident
    observation: Observation
    reason: NotifyReason
    new_cases: tuple[Identifier, ...] = ()
    severity_before: Severity | None = None

    @property
    def urgency(self) -> tuple[bool, int, bool, str, str]:
        """The sort key of items within a message: what is open, then the worst, then new ones, then by case."""
        incident, is_old = self.incident, self.reason is not NotifyReason.FIRST_SEEN
        return incident.is_resolved, -incident.severity, is_old, incident.case_id or "", incident.fingerprint

    def place_in_thread(self, thread: str | None, channel: str | None) -> Self:
        """Return the item in another thread, or in none."""
        return self.model_copy(update={"incident": self.incident.place_in_thread(thread, channel)})

    def record_alert(self, at: datetime) -> Self:
        """Return the item with an alert recorded at ``at``."""
        return self.model_copy(update={"incident": self.incident.record_alert(at)})

    def mark_flaky(self, text: str) -> Self:
        """Return the item after all repeats of its case; ``text`` says how often it was right."""
        return self.model_copy(update={"observation": self.observation.model_copy(update={"flaky": text})})


class CaseAlert(Record):
    """The last message about a failed case that has an alert of its own."""

    case_id: Identifier
    alert_id: Identifier


class RunSummary(Record):
    """The summary of a run in every message: the same for alert, report, comment and site.

    ``flat`` and ``weighted`` are its formatted scores (``0.952``), or ``None`` before the run is complete.
    ``dimensions`` says how a run's reports on issues did and what changed since the baseline; ``None`` for a run
    without issues. ``in_common`` has a line for each common cause of its failures; ``changed`` is what differs from
    the last accepted run. ``under_way`` is true if the message was sent before the end of the run. ``production``
    says that the target is configured as production.
    """

    commit: Identifier | None = None
    flat: str | None = None
    weighted: str | None = None
    dimensions: str | None = None
    in_common: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    under_way: bool = False
    production: bool = False

    def fill_empty_fields_from(self, base: RunSummary) -> RunSummary:
        """Return this newer summary of a run with its empty fields filled from ``base``.

        ``under_way`` is always that of the newer summary.
        """
        fields = {name: getattr(self, name) or getattr(base, name) for name in RunSummary.model_fields}
        return RunSummary.model_validate(fields | {"under_way": self.under_way})


OPENING_REASONS: Final = frozenset({NotifyReason.FIRST_SEEN, NotifyReason.REGRESSED})
"""Reasons that share a message. The message starts a thread unless this run has already started one."""

SUMMARY_REASONS: Final = frozenset({NotifyReason.MISSED, NotifyReason.SILENCED})
"""Reasons whose message sums up incidents, open ones and those that are over."""

THREAD_REASONS: Final = OPENING_REASONS | {NotifyReason.OPEN_BEFORE, NotifyReason.MISSED}
"""Reasons whose message starts a thread: later alerts of its incidents go below it."""


class Alert(RunSummary):
    """One message: stored before it is sent. It shows its ``id``, so that a duplicate can be recognised.

    It groups the incidents of one kind from one run, with the run's summary. ``own_alerts`` are the alerts of a
    failed gate's cases.
    """

    id: Identifier
    kind: IncidentKind
    target: Identifier
    run_id: Identifier
    created_at: UtcTime
    severity: Severity
    reason: NotifyReason
    items: Annotated[tuple[AlertItem, ...], Field(min_length=1)]
    own_alerts: tuple[CaseAlert, ...] = ()
    marks: tuple[OperatorMark, ...] = ()
    """Operators' actions about it: added when it is shown again, never stored with it."""
    again: str = ""
    """The results of asking its cases again: added when it is shown again, never stored with it."""

    @property
    def thread(self) -> str | None:
        """The thread that it belongs to: ``None`` if it starts its own, or without threads."""
        return self.items[0].incident.thread

    @property
    def channel(self) -> str | None:
        """The channel of ``thread``; ``None`` for the sender's default."""
        return self.items[0].incident.channel

    @property
    def fingerprints(self) -> tuple[Sha256, ...]:
        """The fingerprints of its incidents, in the order in which they are shown."""
        return tuple(item.incident.fingerprint for item in self.items)

    @property
    def is_over(self) -> bool:
        """Whether none of its incidents is open any more; those that are come first."""
        return self.reason.is_ending or self.items[0].incident.is_resolved

    @property
    def is_continuation(self) -> bool:
        """Whether its run has already sent an alert of this kind, so that it belongs in that first message."""
        return self.reason in OPENING_REASONS and self.thread is not None

    def select_item(self, fingerprint: str) -> AlertItem:
        """Return the item about the incident ``fingerprint``. Raises `StopIteration` if there is none."""
        return next(item for item in self.items if item.incident.fingerprint == fingerprint)

    def with_summary(self, summary: RunSummary) -> Self:
        """Return the message with another summary of its run."""
        return self.model_copy(update={name: getattr(summary, name) for name in RunSummary.model_fields})

    def with_items(self, items: Iterable[AlertItem]) -> Self:
        """Return the message about other ``items``, in their order of urgency."""
        ordered = tuple(sorted(items, key=lambda item: item.urgency))
        severity, reason = ordered[0].incident.severity, choose_alert_reason(ordered)
        return self.model_copy(update={"items": ordered, "severity": severity, "reason": reason})

    def merge_alerts(self, later: Sequence[Alert]) -> Self:
        """Return the message with the items of ``later`` ones; its id and time do not change.

        Its summary is the newest. A fault in several of them is shown as in the last one.
        """
        newest = {item.incident.fingerprint: item for alert in (self, *later) for item in alert.items}
        summary: RunSummary = self
        for alert in later:
            summary = alert.fill_empty_fields_from(summary)
        return self.with_items(newest.values()).with_summary(summary)

    def with_case_alerts(self, own_alerts: Iterable[CaseAlert]) -> Self:
        """Return the message with references to its cases' own alerts."""
        return self.model_copy(update={"own_alerts": tuple(own_alerts)})

    def with_marks(self, marks: Sequence[OperatorMark]) -> Self:
        """Return the message with operators' actions about it."""
        return self.model_copy(update={"marks": tuple(marks)})

    def with_recheck(self, text: str) -> Self:
        """Return the message with the results of asking its cases again."""
        return self.model_copy(update={"again": text})

    def mark_flaky(self, texts: Mapping[str, str]) -> Self:
        """Return the message after all repeats; ``texts`` says by case id how often it was right."""
        items = (
            item.mark_flaky(texts[case]) if (case := item.observation.case_id) and case in texts else item
            for item in self.items
        )
        return self.model_copy(update={"items": tuple(items)})

    def remove_threads(self) -> Self:
        """Return the message without threads, for a channel where its threads do not exist."""
        return self.model_copy(update={"items": tuple(item.place_in_thread(None, None) for item in self.items)})


def choose_alert_reason(items: Sequence[AlertItem]) -> NotifyReason:
    """Choose the reason of a message about ``items``; it is ``regressed`` only if no item is new."""
    reasons = {item.reason for item in items}
    return NotifyReason.FIRST_SEEN if NotifyReason.FIRST_SEEN in reasons else items[0].reason


class DeliveryStatus(StrEnum):
    """How a delivery ended."""

    SENT = "sent"
    PRINTED = "printed"
    """No credentials: printed in the terminal instead."""
    FAILED = "failed"
    """Stored for the next attempt."""
    REJECTED = "rejected"
    """The service refuses it permanently."""
    LEFT = "left"
    """Left to the installation that the data folder was copied from."""


class Receipt(Record):
    """The result of a delivery. ``thread`` is Slack's ``ts`` of the message, for replies in its thread."""

    alert_id: Identifier
    status: DeliveryStatus
    at: UtcTime
    channel: str | None = None
    thread: str | None = None
    detail: str = ""

    def with_detail(self, detail: str) -> Self:
        """Return the receipt with another ``detail``."""
        return self.model_copy(update={"detail": detail})
