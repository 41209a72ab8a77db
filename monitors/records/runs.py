"""What a run found, with its arithmetic.

Judging says how much of a run a judge was needed for, what it did, and what it cost. The mutation score says how
many mutants of a suite's golds the graders caught. A baseline is the accepted run that another is held against.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import Field

from monitors.records.base import (
    Blame,
    Finding,
    Identifier,
    Milliseconds,
    Probability,
    Record,
    Severity,
    Sha256,
    UtcTime,
)
from monitors.records.cases import GoldCase
from monitors.records.comparisons import Balance, Comparison, DetectableDrop, FlakyCase, ParityGap, RubricAverage
from monitors.records.exchanges import ProbeResult
from monitors.records.explanations import FirstLook, Recheck
from monitors.records.grades import Assessment, CaseOutcome, JudgeLineage
from monitors.records.snapshots import RunSnapshot, WhatChanged
from monitors.records.targets import PullRequest, Target

Count = Annotated[int, Field(ge=0)]


ENOUGH: Final = 0.8
"""The least share of the answers put to a judge that get a verdict; with fewer, it was not there when needed."""


class JudgeState(StrEnum):
    """Whether there was a judge."""

    OFF = "off"
    ON = "on"


class Judging(Record):
    """A run's judging. ``why`` says why the judge was off.

    ``answers`` came back; ``left_open`` of them had to be settled otherwise than by the graders without a model:
    these leave them open or, for ``to_confirm``, grade them and a judge confirms it (it fails ``disputed`` of
    those that they pass). Of these, ``by_rule`` were no answers at all and failed without a judge, for
    ``unaskable`` there was nothing to hold them against (live traffic without gold or passages), ``judged`` have a
    grade of a judge, the rest is ungraded: ``void_grades`` because the judge missed known answers in
    ``void_groups`` of the ``groups``. ``ungraded_because`` are the reasons, most frequent first. ``lineages`` are
    all judges whose grades count. ``cached_tokens`` were read from the provider's cache. ``cost_usd`` is all that
    was spent, canaries and unreadable verdicts included. ``not_by_batch`` says what a nightly run's batches did
    not bring and was asked for one by one, at the full price.
    """

    state: JudgeState
    why: str = ""
    models: tuple[str, ...] = ()
    answers: Count = 0
    left_open: Count = 0
    to_confirm: Count = 0
    disputed: Count = 0
    by_rule: Count = 0
    unaskable: Count = 0
    judged: Count = 0
    groups: Count = 0
    void_groups: Count = 0
    void_grades: Count = 0
    ungraded_because: tuple[str, ...] = ()
    lineages: tuple[JudgeLineage, ...] = ()
    calls: Count = 0
    input_tokens: Count = 0
    cached_tokens: Count = 0
    output_tokens: Count = 0
    cost_usd: Annotated[Decimal, Field(ge=0)] = Decimal(0)
    budget_usd: Annotated[Decimal, Field(gt=0)] | None = None
    budget_reached: bool = False
    not_by_batch: tuple[str, ...] = ()

    @property
    def reached_judge(self) -> int:
        """Answers that a judge was needed for."""
        return self.left_open - self.by_rule - self.unaskable

    @property
    def is_short(self) -> bool:
        """Whether a judge that was asked gave too few verdicts, though nothing was void and money was left."""
        asked = self.reached_judge - self.void_grades
        return (
            self.state is JudgeState.ON and not self.budget_reached and asked > 0 and self.judged < ENOUGH * asked
        )

    @property
    def ungraded(self) -> int:
        """Answers that needed a judge and have no grade of one."""
        return max(0, self.reached_judge - self.judged)


class MutantCount(Record):
    """Mutants of one sort, how many some grader failed, how many were passed as right; the rest is for a judge.

    ``low`` and ``high`` bound the catch rate (Wilson, 95 %). ``by_grader`` counts a mutant once for each grader
    that failed it, so that its sum may be more than ``caught``.
    """

    name: str
    mutants: Count
    caught: Count
    passed: Count
    low: Probability
    high: Probability
    by_grader: dict[str, int]

    @property
    def rate(self) -> float:
        """The share that was caught; 1 of none."""
        return self.caught / self.mutants if self.mutants else 1.0

    @property
    def left(self) -> int:
        """Neither failed nor passed: left to the judge."""
        return self.mutants - self.caught - self.passed


class MutationScores(Record):
    """All counts of the mutants of ``cases`` cases. ``severe`` are the mutants of severity 3.

    Personal data is severity 3 in any reply and easily seen, and rules may leave evasions and misplaced values to a
    judge, so the severe are also counted without these. ``misplaced`` are the mutants with the right value in the
    wrong place; ``None`` in runs of before they were made.
    """

    cases: Count
    whole: MutantCount
    severe: MutantCount
    severe_without_personal_data: MutantCount
    misplaced: MutantCount | None = None
    by_operator: tuple[MutantCount, ...]
    by_severity: tuple[MutantCount, ...]


class QuestionCounts(Record):
    """The questions for which agents stopped their work in a run.

    ``useful`` ones asked for what the issue does not have, ``needless`` ones for what it says; of others nothing is
    known. ``share`` of the useful among these two, ``low`` to ``high`` its Wilson interval (95 %); ``None`` where
    nothing is known of any.
    """

    asked: Annotated[int, Field(ge=1)]
    useful: Count
    needless: Count
    share: Probability | None = None
    low: Probability | None = None
    high: Probability | None = None


class Verdict(StrEnum):
    """The gate's answer."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


