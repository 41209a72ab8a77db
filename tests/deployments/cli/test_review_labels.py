"""Labels and drafts are redacted, contain no real conversation ids, and are the same for one person and answer."""

from __future__ import annotations

import pytest

from deployments.cli.reviews.answers import build_draft_from_label, build_review_label, is_contradiction
from monitors.alerts.redact import redact
from monitors.records.base import Language, Severity
from monitors.records.exchanges import Origin
from monitors.records.grades import Aspect, CaseOutcome, FailureKind, Judged
from monitors.records.reviews import AnswerId, AnswerVerdict, GradedAnswer, LabelSource, SpotCheck
from tests.builders import NOON
from tests.warehouse.queries.test_reviews import facts


def verdict(*, passed: bool, aspect: Aspect = Aspect.FACTUAL_MATCH, kind=FailureKind.WRONG_FACT) -> Judged:
    return Judged(
        grader="rule", version="1", aspect=aspect, passed=passed,
        failure_kind=None if passed else kind, reason="asha.rao@example.com is right",
    )  # fmt: skip


def graded_answer(*grades: Judged) -> GradedAnswer:
    return GradedAnswer(
        answer_id=AnswerId(run_id="run-1", case_id="case-1"),
        target="demo",
        asked_at=NOON,
        severity=Severity.MAJOR,
        language=Language.ENGLISH,
        turns=("How long?",),
        answer="Mail asha.rao@example.com.",
        outcome=CaseOutcome.CORRECT if all(grade.passed for grade in grades) else CaseOutcome.FAILED,
        grades=grades,
    )


ANSWER = graded_answer(verdict(passed=True))
CHECK = SpotCheck(answer=ANSWER, inclusion_probability=0.05)


def label(verdict: AnswerVerdict = AnswerVerdict.WRONG, *, by: str = "asha", **more):
    return build_review_label(CHECK, verdict, by=by, at=NOON, redact=redact, **more)


def test_a_label_is_redacted_and_knows_how_likely_its_answer_was():
    found = label(failure_kind=FailureKind.WRONG_FACT, note="ask ravi@example.com")
    assert "example.com" not in found.model_dump_json()
    assert (found.source, found.inclusion_probability) == (LabelSource.REVIEW, 0.05)


def test_the_second_word_of_a_person_has_the_id_of_the_first_and_anothers_has_not():
    assert label().id == label(AnswerVerdict.RIGHT).id
    assert label().id != label(by="ravi").id


@pytest.mark.parametrize(
    ("said", "passed", "differs"),
    [
        (AnswerVerdict.RIGHT, True, False),
        (AnswerVerdict.RIGHT, False, True),
        (AnswerVerdict.WRONG, True, True),
        (AnswerVerdict.WRONG, False, False),
        (AnswerVerdict.UNSURE, True, False),
        (AnswerVerdict.UNSURE, False, False),
    ],
)
def test_contradictions_of_a_verdict(said, passed, differs):
    assert is_contradiction(label(said), graded_answer(facts(passed=passed))) is differs
    assert is_contradiction(label(said), graded_answer(verdict(passed=passed))) is differs


def test_a_failure_that_is_named_is_held_against_the_verdicts_on_the_same_question():
    """A label with a failure kind contradicts only verdicts on that kind.

    Here one rule passed a wrong fact, and another rule failed the same answer for its language.
    """
    language = verdict(passed=False, aspect=Aspect.LANGUAGE, kind=FailureKind.WRONG_LANGUAGE)
    answer = graded_answer(verdict(passed=True), language)
    assert is_contradiction(label(failure_kind=FailureKind.WRONG_FACT), answer)
    assert not is_contradiction(label(failure_kind=FailureKind.WRONG_LANGUAGE), answer)
    assert not is_contradiction(label(), answer)
    assert is_contradiction(label(failure_kind=FailureKind.PII_DISCLOSURE), graded_answer(verdict(passed=True)))


def test_a_wrong_answer_is_what_the_drafted_case_must_fail_on():
    with_gold = ANSWER.model_copy(update={"gold": "24 months"})
    draft = build_draft_from_label(label(), with_gold, redact)
    assert (draft.gold, draft.bad_reply, draft.source_id) == ("24 months", "Mail [e-mail].", "case-1")
    assert "example.com" not in draft.model_dump_json()


def test_a_right_answer_without_gold_is_proposed_as_gold():
    draft = build_draft_from_label(label(AnswerVerdict.RIGHT), ANSWER, redact)
    assert (draft.gold, draft.bad_reply, draft.failure_kind) == ("Mail [e-mail].", None, None)


def test_a_draft_does_not_name_a_real_conversation():
    traffic = ANSWER.model_copy(update={"origin": Origin.TRAFFIC})
    draft = build_draft_from_label(label(), traffic, redact)
    assert draft.source_id is None
    assert "case-1" not in draft.model_dump_json()
