"""Test that a changed judge is compared with the previous judge only after both graded the anchors (fault row 50).

Anchors are stored answers that no deploy changes.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from monitors.judge.lineage import AnchorGrade, decide_if_grades_are_comparable, describe_judge_differences
from monitors.records.grades import JudgeLineage

OLD = JudgeLineage(model="claude-sonnet-4-5", prompt_sha256="a" * 64, rubric_version="1")
NEW = OLD.model_copy(update={"model": "claude-sonnet-5-5"})
lineages = st.builds(
    JudgeLineage,
    model=st.sampled_from(["claude", "gpt"]),
    prompt_sha256=st.sampled_from(["a" * 64, "b" * 64]),
    rubric_version=st.sampled_from(["1", "2"]),
)


def anchors(count: int, *, old: bool = True, new: bool = True, moved: int = 0) -> list[AnchorGrade]:
    """Return the grades that both judges gave to ``count`` anchors.

    The old judge (if ``old``) passes all anchors. The new judge (if ``new``) fails the first ``moved`` anchors and
    passes the others.
    """
    grades = [AnchorGrade(anchor_id=f"a{n}", lineage=OLD, passed=True) for n in range(count) if old]
    return grades + [AnchorGrade(anchor_id=f"a{n}", lineage=NEW, passed=n >= moved) for n in range(count) if new]


def test_the_same_judge_compares():
    assert decide_if_grades_are_comparable([OLD], [OLD]).allowed
    assert decide_if_grades_are_comparable([], []).allowed


def test_f50_another_model_is_refused_with_what_changed_and_what_to_do(snapshot):
    found = decide_if_grades_are_comparable([OLD], [NEW])
    assert not found.allowed
    assert len(found.differences) == 1
    assert (found.differences, found.reason) == snapshot


def test_a_changed_prompt_or_rubric_is_another_judge(snapshot):
    other = OLD.model_copy(update={"prompt_sha256": "b" * 64, "rubric_version": "2"})
    assert describe_judge_differences(OLD, other) == snapshot(name="both")
    assert not decide_if_grades_are_comparable([OLD], [other]).allowed
    similar = OLD.model_copy(update={"prompt_sha256": "a" * 63 + "b"})
    assert describe_judge_differences(OLD, similar) == snapshot(name="alike at the beginning")


def test_f50_the_shift_is_reported_once_both_graded_the_anchors():
    found = decide_if_grades_are_comparable([OLD], [NEW], anchors(40, moved=3))
    assert found.allowed
    assert found.shift is not None
    assert (found.shift.anchors, found.shift.passed_before, found.shift.passed_now) == (40, 40, 37)
    assert "they disagree on 3" in found.reason


def test_anchors_of_one_judge_alone_prove_nothing():
    assert not decide_if_grades_are_comparable([OLD], [NEW], anchors(40, old=False)).allowed
    assert not decide_if_grades_are_comparable([OLD], [NEW], anchors(40, new=False)).allowed
    assert not decide_if_grades_are_comparable([OLD], [NEW], anchors(29)).allowed


def test_the_last_grade_of_an_anchor_counts_and_a_tie_is_no_pass():
    again = [*anchors(30), AnchorGrade(anchor_id="a0", lineage=NEW, passed=False)]
    found = decide_if_grades_are_comparable([OLD], [NEW], again)
    assert found.shift is not None
    assert found.shift.disagreed == 1
    second = NEW.model_copy(update={"model": "gpt-5"})
    split = [*anchors(30), *(AnchorGrade(anchor_id=f"a{n}", lineage=second, passed=False) for n in range(30))]
    tied = decide_if_grades_are_comparable([OLD], [NEW, second], split)
    assert tied.shift is not None
    assert tied.shift.passed_now == 0


def test_a_run_with_a_judge_and_one_without_compare_only_on_the_rest():
    for before, now in (([OLD], []), ([], [OLD])):
        found = decide_if_grades_are_comparable(before, now)
        assert not found.allowed
        assert "rules" in found.reason


def test_a_judge_that_joined_is_named():
    found = decide_if_grades_are_comparable([OLD], [OLD, NEW])
    assert found.differences == ("claude-sonnet-5-5 (aaaaaaaa) judges now",)


@given(lineages, lineages)
def test_differences_are_empty_exactly_for_the_same_judge(one, other):
    assert (describe_judge_differences(one, other) == ()) == (one == other)
    assert decide_if_grades_are_comparable([one], [other]).allowed == (one == other)
