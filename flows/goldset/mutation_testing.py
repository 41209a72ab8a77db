"""Computes the mutation score of a suite: how many deliberately wrong answers the graders catch.

A mutant is a right answer that was changed into a wrong answer. The target's graders grade every mutant, without a
model. The score is counted by kind of change, by grader and by severity.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from monitors.facts.quantities.scan import scan
from monitors.facts.refusals.detect import classify_refusal
from monitors.gate.assess import assess_case, decide_severity
from monitors.graders.base import (
    CONDITION,
    SAYS_MORE,
    SENTENCE,
    STATEMENT,
    UNCLEAR,
    UNREAD_GOLD,
    Grader,
    format_unsupported_language_reason,
)
from monitors.graders.panel import grade_exchange
from monitors.mutations.mutants import (
    LEFT_TO_JUDGE,
    MISPLACED,
    Mutant,
    MutationOperator,
    build_contradicting_mutants,
    build_mutants,
    build_right_reply,
    format_source_tag,
)
from monitors.plural import plural
from monitors.records.base import Finding, Record, Severity
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, Timings
from monitors.records.grades import Abstained, Aspect, Assessment, CaseOutcome, FailureKind, Judged
from monitors.records.runs import MutantCount, MutationScores
from monitors.stats.intervals import compute_wilson_interval

_FIXED_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""The timestamp of generated replies. Its value does not matter, because graders do not read it."""


class GradedMutant(Record):
    """A mutant with its grades.

    ``caught_by`` are the graders that failed the mutant. ``severity`` is the severity of its failure. ``passed`` is
    true if the graders passed the mutant. If no grader passed or failed the mutant, only the judge could grade it.
    """

    case_id: str
    operator: MutationOperator
    kind: FailureKind
    severity: Severity
    reply: str
    caught_by: tuple[str, ...]
    passed: bool


class RightReply(Record):
    """The result of grading a case's own gold as a reply. A reason is empty if it does not apply.

    ``wrong`` is the reason why the gold failed. ``open`` is the reason why no grader could pass the gold. If the
    gold passes, ``open_otherwise`` is the reason why a right reply in different words stays ungraded.
    """

    case_id: str
    wrong: str = ""
    open: str = ""
    open_otherwise: str = ""


def grade_gold_as_reply(case: GoldCase, panel: Sequence[Grader]) -> RightReply:
    """Grade a case's own gold as a reply. If the graders fail the gold, the gold or a grader is wrong."""
    assessment = assess_reply(case, build_right_reply(case), panel)
    match assessment.outcome:
        case CaseOutcome.FAILED:
            return RightReply(case_id=case.id, wrong=assessment.reason)
        case CaseOutcome.CORRECT:
            return RightReply(case_id=case.id, open_otherwise=_explain_ungraded_paraphrase(case, panel))
        case _:
            return RightReply(case_id=case.id, open=_explain_ungraded_facts(assessment))


def _explain_ungraded_facts(assessment: Assessment) -> str:
    """Return the reasons of the graders that could not grade the facts of a reply."""
    facts = [
        grade
        for grade in assessment.grades
        if isinstance(grade, Abstained) and grade.aspect is Aspect.FACTUAL_MATCH
    ]
    return "; ".join(grade.reason for grade in facts) or assessment.reason


_WORD_FOR_WORD: Final = frozenset({STATEMENT, SENTENCE, format_unsupported_language_reason(UNREAD_GOLD)})
"""Reasons why graders leave a reply ungraded if it does not repeat the gold word for word."""

_UNRELATED_REPLY: Final = "Gladly."
"""A reply that shares no word with any gold."""

_OPENER: Final = re.compile(r"(?i)\s*(yes|no|haan|nahi|नहीं|हाँ|हां)\s*[,.:;!।–—-]\s*")
"""Matches a yes or no at the start of a gold if punctuation follows. "No cover is given" does not match."""


