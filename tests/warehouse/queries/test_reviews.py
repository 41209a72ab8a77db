"""Test that graded answers are sampled for reviews, and that human labels are compared with rules and judge."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from monitors.records.exchanges import Channel
from monitors.records.grades import Aspect, FailureKind, Judged, JudgeLineage, Span, find_aspect_of_failure_kind
from monitors.records.incidents import Redacted
from monitors.records.operator_actions import HumanLabel
from monitors.records.reviews import AnswerId, AnswerVerdict, LabelSource, SampledAnswer
from tests.warehouse.sample_nights import night_report
from tests.warehouse.sample_rows import NOON, assessment, exchange, run_report, suite
from tests.warehouse.temporary_stores import store_in
from warehouse.journal.rows import AssessmentRow, LabelRow, NightlyRunRow, ResultRow, RunRow
from warehouse.queries.reviews import (
    count_verdicts,
    list_answer_ids_reviewed_by,
    list_answers_judged_and_reviewed,
    list_review_candidates,
    list_reviewed_rule_grades,
    load_spot_checks,
)

LINEAGE = JudgeLineage(model="claude-haiku-5-5", prompt_sha256="ab" * 32, rubric_version="3")


def facts(*, passed: bool = True) -> Judged:
    return Judged(
        grader="judge",
        version="1",
        aspect=Aspect.FACTUAL_MATCH,
        passed=passed,
        failure_kind=None if passed else FailureKind.WRONG_FACT,
        score=0.9 if passed else 0.1,
        reason="the judge says so",
        lineage=LINEAGE,
    )


def judged(case_id: str, *, passed: bool = True, run_id: str = "run-1"):
    plain = assessment(run_id, case_id)
    return plain.model_copy(update={"grades": (*plain.grades, facts(passed=passed))})


def label(case_id: str, answer: AnswerVerdict, *, by: str = "asha", probability: float = 0.5) -> HumanLabel:
    return HumanLabel(
        id=f"review-{by}-{case_id}",
        at=NOON,
        by=by,
        target="helpdesk",
        run_id="run-1",
        case_id=case_id,
        reason=Redacted("the judge says so"),
        source=LabelSource.REVIEW,
        answer=answer,
        inclusion_probability=probability,
    )


def judged_store(folder, *labels: HumanLabel):
    store = store_in(folder)
    store.journal.append_suite(suite())
    rows = [ResultRow(row=exchange(case_id=f"case-{n}")) for n in range(3)]
    grades = [AssessmentRow(row=judged(f"case-{n}", passed=n > 0)) for n in range(3)]
    store.journal.append([*rows, *grades, RunRow(row=run_report())], run_id="run-1")
    if labels:
        store.journal.append([LabelRow(row=each) for each in labels], run_id=None)
    store.load_pending(1)
    return store


def test_a_graded_answer_comes_with_its_question_its_gold_and_every_verdict(tmp_path):
    store = judged_store(tmp_path)
    found = list_review_candidates(store, since=NOON, target="helpdesk")
    assert [each.answer_id.case_id for each in found] == ["case-0", "case-1", "case-2"]
    assert [each.verdicts for each in found[:2]] == [
        "judge failed, quantities passed",
        "judge passed, quantities passed",
    ]
    checks = load_spot_checks(store, [SampledAnswer(each.answer_id, 0.5) for each in reversed(found)])
    assert [check.answer.answer_id for check in checks] == [each.answer_id for each in reversed(found)]
    answer = checks[-1].answer
    assert (answer.turns, answer.answer, answer.gold) == (exchange().turns, "Two years.", "Two years.")
    rule, judge = answer.grades
    assert (rule.grader, rule.passed, rule.lineage) == ("quantities", True, None)
    assert (judge.passed, judge.score, judge.failure_kind) == (False, 0.1, FailureKind.WRONG_FACT)
    assert judge.lineage == LINEAGE
    assert list_review_candidates(store, since=NOON, target="nobody") == ()
    assert list_review_candidates(store, since=NOON + timedelta(seconds=1)) == ()
    assert load_spot_checks(store, [SampledAnswer(AnswerId(run_id="gone", case_id="case-0"), 1.0)]) == ()


def test_an_answer_that_only_rules_graded_is_asked_about_too(tmp_path):
    """An answer that only rules graded, without a judge, is sampled for review as well."""
    store = store_in(tmp_path)
    store.journal.append(
        [ResultRow(row=exchange()), AssessmentRow(row=assessment()), RunRow(row=run_report())], run_id="run-1"
    )
    store.load_pending(1)
    (found,) = list_review_candidates(store, since=NOON)
    assert found.verdicts == "quantities passed"
    (count,) = count_verdicts(store, since=NOON)
    assert (count.grader, count.aspect, count.lineage, count.passed, count.total) == (
        "quantities", Aspect.FACTUAL_MATCH, None, 1, 1,
    )  # fmt: skip


ASKED = [aspect for aspect in Aspect if aspect is not Aspect.USEFULNESS]


def answer_with_every_verdict(case_id: str):
    """Return the assessment of an answer that passed one rule for each aspect that rules grade."""
    rules = tuple(
        Judged(
            grader=f"about_{aspect}", version="1", aspect=aspect, passed=True, reason="fine",
            evidence=(Span(where=Channel.VISIBLE, start=0, end=1, label="seen"),),
        )
        for aspect in ASKED
    )  # fmt: skip
    return assessment("run-1", case_id).model_copy(update={"grades": rules})


@pytest.mark.whole_only
@pytest.mark.parametrize("kind", [None, *FailureKind])
def test_a_failure_counts_for_the_graders_of_that_question_alone(tmp_path, kind):
    """A failure that a reviewer reports counts only for the graders of the same aspect.

    For example, a wrong fact is not a false pass of the language grader.
    """
    wrong = label("case-0", AnswerVerdict.WRONG).model_copy(update={"failure_kind": kind})
    store = store_in(tmp_path)
    rows = [ResultRow(row=exchange(case_id=f"case-{n}")) for n in range(2)]
    grades = [AssessmentRow(row=answer_with_every_verdict(f"case-{n}")) for n in range(2)]
    store.journal.append([*rows, *grades, RunRow(row=run_report())], run_id="run-1")
    store.journal.append([LabelRow(row=wrong), LabelRow(row=label("case-1", AnswerVerdict.RIGHT))], run_id=None)
    store.load_pending(1)
    found = list_reviewed_rule_grades(store, target="helpdesk")
    assert sorted(each.grader for each in found if each.people_right) == sorted(f"about_{each}" for each in ASKED)
    asked = find_aspect_of_failure_kind(kind)
    assert [each.grader for each in found if not each.people_right] == ([f"about_{asked}"] if asked else [])


def test_sources_that_stood_in_no_text_were_not_reviewed(tmp_path):
    """A review says nothing about sources that only the payload of a reply contained.

    The reviewer sees only the text of the answer.
    """
    listed = Judged(
        grader="citations", version="1", aspect=Aspect.CITATION, passed=True, reason="the reply names 1 source"
    )
    missing = listed.model_copy(update={"passed": False, "failure_kind": FailureKind.MISSING_CITATION})
    store = store_in(tmp_path)
    rows = [ResultRow(row=exchange(case_id=f"case-{n}")) for n in range(2)]
    grades = [
        AssessmentRow(row=assessment("run-1", f"case-{n}").model_copy(update={"grades": (grade,)}))
        for n, grade in enumerate((listed, missing))
    ]
    store.journal.append([*rows, *grades, RunRow(row=run_report())], run_id="run-1")
    store.journal.append([LabelRow(row=label(f"case-{n}", AnswerVerdict.RIGHT)) for n in range(2)], run_id=None)
    store.load_pending(1)
    assert [each.passed for each in list_reviewed_rule_grades(store)] == [False]


def test_labels_meet_the_judges_word_and_the_unsure_tell_nothing(tmp_path):
    store = judged_store(
        tmp_path,
        label("case-0", AnswerVerdict.RIGHT),
        label("case-1", AnswerVerdict.WRONG, probability=0.25),
        label("case-2", AnswerVerdict.UNSURE),
    )
    found = {each.answer_id.case_id: each for each in list_answers_judged_and_reviewed(store)}
    assert set(found) == {"case-0", "case-1"}
    assert (found["case-0"].judge_passed, found["case-0"].people_right) == (False, True)
    assert (found["case-1"].judge_passed, found["case-1"].people_right) == (True, False)
    assert found["case-1"].inclusion_probability == 0.25
    assert list_answer_ids_reviewed_by(store, "asha") == {
        AnswerId(run_id="run-1", case_id=f"case-{n}") for n in range(3)
    }
    assert list_answer_ids_reviewed_by(store, "ravi") == frozenset()
    view = store.query("select both_graded, agreed, passed_wrong, failed_right from judge_against_people")
    assert view.rows == ((2, 0, 1, 1),)


def test_people_who_contradict_each_other_tell_nothing_and_those_who_agree_count_once(tmp_path):
    store = judged_store(
        tmp_path,
        label("case-0", AnswerVerdict.RIGHT),
        label("case-0", AnswerVerdict.WRONG, by="ravi"),
        label("case-1", AnswerVerdict.RIGHT),
        label("case-1", AnswerVerdict.RIGHT, by="ravi"),
    )
    assert [each.answer_id.case_id for each in list_answers_judged_and_reviewed(store)] == ["case-1"]


def test_a_label_that_was_written_twice_is_there_once(tmp_path):
    store = judged_store(tmp_path, label("case-0", AnswerVerdict.RIGHT))
    store.journal.append([LabelRow(row=label("case-0", AnswerVerdict.WRONG))], run_id=None)
    store.load_pending(1)
    assert store.query("select answer from labels").rows == (("right",),)


def test_a_false_alarm_is_no_review(tmp_path):
    """A false alarm that a person reports is not a review.

    Alerts show only failures, so actions on them are not a fair sample of the answers.
    """
    alarm = HumanLabel(
        id="click-1", at=NOON, by="asha", target="helpdesk", run_id="run-1", case_id="case-0",
        finding_right=False, reason=Redacted("wrong"),
    )  # fmt: skip
    store = judged_store(tmp_path, alarm)
    assert list_answers_judged_and_reviewed(store) == ()
    rows = store.query("select source, finding_right, answer from labels").rows
    assert rows == (("alert", False, None),)


def test_a_label_that_says_nothing_is_refused():
    with pytest.raises(ValidationError, match="finding_right"):
        HumanLabel(id="x", at=NOON, by="asha", target="t", run_id="run-1", reason=Redacted(""))


def test_answers_of_a_night_that_a_judge_graded_are_looked_at_too(tmp_path):
    store = store_in(tmp_path)
    rows = [ResultRow(row=exchange("night-1", "talk-1:1")), AssessmentRow(row=judged("talk-1:1", run_id="night-1"))]
    store.journal.append([*rows, NightlyRunRow(row=night_report("night-1"))], run_id="night-1")
    store.load_pending(1)
    (answer,) = list_review_candidates(store, since=NOON, target="helpdesk")
    assert (answer.answer_id.run_id, answer.answer_id.case_id) == ("night-1", "talk-1:1")
