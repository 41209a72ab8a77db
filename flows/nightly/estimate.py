"""The estimates of a nightly run: counts by stratum, rates with intervals, drift, the quality of questions. Pure.

It also plans: which rates a nightly run will give at what cost, by what earlier runs took and found.
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

from flows.nightly.grading import is_safely_graded, is_unanswered
from flows.runtime.judge import JudgePlan
from monitors.gate.assess import worst_first
from monitors.gate.ratings import BEST, WORST, rating_of
from monitors.judge.canaries import canaries_for
from monitors.judge.model import BYTES_PER_TOKEN, Usage, cost_usd
from monitors.judge.prompt import Task, instructions
from monitors.judge.settings import JudgeSettings
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
    QuestionsAsked,
    Rate,
    ReportsRated,
)
from monitors.records.runs import CaseResult
from monitors.records.traffic import Conversation, SampledConversation, StratumCount, Turn
from monitors.sources.question_quality import QuestionQuality, QuestionTally, question_quality
from monitors.sources.sampling.plan import FAILED, SEVERE, Grading, PlannedRate
from monitors.sources.sampling.sample import ExpectedRate, expected_rates
from monitors.stats.agreement import Confusion
from monitors.stats.drift import begin, observe, read, recover
from monitors.stats.ratings import Rated, rating_mean
from monitors.stats.stratified import counted_rate, estimate_rate, join_rates, sequential_counts

RULES: Final = "rules"
"""The name of the grader where there was no judge."""
SETTLED: Final = timedelta(days=7)
"""After a drift alert people have a week; then the new rate is the reference of the next nightly runs."""
STANDS: Final = "the changed rate has stood for a week and is the reference now"
NO_FACT: Final = "no fact was checked"

Assessments = Mapping[str, Sequence[Assessment]]
"""The assessments of each sampled conversation's replies, by the conversation's id."""
FACTS: Final = frozenset({Aspect.FACTUAL_MATCH, Aspect.REFUSAL})
"""What needs gold or passages to be checked; all else rules find in every reply."""
ENOUGH_CHECKED: Final = 0.5
"""The share of conversations that rules passed whose facts must be checked to take the others as alike."""

Fails = Callable[[Assessment], bool]


class FailureBasis(StrEnum):
    """What decides whether a conversation that rules passed has failed."""

    NOTHING_OPEN = "nothing open"
    """No fact can make it fail in the way in question."""
    GOLD = "gold"
    """Rules compared a reply with its gold."""
    JUDGE = "judge"
    NOBODY = "nobody"


class _ConversationResult(NamedTuple):
    """A sampled conversation's answer to one question: what decides it, and whether the conversation failed."""

    stratum: str
    by_rule: bool
    is_safe: bool
    by: FailureBasis
    fails: bool


