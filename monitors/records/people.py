"""What people do about incidents, and what they say of findings: durable, with a name under it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from monitors.records.base import Identifier, Language, Record, Severity, Sha256, UtcTime
from monitors.records.exchanges import Origin
from monitors.records.grades import FailureKind
from monitors.records.incidents import AlertItem, Incident, Redacted
from monitors.records.marks import ActionKind, ActionVia, Name
from monitors.records.reviews import AnswerVerdict, LabelSource
from monitors.records.silences import Silence


class PersonAction(Record):
    """One thing that a person did. ``id`` is the same for the same click, however often it is delivered.

    ``by`` is a Slack user id (U…) or the name given to the command. It is about the incidents ``fingerprints``,
    or about all of the message ``alert_id`` when there are none. ``channel`` and ``message_ts`` are where the
    button was.
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
    def _is_about_something(self) -> Self:
        if self.alert_id is None and not self.fingerprints:
            raise ValueError("an action needs `alert_id` or `fingerprints`: what is it about?")
        return self


class ActionEffect(StrEnum):
    """What came of an action."""

    DONE = "done"
    NOTHING_TO_DO = "nothing_to_do"
    """It was so already."""
    UNKNOWN = "unknown"
    """It is about a message or an incident that is not in this warehouse."""


class ActionOutcome(Record):
    """An action as it was carried out, once. ``fingerprints`` are the incidents that it changed or was about."""

    action_id: Identifier
    at: UtcTime
    effect: ActionEffect
    fingerprints: tuple[Sha256, ...] = ()
    text: str = ""


class HumanLabel(Record):
    """A person's verdict: what judges and graders are measured against.

    One on a finding that was told (``source`` alert) has ``finding_right``, false for a false alarm. One on an
    answer that was drawn for review has ``answer``, and how likely it was to be drawn. ``reason`` is what the
    grader had said. ``case_id`` is the gold case, or the item of traffic or of the log, where it is about one.
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
    inclusion_probability: Annotated[float, Field(gt=0, le=1)] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.finding_right is None and self.answer is None:
            raise ValueError("a label needs `finding_right` or `answer`: what does the person say?")
        return self


class CaseDraft(Record):
    """A case that somebody wants, not a gold case: nothing unreviewed is gold.

    Texts are redacted. ``gold`` is absent where a person has to write the right answer. ``bad_reply`` is what the
    application said: the case must fail on it before it joins a suite. ``cut`` says that only excerpts were left.
    ``fingerprint`` is the incident that it was part of, absent for one that came out of a review.
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


class Said(Record):
    """What a conversation was, as the run kept it: raw, so it is redacted before it goes anywhere."""

    run_id: Identifier
    case_id: Identifier
    turns: tuple[str, ...]
    answer: str


class Matter(Record):
    """An action with all that it is about: what was told, how the incidents stand, what was said (for a draft).

    ``items`` are empty when the message, or the incidents, are not known here.
    """

    action: PersonAction
    items: tuple[AlertItem, ...] = ()
    incidents: tuple[Incident, ...] = ()
    said: tuple[Said, ...] = ()


class Settlement(Record):
    """What comes of an action: stored together, once."""

    outcome: ActionOutcome
    incidents: tuple[Incident, ...] = ()
    labels: tuple[HumanLabel, ...] = ()
    drafts: tuple[CaseDraft, ...] = ()
    silences: tuple[Silence, ...] = ()
