"""Records of a run: its report, its verdict, and the numbers behind the verdict."""

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
"""Minimum share of answers with a judge's grade, among the answers that need a judge.

If the share is lower, the judging is incomplete.
"""


class JudgeState(StrEnum):
    """The state of the judge in a run: on or off."""

    OFF = "off"
    ON = "on"


def format_missing_price(model: str) -> str:
    """Return the error message that the price of ``model`` is unknown and must be added to lookout.toml."""
    return (
        f"the price of {model} is unknown; add it to lookout.toml: "
        f'[[judge.prices]] model = "{model}", input = …, output = … (US dollars per million tokens), '
        'as_of = … (the date), source = "…"'
    )


class Judging(Record):
    """What a judge did in a run, and the cost. If there was no judge, ``why`` is the reason.

    Counts of answers:

    - ``left_open``: answers for which the grades of the rules are missing or not final. ``to_confirm``, ``by_rule``
      and ``unaskable`` are parts of this count.
    - ``to_confirm``: answers that rules graded, and whose grade a judge must confirm. ``disputed`` counts the
      answers among them that rules passed and the judge failed.
    - ``by_rule``: answers that failed without a judge.
    - ``unaskable``: answers that a judge could not grade, because there was nothing to compare the answer with.
    - ``judged``: answers that have a judge's grade.

    The judge also grades some answers whose right grade is known. ``groups`` counts the groups of calls that were
    checked with known answers. ``void_groups`` counts the groups in which the judge gave known answers the wrong
    grade. The grades in these groups do not count, and ``void_grades`` is their number. ``ungraded_because``
    contains the reasons for missing grades.

    ``cost_usd`` is the total cost, without the calls to models in ``unpriced_models``. ``not_by_batch`` contains
    texts about the verdicts that a batch did not return. Lookout requested these verdicts again at the full price.
    ``estimated_calls`` counts the calls for which the provider did not report the number of tokens.
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
        """Return the cost as text: ``$0.0123``, or the number of tokens if the price of a model is unknown."""
        if not self.unpriced_models:
            return f"${self.cost_usd:.4f}"
        tokens = f"{self.input_tokens + self.cached_tokens:,} tokens read, {self.output_tokens:,} written"
        return f"price unknown: {', '.join(self.unpriced_models)} ({tokens})"

    @property
    def needed_judge_count(self) -> int:
        """Return the number of answers in ``left_open`` that needed a judge.

        The counts ``by_rule`` and ``unaskable`` are subtracted.
        """
        return self.left_open - self.by_rule - self.unaskable

    @property
    def has_too_few_verdicts(self) -> bool:
        """Return whether the judge gave too few verdicts, although its budget was not used up."""
        asked = self.needed_judge_count - self.void_grades
        return (
            self.state is JudgeState.ON
            and not self.budget_reached
            and asked > 0
            and self.judged < MIN_JUDGED_SHARE * asked
        )

    @property
    def ungraded(self) -> int:
        """Return the number of answers that needed a judge but did not get a grade."""
        return max(0, self.needed_judge_count - self.judged)


class MutantCount(Record):
    """How many mutants of one kind the graders detected. A mutant is a correct reply with a planted fault.

    ``caught`` counts mutants that failed, and ``passed`` counts mutants that were graded as right. All other
    mutants need a judge. ``low`` and ``high`` are the limits of the 95 % interval of the share of caught
    mutants.
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
        """Return the share of mutants that were caught. The share is 1 if there are no mutants."""
        return self.caught / self.mutants if self.mutants else 1.0

    @property
    def left(self) -> int:
        """Return the number of mutants that neither failed nor passed."""
        return self.mutants - self.caught - self.passed


class MutationScores(Record):
    """The counts of all mutants of a suite's cases. ``severe`` counts the mutants of severity 3.

    Planted personal data is easy to find. Therefore, severe mutants without personal data are also counted
    separately.
    """

    cases: Count
    whole: MutantCount
    severe: MutantCount
    severe_without_personal_data: MutantCount
    misplaced: MutantCount | None = None
    by_operator: tuple[MutantCount, ...]
    by_severity: tuple[MutantCount, ...]