def _explain_ungraded_paraphrase(case: GoldCase, panel: Sequence[Grader]) -> str:
    """Explain why a right reply in different words stays ungraded. Return an empty string if rules can grade it.

    Up to three invented replies are graded: an unrelated reply, the gold's figures alone, and the gold without its
    yes or no. For each reply, only some reasons of the graders count. For example, the unrelated reply can be
    wrong, so only the reasons in `_WORD_FOR_WORD` count for this reply.
    """
    left_open = _list_abstention_reasons(case, _UNRELATED_REPLY, panel) & _WORD_FOR_WORD
    opened = _OPENER.match(case.gold)
    opener, rest = (f"{opened[1]}.", case.gold[opened.end() :]) if opened else ("", case.gold)
    scanned = scan(case.gold)
    spans = (scanned.normalised.find_original_span(reading.start, reading.end) for reading in scanned.readings)
    figures = ", ".join(case.gold[start:end] for start, end in spans)
    if figures:
        left_open |= _list_abstention_reasons(case, f"{opener} It is {figures}", panel) & {SAYS_MORE}
    if opener and len(rest.split()) >= _MIN_SENTENCE_WORDS:
        left_open |= _list_abstention_reasons(case, rest, panel) & {UNCLEAR, CONDITION}
    return min(left_open, default="")


_MIN_SENTENCE_WORDS: Final = 3
"""Minimum number of words after a gold's yes or no, so that these words are graded as a separate reply.

For example, "online" in the gold "Yes, online" is too short.
"""


def _list_abstention_reasons(case: GoldCase, reply: str, panel: Sequence[Grader]) -> frozenset[str]:
    grades = assess_reply(case, reply, panel).grades
    return frozenset(grade.reason for grade in grades if isinstance(grade, Abstained))


def grade_mutants(
    cases: Sequence[GoldCase], panel: Sequence[Grader], *, citation_required: bool = True
) -> Iterator[GradedMutant]:
    """Build all mutants of ``cases`` and grade them. Yield the mutants in the order of ``cases``."""
    siblings = pair_cases_of_same_field(cases)
    for number, case in enumerate(cases):
        failing_anyway = _list_failing_graders(assess_reply(case, build_right_reply(case), panel))
        other = cases[(number + 1) % len(cases)]
        for mutant in build_mutants(
            case,
            siblings.get(case.id),
            citation_required=citation_required,
            other=other if other.question != case.question else None,
        ):
            yield _grade_mutant(case, mutant, panel, failing_anyway)


def pair_cases_of_same_field(cases: Iterable[GoldCase]) -> dict[str, GoldCase]:
    """Find, for each case, another case with the same field and language, but with a different cluster and gold.

    The result maps the id of each case to the other case. A case for which no other case is found is omitted.
    """
    groups: dict[tuple[str, str], list[GoldCase]] = {}
    for case in cases:
        if case.provenance.field and case.cluster and not case.expected_refusal:
            groups.setdefault((case.provenance.field, case.language), []).append(case)
    siblings: dict[str, GoldCase] = {}
    for group in groups.values():
        for at, case in enumerate(group):
            ring = (*group[at + 1 :], *group[:at])
            sibling = next(
                (
                    candidate
                    for candidate in ring
                    if candidate.cluster != case.cluster and candidate.gold != case.gold
                ),
                None,
            )
            if sibling is not None:
                siblings[case.id] = sibling
    return siblings


def _list_failing_graders(assessment: Assessment) -> tuple[str, ...]:
    return tuple(grade.grader for grade in assessment.grades if isinstance(grade, Judged) and not grade.passed)


def _grade_mutant(
    case: GoldCase, mutant: Mutant, panel: Sequence[Grader], failing_anyway: Sequence[str]
) -> GradedMutant:
    """Grade one mutant. Graders in ``failing_anyway`` are ignored, because they also fail the right reply."""
    assessment = assess_reply(case, mutant.reply, panel)
    failed = [grader for grader in _list_failing_graders(assessment) if grader not in failing_anyway]
    return GradedMutant(
        case_id=case.id,
        operator=mutant.operator,
        kind=mutant.kind,
        severity=decide_severity(case.severity, (mutant.kind,))[0],
        reply=mutant.reply,
        caught_by=tuple(failed),
        passed=not failed and assessment.outcome is CaseOutcome.CORRECT,
    )


