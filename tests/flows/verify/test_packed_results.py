"""Test that packed results are restored completely, without a change, and in their original order."""

from __future__ import annotations

from flows.verify.run_state import PackedResults
from monitors.records.exchanges import Exchange, NoAnswer
from monitors.records.runs import CaseResult
from tests.builders import assessment, case_result, gold_case, no_answer


def unanswered(name: str) -> CaseResult:
    case = gold_case(name)
    return CaseResult(case=case, result=no_answer(case), assessment=assessment(case))


def test_results_come_back_as_they_were_in_the_order_in_which_they_came():
    original = [case_result(gold_case("b")), unanswered("a"), case_result(gold_case("c"))]
    packed = PackedResults()
    for one in original:
        packed.put(one)
    assert list(packed) == original
    assert (len(packed), packed[1], packed[-1], list(packed[:2])) == (3, original[1], original[2], original[:2])
    assert packed.keys == (("b", 0), ("a", 0), ("c", 0))


def test_a_later_result_takes_the_place_of_the_one_before_it():
    packed = PackedResults()
    packed.put(unanswered("a"))
    assert not packed.has_answers
    assert [type(one.result) for one in packed] == [NoAnswer]
    packed.put(case_result(gold_case("a")))
    assert packed.has_answers
    assert [type(one.result) for one in packed] == [Exchange]


def test_a_look_that_has_begun_is_not_disturbed_by_what_comes():
    packed = PackedResults()
    packed.put(unanswered("a"))
    looking = iter(packed)
    packed.put(unanswered("b"))
    assert [one.case.id for one in looking] == ["a"]
    assert [one.case.id for one in packed] == ["a", "b"]
