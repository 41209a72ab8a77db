"""Tests of verdicts from one or three judges: majority, quorum, ties, and failures by rule.

In a tie, the worse verdict counts.
"""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from monitors.judge.consensus import (
    JudgeDecision,
    Opinion,
    SecondOpinionReason,
    Undecided,
    combine_judge_opinions,
    find_second_opinion_reasons,
    is_next_opinion_necessary,
)
from monitors.judge.verdict import CriteriaReading, CriterionVerdict, JudgeVerdict
from monitors.records.base import Finding, Severity
from monitors.records.grades import Criterion, FailureKind

NONE: frozenset[SecondOpinionReason] = frozenset()
SURE_RULES = Finding.UNGRADED


def opinion(score: float, judge: str = "judge-a", *kinds: FailureKind, rubric: int = 3) -> Opinion:
    passed = score >= 0.5
    return Opinion(
        judge=judge,
        verdict=JudgeVerdict(
            factual_match=passed,
            citation_present=True,
            score=score,
            rubric=rubric,
            failure_kinds=() if passed else kinds or (FailureKind.WRONG_FACT,),
            quotes=("24 months",),
            reason="because",
        ),
    )


scores = st.floats(0, 1)
opinions_lists = st.lists(scores.map(opinion), min_size=1, max_size=3)
findings = st.sampled_from(list(Finding))
severities = st.sampled_from(list(Severity))
doubt_sets = st.frozensets(st.sampled_from(list(SecondOpinionReason)))


def criteria(*answers: int) -> CriteriaReading:
    verdicts = (CriterionVerdict(name=name, score=score, quote="24 months", reason="") for name, score in zip(Criterion, answers, strict=True))  # fmt: skip
    return CriteriaReading(criteria=tuple(verdicts))


def test_the_lowest_answer_of_the_winning_side_counts_for_each_criterion():
    """For each criterion, the lowest score of the winning side counts; unreadable criteria of a judge are ignored."""
    unread = CriteriaReading(problem="the judge did not grade the criteria")
    readings = [criteria(1, 1, 0), criteria(0, 1, 1), unread]
    passing = [
        opinion(score).model_copy(update={"criteria": reading})
        for score, reading in zip((0.7, 0.9, 0.6), readings, strict=True)
    ]
    failing = opinion(0.1).model_copy(update={"criteria": criteria(0, 0, 0)})

    def decide(*opinions: Opinion) -> CriteriaReading:
        decided = combine_judge_opinions(opinions, NONE, members=3, severity=Severity.MAJOR, rules=SURE_RULES)
        assert isinstance(decided, JudgeDecision)
        return decided.criteria

    assert [answer.score for answer in decide(*passing, failing).criteria] == [0, 1, 0]
    assert decide(passing[2]) == unread


def test_a_sure_first_opinion_is_enough():
    assert find_second_opinion_reasons(opinion(0.95), severity=Severity.MAJOR, rules=SURE_RULES) == NONE
    assert find_second_opinion_reasons(opinion(0.05), severity=Severity.MAJOR, rules=Finding.NO) == NONE
    assert not is_next_opinion_necessary([opinion(0.95)], NONE, members_left=2)


def test_each_doubt_is_found():
    assert find_second_opinion_reasons(opinion(0.6), severity=Severity.MAJOR, rules=SURE_RULES) == {
        SecondOpinionReason.UNSURE_SCORE
    }
    assert find_second_opinion_reasons(opinion(0.95), severity=Severity.CRITICAL, rules=SURE_RULES) == {
        SecondOpinionReason.SEVERITY_3
    }
    assert find_second_opinion_reasons(opinion(0.95), severity=Severity.MAJOR, rules=Finding.NO) == {
        SecondOpinionReason.AGAINST_RULES
    }
    assert find_second_opinion_reasons(opinion(0.05), severity=Severity.MAJOR, rules=Finding.YES) == {
        SecondOpinionReason.AGAINST_RULES
    }


def test_in_doubt_a_second_is_asked_and_a_third_only_when_two_disagree():
    doubts = frozenset({SecondOpinionReason.SEVERITY_3})
    assert is_next_opinion_necessary([], NONE, members_left=1)
    assert is_next_opinion_necessary([opinion(0.9)], doubts, members_left=2)
    assert not is_next_opinion_necessary([opinion(0.9), opinion(0.8)], doubts, members_left=1)
    assert is_next_opinion_necessary([opinion(0.9), opinion(0.2)], doubts, members_left=1)
    assert not is_next_opinion_necessary([opinion(0.9), opinion(0.2)], doubts, members_left=0)


