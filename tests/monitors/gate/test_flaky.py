"""A case that is right only sometimes counts as failed, is named as flaky, and never decides a verdict alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitors.gate.assess import assess_case
from monitors.gate.settings import GateSettings
from monitors.records.base import Blame, Severity
from monitors.records.runs import CaseResult, ReasonKind, Verdict
from tests.builders import gold_case, no_answer
from tests.monitors.gate.runs import LEAK, WRONG, asked, baseline, batch, reason, report, times
from tests.tiers import scale_examples

CLEAN = batch(Severity.CRITICAL, 50, 0)


def severe(name: str = "odd"):
    return gold_case(name, severity=Severity.CRITICAL)


@pytest.mark.parametrize("failure", [WRONG, LEAK])
def test_one_flaky_severe_case_is_said_and_does_not_veto(failure, snapshot):
    run_report = report([*CLEAN, *times(severe(), 2, 1, failure)])
    said = reason(run_report, ReasonKind.VETO)
    assert (said.decisive, said.case_ids) == (False, ("odd",))
    assert said.text == snapshot
    assert run_report.verdict is Verdict.PASS
    assert (run_report.flaky[0].case_id, run_report.flaky[0].right, run_report.flaky[0].asked) == ("odd", 2, 3)


def test_a_flaky_case_still_counts_as_failed_in_scores_and_pass_k():
    run_report = report([*CLEAN, *times(severe(), 2, 1)])
    assert (run_report.scores.flat.earned, run_report.scores.flat.total) == (50, 51)
    pass_k = next(metric for metric in run_report.metrics if metric.name == "pass_k")
    assert (pass_k.passed, pass_k.total) == (0, 1)


def test_two_flaky_severe_cases_veto_together(snapshot):
    run_report = report([*CLEAN, *times(severe("a"), 2, 1), *times(severe("b"), 1, 2)])
    assert run_report.verdict is Verdict.FAIL
    said = reason(run_report, ReasonKind.VETO)
    assert (said.decisive, said.case_ids) == (True, ("a", "b"))
    assert said.text == snapshot


def test_a_flaky_case_beside_a_firm_failure_takes_nothing_from_it():
    run_report = report([*CLEAN, *times(severe("a"), 2, 1), *times(severe("b"), 0, 3)])
    assert run_report.verdict is Verdict.FAIL
    assert set(reason(run_report, ReasonKind.VETO).case_ids) == {"a", "b"}


def test_a_case_that_was_never_right_is_not_flaky_and_vetoes():
    run_report = report([*CLEAN, *times(severe(), 0, 3)])
    assert run_report.flaky == ()
    assert run_report.verdict is Verdict.FAIL


def test_a_score_that_one_flaky_case_pulls_below_its_floor_does_not_fail(snapshot):
    run_report = report([*batch(Severity.CRITICAL, 10, 0), *times(severe(), 1, 1)], GateSettings(targets=LENIENT))
    said = reason(run_report, ReasonKind.WEIGHTED_SCORE)
    assert not said.decisive
    assert said.text == snapshot
    assert run_report.verdict is Verdict.PASS


def test_a_target_that_one_flaky_case_misses_does_not_fail():
    run_report = report([*batch(Severity.MINOR, 15, 0), *times(gold_case("odd"), 1, 1)], LAX)
    said = reason(run_report, ReasonKind.METRIC_TARGET)
    assert (said.decisive, said.case_ids) == (False, ("odd",))
    assert run_report.verdict is Verdict.PASS


def test_a_regression_that_rests_on_one_flaky_case_does_not_fail(snapshot):
    cases = [gold_case(f"c-{n}") for n in range(30)]
    before = baseline([asked(case) for case in cases], LAX)
    firm = [asked(case, *([WRONG] if n < 5 else [])) for n, case in enumerate(cases[:-1])]
    strict = GateSettings(min_weighted_score=0, targets=NO_TARGETS, fail_on_regression=True)
    run_report = report([*firm, *times(cases[-1], 1, 1)], strict, before)
    assert run_report.comparison.p_value == pytest.approx(0.03125)
    said = reason(run_report, ReasonKind.REGRESSION)
    assert not said.decisive
    assert said.text == snapshot
    assert run_report.verdict is Verdict.PASS


def test_ungraded_repeats_make_no_case_flaky():
    case = severe()
    silent = no_answer(case, Blame.MONITOR, repeat=1)
    blind = CaseResult(case=case, result=silent, assessment=assess_case(case, silent, ()))
    assert report([*CLEAN, asked(case), blind]).flaky == ()


def test_an_app_that_answers_only_sometimes_is_flaky():
    case = severe()
    silent = no_answer(case, repeat=1)
    missing = CaseResult(case=case, result=silent, assessment=assess_case(case, silent, ()))
    run_report = report([*CLEAN, asked(case), missing])
    assert [one.case_id for one in run_report.flaky] == ["odd"]


LENIENT = {"factual_accuracy": 0.5, "citation_accuracy": 0.5, "refusal_precision": 0.5}
NO_TARGETS = {"factual_accuracy": 0, "citation_accuracy": 0, "refusal_precision": 0}
LAX = GateSettings(min_weighted_score=0)

COUNTS = st.integers(0, 12)


@settings(max_examples=scale_examples(60), deadline=None)
@given(
    right=st.tuples(COUNTS, COUNTS, COUNTS),
    wrong=st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 1)),
    severity=st.sampled_from(Severity),
    asks=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    failure=st.sampled_from([WRONG, LEAK]),
    floor=st.floats(0.3, 1),
    target=st.floats(0.3, 1),
)
def test_with_one_flaky_case_the_verdict_is_that_of_the_run_where_it_was_right(  # noqa: PLR0917 - hypothesis passes them by name
    right, wrong, severity, asks, failure, floor, target
):
    others = [
        result
        for each, good, bad in zip(Severity, right, wrong, strict=True)
        for result in batch(each, good + bad, bad)
    ]
    odd = gold_case("odd", severity=severity)
    gate = GateSettings(min_weighted_score=floor, targets={"factual_accuracy": target})
    flaky = report([*others, *times(odd, *asks, failure)], gate)
    always_right = report([*others, *times(odd, sum(asks), 0)], gate)
    assert [one.case_id for one in flaky.flaky] == ["odd"]
    assert flaky.verdict is always_right.verdict
