"""Computes the estimates of a nightly run: counts by stratum, rates with intervals, drift and ratings.

A stratum is a group of conversations with the same risk. The sample contains a part of each stratum. This module
also predicts, from earlier runs, which rates a nightly run can report and what it will cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from math import fsum
from typing import Final, NamedTuple

from flows.nightly.grading import has_disclosure_and_error_grades, is_unanswered_by_judge
from flows.runtime.judge import JudgePlan
from monitors.gate.assess import list_distinct_kinds_worst_first
from monitors.gate.ratings import MAX_RATING, MIN_RATING, find_lowest_judge_rating
from monitors.graders.traffic_panel import has_answer
from monitors.judge.canaries import compute_canary_count
from monitors.judge.model import BYTES_PER_TOKEN, Usage, compute_cost_usd
from monitors.judge.prompt import Task, load_instructions
from monitors.judge.settings import JudgeSettings
from monitors.plural import plural
from monitors.records.base import Severity
from monitors.records.estimates import (
    DriftCount,
    DriftReading,
    DriftState,
    GradedStratum,
    RateEstimate,
    RateUnknown,
)
from monitors.records.grades import JUDGE, Aspect, Assessment, CaseOutcome, FailureKind, Judged
from monitors.records.nightly import (
    FactsChecked,
    KindRate,
    KnownQuestions,
    NightlyReport,
    Rate,
    ReportsRated,
)
from monitors.records.runs import CaseResult
from monitors.records.traffic import Conversation, SampledConversation, StratumCount, Turn
from monitors.sources.sampling.plan import ANY_FAILURE_NAME, SEVERE_RATE_NAME, Grading, PlannedRate
from monitors.sources.sampling.sample import ExpectedRate, compute_expected_failure_rates
from monitors.stats.agreement import Confusion
from monitors.stats.drift import restart_if_recovered, start_drift_test, summarise_drift, update_drift_test
from monitors.stats.ratings import Rated, compute_rating_mean
from monitors.stats.stratified import (
    add_rule_and_part_rates,
    compute_counted_rate,
    compute_counts_for_sequential_test,
    estimate_failure_rate,
)

RULES: Final = "rules"
"""The word that stands for the rules in the string that identifies the graders of a nightly run."""
DRIFT_REFERENCE_AFTER: Final = timedelta(days=7)
"""Time after a drift alert at which the changed rate becomes the reference for later nightly runs."""
NEW_REFERENCE_REASON: Final = (
    "the changed rate has lasted for a week, so Lookout now compares with the changed rate"
)
NO_FACT_TEXT: Final = "no facts were checked"

Assessments = Mapping[str, Sequence[Assessment]]
"""The assessments of the replies in each sampled conversation. The keys are conversation ids."""
FACT_ASPECTS: Final = frozenset({Aspect.FACTUAL_MATCH, Aspect.REFUSAL})
"""Aspects that can be checked only with gold or passages. Rules check all other aspects in every reply."""
MIN_CHECKED_SHARE: Final = 0.5
"""Minimum share of conversations with checked facts. Below this share, no rate of wrong facts is estimated."""

Fails = Callable[[Assessment], bool]


class FactChecker(StrEnum):
    """Who or what checked the facts in a conversation that passed the rules."""

    NOTHING_OPEN = "nothing open"
    """No reply states a fact that could cause the failure whose rate is estimated."""
    GOLD = "gold"
    """Rules compared a reply with its gold."""
    JUDGE = "judge"
    """The judge gave a verdict on a reply."""
    NOBODY = "nobody"
    """No reply has a verdict on its facts, or the judge did not answer."""


class _ConversationResult(NamedTuple):
    """Whether a sampled conversation failed.

    ``by_rule`` is true if rules found a failure. ``fails`` is true if only a check of the facts found a failure.
    ``is_safe`` is true if every reply was graded for disclosures and leaked errors. ``by`` says who or what checked
    the facts.
    """

    stratum: str
    by_rule: bool
    is_safe: bool
    by: FactChecker
    fails: bool


class NightlyEstimates:
    """The counts and rates of one nightly run.

    Rules check every reply. The facts of a reply are checked only if the reply was compared with gold or passages.
    A conversation counts as graded if the facts of a reply were checked and every judge that was asked gave a
    verdict.

    ``why_unchecked`` is the reason why facts were not checked. ``confusion`` compares the judge's verdicts with
    human verdicts. ``disclosing`` has two numbers: the conversations that disclose personal data, and all
    conversations. ``failing`` is the share of conversations that certainly failed, according to the census; the
    rate of any failure is at least this share.
    """

    def __init__(
        self,
        strata: Sequence[StratumCount],
        sampled: Sequence[SampledConversation],
        assessments: Assessments,
        *,
        why_unchecked: str = "",
        confusion: Confusion | None = None,
        disclosing: tuple[int, int] | None = None,
        failing: float = 0.0,
    ) -> None:
        self._failing = failing
        self._disclosing = disclosing
        self._strata, self._sampled, self._said = strata, sampled, assessments
        self._why, self._confusion = why_unchecked, confusion

    def compute_checkable_share(self, asks_judge: Callable[[Conversation], bool]) -> float:
        """Compute the share of sampled conversations whose facts rules have checked or a judge will check.

        ``asks_judge`` returns whether a judge will be asked about a conversation.
        """
        checked = sum(
            asks_judge(sampled.conversation)
            or any(map(_select_fact_grades, self.get_assessments(sampled.conversation.id)))
            for sampled in self._sampled
        )
        return checked / len(self._sampled) if self._sampled else 0.0

    def get_assessments(self, conversation_id: str) -> Sequence[Assessment]:
        """Return the assessments of the replies in a sampled conversation."""
        return self._said.get(conversation_id, ())

    def is_fully_graded(self, conversation_id: str) -> bool:
        """Return whether a conversation without a found failure counts as correct.

        Such a conversation counts as correct if its facts were checked, and if every reply was graded for
        disclosures and leaked errors.
        """
        result = _assess_conversation("", self.get_assessments(conversation_id), _is_failed, _would_wrong_fact_fail)
        return result.by in {FactChecker.GOLD, FactChecker.JUDGE} and result.is_safe

    def estimate_severe_rate(self) -> Rate:
        """Estimate the share of conversations with a severity-3 failure.

        A wrong fact counts as severe if its case or the target has severity 3.
        """
        results = self._assess_sample(_is_severe, _would_wrong_fact_be_severe)
        others = [result for result in results if not result.by_rule]
        graded = [result for assessments in self._said.values() for result in assessments]
        if self._disclosing is None or any(map(_has_severe_rule_failure_except_disclosure, graded)):
            return self._estimate_rate(_is_severe, _would_wrong_fact_be_severe)
        disclosing, there = self._disclosing
        counted = compute_counted_rate(disclosing, there, sampled=len(self._sampled))
        if any(result.fails or result.by is not FactChecker.NOTHING_OPEN for result in others) and isinstance(
            counted, RateEstimate
        ):
            return self._estimate_rate(_is_severe, _would_wrong_fact_be_severe, counted)
        return counted

    def estimate_failed_rate(self) -> Rate:
        """Estimate the share of conversations with any failure: a failure found by rules, or a wrong fact."""
        rate = self._estimate_rate(_is_failed, _would_wrong_fact_fail)
        if isinstance(rate, RateUnknown):
            return rate
        return rate.apply_floor(self._failing)

    def count_severe_failures_by_stratum(self) -> tuple[GradedStratum, ...]:
        """Count the conversations with a severity-3 failure in each stratum."""
        results = self._assess_sample(_is_severe, _would_wrong_fact_be_severe)
        return self._count_by_stratum(
            (result, _has_fact_verdict(result), result.by_rule or result.fails) for result in results
        )

    def count_fact_failures_by_stratum(self) -> tuple[GradedStratum, ...]:
        """Count, in each stratum, the conversations with a wrong fact but without a failure found by rules."""
        results = [
            result for result in self._assess_sample(_is_failed, _would_wrong_fact_fail) if not result.by_rule
        ]
        return self._count_by_stratum(
            (result, result.by in {FactChecker.GOLD, FactChecker.JUDGE}, result.fails) for result in results
        )

    def count_rule_failures_by_stratum(
        self, except_kinds: AbstractSet[FailureKind] = frozenset()
    ) -> tuple[GradedStratum, ...]:
        """Count, in each stratum, the conversations in which rules found a failure not in ``except_kinds``.

        Rules check these kinds in every conversation, and each of these kinds has its own exact rate. Therefore a
        burst of such failures must not also count as drift.
        """
        results = self._assess_sample(
            lambda assessment: _is_failed(assessment) and not set(assessment.failure_kinds) <= except_kinds,
            _would_wrong_fact_fail,
        )
        return self._count_by_stratum(
            (result, result.is_safe or result.by_rule, result.by_rule or result.fails) for result in results
        )

    def count_facts_checked(self) -> FactsChecked:
        """Count the replies whose facts the judge checked, and the replies whose facts only gold checked.

        Gold checks the facts of a reply if rules compare the reply with its gold.
        """
        grades = [
            _select_fact_grades(assessment) for assessments in self._said.values() for assessment in assessments
        ]
        judged = sum(any(grade.grader == JUDGE for grade in fact_grades) for fact_grades in grades)
        return FactsChecked(replies=len(grades), by_judge=judged, by_gold=sum(map(bool, grades)) - judged)

    def count_conversations_with_known_question(self) -> KnownQuestions | None:
        """Count the conversations that contain a question of the gold set, and how many of them failed.

        Return ``None`` if there are no such conversations.
        """
        graded = [
            [
                grade
                for assessment in assessments
                for grade in _select_fact_grades(assessment)
                if grade.grader != JUDGE
            ]
            for assessments in self._said.values()
        ]
        failed = sum(any(not grade.passed for grade in grades) for grades in graded)
        conversations = sum(map(bool, graded))
        return KnownQuestions(conversations=conversations, failed=failed) if conversations else None

    def estimate_kind_rates(self) -> tuple[KindRate, ...]:
        """Estimate the rate of each failure kind that was found, worst kind first."""
        kind_counts = Counter(
            kind
            for assessments in self._said.values()
            for kind in {failure_kind for assessment in assessments for failure_kind in assessment.failure_kinds}
        )
        return tuple(
            KindRate(kind=kind, failures=kind_counts[kind], rate=self._estimate_kind_rate(kind))
            for kind in list_distinct_kinds_worst_first(kind_counts)
        )

    def _estimate_kind_rate(self, kind: FailureKind) -> Rate:
        results = list(
            self._assess_sample(lambda assessment: kind in assessment.failure_kinds, _would_wrong_fact_fail, kind)
        )
        if not any(result.fails for result in results):
            return estimate_failure_rate(
                self._count_by_stratum(
                    (result, result.is_safe or result.by_rule, result.by_rule) for result in results
                )
            )
        passed = [result for result in results if result.is_safe]
        if sum(result.by is not FactChecker.NOBODY for result in passed) < MIN_CHECKED_SHARE * len(passed):
            return self._build_unknown_rate(len(results), passed)
        judged = any(result.by is FactChecker.JUDGE for result in results)
        graded = (
            (result, result.by is not FactChecker.NOBODY or result.by_rule, result.by_rule or result.fails)
            for result in results
        )
        return estimate_failure_rate(self._count_by_stratum(graded), judged=judged, finite=False)

    def _estimate_rate(
        self, fails: Fails, would_wrong_fact_count: Fails, counted: RateEstimate | None = None
    ) -> Rate:
        """Estimate the rate of conversations with a failure found by rules or with a wrong fact.

        ``fails`` returns whether a reply has the failure. ``would_wrong_fact_count`` returns whether a wrong fact
        in a reply would be this failure. ``counted`` is the exact rate of failures found by rules, if they were
        counted in every conversation.
        """
        results = list(self._assess_sample(fails, would_wrong_fact_count))
        by_rule = counted or estimate_failure_rate(
            self._count_by_stratum((result, result.is_safe or result.by_rule, result.by_rule) for result in results)
        )
        passed = [result for result in results if result.is_safe and not result.by_rule]
        if isinstance(by_rule, RateUnknown):
            return by_rule
        graded = sum(result.by is not FactChecker.NOBODY for result in passed)
        if graded < max(1, MIN_CHECKED_SHARE * len(passed)) and passed:
            return self._build_unknown_rate(len(results), passed)
        parts = self._estimate_rates_by_checker(passed, rest=1 - by_rule.rate)
        settled = sum(map(_has_fact_verdict, results))
        return add_rule_and_part_rates(by_rule, parts).with_graded_count(settled)

    def _build_unknown_rate(self, sampled: int, passed: Sequence[_ConversationResult]) -> RateUnknown:
        graded = sum(result.by in {FactChecker.GOLD, FactChecker.JUDGE} for result in passed)
        why = f", because {self._why}" if self._why else ""
        among = (
            f" in the {len(passed):,} of {sampled:,} conversations that passed the rules"
            if len(passed) < sampled
            else ""
        )
        text = f"{NO_FACT_TEXT}{among}"
        if graded:
            text = f"facts were checked in only {graded:,} of {plural(sampled, 'sampled conversation')}"
        there = sum(result.conversations for result in self._strata)
        return RateUnknown(conversations=there, sampled=sampled, why=f"{text}{why}")

    def _estimate_rates_by_checker(
        self, passed: Sequence[_ConversationResult], rest: float
    ) -> list[tuple[float, RateEstimate]]:
        """Estimate the rate of wrong facts separately for facts checked by gold and facts checked by the judge.

        For each checker with a known rate, return a pair: the share of all conversations that are assigned to it,
        and the rate in this share. ``rest`` is the share of conversations that rules did not fail.
        """
        last = FactChecker.JUDGE if any(result.by is FactChecker.JUDGE for result in passed) else FactChecker.GOLD
        placed = [result._replace(by=last) if result.by is FactChecker.NOBODY else result for result in passed]
        sizes = {
            by: self._estimate_conversations_by_stratum(by, placed) for by in (FactChecker.GOLD, FactChecker.JUDGE)
        }
        everything = fsum(fsum(self._estimate_conversations_by_stratum(by, placed).values()) for by in FactChecker)
        parts: list[tuple[float, RateEstimate]] = []
        for by, size in sizes.items():
            rate = self._estimate_rate_of_checker(by, passed, placed, size)
            if isinstance(rate, RateEstimate):
                parts.append((rest * fsum(size.values()) / everything, rate))
        return parts

    def _estimate_conversations_by_stratum(
        self, by: FactChecker, placed: Sequence[_ConversationResult]
    ) -> Mapping[str, float]:
        """Estimate the number of conversations in each stratum that are assigned to the checker ``by``.

        ``placed`` are the results of the sampled conversations that rules did not fail. A result that nobody
        checked is assigned to the judge if the judge checked any result, and otherwise to gold.
        """
        here = Counter(
            conversation_result.stratum for conversation_result in placed if conversation_result.by is by
        )
        return {
            conversation_result.stratum: conversation_result.conversations
            * here[conversation_result.stratum]
            / conversation_result.sampled
            for conversation_result in self._strata
            if conversation_result.sampled
        }

    def _estimate_rate_of_checker(
        self,
        by: FactChecker,
        passed: Sequence[_ConversationResult],
        placed: Sequence[_ConversationResult],
        size: Mapping[str, float],
    ) -> Rate | None:
        part_results = [
            (result, was.by is by) for result, was in zip(placed, passed, strict=True) if result.by is by
        ]
        sampled = Counter(result.stratum for result, _ in part_results)
        graded_counts = Counter(result.stratum for result, graded in part_results if graded)
        failures = Counter(result.stratum for result, graded in part_results if graded and result.fails)
        strata = [
            GradedStratum(
                stratum=name,
                conversations=max(count, round(size[name])),
                sampled=count,
                graded=graded_counts[name],
                failures=failures[name],
            )
            for name, count in sampled.items()
        ]
        confusion = self._confusion if by is FactChecker.JUDGE else None
        return (
            estimate_failure_rate(strata, confusion=confusion, judged=by is FactChecker.JUDGE, finite=False)
            if strata
            else None
        )

    def _assess_sample(
        self, fails: Fails, would_wrong_fact_count: Fails, kind: FailureKind | None = None
    ) -> Iterator[_ConversationResult]:
        for sampled in self._sampled:
            yield _assess_conversation(
                sampled.stratum, self.get_assessments(sampled.conversation.id), fails, would_wrong_fact_count, kind
            )

    def _count_by_stratum(
        self, graded: Iterable[tuple[_ConversationResult, bool, bool]]
    ) -> tuple[GradedStratum, ...]:
        """Count the graded and the failed conversations of each stratum.

        ``graded`` has triples: a conversation, whether it was graded, and whether it failed.
        """
        graded_counts, failures = Counter[str](), Counter[str]()
        for result, is_graded, fails in graded:
            graded_counts[result.stratum] += is_graded
            failures[result.stratum] += is_graded and fails
        return tuple(
            GradedStratum(
                stratum=stratum_count.stratum,
                conversations=stratum_count.conversations,
                sampled=stratum_count.sampled,
                graded=graded_counts[stratum_count.stratum],
                failures=failures[stratum_count.stratum],
            )
            for stratum_count in self._strata
        )


def _assess_conversation(
    stratum: str,
    assessments: Sequence[Assessment],
    fails: Fails,
    would_wrong_fact_count: Fails,
    kind: FailureKind | None = None,
) -> _ConversationResult:
    """Return whether rules or a check of the facts found a failure in a conversation.

    ``fails`` returns whether a reply has the failure. ``would_wrong_fact_count`` returns whether a wrong fact in a
    reply would be this failure. With ``kind``, only rules that find this kind count.
    """
    failing = [assessment for assessment in assessments if fails(assessment)]
    by_rule = any(
        _has_rule_failure(assessment, {kind} if kind else set(assessment.failure_kinds)) for assessment in failing
    )
    is_safe = bool(assessments) and all(map(has_disclosure_and_error_grades, assessments))
    return _ConversationResult(
        stratum,
        by_rule,
        is_safe,
        _find_fact_checker(assessments, failing, would_wrong_fact_count),
        bool(failing) and not by_rule,
    )


def _find_fact_checker(
    assessments: Sequence[Assessment], failing: Sequence[Assessment], would_wrong_fact_count: Fails
) -> FactChecker:
    """Return what checked the facts in those replies in which a wrong fact would count as the failure."""
    relevant = [
        assessment
        for assessment in assessments
        if (would_wrong_fact_count(assessment) or assessment in failing)
        and FailureKind.ERROR_LEAK not in assessment.failure_kinds  # an error message states no fact
    ]
    if not relevant:
        return FactChecker.NOTHING_OPEN
    unanswered = any(is_unanswered_by_judge(grade) for assessment in relevant for grade in assessment.grades)
    graded = [grade for assessment in relevant for grade in _select_fact_grades(assessment)]
    if not graded or (unanswered and not failing):
        return FactChecker.NOBODY
    return FactChecker.JUDGE if any(grade.grader == JUDGE for grade in graded) else FactChecker.GOLD


def _has_fact_verdict(result: _ConversationResult) -> bool:
    return result.by_rule or (result.is_safe and result.by is not FactChecker.NOBODY)


def _select_fact_grades(assessment: Assessment) -> list[Judged]:
    return [grade for grade in assessment.grades if isinstance(grade, Judged) and grade.aspect in FACT_ASPECTS]


def _has_rule_failure(assessment: Assessment, kinds: AbstractSet[FailureKind]) -> bool:
    return any(
        isinstance(grade, Judged) and grade.aspect not in FACT_ASPECTS and grade.failure_kind in kinds
        for grade in assessment.grades
    )


def _is_failed(assessment: Assessment) -> bool:
    return assessment.outcome is CaseOutcome.FAILED


def _is_severe(assessment: Assessment) -> bool:
    return _is_failed(assessment) and assessment.severity is Severity.CRITICAL


def _has_severe_rule_failure_except_disclosure(assessment: Assessment) -> bool:
    """Return whether rules found a severity-3 failure that is not a disclosure of personal data."""
    by_rule = _is_severe(assessment) and _has_rule_failure(assessment, set(assessment.failure_kinds))
    return by_rule and not _has_rule_failure(assessment, {FailureKind.PII_DISCLOSURE})


def _would_wrong_fact_fail(_assessment: Assessment) -> bool:
    """Return true, because a wrong fact in any reply is a failure."""
    return True


def _would_wrong_fact_be_severe(assessment: Assessment) -> bool:
    """Return whether a wrong fact in this reply would have severity 3."""
    return assessment.case_severity is Severity.CRITICAL


def update_drift(
    state_before: DriftState | None, due_at: datetime, failed: Sequence[GradedStratum], graded_by: str
) -> tuple[DriftState, DriftReading]:
    """Add one nightly run to the drift test. Return the test's new state and its result.

    ``due_at`` is the due time of the run, and ``failed`` has the run's counts of graded and failed conversations by
    stratum. If the last drift alert is at least a week old, the test starts again with the new rate as the expected
    rate.
    """
    if (
        state_before is not None
        and state_before.alarm is not None
        and due_at - state_before.alarm.raised >= DRIFT_REFERENCE_AFTER
    ):
        state_before = start_drift_test(state_before.graded_by, NEW_REFERENCE_REASON)
    failures, graded = compute_counts_for_sequential_test(failed)
    state = restart_if_recovered(
        update_drift_test(state_before, DriftCount(due_at=due_at, failures=failures, graded=graded), graded_by)
    )
    return state, summarise_drift(state)


VERDICT_TOKENS: Final = 300
"""The assumed number of tokens of a verdict: a long one with two quotes and a reason."""
MIN_CALLS: Final = 20
"""The cost of a judge call is computed from earlier nightly runs if they made at least this many calls.

