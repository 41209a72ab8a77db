"""Records of the self-checks of an installation.

A drill plants a wrong answer and follows the alert about it. A repeatability session asks sampled cases
twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import Field

from monitors.records.base import (
    Blame,
    Finding,
    Identifier,
    Language,
    Probability,
    Record,
    Severity,
    Sha256,
    UtcTime,
)
from monitors.records.grades import Assessment, CaseOutcome, FailureKind
from monitors.records.incidents import Redacted
from monitors.records.targets import Environment

DRILL_TARGET: Final = "lookout-drill"
"""The name of the drill's target. No configured target may use this name."""
TEST_TARGET: Final = "lookout-test"
"""The target name that a test message uses."""

Seconds = Annotated[float, Field(ge=0.0)]


class DrillStation(StrEnum):
    """A part of the installation that an alert passes through. Reports show the values of this enumeration."""

    PREFECT = "Prefect server"
    WORKER = "worker"
    CONFIGURATION = "configuration"
    DATA_FOLDER = "data folder"
    SUITE = "suite"
    SCHEDULE = "schedule"
    NETWORK = "network"
    CLOCK = "clock"
    LOG = "hallucination log"
    RECEIVER = "receiver"
    PAGE = "shadow page"
    BROWSER = "browser"
    GRADERS = "graders"
    JUDGE = "judge"
    GATE = "gate"
    JOURNAL = "journal"
    WAREHOUSE = "warehouse"
    OUTBOX = "outbox"
    SLACK = "Slack"
    HEARTBEAT = "heartbeat"

    @property
    def place(self) -> str:
        """Return the station's name as used in a sentence, for example ``the browser`` or ``Slack``."""
        return self.value if self is DrillStation.SLACK else f"the {self.value}"


class StationState(StrEnum):
    """The result of a station's check."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_SET_UP = "not set up"
    """The configuration does not contain this part."""


class StationResult(Record):
    """The check of one station: its result, its duration, its findings, and what to do if the check failed."""

    station: DrillStation
    state: StationState
    took_s: Seconds
    found: Redacted
    to_do: str = ""


class DrillReport(Record):
    """The result of a drill. If a station failed, it is the last of ``stations``.

    ``fault`` describes the planted fault. ``message_after_s`` is the time in seconds from the wrong answer until
    Slack accepted the message, or ``None`` if Slack did not accept the message.
    """

    drill_id: Identifier
    started_at: UtcTime
    finished_at: UtcTime
    fault: str = ""
    stations: tuple[StationResult, ...]
    message_after_s: Seconds | None = None
    finished: bool = False
    """Whether the drill has ended. It is False while the drill is running."""
    version: str

    def with_progress(
        self, stations: tuple[StationResult, ...], *, fault: str, message_after_s: float | None, at: datetime
    ) -> Self:
        """Return a copy of the report that contains the stations which were checked so far."""
        return self.model_copy(
            update={"stations": stations, "fault": fault, "message_after_s": message_after_s, "finished_at": at}
        )

    def mark_finished(self, at: datetime) -> Self:
        """Return a copy of the report that is marked as finished."""
        return self.model_copy(update={"finished": True, "finished_at": at})

    def prepend_stations(self, stations: tuple[StationResult, ...]) -> Self:
        """Return a copy of the report that begins with ``stations``, followed by the report's own stations."""
        return self.model_copy(update={"stations": (*stations, *self.stations)})

    @property
    def failed(self) -> StationResult | None:
        """Return the station that failed, or ``None`` if no station failed."""
        return next((result for result in self.stations if result.state is StationState.FAILED), None)

    @property
    def passed(self) -> bool:
        """Return whether the message about the wrong answer passed every station."""
        return self.finished and self.failed is None


Count = Annotated[int, Field(ge=0)]


# The fields are not in a base class with Assessment, because a session stores no case and no grades with an answer.
class RecordedAsk(Record):
    """The result of asking a case once."""

    run_id: Identifier
    outcome: CaseOutcome
    failure_kinds: tuple[FailureKind, ...] = ()
    severity: Severity
    policy_row: str
    blame: Blame | None = None
    factual_match: Finding = Finding.UNGRADED
    citation_present: Finding = Finding.UNGRADED
    refused: Finding = Finding.UNGRADED

    @property
    def is_graded(self) -> bool:
        """Return whether the result counts.

        A result counts if the answer was right or wrong, or if the answer is missing and the application caused
        this.
        """
        return self.outcome in (CaseOutcome.CORRECT, CaseOutcome.FAILED) or (
            self.outcome is CaseOutcome.NO_ANSWER and self.blame is Blame.APP
        )

    @property
    def is_right(self) -> bool:
        """Return whether the answer was correct."""
        return self.outcome is CaseOutcome.CORRECT

    def with_severity(self, severity: Severity, policy_row: str) -> Self:
        """Return a copy of the result with another severity and the row of the severity table that sets it."""
        return self.model_copy(update={"severity": severity, "policy_row": policy_row})

    def mark_ungraded(self) -> Self:
        """Return a copy of the result that is ungraded and has no failures."""
        return self.model_copy(update={"outcome": CaseOutcome.UNGRADED, "failure_kinds": ()})

    def mark_failed(self, kind: FailureKind) -> Self:
        """Return a copy of the result as a wrong answer: it has one failure, and the application is to blame."""
        return self.model_copy(
            update={
                "outcome": CaseOutcome.FAILED,
                "failure_kinds": (kind,),
                "blame": Blame.APP,
                "factual_match": Finding.NO,
                "refused": Finding.NO,
            }
        )


