"""What a run found, with its arithmetic."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from monitors.records.base import (
    Finding,
    Identifier,
    Milliseconds,
    Probability,
    Record,
    Severity,
    Sha256,
    UtcTime,
)
from monitors.records.bites import SuiteBite
from monitors.records.cases import GoldCase
from monitors.records.comparisons import Balance, Comparison, FlakyCase, RubricAverage, Sight
from monitors.records.deploys import PullRequest
from monitors.records.exchanges import ProbeResult
from monitors.records.grades import Assessment
from monitors.records.judging import Judging
from monitors.records.parity import ParityGap
from monitors.records.targets import Target

Count = Annotated[int, Field(ge=0)]


class Verdict(StrEnum):
    """The gate's answer."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


class ReasonKind(StrEnum):
    """What weighed in a verdict, in order of weight."""

    VETO = "veto"
    WEIGHTED_SCORE = "weighted_score"
    METRIC_TARGET = "metric_target"
    RUBRIC = "rubric"
    REGRESSION = "regression"
    DEPLOY = "deploy"
    COVERAGE = "coverage"
    BALANCE = "balance"
    FLAKY = "flaky"
    BLIND_SPOT = "blind_spot"
    NOTE = "note"


class VerdictReason(Record):
    """One reason with its figures and the cases behind it. ``decisive`` ones set the verdict."""

    kind: ReasonKind
    text: str
    case_ids: tuple[Identifier, ...] = ()
    decisive: bool = True


class Ratio(Record):
    """Earned of total, as counts or weights. With a total of 0 there is no value: ask before dividing."""

    earned: Annotated[Decimal, Field(ge=0)]
    total: Annotated[Decimal, Field(ge=0)]

    @property
    def value(self) -> float | None:
        """``earned / total``, or ``None`` where nothing was counted."""
        return float(self.earned / self.total) if self.total else None


class SeverityTally(Record):
    """Cases of one case-severity: the gate's arithmetic, row by row."""

    severity: Severity
    weight: Annotated[Decimal, Field(gt=0)]
    cases: Count
    lost: Count


class Scores(Record):
    """The flat pass rate and the severity-weighted score, side by side, over the cases that count."""

    flat: Ratio
    weighted: Ratio
    tallies: tuple[SeverityTally, ...]
    weights_version: str


class Metric(Record):
    """A share with its 95 % interval (both ends 0..1 when ``total`` is 0) and, if configured, its target.

    The interval is Wilson's; where cases share a policy, at the effective number of cases: ``clusters`` counts the
    policies then, and is ``None`` where every case stands for itself.
    """

    name: Identifier
    passed: Count
    total: Count
    low: Probability
    high: Probability
    target: Probability | None = None
    met: Finding = Finding.UNTOLD
    clusters: Count | None = None


class Breakdown(Record):
    """How one group of cases did: ``group`` is a type, language, path or severity, ``key`` its value."""

    group: Identifier
    key: str
    cases: Count
    correct: Count
    failed: Count
    no_answer: Count
    untold: Count


class Latency(Record):
    """Percentiles of the total answer time over the run's exchanges, against the target's objective."""

    answered: Count
    p50_ms: Milliseconds
    p95_ms: Milliseconds
    objective_p50_ms: Milliseconds


class Coverage(Record):
    """How much of the suite could be told. ``told`` counts correct, failed and no-answers blamed on the app."""

    asked: Count
    told: Count
    floor: Probability


class CaseResult(Record):
    """One case with what came back and what it came to: what reports and alerts are made of."""

    case: GoldCase
    result: ProbeResult
    assessment: Assessment


class RunReport(Record):
    """A whole run: verdict, both scores, metrics, coverage, latency, cost. The gate's output.

    ``commit`` is the deployed commit that was graded, when it is known. ``interrupted`` is true for a run that
    was stopped and is not finished: its verdict is never PASS. ``resumed_cases`` were answered before a restart.
    ``pull_request`` is where the deploy belongs, if it belongs to one: such a run is no baseline for others.
    ``judging`` is ``None`` for runs of before there was a judge. ``comparison`` is ``None`` where there was no run
    to compare with, ``rubric`` where no judge rated a report. ``parity`` is over questions asked in several
    languages. ``sights`` say what the run could have seen, ``flaky`` which cases were right only sometimes,
    ``bite`` what the graders caught of known-bad replies; these, and ``balance``, are absent in runs of before
    they were reckoned.
    """

    run_id: Identifier
    target: Target
    suite_name: Identifier
    suite_sha256: Sha256
    commit: Identifier | None = None
    started_at: UtcTime
    finished_at: UtcTime
    verdict: Verdict
    reasons: tuple[VerdictReason, ...]
    scores: Scores
    metrics: tuple[Metric, ...] = ()
    coverage: Coverage
    latency: Latency | None = None
    breakdowns: tuple[Breakdown, ...] = ()
    cost_usd: Annotated[Decimal, Field(ge=0)] = Decimal(0)
    judging: Judging | None = None
    pull_request: PullRequest | None = None
    parity: tuple[ParityGap, ...] = ()
    comparison: Comparison | None = None
    rubric: RubricAverage | None = None
    sights: tuple[Sight, ...] = ()
    flaky: tuple[FlakyCase, ...] = ()
    balance: Balance | None = None
    bite: SuiteBite | None = None
    interrupted: bool = False
    resumed_cases: Count = 0
