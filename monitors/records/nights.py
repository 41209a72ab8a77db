"""A night of live traffic: every conversation that was seen, those that were drawn, and what it came to."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from monitors.records.base import Identifier, Probability, Record, UtcTime
from monitors.records.drift import DriftReading, DriftState
from monitors.records.estimates import RateEstimate, RateUnknown, StratumTold
from monitors.records.grades import FailureKind
from monitors.records.judging import Judging
from monitors.records.traffic import Sampled, SourceNotice, Watermark

Count = Annotated[int, Field(ge=0)]
Rate = RateEstimate | RateUnknown


class SeenConversation(Record):
    """A conversation that a night counted. Its texts are kept, protected, only where it was ``drawn``.

    ``id`` is the one that it is stored under: the source's own, unless that tells of a person.
    """

    target: Identifier
    source: Identifier
    run_id: Identifier
    id: Identifier
    completed_at: UtcTime
    stratum: Identifier
    drawn: Sampled | None = None


class KindRate(Record):
    """How many of the conversations told failed in one way, and the share of all of the night's that did."""

    kind: FailureKind
    failures: Count
    rate: Rate


class QuestionsAsked(Record):
    """The application's clarifying questions and the thumbs below them; no share where nobody pressed any."""

    questions: Count
    up: Count
    down: Count
    share: Probability | None = None
    low: Probability | None = None
    high: Probability | None = None


class NightReport(Record):
    """What one night of one target came to.

    ``read`` conversations were new, ``known`` had been taken by an earlier night. ``severe`` is the share of
    conversations with a failure of severity 3, ``failed`` with any failure that was told. ``strata`` stand behind
    ``severe``. ``graded_by`` names what told: another one's rates are other rates. ``interrupted`` are sources that
    could not be read to their end: their watermarks stay where they were.
    """

    run_id: Identifier
    target: Identifier
    night: UtcTime
    since: UtcTime
    until: UtcTime
    finished_at: UtcTime
    read: Count
    known: Count
    drawn: Count
    watermarks: tuple[Watermark, ...] = ()
    notices: tuple[SourceNotice, ...] = ()
    notice_count: Count = 0
    interrupted: tuple[str, ...] = ()
    strata: tuple[StratumTold, ...] = ()
    severe: Rate
    failed: Rate
    kinds: tuple[KindRate, ...] = ()
    graded_by: str
    drift: DriftState | None = None
    drift_reading: DriftReading | None = None
    questions: QuestionsAsked
    judging: Judging