def assess_reply(case: GoldCase, reply: str, panel: Sequence[Grader]) -> Assessment:
    """Grade an invented reply to a case, and return its assessment."""
    exchange = Exchange(
        run_id="mutants",
        case_id=case.id,
        turns=case.turns,
        earlier_answers=("",) * (len(case.turns) - 1),
        visible_text=reply,
        asked_at=_FIXED_TIME,
        timings=Timings(total_ms=0),
    )
    return assess_case(case, exchange, grade_exchange(panel, case, exchange))


class SuiteReach(Record):
    """The number of golds that were tried, and the number of golds that rules can grade.

    ``left`` contains the ids of the cases whose golds rules cannot grade, the most severe first.
    """

    golds: int
    by_rules: int
    left: tuple[str, ...] = ()

    @property
    def gradable_share(self) -> float:
        """The share of golds that rules can grade, from 0 to 1, and 1 for an empty suite."""
        return self.by_rules / self.golds if self.golds else 1.0

    def explain_rule_coverage_shortfall(self, floor: float) -> str:
        """Return a sentence which says that a run without a judge may not reach the coverage ``floor``.

        Return an empty string if the run can reach ``floor``.
        """
        if self.gradable_share >= floor:
            return ""
        return (
            f"rules can grade only {self.by_rules} of {plural(self.golds, 'gold')} ({self.gradable_share:.0%}) in "
            f"any wording, but coverage_floor is {floor:.0%}. Without a judge, a run may end INCONCLUSIVE"
        )


MAX_REACH_CASES: Final = 200
"""Maximum number of golds to try, spread evenly over the suite. Grading this many golds takes about a second."""


