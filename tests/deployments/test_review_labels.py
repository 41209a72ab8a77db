"""Labels and drafts: redacted, the same for the same person and answer, and no id of a real conversation in a draft."""

from __future__ import annotations

import pytest

from deployments.review_labels import contradicts, draft_of, label_of
from monitors.alerts.redact import redact
from monitors.records.exchanges import Origin
from monitors.records.grades import FailureKind
from monitors.records.reviews import AnswerVerdict, LabelSource, SpotCheck
from tests.builders import NOON
from tests.monitors.judge.test_sampling_queue import judged_answer

ANSWER = judged_answer(1).model_copy(
    update={"answer": "Mail asha.rao@example.com.", "judge_reason": "asha.rao@example.com is right"}
)
CHECK = SpotCheck(answer=ANSWER, inclusion_probability=0.05)


def label(verdict: AnswerVerdict = AnswerVerdict.WRONG, *, by: str = "asha", **more):
    return label_of(CHECK, verdict, by=by, at=NOON, redact=redact, **more)


def test_a_label_is_redacted_and_knows_how_likely_its_answer_was():
    found = label(failure_kind=FailureKind.WRONG_FACT, note="ask ravi@example.com")
    assert "example.com" not in found.model_dump_json()
    assert (found.source, found.inclusion_probability) == (LabelSource.REVIEW, 0.05)


def test_the_second_word_of_a_person_has_the_id_of_the_first_and_anothers_has_not():
    assert label().id == label(AnswerVerdict.RIGHT).id
    assert label().id != label(by="ravi").id


@pytest.mark.parametrize(
    ("verdict", "judge_passed", "differs"),
    [
        (AnswerVerdict.RIGHT, True, False),
        (AnswerVerdict.RIGHT, False, True),
        (AnswerVerdict.WRONG, True, True),
        (AnswerVerdict.WRONG, False, False),
        (AnswerVerdict.UNSURE, True, False),
        (AnswerVerdict.UNSURE, False, False),
    ],
)
def test_who_contradicts_the_judge(verdict, judge_passed, differs):
    assert contradicts(label(verdict), judged_answer(1, passed=judge_passed)) is differs


def test_a_wrong_answer_is_what_the_drafted_case_must_fail_on():
    with_gold = ANSWER.model_copy(update={"gold": "24 months"})
    draft = draft_of(label(), with_gold, redact)
    assert (draft.gold, draft.bad_reply, draft.source_id) == ("24 months", "Mail [e-mail].", "case-1")
    assert "example.com" not in draft.model_dump_json()


def test_a_right_answer_without_gold_is_proposed_as_gold():
    draft = draft_of(label(AnswerVerdict.RIGHT), ANSWER, redact)
    assert (draft.gold, draft.bad_reply, draft.failure_kind) == ("Mail [e-mail].", None, None)


def test_a_draft_does_not_name_a_real_conversation():
    traffic = ANSWER.model_copy(update={"origin": Origin.TRAFFIC})
    draft = draft_of(label(), traffic, redact)
    assert draft.source_id is None
    assert "case-1" not in draft.model_dump_json()
