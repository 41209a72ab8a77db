"""Operators' records: actions on incidents, labels on findings, and silences.

A person's reaction to an alert has three names: the action is what the person does, its outcome what comes of it,
and its mark is how the alert shows it (`OperatorMark`).

They are durable and name the person. A silence says that a fault is known, and has an end.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from monitors.records.base import Identifier, Language, Record, Severity, Sha256, UtcTime
from monitors.records.exchanges import Origin
from monitors.records.grades import FailureKind
from monitors.records.incidents import ActionKind, ActionVia, AlertItem, Incident, IncidentKind, Name, Redacted
from monitors.records.recurrence import Period, Recurrence
from monitors.records.reviews import AnswerVerdict, LabelSource

NO_END: Final = datetime(9999, 1, 1, tzinfo=UTC)
"""The end of a recurring silence without an end: each of its periods ends."""


class Silence(Record):
    """Mutes alerts about matching incidents from ``starts_at`` until ``ends_at`` (exclusive).

    Every matcher that is set must match; at least one must be set, because a silence of everything is an outage of
    the monitor. ``author`` and ``comment`` explain later why no alert was sent. ``ended_by`` is who ended it early:
    a silence can be made shorter, never longer. With ``recurrence`` it mutes only within its periods. A person
    chose the start of a ``scheduled`` silence: before it, alerts are sent.
    """

    id: Identifier
    author: str = Field(min_length=1, max_length=200)
    comment: str = Field(min_length=1, max_length=2_000)
    starts_at: UtcTime
    ends_at: UtcTime
    fingerprint: Sha256 | None = None
    target: Identifier | None = None
    kind: IncidentKind | None = None
    case_id: Identifier | None = None
    failure_kind: FailureKind | None = None
    ended_by: str | None = None
    # An earlier version refuses unknown fields, so a silence without them is stored as that version stores it.
    recurrence: Recurrence | None = Field(default=None, exclude_if=lambda value: value is None)
    scheduled: bool = Field(default=False, exclude_if=lambda value: not value)

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.ends_at <= self.starts_at:
            raise ValueError(f"a silence must end after it starts, got {self.starts_at} to {self.ends_at}")
        if not self.list_matchers():
            raise ValueError(
                "a silence must name a fingerprint, target, kind, case_id or failure_kind; it cannot silence "
                "everything"
            )
        return self

    def end_early(self, at: datetime, by: str) -> Self:
        """Return the silence as ended at ``at``, or as soon as it has started, by this person."""
        ends_at = max(at, self.starts_at + timedelta(milliseconds=1))
        return self.model_copy(update={"ends_at": ends_at, "ended_by": by})

    def list_matchers(self) -> dict[str, str]:
        """List the values that an incident must have, by the field's name."""
        named = {
            "fingerprint": self.fingerprint,
            "target": self.target,
            "kind": self.kind,
            "case_id": self.case_id,
            "failure_kind": self.failure_kind,
        }
        return {name: wanted for name, wanted in named.items() if wanted is not None}

    def is_over(self, now: datetime) -> bool:
        """Whether it has ended for good; a clock that was set back does not start it again if a person ended it."""
        return self.ended_by is not None or now >= self.ends_at

    def is_active(self, now: datetime) -> bool:
        """Whether it mutes at ``now``; a clock that was set back ends no silence that began when it was made."""
        if self.is_over(now) or (self.scheduled and now < self.starts_at):
            return False
        return self.recurrence is None or self.recurrence.is_active(now)

    def is_planned(self, now: datetime) -> bool:
        """Whether it recurs or starts later, so that it mutes at times that lie ahead."""
        return not self.is_over(now) and (self.recurrence is not None or (self.scheduled and now < self.starts_at))

    def is_about(self, incident: Incident) -> bool:
        """Whether ``incident`` has the values that the silence names."""
        return all(getattr(incident, name) == wanted for name, wanted in self.list_matchers().items())

    def is_muting(self, incident: Incident, now: datetime) -> bool:
        """Whether the silence mutes ``incident`` at ``now``."""
        return self.is_active(now) and self.is_about(incident)

    def iterate_periods(self, after: datetime) -> Iterator[Period]:
        """Yield the periods in which it mutes and that end after ``after``, in order."""
        if self.recurrence is None:
            periods = iter([Period(self.starts_at, self.ends_at)])
        else:
            periods = self.recurrence.iterate_periods(max(after, self.starts_at))
        for starts_at, ends_at in periods:
            if starts_at >= self.ends_at:
                return
            period = Period(max(starts_at, self.starts_at), min(ends_at, self.ends_at))
            if period.ends_at > after:
                yield period


