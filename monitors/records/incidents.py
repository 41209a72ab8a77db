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


class FaultIdentity(Record):
    """What a fault is, for as long as it lasts: what an observation and its incident have in common.

    ``fingerprint`` is stable across runs: the same fault of the same target has the same one, whatever the run, the
    wording of the answer or the commit. ``owner`` is the part of the monitor that saw it first. Of a gate that
    fails, ``failed_cases`` are its failed cases by id, ``verdict_reasons`` the kinds of what decided its verdict.
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
    """What each failed case was held against when it last failed (`GoldCase.right_answer_sha256`)."""


class Observation(FaultIdentity):
    """One failure as a run saw it, before it is folded into an incident.

    Texts are already redacted. ``flaky`` says how often a case that was asked several times was right, where it was
    right at all. ``origin`` is who asked: what a probe asked is a gold case already, what a real user asked is not.
    ``multiplied`` says that the fault is a rate, and is several times what it was at the last alert. ``examples``
    are the worst cases of a gate that failed, of those that have no message of their own, and ``others`` says in
    words which are not among them; ``cases_with_alerts`` are those that have an alert of their own. ``is_report``
    is true of an agent's report on an issue: ``asked`` is the issue then, ``expected`` what is known about it,
    ``answered`` the report.
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
    """The target's configured address, which stays readable in ``reason``: it is not the application's text."""

    def to_rate_example(self, fingerprint: Sha256, case_id: str, reason: Redacted) -> Self:
        """The observation as an example of all that failed in its way, which are one fault with ``case_id``."""
        return self.model_copy(
            update={"fingerprint": fingerprint, "case_id": case_id, "expected": None, "reason": reason}
        )

    def remove_cases(self, right: Collection[str], reason: Redacted) -> Self:
        """The observation without the cases that were ``right`` since; ``reason`` says which are left."""
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

    ``first_commit`` is the deploy that it appeared with. ``thread`` is Slack's ``ts`` of its first message, where
    one was sent. ``last_notified_at`` is when anything was last said about it, ``None`` while an alert is withheld.
    ``notified_cases`` are all cases that failed when a message about it was sent since it was opened. Its state
    changes by its methods only. Who changed it and why stays in the action: an older version refuses an incident
    with a field that it does not know.
    """

    state: IncidentState
    opened_at: UtcTime
    last_seen_at: UtcTime
    last_notified_at: UtcTime | None = None
    resolved_at: UtcTime | None = None
    """Stays when the incident is opened again by the same fault: ask ``is_resolved`` whether it is over."""
    occurrences: Annotated[int, Field(ge=1)] = 1
    first_commit: Identifier | None = None
    last_run_id: Identifier
    thread: str | None = None
    channel: str | None = None
    notified_cases: tuple[Identifier, ...] = ()

    @classmethod
    def open(cls, observation: Observation) -> Self:
        """The incident that ``observation`` begins."""
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
        """Open a resolved incident again; ``resolved_at`` stays where it is the same fault as before.

        A gate that fails again may do so for another reason; other faults are always the same. Its cases say so
        where there are any: a score below its limit is what every failed case leads to.
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

    def continue_with(self, observation: Observation) -> Self:
        """The open incident after ``observation``, which opens an acknowledged one again when it is worse.

        Severity never falls while it is open, so that a flapping fault is not "worse" every other nightly run.
        """
        return self.model_copy(
            update={
                "state": IncidentState.OPEN if self.is_worse_in(observation) else self.state,
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

    def is_worse_in(self, observation: Observation) -> bool:
        """Whether it got worse: more severe, a rate that multiplied, a failed case that nobody was notified of.

        A run reports it once, and a case that failed in an earlier message is no news until it was resolved.
        """
        multiplied = observation.multiplied and observation.run_id != self.last_run_id
        return observation.severity > self.severity or multiplied or bool(self.new_cases(observation))

    def new_cases(self, observation: Observation) -> tuple[str, ...]:
        """The failed cases that no message about it has reported, and that have no alert of their own."""
        reported = {*self.notified_cases, *observation.cases_with_alerts}
        return tuple(case for case in observation.failed_cases if case not in reported)

    @property
    def is_resolved(self) -> bool:
        """Whether it is over."""
        return self.state is IncidentState.RESOLVED

    def notify(self, at: datetime, cases: Iterable[str] = ()) -> Self:
        """Somebody is notified at ``at``, of the failed ``cases`` too."""
        reported = tuple(dict.fromkeys((*self.notified_cases, *cases)))
        return self.model_copy(update={"last_notified_at": at, "notified_cases": reported})

    def withhold(self) -> Self:
        """Its alert is held back by a silence or an outage: the next observation that may send one sends it."""
        return self.model_copy(update={"last_notified_at": None})

    def acknowledge(self) -> Self:
        """No reminder until it is worse."""
        return self.model_copy(update={"state": IncidentState.ACKNOWLEDGED})

    def resolve(self, at: datetime) -> Self:
        """It is over. ``resolved_at`` is never before the fault was last seen."""
        return self.model_copy(update={"state": IncidentState.RESOLVED, "resolved_at": max(at, self.last_seen_at)})

    def place_in_thread(self, thread: str | None, channel: str | None) -> Self:
        """Later news goes below the message ``thread`` of ``channel``; ``None`` where there are no threads."""
        return self.model_copy(update={"thread": thread, "channel": channel})


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

    @property
    def urgency(self) -> tuple[int, bool, str, str]:
        """How items are sorted within a message: the worst first, then what is new, then by case."""
        is_old = self.reason is not NotifyReason.FIRST_SEEN
        return -self.incident.severity, is_old, self.incident.case_id or "", self.incident.fingerprint

    def place_in_thread(self, thread: str | None, channel: str | None) -> Self:
        """The item in another thread, or in none."""
        return self.model_copy(update={"incident": self.incident.place_in_thread(thread, channel)})

    def notify(self, at: datetime) -> Self:
        """The item once somebody is notified of it at ``at``."""
        return self.model_copy(update={"incident": self.incident.notify(at)})

    def mark_flaky(self, text: str) -> Self:
        """The item once all repeats of its case are in: ``text`` says how often it was right."""
        return self.model_copy(update={"observation": self.observation.model_copy(update={"flaky": text})})


class CaseAlert(Record):
    """The last message about a failed case that has an alert of its own."""

    case_id: Identifier
    alert_id: Identifier


class RunSummary(Record):
    """What a run says of itself in every message: the same for alert, report, comment and site.

    ``flat`` and ``weighted`` are its scores as shown (``0.952``), or ``None`` before the run is complete.
    ``dimensions`` says how a run's reports on issues did and what moved against the baseline; ``None`` for a run
    without issues. ``in_common`` is what its failed cases share, a line a cause; ``changed`` what differs from the
    last accepted run. ``under_way`` is true of what was sent before its run was over. ``production`` says that the
    configuration calls the target so.
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

    def fill_from(self, base: RunSummary) -> RunSummary:
        """The newer of two summaries of a run, with what it leaves empty as ``base`` has it.

        A run is under way only as long as the newest summary says so.
        """
        fields = {name: getattr(self, name) or getattr(base, name) for name in RunSummary.model_fields}
        return RunSummary.model_validate(fields | {"under_way": self.under_way})


OPENING_REASONS: Final = frozenset({NotifyReason.FIRST_SEEN, NotifyReason.REGRESSED})
"""Reasons that share a message. The message starts a thread unless this run has already started one."""

THREAD_REASONS: Final = OPENING_REASONS | {NotifyReason.OPEN_BEFORE}
"""Reasons whose message stands by itself: later alerts of its incidents go below it."""


class Alert(RunSummary):
    """One message: stored before it is sent. ``id`` is shown in it, so that a duplicate is recognisable.

    It groups the incidents of one kind that one run brought, with the summary of the run. ``own_alerts`` are where
    a gate that failed refers to.
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
    """What people did about it since: added where it is shown again, never stored with it."""
    again: str = ""
    """What its cases came to when they were asked again: added where it is shown again, never stored with it."""

    @property
    def thread(self) -> str | None:
        """The thread that it belongs to: ``None`` for one that starts its own, or whose first message has none."""
        return self.items[0].incident.thread

    @property
    def channel(self) -> str | None:
        """The channel that ``thread`` is in; ``None`` where the sender's default holds."""
        return self.items[0].incident.channel

    @property
    def fingerprints(self) -> tuple[Sha256, ...]:
        """The fingerprints of its incidents, in the order in which they are shown."""
        return tuple(item.incident.fingerprint for item in self.items)

    @property
    def is_continuation(self) -> bool:
        """Whether it is news of a run that already alerted of this kind: it belongs in that first message."""
        return self.reason in OPENING_REASONS and self.thread is not None

    def find_item(self, fingerprint: str) -> AlertItem:
        """Its item about the incident ``fingerprint``. Raises `StopIteration` where there is none."""
        return next(item for item in self.items if item.incident.fingerprint == fingerprint)

    def with_summary(self, summary: RunSummary) -> Self:
        """The same message with another summary of its run."""
        return self.model_copy(update={name: getattr(summary, name) for name in RunSummary.model_fields})

    def with_items(self, items: Iterable[AlertItem]) -> Self:
        """The same message about other ``items``, in their order of urgency."""
        ordered = tuple(sorted(items, key=lambda item: item.urgency))
        severity = max(item.incident.severity for item in ordered)
        return self.model_copy(update={"items": ordered, "severity": severity, "reason": choose_reason(ordered)})

    def merge_alerts(self, later: Sequence[Alert]) -> Self:
        """The message with everything that ``later`` ones brought; id and time stay.

        Its summary is the newest. A fault that came twice is shown as it was reported last.
        """
        newest = {item.incident.fingerprint: item for alert in (self, *later) for item in alert.items}
        summary: RunSummary = self
        for alert in later:
            summary = alert.fill_from(summary)
        return self.with_items(newest.values()).with_summary(summary)

    def refer_to(self, own_alerts: Iterable[CaseAlert]) -> Self:
        """The message with the alerts that its cases have of their own."""
        return self.model_copy(update={"own_alerts": tuple(own_alerts)})

    def with_marks(self, marks: Sequence[OperatorMark]) -> Self:
        """The message with what people did about it."""
        return self.model_copy(update={"marks": tuple(marks)})

    def with_recheck(self, text: str) -> Self:
        """The message with what its cases came to when they were asked again."""
        return self.model_copy(update={"again": text})

    def mark_flaky(self, texts: Mapping[str, str]) -> Self:
        """The message once all repeats are in: ``texts`` says by case how often it was right."""
        items = (
            item.mark_flaky(texts[case]) if (case := item.observation.case_id) and case in texts else item
            for item in self.items
        )
        return self.model_copy(update={"items": tuple(items)})

    def remove_threads(self) -> Self:
        """The same message for a place where its threads do not exist."""
        return self.model_copy(update={"items": tuple(item.place_in_thread(None, None) for item in self.items)})


def choose_reason(items: Sequence[AlertItem]) -> NotifyReason:
    """The reason of a message about ``items``; one that opens is ``regressed`` only when nothing in it is new."""
    reasons = {item.reason for item in items}
    return NotifyReason.FIRST_SEEN if NotifyReason.FIRST_SEEN in reasons else items[0].reason


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

    def explain(self, detail: str) -> Self:
        """The receipt with another ``detail``."""
        return self.model_copy(update={"detail": detail})
