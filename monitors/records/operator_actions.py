"""Records of operators: actions on incidents, labels on findings, and silences.

An action is what a person does about an alert. The outcome of an action is its result. The mark of an action
(`OperatorMark`) is how the alert shows the action. A silence mutes alerts about a known fault for a limited time.
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
"""The value of ``ends_at`` for a recurring silence without an end."""


class Silence(Record):
    """Mutes alerts about matching incidents from ``starts_at`` (inclusive) to ``ends_at`` (exclusive).

    - ``fingerprint``, ``target``, ``kind``, ``case_id`` and ``failure_kind`` select incidents. At least one of them
      must be set. An incident matches if it has the same value in every field that is set.
    - ``ended_by`` is the person who ended the silence early.
    - If ``recurrence`` is set, the silence mutes alerts only in its recurring periods.
    - If ``scheduled`` is true, a person chose the start time.
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
    # An earlier version of Lookout refuses unknown fields. A new field is stored only if it is set, and the earlier
    # version can then read all other silences.
    recurrence: Recurrence | None = Field(default=None, exclude_if=lambda value: value is None)
    scheduled: bool = Field(default=False, exclude_if=lambda value: not value)

    @model_validator(mode="after")
    def _require_end_and_matcher(self) -> Self:
        if self.ends_at <= self.starts_at:
            raise ValueError(f"a silence must end after it starts, got {self.starts_at} to {self.ends_at}")
        if not self.map_fields_to_match():
            raise ValueError(
                "a silence must set fingerprint, target, kind, case_id or failure_kind; it cannot silence "
                "everything"
            )
        return self

    def end_early(self, at: datetime, by: str) -> Self:
        """Return a copy of the silence that ends at ``at``. ``by`` is the person who ended it.

        If ``at`` is before the start, the silence ends a millisecond after its start.
        """
        ends_at = max(at, self.starts_at + timedelta(milliseconds=1))
        return self.model_copy(update={"ends_at": ends_at, "ended_by": by})

    def map_fields_to_match(self) -> dict[str, str]:
        """Return the field values that an incident must have to match the silence, keyed by field name."""
        named = {
            "fingerprint": self.fingerprint,
            "target": self.target,
            "kind": self.kind,
            "case_id": self.case_id,
            "failure_kind": self.failure_kind,
        }
        return {name: wanted for name, wanted in named.items() if wanted is not None}

    def is_over(self, now: datetime) -> bool:
        """Return whether the silence has ended and does not recur."""
        return self.ended_by is not None or now >= self.ends_at

    def is_active(self, now: datetime) -> bool:
        """Return whether the silence mutes alerts at ``now``."""
        if self.is_over(now) or (self.scheduled and now < self.starts_at):
            return False
        return self.recurrence is None or self.recurrence.is_active(now)

    def can_mute_later(self, now: datetime) -> bool:
        """Return whether the silence will mute alerts later, because it recurs or has not started yet."""
        return not self.is_over(now) and (self.recurrence is not None or (self.scheduled and now < self.starts_at))

    def is_about(self, incident: Incident) -> bool:
        """Return whether ``incident`` matches the silence."""
        return all(getattr(incident, name) == wanted for name, wanted in self.map_fields_to_match().items())

    def is_muting(self, incident: Incident, now: datetime) -> bool:
        """Return whether the silence mutes ``incident`` at ``now``."""
        return self.is_active(now) and self.is_about(incident)

    def iterate_periods(self, after: datetime) -> Iterator[Period]:
        """Yield the periods in which the silence mutes alerts, in order.

        Periods that end at or before ``after`` are skipped.
        """
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
    """A person's action on an alert.

    All clicks on the same button of a message have the same ``id``. ``by`` is a Slack user id, or the name that was
    given to the command. If ``fingerprints`` is empty, the action is about all incidents of the message
    ``alert_id``.
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
    def _require_alert_or_fingerprints(self) -> Self:
        if self.alert_id is None and not self.fingerprints:
            raise ValueError("an action must have `alert_id` or `fingerprints`")
        return self


class ActionEffect(StrEnum):
    """Whether an action changed something. If nothing changed, the value states why."""

    DONE = "done"
    NOTHING_TO_DO = "nothing_to_do"
    """Nothing changed, because the incidents were already in the state that the action requests."""
    UNKNOWN = "unknown"
    """Nothing changed, because the message or the incident is not in this warehouse."""


class ActionOutcome(Record):
    """The result of an action. ``fingerprints`` identifies the incidents to which the action applied."""

    action_id: Identifier
    at: UtcTime
    effect: ActionEffect
    fingerprints: tuple[Sha256, ...] = ()
    text: str = ""


class HumanLabel(Record):
    """A person's verdict. Labels are used to measure judges and graders.

    - A label on an alert's finding is stored in ``finding_right``, which is false for a false alarm.
    - A label from a review is stored in ``answer``, with the probability with which the answer was sampled.
    - A label on a report may have a ``rating`` from 1 to 5.
    - ``reason`` is the grader's reason.
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
    def _require_finding_or_answer_label(self) -> Self:
        if self.finding_right is None and self.answer is None:
            raise ValueError("a label must have `finding_right` or `answer`")
        return self


class CaseDraft(Record):
    """A draft of a gold case. The draft becomes gold only if a person accepts it.

    The texts of the draft are redacted. ``gold`` is missing if a person must write the right answer. ``bad_reply``
    is the application's reply, which the new case must fail. If ``cut`` is true, only excerpts were available.
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
        """Return a copy of the draft whose last question has the text ``question``."""
        return self.model_copy(update={"turns": (*self.turns[:-1], question)})


class StoredConversation(Record):
    """A conversation with its stored texts. The texts are not redacted."""

    run_id: Identifier
    case_id: Identifier
    turns: tuple[str, ...]
    answer: str


class ActionContext(Record):
    """An action, and all data that Lookout needs to perform the action.

    ``items`` is empty if the message or its incidents are not in this warehouse.
    """

    action: OperatorAction
    items: tuple[AlertItem, ...] = ()
    incidents: tuple[Incident, ...] = ()
    conversations: tuple[StoredConversation, ...] = ()


class ActionChanges(Record):
    """The outcome of an action, and everything that the action changes.

    All changes are stored in one transaction.
    """

    outcome: ActionOutcome
    incidents: tuple[Incident, ...] = ()
    labels: tuple[HumanLabel, ...] = ()
    drafts: tuple[CaseDraft, ...] = ()
    silences: tuple[Silence, ...] = ()