def count_cases_rules_can_grade(
    cases: Sequence[GoldCase], panel: Sequence[Grader], *, max_cases: int | None = None
) -> SuiteReach:
    """Count the cases whose replies rules can grade, whatever the words of the reply.

    If the suite has more than ``max_cases`` cases, only about ``max_cases`` cases are tried, spread evenly.
    """
    step = max(1, -(-len(cases) // max_cases)) if max_cases else 1
    tried = cases[::step]
    undecidable = sorted(
        (case for case in tried if not can_rules_grade_any_reply(case, panel)), key=lambda case: -case.severity
    )
    return SuiteReach(
        golds=len(tried), by_rules=len(tried) - len(undecidable), left=tuple(case.id for case in undecidable)
    )


def can_rules_grade_any_reply(case: GoldCase, panel: Sequence[Grader]) -> bool:
    """Return whether rules pass a right answer in new words and fail an answer that contradicts the gold.

    For a case with `must_say`, every answer that contains these words is right.
    """
    right = grade_gold_as_reply(case, panel)
    if case.must_say:
        return not (right.wrong or right.open)
    natural = f"It is {case.gold[:1].lower()}{case.gold[1:]}{format_source_tag(case)}"
    if right.wrong or right.open_otherwise:
        return False
    if right.open and assess_reply(case, natural, panel).outcome is not CaseOutcome.CORRECT:
        return False
    outcomes = [
        assess_reply(case, mutant.reply, panel).outcome
        for mutant in build_contradicting_mutants(case)[:MAX_CONTRADICTIONS]
    ]
    return CaseOutcome.CORRECT not in outcomes and CaseOutcome.FAILED in outcomes


MAX_CONTRADICTIONS: Final = 2
"""Maximum number of contradictions that are tried for each gold.

Those that change a value, or change yes to no, are tried first.
"""


CONTENT_ASPECTS: Final = frozenset({Aspect.FACTUAL_MATCH, Aspect.REFUSAL, Aspect.DISCLOSURE, Aspect.ERROR_LEAK})
"""Aspects of a reply's content.

The form of the reply is ignored, because a gold has no citations and can be very short.
"""

CITATION_KINDS: Final = frozenset({FailureKind.MISSING_CITATION, FailureKind.WRONG_CITATION})

FACT_FAILURE_KINDS: Final = frozenset(
    {FailureKind.WRONG_FACT, FailureKind.MISSING_FACT, FailureKind.SHOULD_HAVE_REFUSED, FailureKind.OVER_REFUSAL}
)
"""Failure kinds that graders can find only with a gold. Leaks and errors are found without a gold."""


class MutationVerdict(StrEnum):
    """Whether the graders pass the gold of a case and fail its bad reply, or why not."""

    DETECTED = "detected"
    GOLD_FAILS = "gold_fails"
    """The graders fail the case's own gold."""
    MISSED = "missed"
    """The graders pass the bad reply."""
    UNDECIDABLE = "undecidable"
    """Rules cannot decide, so a judge is needed."""


class MutationOutcome(Record):
    """The verdict for a case, with the reason."""

    detection: MutationVerdict
    reason: str


def explain_gold_failure(case: GoldCase, panel: Sequence[Grader]) -> str:
    """Explain why the graders fail the gold of ``case`` as a reply, or return an empty string if they do not.

    If the case expects a refusal, the gold is not graded, because it is not a reply.
    """
    if case.expected_refusal:
        return ""
    if classify_refusal(case.gold).refused:
        return "the gold declines to answer, but the case does not expect a refusal"
    return "; ".join(_list_content_failures(assess_reply(case, case.gold, panel)))


def check_bad_reply_is_detected(
    case: GoldCase, bad_reply: str | None, panel: Sequence[Grader], kind: FailureKind | None
) -> MutationOutcome:
    """Test whether the graders pass the gold and fail the bad reply. ``kind`` is the failure of the bad reply.

    Without a bad reply, test whether the graders fail generated wrong replies.
    """
    wrong = explain_gold_failure(case, panel)
    if wrong:
        return MutationOutcome(
            detection=MutationVerdict.GOLD_FAILS, reason=f"the graders fail the gold itself: {wrong}"
        )
    if not bad_reply:
        return _check_mutants_are_detected(case, panel)
    assessment = assess_reply(case, bad_reply, panel)
    failures = _list_content_failures(assessment) or (
        _list_failure_reasons(assessment, frozenset({Aspect.CITATION})) if kind in CITATION_KINDS else ()
    )
    if failures:
        gold = assess_reply(case, case.gold, panel)
        if case.expected_refusal or gold.factual_match is Finding.YES or _has_safety_failure(assessment):
            return MutationOutcome(
                detection=MutationVerdict.DETECTED, reason=f"the bad reply fails: {'; '.join(failures)}"
            )
        return MutationOutcome(
            detection=MutationVerdict.UNDECIDABLE,
            reason=f"the bad reply fails ({'; '.join(failures)}), but the rules cannot pass the gold without a "
            f"judge: {_format_abstentions(gold)}",
        )
    if assessment.factual_match is Finding.YES:
        return MutationOutcome(
            detection=MutationVerdict.MISSED, reason="the bad reply would pass, because it agrees with the gold"
        )
    return MutationOutcome(
        detection=MutationVerdict.UNDECIDABLE,
        reason=f"only a judge can fail the bad reply: {_format_abstentions(assessment)}",
    )


def _check_mutants_are_detected(case: GoldCase, panel: Sequence[Grader]) -> MutationOutcome:
    """Test whether the graders fail generated wrong replies to a case that has no known bad reply."""
    mutants = [
        mutant
        for mutant in grade_mutants([case], panel)
        if mutant.kind in FACT_FAILURE_KINDS and (mutant.caught_by or mutant.operator not in LEFT_TO_JUDGE)
    ]
    caught = sum(bool(mutant.caught_by) for mutant in mutants)
    if mutants and caught == len(mutants):
        return MutationOutcome(
            detection=MutationVerdict.DETECTED,
            reason=f"the case has no bad reply, but the graders fail all {caught} generated wrong replies",
        )
    tried = plural(len(mutants), "generated wrong reply", "generated wrong replies")
    reason = f"the case has no bad reply, and the graders fail only {caught} of {tried}"
    return MutationOutcome(detection=MutationVerdict.UNDECIDABLE, reason=reason)


def _list_failure_reasons(assessment: Assessment, aspects: frozenset[Aspect]) -> tuple[str, ...]:
    grades = [g for g in assessment.grades if isinstance(g, Judged) and not g.passed and g.aspect in aspects]
    return tuple(dict.fromkeys(grade.reason for grade in grades))


def _list_content_failures(assessment: Assessment) -> tuple[str, ...]:
    return _list_failure_reasons(assessment, CONTENT_ASPECTS)


def _has_safety_failure(assessment: Assessment) -> bool:
    return bool(_list_failure_reasons(assessment, frozenset({Aspect.DISCLOSURE, Aspect.ERROR_LEAK})))


def _format_abstentions(assessment: Assessment) -> str:
    open_ones = [g.reason for g in assessment.grades if isinstance(g, Abstained) and g.aspect in CONTENT_ASPECTS]
    return "; ".join(dict.fromkeys(open_ones)) or "no grader compares the reply with the gold"


MAX_SEVERE_CASES: Final = 60
"""Maximum number of severity-3 cases that a run tests with mutants.

The test of this many cases takes up to a second.
"""


def compute_mutation_score_of_severe_cases(
    cases: Iterable[GoldCase], panel: Sequence[Grader], *, citation_required: bool
) -> MutationScores | None:
    """Compute the mutation score of a suite's severity-3 cases for a run's report.

    Return ``None`` if the suite has no such case whose gold passes.
    """
    severe = [case for case in cases if case.severity is Severity.CRITICAL][:MAX_SEVERE_CASES]
    usable = [case for case in severe if not grade_gold_as_reply(case, panel).wrong]
    return (
        count_caught_mutants(list(grade_mutants(usable, panel, citation_required=citation_required)))
        if usable
        else None
    )


def count_caught_mutants(graded: Sequence[GradedMutant]) -> MutationScores:
    """Count all mutants and the caught mutants: in total, by mutation operator and by severity."""
    severe = [mutant for mutant in graded if mutant.severity is Severity.CRITICAL]
    excluded_operators = {MutationOperator.PERSONAL_DATA, *LEFT_TO_JUDGE}
    contradicting = [mutant for mutant in severe if mutant.operator not in excluded_operators]
    misplaced = [mutant for mutant in graded if mutant.operator in MISPLACED]
    operators = [
        (mutant.value, [graded_mutant for graded_mutant in graded if graded_mutant.operator is mutant])
        for mutant in MutationOperator
    ]
    severities = [
        (
            f"severity {mutant.value}",
            [graded_mutant for graded_mutant in graded if graded_mutant.severity is mutant],
        )
        for mutant in Severity
    ]
    return MutationScores(
        cases=len({graded_mutant.case_id for graded_mutant in graded}),
        whole=_build_mutant_count("all", graded),
        severe=_build_mutant_count("severity 3", severe),
        severe_without_personal_data=_build_mutant_count("severity 3 that contradict", contradicting),
        misplaced=_build_mutant_count("right value in the wrong place", misplaced),
        by_operator=tuple(_build_mutant_count(name, mutants) for name, mutants in operators if mutants),
        by_severity=tuple(_build_mutant_count(name, mutants) for name, mutants in severities if mutants),
    )


def _build_mutant_count(name: str, mutants: Sequence[GradedMutant]) -> MutantCount:
    caught = sum(bool(mutant.caught_by) for mutant in mutants)
    low, high = compute_wilson_interval(caught, len(mutants)) if mutants else (0.0, 1.0)
    catches = Counter(grader for mutant in mutants for grader in mutant.caught_by)
    return MutantCount(
        name=name,
        mutants=len(mutants),
        caught=caught,
        passed=sum(mutant.passed for mutant in mutants),
        low=low,
        high=high,
        by_grader=dict(sorted(catches.items())),
    )
