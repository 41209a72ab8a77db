from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from monitors.probes.runner import iterate_questions_by_severity, iterate_unanswered_questions
from tests.monitors.probes.scripted import case

severities = st.lists(st.integers(1, 3), max_size=30)


@given(severities)
def test_the_worst_come_first_and_the_rest_keep_their_order(levels: list[int]) -> None:
    cases = [case(f"c{number}", level) for number, level in enumerate(levels)]
    planned = [question.case for question in iterate_questions_by_severity(cases)]
    assert planned == [one for level in (3, 2, 1) for one in cases if one.severity == level]


@given(severities, st.integers(1, 4))
def test_every_severe_case_is_asked_k_times_and_every_other_once(levels: list[int], repeats: int) -> None:
    cases = [case(f"c{number}", level) for number, level in enumerate(levels)]
    asked = [(one.case.id, one.repeat) for one in iterate_questions_by_severity(cases, repeats_severity_3=repeats)]
    assert sorted(asked) == sorted(
        (one.id, repeat) for one in cases for repeat in range(repeats if one.severity == 3 else 1)
    )


def test_a_first_answer_to_each_comes_before_a_second_to_any() -> None:
    asked = list(iterate_questions_by_severity([case("a", 3), case("b", 3), case("c", 1)], repeats_severity_3=2))
    assert [(one.case.id, one.repeat) for one in asked] == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("c", 0)]


@given(severities, st.data())
def test_answered_and_open_questions_make_the_whole(levels: list[int], data: st.DataObject) -> None:
    cases = [case(f"c{number}", level) for number, level in enumerate(levels)]
    planned = list(iterate_questions_by_severity(cases, repeats_severity_3=2))
    answered = data.draw(st.sets(st.sampled_from(planned))) if planned else set()
    keys = frozenset((one.case.id, one.repeat) for one in answered)
    assert list(iterate_unanswered_questions(planned, keys)) == [one for one in planned if one not in answered]