class ReasonKind(StrEnum):
    """What counted in a verdict, in order of weight."""

    VETO = "veto"
    WEIGHTED_SCORE = "weighted_score"
    METRIC_TARGET = "metric_target"
    RUBRIC = "rubric"
    REGRESSION = "regression"
    DEPLOY = "deploy"
    DISPUTED = "disputed"
    COVERAGE = "coverage"
    BALANCE = "balance"
    UNCOVERED = "uncovered"
    FLAKY = "flaky"
    BLIND_SPOT = "blind_spot"
    NOTE = "note"


class VerdictReason(Record):
    """One reason with its figures and the cases behind it. ``decisive`` ones set the verdict."""

    kind: ReasonKind
    text: str
    case_ids: tuple[Identifier, ...] = ()
    decisive: bool = True

    def add_remark(self, remark: str) -> Self:
        """Add a remark behind the text."""
        return self.model_copy(update={"text": f"{self.text}; {remark}"})


IDS_IN_UNCOVERED: Final = 6


def format_uncovered(reasons: Iterable[VerdictReason]) -> str:
    """What the verdict does not cover: ``2 severity-3 cases not graded: a, b``; empty where it covers all."""
    parts: list[str] = []
    for reason in reasons:
        if reason.kind is ReasonKind.UNCOVERED:
            more = len(reason.case_ids) - IDS_IN_UNCOVERED
            ids = ", ".join(reason.case_ids[:IDS_IN_UNCOVERED]) + (f" and {more} more" if more > 0 else "")
            parts.append(f"{reason.text}: {ids}")
    return "; ".join(parts)


class Ratio(Record):
    """Earned of total, as counts or weights. With a total of 0 there is no value: ask before dividing."""

    earned: Annotated[Decimal, Field(ge=0)]
    total: Annotated[Decimal, Field(ge=0)]

    @property
    def value(self) -> float | None:
        """``earned / total``, or ``None`` where nothing was counted."""
        return float(self.earned / self.total) if self.total else None


class SeverityTally(Record):
    """Cases that count as one severity: the gate's arithmetic, row by row.

    A case counts as the severity that it was written with; one that failed, as that of its failure. ``not_correct``
    are all that were not correct; of them ``no_answer`` were not answered, by the app's own fault, and ``raised``
    failed in a way that is severer than their case. Both are 0 in runs of before they were counted.
    """

    severity: Severity
    weight: Annotated[Decimal, Field(gt=0)]
    cases: Count
    not_correct: Count
    no_answer: Count = 0
    raised: Count = 0

    @property
    def failed(self) -> int:
        """Cases with a wrong answer."""
        return self.not_correct - self.no_answer

    @property
    def earned(self) -> Decimal:
        """The weight of what was correct."""
        return self.weight * (self.cases - self.not_correct)

    @property
    def total(self) -> Decimal:
        """The weight of all."""
        return self.weight * self.cases


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
    met: Finding = Finding.UNGRADED
    clusters: Count | None = None


_METRIC_TITLES: Final = {"refusal_precision": "refused when it must (refusal precision)"}
"""Metrics whose name says another thing than they count: this one is the recall of refusals."""


def format_metric(name: str) -> str:
    """A metric's name for people: ``factual_accuracy:hi`` is "factual accuracy, hi"."""
    kind, _, group = name.partition(":")
    title = _METRIC_TITLES.get(kind, kind.replace("_", " "))
    return f"{title}, {group}" if group else title


class IssuePath(Record):
    """The steps that an agent took for one issue, on average over its asks.

    ``repeated`` of them are calls that it had made before; ``None`` where nothing tells one call from another.
    """

    case_id: Identifier
    steps: Annotated[float, Field(gt=0)]
    repeated: Annotated[float, Field(ge=0)] | None = None
    shortest_path: Annotated[int, Field(ge=1)] | None = None


class TriageSummary(Record):
    """How an agent's reports on issues came out; how useful a judge found them is in `RunReport.rubric`.

    ``issues`` were asked about. ``accuracy`` is the share of those that were graded whose report is correct; no
    report, by the application's own fault, is none. ``paths`` are those of the issues whose steps were seen.
    """

    issues: Annotated[int, Field(ge=1)]
    accuracy: Metric
    paths: tuple[IssuePath, ...] = ()


class Breakdown(Record):
    """How one group of cases did: ``group`` is a type, language, path or severity, ``key`` its value."""

    group: Identifier
    key: str
    cases: Count
    correct: Count
    failed: Count
    no_answer: Count
    ungraded: Count


