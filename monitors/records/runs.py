"""A run's report with its calculation.

`Judging` says for how many answers a judge was needed, what it did, and what it cost. The mutation score says how
many mutants of a suite's golds the graders caught. A baseline is the accepted run for another run.
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
from monitors.records.targets import GitChange, PullRequest, Target

Count = Annotated[int, Field(ge=0)]


MIN_JUDGED_SHARE: Final = 0.8
"""The smallest share of the answers for a judge that must get a verdict; with fewer, the judging is short."""


class JudgeState(StrEnum):
    """Whether a judge was used."""

    OFF = "off"
    ON = "on"


def format_missing_price(model: str) -> str:
    """Say that a model's price is not known, with the row to add to lookout.toml."""
    return (
        f"price not known of {model}; add it to lookout.toml: "
        f'[[judge.prices]] model = "{model}", input = …, output = … (US dollars per million tokens), '
        'as_of = … (the date), source = "…"'
    )


class Judging(Record):
    """A run's judging. ``why`` says why the judge was off.

    ``answers`` is the number of answers. The graders without a model left ``left_open`` of them open, including
    ``to_confirm`` that they graded and a judge must confirm (it fails ``disputed`` of those that they pass). Of
    these, ``by_rule`` were not answers at all and failed without a judge; ``unaskable`` had nothing to compare with
    (live traffic without gold or passages); ``judged`` have a judge's grade; the rest is ungraded: ``void_grades``
    because the judge missed known answers in ``void_groups`` of the ``groups``. ``ungraded_because`` are the
    reasons, most frequent first. ``lineages`` are all judges whose grades count. ``cached_tokens`` were read from
    the provider's cache. ``cost_usd`` is the total cost, including canaries and unreadable verdicts.
    ``not_by_batch`` says which verdicts a nightly run's batches did not return; they were requested one by one, at
    the full price. The provider did not count the tokens of ``estimated_calls``. ``cost_usd`` is without the calls
    of ``unpriced_models``, whose price is not known.
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
    estimated_calls: Count = 0
    input_tokens: Count = 0
    cached_tokens: Count = 0
    output_tokens: Count = 0
    cost_usd: Annotated[Decimal, Field(ge=0)] = Decimal(0)
    budget_usd: Annotated[Decimal, Field(gt=0)] | None = None
    budget_reached: bool = False
    unpriced_models: tuple[str, ...] = ()
    not_by_batch: tuple[str, ...] = ()

    @property
    def cost_text(self) -> str:
        """What judging cost: ``$0.0123``, and the tokens where the price of a model is not known."""
        if not self.unpriced_models:
            return f"${self.cost_usd:.4f}"
        tokens = f"{self.input_tokens + self.cached_tokens:,} tokens read, {self.output_tokens:,} written"
        return f"price not known of {', '.join(self.unpriced_models)} ({tokens})"

    @property
    def reached_judge(self) -> int:
        """Answers that a judge was needed for."""
        return self.left_open - self.by_rule - self.unaskable

    @property
    def is_short(self) -> bool:
        """Whether the judge gave too few verdicts, although its grades were valid and the budget not reached."""
        asked = self.reached_judge - self.void_grades
        return (
            self.state is JudgeState.ON
            and not self.budget_reached
            and asked > 0
            and self.judged < MIN_JUDGED_SHARE * asked
        )

    @property
    def ungraded(self) -> int:
        """Answers that needed a judge and did not get a grade from one."""
        return max(0, self.reached_judge - self.judged)


class MutantCount(Record):
    """Mutants of one kind: how many a grader failed, how many passed as right; the rest is left to a judge.

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
        """The share that was caught; 1 without mutants."""
        return self.caught / self.mutants if self.mutants else 1.0

    @property
    def left(self) -> int:
        """Neither failed nor passed: left to the judge."""
        return self.mutants - self.caught - self.passed


class MutationScores(Record):
    """All counts of the mutants of ``cases`` cases. ``severe`` are the mutants of severity 3.

    Personal data is severity 3 in any reply and easy to detect, and rules may leave evasions and misplaced values
    to a judge, so the severe mutants are also counted without these. ``misplaced`` are the mutants with the right
    value in the wrong place; ``None`` in older runs.
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

    ``useful`` ones asked for what the issue does not say, ``needless`` ones for what it says; others could not be
    classified. ``share`` is the share of useful ones among these two, with its Wilson interval (95 %); ``None`` if
    none could be classified.
    """

    asked: Annotated[int, Field(ge=1)]
    useful: Count
    needless: Count
    share: Probability | None = None
    low: Probability | None = None
    high: Probability | None = None


class Verdict(StrEnum):
    """The gate's verdict on a run."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


class ReasonKind(StrEnum):
    """The kind of a verdict's reason, in order of weight."""

    VETO = "veto"
    WEIGHTED_SCORE = "weighted_score"
    METRIC_TARGET = "metric_target"
    LANGUAGE = "language"
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
        """Add a remark at the end of the text."""
        return self.model_copy(update={"text": f"{self.text}; {remark}"})


MAX_UNCOVERED_IDS: Final = 6


def format_uncovered_cases(reasons: Iterable[VerdictReason]) -> str:
    """Say what the verdict does not cover: ``2 severity-3 cases not graded: a, b``; empty if it covers all."""
    parts: list[str] = []
    for reason in reasons:
        if reason.kind is ReasonKind.UNCOVERED:
            more = len(reason.case_ids) - MAX_UNCOVERED_IDS
            ids = ", ".join(reason.case_ids[:MAX_UNCOVERED_IDS]) + (f" and {more} more" if more > 0 else "")
            parts.append(f"{reason.text}: {ids}")
    return "; ".join(parts)