With fewer calls, the cost is estimated from the length of the prompts and replies.
"""


def estimate_judge_calls_and_cost(
    plan: JudgePlan, sampled: Sequence[Conversation], earlier: Sequence[NightlyReport]
) -> Grading:
    """Estimate the number of judge calls for each sampled conversation, and the cost of one call in dollars.

    Both numbers are zero without a judge, or if no reply has passages.
    """
    settings = plan.settings
    askable = [turn for conversation in sampled for turn in conversation.turns if _can_judge_grade_turn(turn)]
    if settings is None or plan.why_off or not askable:
        return Grading(calls_per_conversation=0.0, usd_per_call=Decimal(0))
    canaries = compute_canary_count(len(askable), batch_size=settings.batch_size, canaries=settings.canaries)
    ride = 1 + canaries / min(len(askable), settings.batch_size)
    return Grading(
        calls_per_conversation=len(askable) / len(sampled) * ride,
        usd_per_call=compute_average_call_cost(earlier) or estimate_call_cost(settings, askable),
    )


def predict_reportable_rates(
    estimates: NightlyEstimates, strata: Sequence[StratumCount], plan: JudgePlan, earlier: Sequence[NightlyReport]
) -> tuple[PlannedRate, PlannedRate]:
    """From a sample that only rules have graded, predict which rates the nightly run can report."""
    names = [stratum.stratum for stratum in strata]
    speaks = plan.settings is not None and not plan.why_off
    share = estimates.compute_checkable_share(
        lambda stratum: speaks and any(map(_can_judge_grade_turn, stratum.turns))
    )
    severe = [stratum for nightly in earlier for stratum in nightly.strata]
    facts = [stratum for nightly in earlier for stratum in nightly.fact_strata]
    return (
        PlannedRate(
            SEVERE_RATE_NAME,
            compute_expected_failure_rates(names, severe),
            graded_share=_compute_graded_share(estimates.estimate_severe_rate(), share),
            learnt=any(stratum.graded for stratum in severe),
            why_none=_explain_missing_interval(estimates.estimate_severe_rate(), share, plan.why_off),
        ),
        PlannedRate(
            ANY_FAILURE_NAME,
            _compute_expected_failure_rates(names, facts, earlier),
            graded_share=_compute_graded_share(estimates.estimate_failed_rate(), share),
            learnt=any(stratum.graded for stratum in facts),
            why_none=_explain_missing_interval(estimates.estimate_failed_rate(), share, plan.why_off),
        ),
    )


def _compute_graded_share(rate: Rate, share: float) -> float:
    return max(share, rate.graded / rate.sampled) if isinstance(rate, RateEstimate) and rate.sampled else share


def _explain_missing_interval(rate: Rate, share: float, why_off: str) -> str:
    """Explain why a rate will have no interval. Return an empty string if the rate will have an interval.

    ``rate`` is the estimate from the rules' grades.
    """
    if isinstance(rate, RateEstimate) and rate.is_counted_not_estimated:
        return "no interval, because it is counted in every conversation"
    if isinstance(rate, RateEstimate) or share >= MIN_CHECKED_SHARE:
        return ""
    text = f"will be unknown: facts can be checked in {100 * share:.0f} % of the sampled conversations"
    return (
        f"{text} ({why_off})"
        if why_off
        else f"{text}; all other replies have no passages and no gold, so their facts cannot be checked"
    )


def _compute_expected_failure_rates(
    strata: Sequence[str], facts: Sequence[GradedStratum], earlier: Sequence[NightlyReport]
) -> Mapping[str, ExpectedRate]:
    """Compute the expected rate of any failure for each stratum: wrong facts, and failures of other kinds."""
    expected = compute_expected_failure_rates(strata, facts)
    failed_rates = [fact.failed.rate for fact in earlier if isinstance(fact.failed, RateEstimate)]
    graded = [fact for fact in facts if fact.graded]
    if not failed_rates or not graded:
        return expected
    in_facts = fsum(fact.conversations * fact.failures / fact.graded for fact in graded)
    in_facts /= sum(fact.conversations for fact in graded)
    other_rate = (
        max(0.0, (fsum(failed_rates) / len(failed_rates) - in_facts) / (1 - in_facts)) if in_facts < 1 else 0.0
    )
    return {name: fact._replace(rate=fact.rate + (1 - fact.rate) * other_rate) for name, fact in expected.items()}


def _can_judge_grade_turn(turn: Turn) -> bool:
    return (turn.is_report or bool(turn.context)) and has_answer(turn)


def compute_average_report_rating(results: Sequence[CaseResult]) -> ReportsRated | None:
    """Compute the average rating of the sampled issue reports. Return ``None`` if there is no report."""
    reports = [result for result in results if result.case.triage is not None]
    rated = [
        Rated(float(rating), result.case.cluster_or_repository or place)
        for place, result in enumerate(reports)
        if (rating := find_lowest_judge_rating(result.assessment)) is not None
    ]
    if not reports:
        return None
    if not rated:
        return ReportsRated(reports=len(reports))
    average = compute_rating_mean(rated, lowest=MIN_RATING, highest=MAX_RATING)
    return ReportsRated(
        reports=len(reports), rated=len(rated), mean=average.value, low=average.low, high=average.high
    )


def compute_average_call_cost(earlier: Sequence[NightlyReport]) -> Decimal | None:
    """Compute the average cost of a judge call in earlier nightly runs.

    Return ``None`` if there were too few calls.
    """
    calls = sum(nightly.judging.calls for nightly in earlier)
    spent = sum((nightly.judging.cost_usd for nightly in earlier), Decimal(0))
    return spent / calls if calls >= MIN_CALLS else None


def estimate_call_cost(settings: JudgeSettings, turns: Sequence[Turn]) -> Decimal:
    """Estimate the cost of one judge call in dollars, from the length of the prompt and of the replies."""
    prompt_bytes = len(load_instructions(Task.GROUNDED).text.encode())
    bytes_each = prompt_bytes + sum(map(_count_bytes, turns)) / len(turns)
    usage = Usage(
        input_tokens=round(bytes_each / BYTES_PER_TOKEN),
        output_tokens=VERDICT_TOKENS,
        batch=settings.nightly_batches,
    )
    return compute_cost_usd(usage, settings.models[0].model, settings.prices)


def _count_bytes(turn: Turn) -> int:
    return sum(len(text.encode()) for text in (turn.user_text, turn.reply_text, *turn.context))