class QuestionCounts(Record):
    """The questions for which agents interrupted their work in a run.

    A ``useful`` question requests information that the issue does not contain. A ``needless`` question requests
    information that the issue contains. All other questions could not be classified. ``share`` is the share of
    useful questions among the classified questions, with its 95 % interval.
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
    """The kinds of reasons for a verdict. The most important kind comes first."""

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
    """A reason for the verdict, with the affected cases. Only ``decisive`` reasons determine the verdict."""

    kind: ReasonKind
    text: str
    case_ids: tuple[Identifier, ...] = ()
    decisive: bool = True

    def add_remark(self, remark: str) -> Self:
        """Return a copy of the reason with a remark at the end of its text."""
        return self.model_copy(update={"text": f"{self.text}; {remark}"})


MAX_UNCOVERED_IDS: Final = 6


def format_uncovered_cases(reasons: Iterable[VerdictReason]) -> str:
    """List the cases that the verdict does not cover. The result is empty if the verdict covers all cases.

    For example: ``2 severity-3 cases not graded: a, b``
    """
    parts: list[str] = []
    for reason in reasons:
        if reason.kind is ReasonKind.UNCOVERED:
            more = len(reason.case_ids) - MAX_UNCOVERED_IDS
            ids = ", ".join(reason.case_ids[:MAX_UNCOVERED_IDS]) + (f" and {more} more" if more > 0 else "")
            parts.append(f"{reason.text}: {ids}")
    return "; ".join(parts)


class Ratio(Record):
    """A share: ``earned`` divided by ``total``. Both are counts, or both are weights."""

    earned: Annotated[Decimal, Field(ge=0)]
    total: Annotated[Decimal, Field(ge=0)]

    @property
    def value(self) -> float | None:
        """Return the quotient ``earned / total``, or ``None`` if nothing was counted."""
        return float(self.earned / self.total) if self.total else None


class SeverityTally(Record):
    """The counts of cases that are scored with one severity: one row of the score calculation.

    A failed case is scored with the severity of its failure. ``not_correct`` includes two kinds of cases:

    - ``no_answer`` cases: the answer is missing, and the application caused this.
    - ``raised`` cases: the failure is more severe than the case.
    """

    severity: Severity
    weight: Annotated[Decimal, Field(gt=0)]
    cases: Count
    not_correct: Count
    no_answer: Count = 0
    raised: Count = 0

    @property
    def failed(self) -> int:
        """Return the number of cases with a wrong answer."""
        return self.not_correct - self.no_answer

    @property
    def earned(self) -> Decimal:
        """Return the weight of the correct cases."""
        return self.weight * (self.cases - self.not_correct)

    @property
    def total(self) -> Decimal:
        """Return the weight of all cases."""
        return self.weight * self.cases


class Scores(Record):
    """The pass rate (``flat``), and the score in which severe cases count more (``weighted``)."""

    flat: Ratio
    weighted: Ratio
    tallies: tuple[SeverityTally, ...]
    weights_version: str


class Metric(Record):
    """A share with its 95 % interval, and its target if one is configured.

    Related cases form ``clusters`` and tend to fail together. Therefore, the interval is computed from an effective
    number of cases, which can be smaller than ``total``.
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
"""Titles of metrics whose names would be misleading."""


def format_metric_name(name: str) -> str:
    """Format the name of a metric. For example, ``factual_accuracy:hi`` becomes "factual accuracy, hi"."""
    kind, _, group = name.partition(":")
    title = _METRIC_TITLES.get(kind, kind.replace("_", " "))
    return f"{title}, {group}" if group else title


class IssuePath(Record):
    """The average number of steps that an agent takes for an issue.

    ``repeated`` is the average number of steps that repeat an earlier step.
    """

    case_id: Identifier
    steps: Annotated[float, Field(gt=0)]
    repeated: Annotated[float, Field(ge=0)] | None = None
    shortest_path: Annotated[int, Field(ge=1)] | None = None


