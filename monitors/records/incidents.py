"""Records of incidents, of messages about incidents, and of operators' actions that a message shows."""

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
    """An action that a person can perform on an incident."""

    ACKNOWLEDGE = "acknowledge"
    """Send no reminders unless the incident gets worse."""
    FALSE_ALARM = "false_alarm"
    """The answer was right. Lookout stores this label, and sends no alerts about the finding for some time."""
    ADD_TO_GOLD = "add_to_gold"
    """Draft a gold case from the incident."""
    RESOLVE = "resolve"
    """The fault has ended."""


class ActionVia(StrEnum):
    """How a person performed an action: in Slack, with a command or on the site."""

    SLACK = "slack"
    COMMAND = "command"
    SITE = "site"


class OperatorMark(Record):
    """An operator's action on an incident, in the form in which a message shows it.

    ``by`` is a Slack user id if the person used Slack.
    """

    kind: ActionKind
    by: Name
    via: ActionVia
    at: UtcTime
    fingerprints: tuple[Sha256, ...]


Redacted = NewType("Redacted", str)
"""Text that is safe to send.

Only ``monitors.alerts.redact`` creates it, so the type checker detects unsafe text.
"""


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
    """A drill with a planted wrong answer, which is not a fault of an application."""


class Capability(StrEnum):
    """The part of Lookout that opened an incident.

    An incident about a fault of Lookout can be resolved only by the part that opened the incident.
    """

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
    """The reason for sending a message. The message shows this reason."""

    FIRST_SEEN = "first_seen"
    WORSE = "worse"
    REGRESSED = "regressed"
    REMINDER = "reminder"
    RECOVERED = "recovered"
    OPEN_BEFORE = "open_before"
    """An earlier alert about the open incident did not reach a person: it was only printed, or Slack refused it."""
    MISSED = "missed"
    """Slack refused the incident's messages. One summary reports all such incidents."""
    SILENCED = "silenced"
    """The incident occurred during a recurring silence. A summary after the silence reports the incident."""
    CLOSED = "closed"
    """The case is no longer in the suite, or the target is no longer in the configuration.

    The fault may still exist.
    """

    @property
    def is_ending(self) -> bool:
        """Return whether the message reports that the incident has ended."""
        return self in {NotifyReason.RECOVERED, NotifyReason.CLOSED}


class FailedCase(Record):
    """A failed case as shown in the message about a run. The texts of the case are redacted."""

    case_id: Identifier
    severity: Severity
    title: Redacted
    asked: Redacted | None = None
    expected: Redacted | None = None
    answered: Redacted | None = None
    is_report: bool = False