class NightlyEstimates:
    """The counts and rates of one nightly run.

    Rules check every reply. Facts are another matter: they are graded only where a reply was compared with gold or
    passages. A conversation is graded for its facts when some reply was and every judge that was asked gave a
    verdict. ``why_unchecked`` says why facts were not checked, ``confusion`` is the judge's record against people,
    ``disclosing`` how many of how many disclose something, counted in all conversations of the nightly run;
    ``failing`` the share of all that rules alone show to have failed, below which the rate of any failure cannot
    lie.
    """

    def __init__(
        self,
        strata: Sequence[StratumCount],
        sampled: Sequence[SampledConversation],
        said: Assessments,
        *,
        why_unchecked: str = "",
        confusion: Confusion | None = None,
        disclosing: tuple[int, int] | None = None,
        failing: float = 0.0,
    ) -> None:
        self._failing = failing
        self._disclosing = disclosing
        self._strata, self._sampled, self._said = strata, sampled, said
        self._why, self._confusion = why_unchecked, confusion

    def checkable(self, asks: Callable[[Conversation], bool]) -> float:
        """The share of the sampled conversations whose facts are checked: by rule, or where a judge ``asks``."""
        checked = sum(
            asks(one.conversation) or any(map(_fact_grades, self.said(one.conversation.id)))
            for one in self._sampled
        )
        return checked / len(self._sampled) if self._sampled else 0.0

    def said(self, conversation_id: str) -> Sequence[Assessment]:
        """The assessments of a sampled conversation's replies."""
        return self._said.get(conversation_id, ())

    def is_graded(self, conversation_id: str) -> bool:
        """Whether a conversation in which nothing was found can be called correct: one of its facts was checked."""
        standing = _standing("", self.said(conversation_id), _failed, _any_facts)
        return standing.by in {FailureBasis.GOLD, FailureBasis.JUDGE} and standing.is_safe

    def severe(self) -> Rate:
        """The share that failed with severity 3. Facts count where a case or the target gives that severity."""
        standings = self._standings(_severe, _grave_facts)
        others = [one for one in standings if not one.by_rule]
        graded = [one for said in self._said.values() for one in said]
        if self._disclosing is None or any(map(_severe_besides_disclosure, graded)):
            return self._rate(_severe, _grave_facts)
        found, there = self._disclosing
        counted = counted_rate(found, there, sampled=len(self._sampled))
        if any(one.fails or one.by is not FailureBasis.NOTHING_OPEN for one in others) and isinstance(
            counted, RateEstimate
        ):
            return self._rate(_severe, _grave_facts, counted)
        return counted

    def failed(self) -> Rate:
        """The share that failed in any way: what rules found, and of the rest what was wrong in its facts."""
        found = self._rate(_failed, _any_facts)
        if isinstance(found, RateUnknown):
            return found
        return found.raise_to(self._failing)

    def severe_found(self) -> tuple[GradedStratum, ...]:
        """How many failed with severity 3, stratum by stratum."""
        standings = self._standings(_severe, _grave_facts)
        return self._counted((one, _is_settled(one), one.by_rule or one.fails) for one in standings)

    def facts(self) -> tuple[GradedStratum, ...]:
        """How many of those whose facts were graded failed for them, of the conversations that rules passed."""
        standings = [one for one in self._standings(_failed, _any_facts) if not one.by_rule]
        return self._counted(
            (one, one.by in {FailureBasis.GOLD, FailureBasis.JUDGE}, one.fails) for one in standings
        )

    def found_by_rules(self, besides: AbstractSet[FailureKind] = frozenset()) -> tuple[GradedStratum, ...]:
        """How many failed in a way that needs no judge; a kind in ``besides`` does not count where it is alone.

        A kind that rules check in every conversation has its own exact rate, which shows when it changes. A burst
        of it is no second drift.
        """
        standings = self._standings(_besides(besides), _any_facts)
        return self._counted((one, one.is_safe or one.by_rule, one.by_rule or one.fails) for one in standings)

    def checked(self) -> FactsChecked:
        """How many replies had their facts checked, by what."""
        grades = [_fact_grades(one) for said in self._said.values() for one in said]
        judged = sum(any(grade.grader == JUDGE for grade in each) for each in grades)
        return FactsChecked(replies=len(grades), by_judge=judged, by_gold=sum(map(bool, grades)) - judged)

    def against_gold(self) -> KnownQuestions | None:
        """The results of conversations whose questions stand in the gold set, where there were any."""
        graded = [
            [grade for one in said for grade in _fact_grades(one) if grade.grader != JUDGE]
            for said in self._said.values()
        ]
        failed = sum(any(not grade.passed for grade in grades) for grades in graded)
        found = sum(map(bool, graded))
        return KnownQuestions(conversations=found, failed=failed) if found else None

    def kinds(self) -> tuple[KindRate, ...]:
        """Each kind of failure that was found, the worst first, with the share of all that have it."""
        found = Counter(
            kind for said in self._said.values() for kind in {k for one in said for k in one.failure_kinds}
        )
        return tuple(
            KindRate(kind=kind, failures=found[kind], rate=self._kind_rate(kind)) for kind in worst_first(found)
        )

    def _kind_rate(self, kind: FailureKind) -> Rate:
        standings = list(self._standings(_has(kind), _any_facts, kind))
        if not any(one.fails for one in standings):
            return estimate_rate(self._counted((one, one.is_safe or one.by_rule, one.by_rule) for one in standings))
        passed = [one for one in standings if one.is_safe]
        if sum(one.by is not FailureBasis.NOBODY for one in passed) < ENOUGH_CHECKED * len(passed):
            return self._unknown(len(standings), passed)
        judged = any(one.by is FailureBasis.JUDGE for one in standings)
        graded = (
            (one, one.by is not FailureBasis.NOBODY or one.by_rule, one.by_rule or one.fails) for one in standings
        )
        return estimate_rate(self._counted(graded), judged=judged, finite=False)

    def _rate(self, fails: Fails, open_facts: Fails, counted: RateEstimate | None = None) -> Rate:
        """The rate of what rules found, and of wrong facts in the conversations that rules passed.

        What rules found is estimated from the sample, unless it was ``counted`` in every conversation.
        """
        standings = list(self._standings(fails, open_facts))
        by_rule = counted or estimate_rate(
            self._counted((one, one.is_safe or one.by_rule, one.by_rule) for one in standings)
        )
        passed = [one for one in standings if one.is_safe and not one.by_rule]
        if isinstance(by_rule, RateUnknown):
            return by_rule
        graded = sum(one.by is not FailureBasis.NOBODY for one in passed)
        if graded < max(1, ENOUGH_CHECKED * len(passed)) and passed:
            return self._unknown(len(standings), passed)
        parts = self._parts(passed, rest=1 - by_rule.rate)
        settled = sum(map(_is_settled, standings))
        return join_rates(by_rule, parts).count_graded(settled)

    def _unknown(self, sampled: int, passed: Sequence[_ConversationResult]) -> RateUnknown:
        graded = sum(one.by in {FailureBasis.GOLD, FailureBasis.JUDGE} for one in passed)
        why = f" ({self._why})" if self._why else ""
        among = f" in the {len(passed):,} of {sampled:,} that rules passed" if len(passed) < sampled else ""
        text = f"a fact was checked in only {graded:,} of {sampled:,} sampled" if graded else f"{NO_FACT}{among}"
        there = sum(one.conversations for one in self._strata)
        return RateUnknown(conversations=there, sampled=sampled, why=f"{text}{why}")

    def _parts(self, passed: Sequence[_ConversationResult], rest: float) -> list[tuple[float, RateEstimate]]:
        """Shares of the conversations by what decides, each with its rate; ungraded ones go with the last."""
        last = FailureBasis.JUDGE if any(one.by is FailureBasis.JUDGE for one in passed) else FailureBasis.GOLD
        placed = [one._replace(by=last) if one.by is FailureBasis.NOBODY else one for one in passed]
        sizes = {by: self._sizes(by, placed) for by in (FailureBasis.GOLD, FailureBasis.JUDGE)}
        everything = fsum(fsum(self._sizes(by, placed).values()) for by in FailureBasis)
        parts: list[tuple[float, RateEstimate]] = []
        for by, size in sizes.items():
            found = self._of_part(by, passed, placed, size)
            if isinstance(found, RateEstimate):
                parts.append((rest * fsum(size.values()) / everything, found))
        return parts

    def _sizes(self, by: FailureBasis, placed: Sequence[_ConversationResult]) -> Mapping[str, float]:
        """How many conversations of each stratum a part stands for: its share of those that rules passed."""
        here = Counter(one.stratum for one in placed if one.by is by)
        return {
            one.stratum: one.conversations * here[one.stratum] / one.sampled for one in self._strata if one.sampled
        }

    def _of_part(
        self,
        by: FailureBasis,
        passed: Sequence[_ConversationResult],
        placed: Sequence[_ConversationResult],
        size: Mapping[str, float],
    ) -> Rate | None:
        mine = [(one, was.by is by) for one, was in zip(placed, passed, strict=True) if one.by is by]
        sampled = Counter(one.stratum for one, _ in mine)
        graded_counts = Counter(one.stratum for one, graded in mine if graded)
        failures = Counter(one.stratum for one, graded in mine if graded and one.fails)
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
        confusion = self._confusion if by is FailureBasis.JUDGE else None
        return (
            estimate_rate(strata, confusion=confusion, judged=by is FailureBasis.JUDGE, finite=False)
            if strata
            else None
        )

    def _standings(
        self, fails: Fails, open_facts: Fails, kind: FailureKind | None = None
    ) -> Iterator[_ConversationResult]:
        for one in self._sampled:
            yield _standing(one.stratum, self.said(one.conversation.id), fails, open_facts, kind)

    def _counted(self, graded: Iterable[tuple[_ConversationResult, bool, bool]]) -> tuple[GradedStratum, ...]:
        """Counts by stratum of (conversation, whether it was graded, whether it failed)."""
        graded_counts, failures = Counter[str](), Counter[str]()
        for one, is_graded, fails in graded:
            graded_counts[one.stratum] += is_graded
            failures[one.stratum] += is_graded and fails
        return tuple(
            GradedStratum(
                stratum=each.stratum,
                conversations=each.conversations,
                sampled=each.sampled,
                graded=graded_counts[each.stratum],
                failures=failures[each.stratum],
            )
            for each in self._strata
        )