class Ratio(Record):
    """Earned of total, as counts or weights. With a total of 0 there is no value."""

    earned: Annotated[Decimal, Field(ge=0)]
    total: Annotated[Decimal, Field(ge=0)]

    @property
    def value(self) -> float | None:
        """``earned / total``, or ``None`` if nothing was counted."""
        return float(self.earned / self.total) if self.total else None


class SeverityTally(Record):
    """Cases that count as one severity: one row of the score calculation.

    A case counts with the severity that it was written with; a failed one with that of its failure.
    ``not_correct`` are all that were not correct; of them ``no_answer`` were not answered, by the app's own fault,
    and ``raised`` failed with a higher severity than their case. Both are 0 in older runs.
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

    The interval is Wilson's; if cases share a policy, with the effective number of cases: then ``clusters`` counts
    the policies, else it is ``None``.
    """

    name: Identifier
    passed: Count
    total: Count
    low: Probability
    high: Probability
    target: Probability | None = None
    met: Finding = Finding.UNGRADED
    clusters: Count | None = None


_METRIC_TITLES: Final = {"refusal_precision": "expected refusals that were refused (refusal precision)"}
"""Titles of metrics with a misleading name: refusal precision is the recall of refusals."""


def format_metric_name(name: str) -> str:
    """Format a metric's name for people: ``factual_accuracy:hi`` becomes "factual accuracy, hi"."""
    kind, _, group = name.partition(":")
    title = _METRIC_TITLES.get(kind, kind.replace("_", " "))
    return f"{title}, {group}" if group else title


class IssuePath(Record):
    """The steps that an agent took for one issue, on average over its asks.

    ``repeated`` of them repeat an earlier call; ``None`` if calls cannot be distinguished.
    """

    case_id: Identifier
    steps: Annotated[float, Field(gt=0)]
    repeated: Annotated[float, Field(ge=0)] | None = None
    shortest_path: Annotated[int, Field(ge=1)] | None = None


class TriageSummary(Record):
    """Figures on an agent's reports on issues; their usefulness is in `RunReport.rubric`.

    ``issues`` is how many were asked. ``accuracy`` is the share of correct reports among graded issues; a missing
    report, by the application's own fault, is not correct. ``paths`` are those of the issues whose steps were seen.
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
    """How much of the suite was graded. ``graded`` counts correct, failed, and no answer by the app's fault."""

    asked: Count
    graded: Count
    floor: Probability


class CaseResult(Record):
    """One case with its answer and its assessment, as reports and alerts use it."""

    case: GoldCase
    result: ProbeResult
    assessment: Assessment

    def with_assessment(self, assessment: Assessment) -> Self:
        """Return the same case and answer with another assessment."""
        return self.model_copy(update={"assessment": assessment})


class RunExperiment(Record):
    """The run's experiment on a platform's dataset, beside other runs.

    ``dataset`` is written as in the configuration (``langsmith:DATASET``). ``unlinked`` cases have no example in
    it, and are not shown there. ``problem`` says why the run is not shown, or only a part of it.
    """

    dataset: str
    url: Annotated[str, Field(pattern=r"^https?://[^\s<>()\[\]\"'`|\\]+$")] | None = None
    unlinked: Count = 0
    problem: str = ""


class RunIdentity(Record):
    """The identity of a run: its target, suite and times.

    ``commit`` is the deployed commit that was graded, if it is known.
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
    ``resumed_cases`` were answered before a restart. ``pull_request`` is the deploy's pull request; such a run is
    not a baseline for others. ``change`` is what a CI job checked. ``comparison`` is ``None`` without a run to
    compare with, ``triage`` if no case is an issue, ``rubric`` if no judge rated a report. ``parity`` compares
    questions asked in several languages.
    ``sights`` are the smallest drops that the run can detect, ``flaky`` the cases that were right only sometimes,
    ``mutation_score`` how many known-bad replies the graders caught. ``questions`` is ``None`` if no agent asked
    any. ``first_look`` is what failed cases have in common, ``snapshot`` what is recorded about the application and
    Lookout. ``what_changed`` since the last accepted run is set if the run did not pass. ``recheck`` has the
    results of severe failed cases that were asked again after the verdict. ``experiment`` is ``None`` if the target
    names no dataset, or its platform has not answered yet. Fields missing in older runs are ``None`` or empty.
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
    change: GitChange | None = None
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
        """Add what the gate does not use: the mutation score, and possible reasons for the failures."""
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
        """Add the results of severe failed cases that were asked again."""
        return self.model_copy(update={"recheck": recheck})

    def add_experiment(self, experiment: RunExperiment) -> Self:
        """Set the run's experiment on the target's platform."""
        return self.model_copy(update={"experiment": experiment})


class BaselineResult(Record):
    """The outcome of one asking of one case: enough to compare two runs."""

    case_id: Identifier
    repeat: Annotated[int, Field(ge=0)] = 0
    outcome: CaseOutcome
    blame: Blame | None = None


class Baseline(Record):
    """A run with the outcome of each asking, from the warehouse or from its ``results.json``.

    The ratings of its reports are in ``report`` itself.
    """

    report: RunReport
    asked: tuple[BaselineResult, ...]