class OperatorAction(Record):
    """One reaction of a person to an alert, from the button or the command to the database.

    ``id`` is the same for the same button of a message, however often it is pressed or delivered. ``by`` is a Slack
    user id (U…) or the name given to the command. The action is about the incidents ``fingerprints``, or about all
    of the message ``alert_id`` if there are none. ``channel`` and ``message_ts`` identify the message with the
    button.
    """

    id: Identifier
    kind: ActionKind
    at: UtcTime
    by: Name
    via: ActionVia
    alert_id: Identifier | None = None
    fingerprints: tuple[Sha256, ...] = ()
    channel: str | None = None
    message_ts: str | None = None
    note: Annotated[str, Field(max_length=2_000)] = ""

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        if self.alert_id is None and not self.fingerprints:
            raise ValueError("an action must have `alert_id` or `fingerprints`")
        return self


class ActionEffect(StrEnum):
    """The effect of an action."""

    DONE = "done"
    NOTHING_TO_DO = "nothing_to_do"
    """The incidents were already in that state."""
    UNKNOWN = "unknown"
    """The action is about a message or an incident that is not in this warehouse."""


class ActionOutcome(Record):
    """The outcome of an action, stored once. ``fingerprints`` are the incidents that it changed or was about."""

    action_id: Identifier
    at: UtcTime
    effect: ActionEffect
    fingerprints: tuple[Sha256, ...] = ()
    text: str = ""


class HumanLabel(Record):
    """A person's verdict, against which judges and graders are measured.

    A label on a finding that sent an alert (``source`` alert) has ``finding_right``, false for a false alarm. A
    label on an answer that was sampled for review has ``answer`` and its inclusion probability; on a report it may
    have ``rating``, how useful it is from 1 to 5. ``reason`` is the grader's reason. ``case_id`` is the gold case,
    or the item of traffic or of the log.
    """

    id: Identifier
    at: UtcTime
    by: Name
    target: Identifier
    run_id: Identifier
    case_id: Identifier | None = None
    failure_kind: FailureKind | None = None
    fingerprint: Sha256 | None = None
    finding_right: bool | None = None
    reason: Redacted
    note: str = ""
    source: LabelSource = LabelSource.ALERT
    repeat: Annotated[int, Field(ge=0)] = 0
    answer: AnswerVerdict | None = None
    rating: Annotated[int, Field(ge=1, le=5)] | None = None
    inclusion_probability: Annotated[float, Field(gt=0, le=1)] | None = None

    @model_validator(mode="after")
    def _check_verdict(self) -> Self:
        if self.finding_right is None and self.answer is None:
            raise ValueError("a label must have `finding_right` or `answer`")
        return self


class CaseDraft(Record):
    """A proposed gold case: it becomes gold only after a review.

    Texts are redacted. ``gold`` is absent if a person must write the right answer. ``bad_reply`` is the
    application's reply: the case must fail on it before it joins a suite. ``cut`` says that only excerpts were
    available. ``fingerprint`` is its incident, absent for a draft from a review.
    """

    id: Identifier
    made_at: UtcTime
    by: Name
    target: Identifier
    run_id: Identifier
    source_id: Identifier | None = None
    fingerprint: Sha256 | None = None
    origin: Origin
    turns: tuple[Redacted, ...]
    gold: Redacted | None = None
    bad_reply: Redacted | None = None
    failure_kind: FailureKind | None = None
    language: Language
    suggested_severity: Severity
    severity_reason: str
    finding: Redacted
    cut: bool = False

    def with_question(self, question: Redacted) -> Self:
        """Return the draft with another wording of its last question."""
        return self.model_copy(update={"turns": (*self.turns[:-1], question)})


class StoredConversation(Record):
    """A conversation as the run stored it: raw, so redact it before it is sent anywhere."""

    run_id: Identifier
    case_id: Identifier
    turns: tuple[str, ...]
    answer: str


class ActionContext(Record):
    """An action with its context: the alert's items, the current incidents, the conversations (for a draft).

    ``items`` are empty if the message or the incidents are not in this warehouse.
    """

    action: OperatorAction
    items: tuple[AlertItem, ...] = ()
    incidents: tuple[Incident, ...] = ()
    conversations: tuple[StoredConversation, ...] = ()


class ActionChanges(Record):
    """The outcome of an action with everything that it changes, stored in one transaction."""

    outcome: ActionOutcome
    incidents: tuple[Incident, ...] = ()
    labels: tuple[HumanLabel, ...] = ()
    drafts: tuple[CaseDraft, ...] = ()
    silences: tuple[Silence, ...] = ()
