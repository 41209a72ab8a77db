"""What is kept small comes back as it was, whole and in its order."""

from __future__ import annotations

from flows.verify.run_state import PackedResults
from monitors.records.exchanges import Exchange, NoAnswer
from monitors.records.runs import CaseResult
from tests.builders import assessment, case_result, gold_case, no_answer


def unanswered(name: str) -> CaseResult:
    case = gold_case(name)
    return CaseResult(case=case, result=no_answer(case), assessment=assessment(case))


def test_results_come_back_as_they_were_in_the_order_in_which_they_came():
    told = [case_result(gold_case("b")), unanswered("a"), case_result(gold_case("c"))]
    kept = PackedResults()
    for one in told:
        kept.put(one)
    assert list(kept) == told
    assert (len(kept), kept[1], kept[-1], list(kept[:2])) == (3, told[1], told[2], told[:2])
    assert kept.keys == (("b", 0), ("a", 0), ("c", 0))


def test_a_later_result_takes_the_place_of_the_one_before_it():
    kept = PackedResults()
    kept.put(unanswered("a"))
    assert not kept.has_answers
    assert [type(one.result) for one in kept] == [NoAnswer]
    kept.put(case_result(gold_case("a")))
    assert kept.has_answers
    assert [type(one.result) for one in kept] == [Exchange]


def test_a_look_that_has_begun_is_not_disturbed_by_what_comes():
    kept = PackedResults()
    kept.put(unanswered("a"))
    looking = iter(kept)
    kept.put(unanswered("b"))
    assert [one.case.id for one in looking] == ["a"]
    assert [one.case.id for one in kept] == ["a", "b"]