class FaultIdentity(Record):
    """The fields that an observation and its incident have in common.

    ``fingerprint`` identifies the fault in every run, because it does not depend on the run, the commit or the
    words of the answer. ``owner`` is the part of Lookout that found the fault first. For a failed gate,
    ``failed_cases`` contains the ids of the failed cases, and ``verdict_reasons`` contains the kinds of the
    decisive reasons.
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
    """For each failed case, the `GoldCase.question_and_answer_sha256` at the last failure.

    This hash shows whether the question or the expected answer has changed since then.
    """


class Observation(FaultIdentity):
    """One fault that a run found. The texts are already redacted.

    - ``flaky`` states how often the answer to a flaky case was right.
    - ``origin`` states who asked the question.
    - ``multiplied`` is true for a rate that has increased a lot since the last alert.
    - If ``is_report`` is true, ``asked`` is an issue, ``expected`` is the reference, and ``answered`` is an agent's
      report.

    For a failed gate:

    - ``examples`` contains the worst failed cases that do not have an alert of their own.
    - ``others`` is a text with the names of further cases.
    - ``cases_with_alerts`` contains the ids of the cases that have their own alert.
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
    """The target's configured address. In ``reason``, this address is not redacted."""

    def to_rate_example(self, fingerprint: Sha256, case_id: str, reason: Redacted) -> Self:
        """Return a copy of the observation as an example for an incident about a rate of failures.

        ``fingerprint`` and ``reason`` are those of the incident.
        """
        return self.model_copy(
            update={"fingerprint": fingerprint, "case_id": case_id, "expected": None, "reason": reason}
        )

    def remove_cases(self, right: Collection[str], reason: Redacted) -> Self:
        """Return a copy of the observation without the cases ``right``, which have since been answered correctly.

        ``reason`` is the new reason, which names the remaining cases.
        """
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
    """A fault, with its state and history over several runs. Methods such as `resolve` return a changed incident.

    - ``occurrences`` counts the runs that found the fault since the incident was opened.
    - ``first_commit`` is the deploy with which the fault first appeared.
    - ``thread`` identifies the first message about the incident in Slack.
    - ``last_notified_at`` is ``None`` while an alert is withheld.
    - ``notified_cases`` has all failed cases that a message has reported.
    """

    state: IncidentState
    opened_at: UtcTime
    last_seen_at: UtcTime
    last_notified_at: UtcTime | None = None
    resolved_at: UtcTime | None = None
    """The time at which the fault last ended.

    ``resolved_at`` may stay set if the fault returns. Use `is_resolved` to check the state.
    """
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
        """Open a resolved incident again. If the fault is the same as before, ``resolved_at`` stays set.

        A gate can fail again for another reason. Two failures of a gate are the same fault if they have a failed
        case in common. If neither failure has failed cases, the failures are the same fault if they have a kind of
        reason in common. All other faults with the same fingerprint are the same fault.
        """
        if self.failed_cases and observation.failed_cases:
            earlier = {*self.failed_cases, *self.notified_cases}
            has_same_result = not earlier.isdisjoint(observation.failed_cases)
        elif self.failed_cases or observation.failed_cases:
            has_same_result = False
        else:
            reasons = set(self.verdict_reasons)
            has_same_result = self.verdict_reasons == observation.verdict_reasons or not reasons.isdisjoint(
                observation.verdict_reasons
            )
        opened = self.open(observation)
        return opened.model_copy(update={"resolved_at": self.resolved_at}) if has_same_result else opened

    def update_from(self, observation: Observation) -> Self:
        """Update the open incident with a new observation.

        An acknowledged incident is opened again if it got worse. The severity never decreases while the incident is
        open. Otherwise, a fault whose severity alternates would send an alert every other night.
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
        """Return whether ``observation`` makes the incident worse.

        The incident gets worse if the observation is more severe, if its rate has increased a lot, or if it has a
        failed case that no message has reported.
        """
        multiplied = observation.multiplied and observation.run_id != self.last_run_id
        return observation.severity > self.severity or multiplied or bool(self.find_unreported_cases(observation))

    def find_unreported_cases(self, observation: Observation) -> tuple[str, ...]:
        """Return the failed cases that no message has reported and that have no alert of their own."""
        reported = {*self.notified_cases, *observation.cases_with_alerts}
        return tuple(case for case in observation.failed_cases if case not in reported)

    @property
    def is_resolved(self) -> bool:
        """Return whether the incident has ended."""
        return self.state is IncidentState.RESOLVED

    def record_alert(self, at: datetime, cases: Iterable[str] = ()) -> Self:
        """Record that an alert was sent at ``at``, and that it reported the failed ``cases``."""
        reported = tuple(dict.fromkeys((*self.notified_cases, *cases)))
        return self.model_copy(update={"last_notified_at": at, "notified_cases": reported})

    def record_withheld_alert(self) -> Self:
        """Record that an alert was withheld. A later observation can then send the alert."""
        return self.model_copy(update={"last_notified_at": None})

    def acknowledge(self) -> Self:
        """Acknowledge the incident. Lookout then sends no reminders unless the incident gets worse."""
        return self.model_copy(update={"state": IncidentState.ACKNOWLEDGED})

    def mute_in_copied_data_folder(self) -> Self:
        """Send no alerts about the incident unless it gets worse.

        Lookout calls this method in a copied data folder, because the original installation sends the alerts.
        """
        quiet = {"state": IncidentState.ACKNOWLEDGED, "last_notified_at": None, "thread": None, "channel": None}
        return self.model_copy(update=quiet)

    def resolve(self, at: datetime) -> Self:
        """Resolve the incident. ``resolved_at`` is never before the time when the fault was last seen."""
        return self.model_copy(update={"state": IncidentState.RESOLVED, "resolved_at": max(at, self.last_seen_at)})

    def place_in_thread(self, thread: str | None, channel: str | None) -> Self:
        """Set the thread for later alerts, which are sent as replies to the message ``thread`` in ``channel``.

        If ``thread`` is ``None``, later alerts are sent outside any thread.
        """
        return self.model_copy(update={"thread": thread, "channel": channel})


class Link(Record):
    """A link with its label. The link leads to a web address or to a local file."""

    label: str
    href: str


class AlertItem(Record):
    """An incident in an alert, with the observation that caused the alert.

    ``new_cases`` are failed cases that no earlier message has reported. ``severity_before`` is the incident's
    earlier, lower severity.
    """

    incident: Incident
    observation: Observation
    reason: NotifyReason
    new_cases: tuple[Identifier, ...] = ()
    severity_before: Severity | None = None

    @property
    def urgency(self) -> tuple[bool, int, bool, str, str]:
        """Return the sort key of the item. Open items come first, then more severe items, then new items."""
        incident, is_old = self.incident, self.reason is not NotifyReason.FIRST_SEEN
        return incident.is_resolved, -incident.severity, is_old, incident.case_id or "", incident.fingerprint

    def place_in_thread(self, thread: str | None, channel: str | None) -> Self:
        """Return a copy of the item with another Slack thread, or with no thread if ``thread`` is ``None``."""
        return self.model_copy(update={"incident": self.incident.place_in_thread(thread, channel)})

    def record_alert(self, at: datetime) -> Self:
        """Return a copy of the item whose incident records that an alert was sent at ``at``."""
        return self.model_copy(update={"incident": self.incident.record_alert(at)})

    def mark_flaky(self, text: str) -> Self:
        """Return a copy of the item with ``text``, which states how often its flaky case was answered correctly."""
        return self.model_copy(update={"observation": self.observation.model_copy(update={"flaky": text})})


class CaseAlert(Record):
    """A failed case that has its own alert, with the id of that alert."""

    case_id: Identifier
    alert_id: Identifier


class RunSummary(Record):
    """Facts about a run that all its messages and reports show.

    - ``flat`` and ``weighted`` are the scores as text, or ``None`` before the end of the run.
    - ``dimensions`` summarises an agent's reports on issues.
    - ``in_common`` contains a line for each common cause of failures.
    - ``changed`` contains a line for each change since the last accepted run.
    - ``under_way`` is true if the message was sent before the end of the run.
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
        """Return a copy of this summary in which the empty fields have the values of ``base``.

        ``under_way`` is not changed.
        """
        fields = {name: getattr(self, name) or getattr(base, name) for name in RunSummary.model_fields}
        return RunSummary.model_validate(fields | {"under_way": self.under_way})