def _standing(
    stratum: str,
    said: Sequence[Assessment],
    fails: Fails,
    open_facts: Fails,
    kind: FailureKind | None = None,
) -> _ConversationResult:
    failing = [one for one in said if fails(one)]
    by_rule = any(_fails_by_rule(one, {kind} if kind else set(one.failure_kinds)) for one in failing)
    is_safe = bool(said) and all(map(is_safely_graded, said))
    return _ConversationResult(
        stratum, by_rule, is_safe, _decided_by(said, failing, open_facts), bool(failing) and not by_rule
    )


def _decided_by(said: Sequence[Assessment], failing: Sequence[Assessment], open_facts: Fails) -> FailureBasis:
    asked = [one for one in said if open_facts(one) or one in failing]
    if not asked:
        return FailureBasis.NOTHING_OPEN
    unanswered = any(is_unanswered(grade) for one in asked for grade in one.grades)
    graded = [grade for one in asked for grade in _fact_grades(one)]
    if not graded or (unanswered and not failing):
        return FailureBasis.NOBODY
    return FailureBasis.JUDGE if any(grade.grader == JUDGE for grade in graded) else FailureBasis.GOLD


def _is_settled(one: _ConversationResult) -> bool:
    return one.by_rule or (one.is_safe and one.by is not FailureBasis.NOBODY)