class Latency(Record):
    """Percentiles of the total answer time over the run's exchanges, against the target's objective."""

    answered: Count
    p50_ms: Milliseconds
    p95_ms: Milliseconds
    objective_p50_ms: Milliseconds


class Coverage(Record):
    """How much of the suite was graded. ``graded`` counts correct, failed and no-answers blamed on the app."""

    asked: Count
    graded: Count
    floor: Probability


class CaseResult(Record):
    """One case with what came back and what it came to: what reports and alerts are made of."""

    case: GoldCase
    result: ProbeResult
    assessment: Assessment

    def reassess(self, assessment: Assessment) -> Self:
        """The same case and answer with another assessment."""
        return self.model_copy(update={"assessment": assessment})


class RunExperiment(Record):
    """Where a run appears beside others on the same dataset of a platform.

    ``dataset`` is written as in the configuration (``langsmith:DATASET``). ``unlinked`` cases have no example in
    it, and are not shown there. ``problem`` says why the run is not shown, or not all of it.
    """

    dataset: str
    url: Annotated[str, Field(pattern=r"^https?://[^\s<>()\[\]\"'`|\\]+$")] | None = None
    unlinked: Count = 0
    problem: str = ""


class RunIdentity(Record):
    """Which run it is: of what, by which suite, and when.

    ``commit`` is the deployed commit that was graded, when it is known.
    """

    run_id: Identifier
    target: Target
    suite_name: Identifier
    suite_sha256: Sha256
    commit: Identifier | None = None
    started_at: UtcTime
    finished_at: UtcTime


class RunReport(RunIdentity):
    """A whole run: verdict, both scores, metrics, coverage, latency, cost. The gate's output.

    ``interrupted`` is true for a run that was stopped and is not finished: its verdict is never PASS.
    ``resumed_cases`` were answered before a restart. ``pull_request`` is where the deploy belongs, if it belongs to
    one: such a run is no baseline for others. ``judging`` is ``None`` for runs of before there was a judge.
    ``comparison`` is ``None`` where there was no run to compare with, ``triage`` where no case is an issue,
    ``rubric`` where no judge rated a report. ``parity`` is over questions asked in several languages. ``sights``
    say what the run could have seen, ``flaky`` which cases were right only sometimes, ``mutation_score`` what the
    graders caught of known-bad replies; these, ``triage`` and ``balance`` are absent in runs of before they were
    reckoned. ``questions`` is ``None`` where no agent asked any. ``first_look`` is what failed cases have in
    common, ``snapshot`` what is recorded beside the grades, both ``None`` in runs of before they were.
    ``what_changed`` since the last accepted run is asked of a run that did not pass. ``recheck`` is what severe
    failed cases came to that were asked again after the verdict, ``None`` where none was to be. ``experiment`` is
    ``None`` where the target names no dataset, or its platform had not answered yet.
    """

    verdict: Verdict
    reasons: tuple[VerdictReason, ...]
    triage: TriageSummary | None = None
    rubric: RubricAverage | None = None
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
    sights: tuple[DetectableDrop, ...] = ()
    flaky: tuple[FlakyCase, ...] = ()
    balance: Balance | None = None
    mutation_score: MutationScores | None = None
    questions: QuestionCounts | None = None
    first_look: FirstLook | None = None
    snapshot: RunSnapshot | None = None
    what_changed: WhatChanged | None = None
    recheck: Recheck | None = None
    experiment: RunExperiment | None = None
    interrupted: bool = False
    resumed_cases: Count = 0

    def add_background(
        self,
        *,
        mutation_score: MutationScores | None,
        first_look: FirstLook | None,
        snapshot: RunSnapshot | None,
        what_changed: WhatChanged | None,
        experiment: RunExperiment | None,
    ) -> Self:
        """Add what the gate does not decide by: how sharp the graders are, and what may be behind the failures."""
        return self.model_copy(
            update={
                "mutation_score": mutation_score,
                "first_look": first_look,
                "snapshot": snapshot,
                "what_changed": what_changed,
                "experiment": experiment,
            }
        )

    def add_recheck(self, recheck: Recheck) -> Self:
        """Add what severe failed cases came to that were asked again."""
        return self.model_copy(update={"recheck": recheck})

    def add_experiment(self, experiment: RunExperiment) -> Self:
        """Set where the run appears on the target's platform."""
        return self.model_copy(update={"experiment": experiment})


class BaselineResult(Record):
    """What one asking of one case came to: enough to compare two runs."""

    case_id: Identifier
    repeat: Annotated[int, Field(ge=0)] = 0
    outcome: CaseOutcome
    blame: Blame | None = None


class Baseline(Record):
    """A run with what each of its questions came to, from the warehouse or from its ``results.json``.

    The ratings of its reports are in ``report`` itself.
    """

    report: RunReport
    asked: tuple[BaselineResult, ...]