OPENING_REASONS: Final = frozenset({NotifyReason.FIRST_SEEN, NotifyReason.REGRESSED})
"""Reasons for an alert about something new.

Alerts with these reasons share one message if they are about incidents of the same kind.
"""

SUMMARY_REASONS: Final = frozenset({NotifyReason.MISSED, NotifyReason.SILENCED})
"""Reasons for a summary of several incidents, which may be open or resolved."""

THREAD_REASONS: Final = OPENING_REASONS | {NotifyReason.OPEN_BEFORE, NotifyReason.MISSED}
"""Reasons for a message that starts a thread. Later alerts about its incidents are replies in this thread."""


class Alert(RunSummary):
    """One message about the incidents of one kind from one run. An alert is stored before it is sent.

    The message shows its ``id``: two messages with the same id are duplicates. ``own_alerts`` contains the alerts
    about individual cases of a failed gate.
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
    """Operators' actions on the message.

    These are not stored with the message, but added when the message is shown.
    """
    again: str = ""
    """The recheck results of the message's cases.

    These are not stored with the message, but added when the message is shown.
    """

    @property
    def thread(self) -> str | None:
        """Return the thread to which the message is sent, or ``None`` if the message starts a thread."""
        return self.items[0].incident.thread

    @property
    def channel(self) -> str | None:
        """Return the channel of ``thread``, or ``None`` for the sender's default channel."""
        return self.items[0].incident.channel

    @property
    def fingerprints(self) -> tuple[Sha256, ...]:
        """Return the fingerprints of the message's incidents, in the order in which the incidents are shown."""
        return tuple(item.incident.fingerprint for item in self.items)

    @property
    def is_over(self) -> bool:
        """Return whether all incidents of the message are resolved."""
        return self.reason.is_ending or self.items[0].incident.is_resolved

    @property
    def is_added_to_earlier_message(self) -> bool:
        """Return whether the run has already sent a message of this kind.

        If so, the items of this message are added to that earlier message.
        """
        return self.reason in OPENING_REASONS and self.thread is not None

    def select_item(self, fingerprint: str) -> AlertItem:
        """Return the item about the incident ``fingerprint``. Raises `StopIteration` if there is no such item."""
        return next(item for item in self.items if item.incident.fingerprint == fingerprint)

    def with_summary(self, summary: RunSummary) -> Self:
        """Return a copy of the message with another summary of its run."""
        return self.model_copy(update={name: getattr(summary, name) for name in RunSummary.model_fields})

    def with_items_sorted_by_urgency(self, items: Iterable[AlertItem]) -> Self:
        """Return a copy of the message that contains ``items`` instead of its own items, sorted by urgency."""
        ordered = tuple(sorted(items, key=lambda item: item.urgency))
        severity, reason = ordered[0].incident.severity, choose_alert_reason(ordered)
        return self.model_copy(update={"items": ordered, "severity": severity, "reason": reason})

    def merge_alerts(self, later: Sequence[Alert]) -> Self:
        """Return a copy of the message that also contains the items of the ``later`` messages.

        The id and time do not change. The copy has the newest summary and, for each fault, the newest item.
        """
        newest = {item.incident.fingerprint: item for alert in (self, *later) for item in alert.items}
        summary: RunSummary = self
        for alert in later:
            summary = alert.fill_empty_fields_from(summary)
        return self.with_items_sorted_by_urgency(newest.values()).with_summary(summary)

    def with_case_alerts(self, own_alerts: Iterable[CaseAlert]) -> Self:
        """Return a copy of the message with ``own_alerts``, which are the alerts about individual failed cases."""
        return self.model_copy(update={"own_alerts": tuple(own_alerts)})

    def with_marks(self, marks: Sequence[OperatorMark]) -> Self:
        """Return a copy of the message that shows ``marks``, the operators' actions on it."""
        return self.model_copy(update={"marks": tuple(marks)})

    def with_recheck(self, text: str) -> Self:
        """Return a copy of the message with ``text``, which states the results of rechecking its cases."""
        return self.model_copy(update={"again": text})

    def mark_flaky(self, texts: Mapping[str, str]) -> Self:
        """Return a copy of the message in which each flaky case has a text.

        ``texts`` maps the id of a flaky case to a text that states how often the case was answered correctly.
        """
        items = (
            item.mark_flaky(texts[case]) if (case := item.observation.case_id) and case in texts else item
            for item in self.items
        )
        return self.model_copy(update={"items": tuple(items)})

    def remove_threads(self) -> Self:
        """Return a copy of the message without threads, for a channel that has no threads."""
        return self.model_copy(update={"items": tuple(item.place_in_thread(None, None) for item in self.items)})


def choose_alert_reason(items: Sequence[AlertItem]) -> NotifyReason:
    """Choose the reason for a message about ``items``: ``first_seen`` if at least one item is new."""
    reasons = {item.reason for item in items}
    return NotifyReason.FIRST_SEEN if NotifyReason.FIRST_SEEN in reasons else items[0].reason


class DeliveryStatus(StrEnum):
    """The result of an attempt to deliver a message."""

    SENT = "sent"
    PRINTED = "printed"
    """The message was printed in the terminal, because Slack is not configured."""
    FAILED = "failed"
    """The attempt failed. Lookout will retry."""
    REJECTED = "rejected"
    """The service refused the message permanently."""
    LEFT = "left"
    """The message was not sent, because this data folder is a copy. The original installation sends the message."""


class Receipt(Record):
    """The result of an attempt to deliver a message. ``thread`` identifies the message in Slack."""

    alert_id: Identifier
    status: DeliveryStatus
    at: UtcTime
    channel: str | None = None
    thread: str | None = None
    detail: str = ""

    def with_detail(self, detail: str) -> Self:
        """Return a copy of the receipt with another ``detail``."""
        return self.model_copy(update={"detail": detail})