def _fact_grades(assessment: Assessment) -> list[Judged]:
    return [grade for grade in assessment.grades if isinstance(grade, Judged) and grade.aspect in FACTS]


def _fails_by_rule(assessment: Assessment, kinds: AbstractSet[FailureKind]) -> bool:
    return any(
        isinstance(grade, Judged) and grade.aspect not in FACTS and grade.failure_kind in kinds
        for grade in assessment.grades
    )


def _failed(assessment: Assessment) -> bool:
    return assessment.outcome is CaseOutcome.FAILED


def _besides(kinds: AbstractSet[FailureKind]) -> Fails:
    return lambda one: _failed(one) and not set(one.failure_kinds) <= kinds


def _severe(assessment: Assessment) -> bool:
    return _failed(assessment) and assessment.severity is Severity.PAGE


def _severe_besides_disclosure(assessment: Assessment) -> bool:
    """Whether rules found something of severity 3 that is not counted in every conversation."""
    by_rule = _severe(assessment) and _fails_by_rule(assessment, set(assessment.failure_kinds))
    return by_rule and not _fails_by_rule(assessment, {FailureKind.PII_DISCLOSURE})


def _has(kind: FailureKind) -> Fails:
    return lambda one: kind in one.failure_kinds


def _any_facts(_assessment: Assessment) -> bool:
    return True


def _grave_facts(assessment: Assessment) -> bool:
    return assessment.case_severity is Severity.PAGE


def drift_after(
    before: DriftState | None, due_at: datetime, failed: Sequence[GradedStratum], graded_by: str
) -> tuple[DriftState, DriftReading]:
    """The test's state with one more run, and its reading. A change reported a week ago is the new reference."""
    if before is not None and before.alarm is not None and due_at - before.alarm.raised >= SETTLED:
        before = begin(before.graded_by, STANDS)
    failures, graded = sequential_counts(failed)
    state = recover(observe(before, DriftCount(due_at=due_at, failures=failures, graded=graded), graded_by))
    return state, read(state)


def questions_of(tally: QuestionTally) -> QuestionsAsked:
    """How users rated the application's clarifying questions."""
    found = question_quality(tally)
    if isinstance(found, QuestionQuality):
        return QuestionsAsked(
            questions=found.questions,
            recognised=found.recognised,
            up=found.up,
            down=found.down,
            share=found.share,
            low=found.low,
            high=found.high,
        )
    return QuestionsAsked(questions=found.questions, recognised=found.recognised, up=0, down=0)


VERDICT_TOKENS: Final = 300
"""A verdict with two quotes and a reason, generously."""
FEWEST_CALLS: Final = 20
"""Calls of earlier nightly runs from which on their price says more than a calculation."""


def expected_grading(plan: JudgePlan, sampled: Sequence[Conversation], earlier: Sequence[NightlyReport]) -> Grading:
    """Calls for a sampled conversation, and dollars for a call; none without a judge or passages to judge by."""
    settings = plan.settings
    askable = [turn for one in sampled for turn in one.turns if _is_askable(turn)]
    if settings is None or plan.why_off or not askable:
        return Grading(calls_per_conversation=0.0, usd_per_call=Decimal(0))
    canaries = canaries_for(len(askable), batch_size=settings.batch_size, canaries=settings.canaries)
    ride = 1 + canaries / min(len(askable), settings.batch_size)
    return Grading(
        calls_per_conversation=len(askable) / len(sampled) * ride,
        usd_per_call=_paid(earlier) or _reckoned(settings, askable),
    )