@given(st.lists(scores.map(opinion), min_size=3, max_size=3), severities, findings, doubt_sets)
def test_the_third_that_was_not_asked_would_have_changed_nothing(three, severity, rules, doubts):
    two = three[:2]
    if not is_next_opinion_necessary(two, doubts, members_left=1) and doubts:
        short = combine_judge_opinions(two, doubts, members=3, severity=severity, rules=rules)
        whole = combine_judge_opinions(three, doubts, members=3, severity=severity, rules=rules)
        assert type(short) is type(whole)
        if isinstance(short, JudgeDecision) and isinstance(whole, JudgeDecision):
            assert short.passed == whole.passed


@given(opinions_lists, doubt_sets, severities, findings, st.sampled_from([1, 3]))
def test_the_majority_decides_and_a_tie_takes_the_worse(opinions, doubts, severity, rules, seats):
    decided = combine_judge_opinions(opinions, doubts, members=seats, severity=severity, rules=rules)
    passing = sum(o.verdict.factual_match for o in opinions)
    if isinstance(decided, JudgeDecision):
        assert decided.passed == (passing > len(opinions) - passing)
        assert decided.passed == (not decided.failure_kinds)
        assert decided.speaker.verdict.factual_match == decided.passed
        assert bool(decided.disagreement) == (0 < passing < len(opinions))


@given(opinions_lists, doubt_sets, severities, st.sampled_from([1, 3]))
def test_no_number_of_judges_passes_what_a_rule_failed(opinions, doubts, severity, seats):
    """An answer that a rule failed does not pass, even if all judges pass it."""
    decided = combine_judge_opinions(opinions, doubts, members=seats, severity=severity, rules=Finding.NO)
    assert isinstance(decided, Undecided) or not decided.passed


@given(opinions_lists, doubt_sets, severities, findings)
def test_the_order_of_the_judges_does_not_matter(opinions, doubts, severity, rules):
    decided = [
        combine_judge_opinions(order, doubts, members=3, severity=severity, rules=rules)
        for order in permutations(opinions)
    ]
    plain = [
        d if isinstance(d, Undecided) else (d.passed, d.score, d.rubric, set(d.failure_kinds), d.unconfirmed)
        for d in decided
    ]
    assert all(each == plain[0] for each in plain)


def test_a_doubtful_pass_needs_two_where_three_are_seated():
    doubts = frozenset({SecondOpinionReason.SEVERITY_3})
    alone = combine_judge_opinions([opinion(0.9)], doubts, members=3, severity=Severity.CRITICAL, rules=SURE_RULES)
    assert isinstance(alone, Undecided)
    assert "severity 3" in alone.reason
    assert combine_judge_opinions(
        [opinion(0.9)], doubts, members=1, severity=Severity.CRITICAL, rules=SURE_RULES
    ).passed
    assert combine_judge_opinions(
        [opinion(0.9), opinion(0.8)], doubts, members=3, severity=Severity.CRITICAL, rules=SURE_RULES
    ).passed


def test_a_severity_3_failure_by_one_judge_alone_is_marked():
    for seats in (1, 3):
        alone = combine_judge_opinions(
            [opinion(0.1)], frozenset(), members=seats, severity=Severity.CRITICAL, rules=SURE_RULES
        )
        assert not alone.passed
        assert alone.unconfirmed
    doubts = frozenset({SecondOpinionReason.SEVERITY_3})
    confirmed = combine_judge_opinions(
        [opinion(0.1), opinion(0.2)], doubts, members=3, severity=Severity.CRITICAL, rules=SURE_RULES
    )
    assert not confirmed.unconfirmed
    with_rule = combine_judge_opinions(
        [opinion(0.1)], frozenset(), members=1, severity=Severity.CRITICAL, rules=Finding.NO
    )
    assert not with_rule.unconfirmed
    mild = combine_judge_opinions([opinion(0.1)], frozenset(), members=1, severity=Severity.MAJOR, rules=SURE_RULES)
    assert not mild.unconfirmed


def test_disagreement_is_recorded_with_names_and_the_worst_speaks():
    opinions = [
        opinion(0.9, "claude"),
        opinion(0.2, "gpt", FailureKind.MISSING_FACT),
        opinion(0.4, "gemini", FailureKind.WRONG_FACT, FailureKind.MISSING_FACT, rubric=2),
    ]
    decided = combine_judge_opinions(
        opinions,
        frozenset({SecondOpinionReason.UNSURE_SCORE}),
        members=3,
        severity=Severity.MAJOR,
        rules=SURE_RULES,
    )
    assert isinstance(decided, JudgeDecision)
    assert "passed by claude; failed by gpt, gemini" in decided.disagreement
    assert decided.speaker.judge == "gpt"
    assert (decided.score, decided.rubric, decided.asked) == (0.2, 2, 3)
    assert decided.failure_kinds[0] is FailureKind.MISSING_FACT


def test_without_an_opinion_there_is_no_verdict():
    none = combine_judge_opinions([], NONE, members=3, severity=Severity.CRITICAL, rules=Finding.NO)
    assert isinstance(none, Undecided)
    assert none.asked == 0