class TriageSummary(Record):
    """Figures about an agent's reports on issues.

    ``accuracy`` is the share of correct reports. A missing report counts as not correct if the application caused
    this. ``paths`` contains the numbers of the agent's steps, if the numbers are known.
    """

    issues: Annotated[int, Field(ge=1)]
    accuracy: Metric
    paths: tuple[IssuePath, ...] = ()


class Breakdown(Record):
    """The outcomes of one group of cases, for example of the language ``hi``."""

    group: Identifier
    key: str
    cases: Count
    correct: Count
    failed: Count
    no_answer: Count
    ungraded: Count


class Latency(Record):
    """Percentiles of the answer times of a run, and the target's latency objective."""

    answered: Count
    p50_ms: Milliseconds
    p95_ms: Milliseconds
    objective_p50_ms: Milliseconds


class Coverage(Record):
    """The number of graded cases, and the minimum share of cases that must be graded (``floor``).

    A missing answer counts as graded if the application caused the problem.
    """

    asked: Count
    graded: Count
    floor: Probability


class CaseResult(Record):
    """A case with its answer and its assessment."""

    case: GoldCase
    result: ProbeResult
    assessment: Assessment

    def with_assessment(self, assessment: Assessment) -> Self:
        """Return a copy of this result with the same answer, but with another ``assessment``."""
        return self.model_copy(update={"assessment": assessment})


class RunExperiment(Record):
    """The copy of the run that is stored as an experiment on a platform such as LangSmith.

    ``unlinked`` counts the cases that are not in the experiment, because the dataset has no example for them.
    ``problem`` is the reason why the experiment is missing or incomplete.
    """

    dataset: str
    url: Annotated[str, Field(pattern=r"^https?://[^\s<>()\[\]\"'`|\\]+$")] | None = None
    unlinked: Count = 0
    problem: str = ""


class RunIdentity(Record):
    """Identifies a run by its target, its suite and its times. ``commit`` is the deployed commit, or ``None``."""

    run_id: Identifier
    target: Target
    suite_name: Identifier
    suite_sha256: Sha256
    commit: Identifier | None = None
    started_at: UtcTime
    finished_at: UtcTime


class RunReport(RunIdentity):
    """The result of a run: its verdict, and all facts behind the verdict.

    - ``interrupted`` is true for a run that was stopped. The verdict of such a run is never PASS.
    - ``resumed_cases`` counts the cases that were answered before a restart.
    - A run with a ``pull_request`` is not used as a baseline.
    - ``comparison`` compares the run with its baseline.
    - ``sights`` contains the smallest drops that the run can detect.
    - ``first_look`` contains what failed cases have in common.
    - ``recheck`` contains the results of asking failed cases again.

    Fields that are missing in the report of an older run are ``None`` or empty.
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

    def with_nondecisive_facts(
        self,
        *,
        mutation_score: MutationScores | None,
        first_look: FirstLook | None,
        snapshot: RunSnapshot | None,
        what_changed: WhatChanged | None,
        experiment: RunExperiment | None,
    ) -> Self:
        """Return a copy of the report that contains these facts, which do not affect the verdict."""
        return self.model_copy(
            update={
                "mutation_score": mutation_score,
                "first_look": first_look,
                "snapshot": snapshot,
                "what_changed": what_changed,
                "experiment": experiment,
            }
        )

    def with_recheck(self, recheck: Recheck) -> Self:
        """Return a copy of the report that contains the results of asking severe failed cases again."""
        return self.model_copy(update={"recheck": recheck})

    def with_experiment(self, experiment: RunExperiment) -> Self:
        """Return a copy of the report that names the run's experiment on the target's platform."""
        return self.model_copy(update={"experiment": experiment})


class BaselineResult(Record):
    """The outcome of one repeat of a case."""

    case_id: Identifier
    repeat: Annotated[int, Field(ge=0)] = 0
    outcome: CaseOutcome
    blame: Blame | None = None


class Baseline(Record):
    """An earlier run with which a run is compared, and the outcome of each repeat of its cases."""

    report: RunReport
    asked: tuple[BaselineResult, ...]