def wanted_rates(
    estimates: NightlyEstimates, strata: Sequence[StratumCount], plan: JudgePlan, earlier: Sequence[NightlyReport]
) -> tuple[PlannedRate, PlannedRate]:
    """The rates that the nightly run will report, of a sample that only rules have graded so far."""
    names = [one.stratum for one in strata]
    speaks = plan.settings is not None and not plan.why_off
    share = estimates.checkable(lambda one: speaks and any(map(_is_askable, one.turns)))
    severe = [one for nightly in earlier for one in nightly.strata]
    facts = [one for nightly in earlier for one in nightly.fact_strata]
    return (
        PlannedRate(
            SEVERE,
            expected_rates(names, severe),
            graded_share=_graded_share(estimates.severe(), share),
            learnt=any(one.graded for one in severe),
            why_none=_why_none(estimates.severe(), share, plan.why_off),
        ),
        PlannedRate(
            FAILED,
            _any_failure(names, facts, earlier),
            graded_share=_graded_share(estimates.failed(), share),
            learnt=any(one.graded for one in facts),
            why_none=_why_none(estimates.failed(), share, plan.why_off),
        ),
    )


def _graded_share(rate: Rate, share: float) -> float:
    return max(share, rate.graded / rate.sampled) if isinstance(rate, RateEstimate) and rate.sampled else share


def _why_none(rate: Rate, share: float, why_off: str) -> str:
    """Why a rate will have no interval. ``rate`` is the estimate by rules alone."""
    if isinstance(rate, RateEstimate) and rate.is_counted:
        return "counted in every conversation, so without an interval"
    if isinstance(rate, RateEstimate) or share >= ENOUGH_CHECKED:
        return ""
    text = f"will be unknown: facts can be checked in {100 * share:.0f} % of the sampled conversations"
    return f"{text} ({why_off})" if why_off else f"{text}: the others have neither passages nor gold"


def _any_failure(
    strata: Sequence[str], facts: Sequence[GradedStratum], earlier: Sequence[NightlyReport]
) -> Mapping[str, ExpectedRate]:
    """Of each stratum what was wrong in its facts, and everywhere what earlier runs found besides, on average."""
    expected = expected_rates(strata, facts)
    found = [one.failed.rate for one in earlier if isinstance(one.failed, RateEstimate)]
    graded = [one for one in facts if one.graded]
    if not found or not graded:
        return expected
    in_facts = fsum(one.conversations * one.failures / one.graded for one in graded)
    in_facts /= sum(one.conversations for one in graded)
    besides = max(0.0, (fsum(found) / len(found) - in_facts) / (1 - in_facts)) if in_facts < 1 else 0.0
    return {name: one._replace(rate=one.rate + (1 - one.rate) * besides) for name, one in expected.items()}


def _is_askable(turn: Turn) -> bool:
    return (turn.is_report or bool(turn.context)) and bool(turn.reply_text.strip())


def reports_rated(results: Sequence[CaseResult]) -> ReportsRated | None:
    """The average rating of the sampled reports on issues; ``None`` where there was no such report."""
    reports = [one for one in results if one.case.triage is not None]
    rated = [
        Rated(float(rating), one.case.related or place)
        for place, one in enumerate(reports)
        if (rating := rating_of(one.assessment)) is not None
    ]
    if not reports:
        return None
    if not rated:
        return ReportsRated(reports=len(reports))
    average = rating_mean(rated, least=WORST, most=BEST)
    return ReportsRated(
        reports=len(reports), rated=len(rated), mean=average.value, low=average.low, high=average.high
    )


def _paid(earlier: Sequence[NightlyReport]) -> Decimal | None:
    """What a call cost in earlier nightly runs, on average."""
    calls = sum(one.judging.calls for one in earlier)
    spent = sum((one.judging.cost_usd for one in earlier), Decimal(0))
    return spent / calls if calls >= FEWEST_CALLS else None


def _reckoned(settings: JudgeSettings, turns: Sequence[Turn]) -> Decimal:
    prompt_bytes = len(instructions(Task.GROUNDED).text.encode())
    bytes_each = prompt_bytes + sum(map(_bytes, turns)) / len(turns)
    usage = Usage(
        input_tokens=round(bytes_each / BYTES_PER_TOKEN),
        output_tokens=VERDICT_TOKENS,
        batch=settings.nightly_batches,
    )
    return cost_usd(usage, settings.models[0].model, settings.prices)


def _bytes(turn: Turn) -> int:
    return sum(len(text.encode()) for text in (turn.user_text, turn.reply_text, *turn.context))