class RepeatedCase(Record):
    """All results of one case on one build, graded by the same graders.

    ``build`` is the commit. If the application does not report its commit, ``build`` is the id of the session.
    """

    case_id: Identifier
    build: str
    case_severity: Severity
    type: Identifier
    language: Language
    cluster: Identifier | None = None
    asks: tuple[RecordedAsk, ...]

    @property
    def graded(self) -> Sequence[RecordedAsk]:
        """Return the results that count. See `RecordedAsk.is_graded`."""
        return [ask for ask in self.asks if ask.is_graded]


class FlipRate(Record):
    """How often a failure occurred in only one of two results of the same case on the same build.

    - ``pairs`` counts the graded pairs of results, and ``flips`` counts the pairs with the failure in only one
      result.
    - ``low`` and ``high`` are the limits of the 95 % interval of the share of flips.
    - ``shown`` counts the pairs with the failure in at least one result, and ``again`` counts the pairs with the
      failure in both results.
    - ``enough`` is false if there are too few pairs.
    """

    name: str
    flips: Count
    pairs: Count
    cases: Count
    low: Probability
    high: Probability
    shown: Count
    again: Count
    enough: bool


class FalseFailRate(Record):
    """How often the verdict is FAIL only because answers vary by chance.

    The gate returned FAIL in ``failed`` of ``runs`` simulated runs. ``probes`` is the number of questions in a run.
    """

    repeats: Annotated[int, Field(ge=1)]
    runs: Annotated[int, Field(ge=1)]
    failed: Count
    inconclusive: Count
    low: Probability
    high: Probability
    probes: Count

    @property
    def rate(self) -> float:
        """Return the share of simulated runs with the verdict FAIL."""
        return self.failed / self.runs


class MissedFault(Record):
    """The probability that a fault in one severity-3 case is missed.

    ``shows`` is the share of the case's answers that show the fault. ``no_fail`` is the probability that the
    verdict is not FAIL. ``no_alert`` is the probability that no alert is sent.
    """

    shows: Probability
    no_fail: Probability
    no_alert: Probability


class RepeatAdvice(Record):
    """The error rates to expect if each severity-3 case is asked ``false_fail.repeats`` times."""

    false_fail: FalseFailRate
    missed: tuple[MissedFault, ...]


class Repeatability(Record):
    """The extent to which a target's answers vary by chance, computed from all recorded repeats.

    - ``steady_failures`` contains the cases that failed most of the time. Such failures are faults, not chance.
    - ``noise`` is the share of chance failures among the results of all other cases.
    - ``advice`` has an entry for each number of repeats.
    """

    target: Identifier
    suite_name: Identifier
    suite_cases: Count
    severity_3_cases: Count
    pairs: Count
    cases: Count
    sessions: Count = 0
    void_sessions: Count = 0
    free_pairs: Count = 0
    rates: tuple[FlipRate, ...] = ()
    flipped: tuple[Identifier, ...] = ()
    steady_failures: tuple[Identifier, ...] = ()
    noise: Probability | None = None
    noise_low: Probability = 0.0
    noise_high: Probability = 1.0
    advice: tuple[RepeatAdvice, ...] = ()

    def with_noise(self, noise: float, *, low: float, high: float) -> Self:
        """Return a copy of the figures with the share of answers that fail by chance, and with its interval."""
        return self.model_copy(update={"noise": noise, "noise_low": low, "noise_high": high})

    def with_advice(self, advice: tuple[RepeatAdvice, ...]) -> Self:
        """Return a copy of the figures with ``advice``, which has an entry for each number of repeats."""
        return self.model_copy(update={"advice": advice})

    def with_session_counts(self, *, sessions: int, void_sessions: int, free_pairs: int) -> Self:
        """Return a copy with the counts of sessions, of void sessions, and of pairs from ordinary runs.

        ``free_pairs`` is the count of these pairs.
        """
        return self.model_copy(
            update={"sessions": sessions, "void_sessions": void_sessions, "free_pairs": free_pairs}
        )


# The fields are not in a base class with RunIdentity, because the target is stored as a name and an environment.
class RepeatabilityRun(Record):
    """A session in which sampled cases were asked twice.

    - ``void`` is the reason why the pairs of the session do not count, for example a deploy between the two
      answers. ``void`` is empty if the pairs count.
    - ``stopped`` is the reason why fewer cases than ``sampled`` were asked twice.
    - ``graded_by`` is a hash of the graders, the judge and their settings.
    """

    run_id: Identifier
    target: Identifier
    environment: Environment
    suite_name: Identifier
    suite_sha256: Sha256
    graded_by: Sha256
    commit: str | None = None
    started_at: UtcTime
    finished_at: UtcTime
    sampled: Count
    void: str = ""
    stopped: str = ""
    cases: tuple[RepeatedCase, ...] = ()
    cost_usd: Annotated[Decimal, Field(ge=0)] = Decimal(0)
    figures: Repeatability | None = None

    def with_figures(self, figures: Repeatability | None) -> Self:
        """Return a copy of the session with ``figures``, computed from all repeats recorded up to its end."""
        return self.model_copy(update={"figures": figures})


def build_recorded_ask(assessment: Assessment) -> RecordedAsk:
    """Build the record to store for one answer from the assessment of the answer."""
    return RecordedAsk(
        run_id=assessment.run_id,
        outcome=assessment.outcome,
        failure_kinds=assessment.failure_kinds,
        severity=assessment.severity,
        policy_row=assessment.policy_row,
        blame=assessment.blame,
        factual_match=assessment.factual_match,
        citation_present=assessment.citation_present,
        refused=assessment.refused,
    )
