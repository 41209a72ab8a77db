"""Tests of the comparison of a run with its baseline.

They cover regressions, the question whether chance explains a regression, and invalid comparisons.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from monitors.gate.compare import map_baseline_correctness
from monitors.gate.settings import GateSettings
from monitors.records.base import Blame, Severity
from monitors.records.comparisons import Direction
from monitors.records.grades import CaseOutcome, JudgeLineage
from monitors.records.runs import BaselineResult, JudgeState, Judging, ReasonKind, Verdict
from tests.builders import NOON, gold_case
from tests.monitors.gate.runs import WRONG, asked, baseline, batch, reason, report, times

LAX = GateSettings(min_weighted_score=0, targets={"factual_accuracy": 0, "citation_accuracy": 0})
STRICT = LAX.model_copy(update={"fail_on_regression": True})


def run_of(cases, failing):
    return [asked(case, *([WRONG] if n in failing else [])) for n, case in enumerate(cases)]


def benign(count: int, **changes):
    return [gold_case(f"c-{n}", **changes) for n in range(count)]


def test_broken_and_fixed_cases_are_counted_and_named():
    cases = benign(50)
    comparison = report(run_of(cases, {1, 2, 3, 4, 5, 6, 7}), LAX, baseline(run_of(cases, {0}), LAX)).comparison
    assert (comparison.baseline_run_id, comparison.baseline_commit, comparison.shared) == ("run-0", "abc123", 50)
    assert comparison.newly_failing == tuple(f"c-{n}" for n in range(1, 8))
    assert comparison.newly_fixed == ("c-0",)
    assert comparison.direction is Direction.WORSE
    assert comparison.p_value == pytest.approx(2 * (1 + 8) / 2**8)
    assert (comparison.flat_before, comparison.flat_now) == (49 / 50, 43 / 50)


@pytest.mark.parametrize(("gate", "verdict"), [(LAX, Verdict.PASS), (STRICT, Verdict.FAIL)])
def test_a_significant_regression_is_said_and_fails_where_it_shall(gate, verdict, snapshot):
    cases = benign(50)
    run_report = report(run_of(cases, range(6)), gate, baseline(run_of(cases, ()), LAX))
    said = reason(run_report, ReasonKind.REGRESSION)
    assert said.text == snapshot
    assert run_report.comparison.p_value == pytest.approx(0.03125)
    assert said.case_ids == tuple(f"c-{n}" for n in range(6))
    assert run_report.verdict is verdict


@pytest.mark.parametrize(("before", "now"), [((), range(5)), (range(6), ()), ((0, 1), (2, 3))])
def test_chance_differences_and_improvements_are_not_regressions(before, now):
    cases = benign(50)
    run_report = report(run_of(cases, now), STRICT, baseline(run_of(cases, before), LAX))
    assert reason(run_report, ReasonKind.REGRESSION) is None
    assert run_report.verdict is Verdict.PASS


def test_one_severity_that_got_worse_is_seen_behind_another_that_got_better(snapshot):
    mild = benign(40)
    grave = [gold_case(f"w-{n}", severity=Severity.MAJOR) for n in range(40)]
    before = baseline(run_of([*mild, *grave], range(10)), LAX)
    run_report = report(run_of([*mild, *grave], range(40, 47)), STRICT, before)
    assert run_report.comparison.direction is Direction.BETTER
    fell = {row.severity: len(row.newly_failing) for row in run_report.comparison.severities}
    assert fell == {Severity.MINOR: 0, Severity.MAJOR: 7}
    assert reason(run_report, ReasonKind.REGRESSION).text == snapshot


def test_cases_of_one_policy_that_break_together_are_one_event_among_policies():
    cases = benign(20, cluster="policy-a") + [gold_case(f"d-{n}", cluster=f"policy-{n}") for n in range(20)]
    before = baseline(run_of(cases, ()), LAX)
    together = report(run_of(cases, range(20)), STRICT, before).comparison
    apart = report(run_of(cases, range(20, 27)), STRICT, before).comparison
    assert (together.cluster_p_value, apart.cluster_p_value) == (1.0, pytest.approx(2 / 2**7))
    assert together.p_value < 1e-5


def test_without_shared_policies_there_is_nothing_to_say_by_policy():
    cases = benign(20)
    comparison = report(run_of(cases, range(7)), LAX, baseline(run_of(cases, ()), LAX)).comparison
    assert comparison.cluster_p_value is None


def lineage(model: str = "claude-haiku-5-5", rubric: str = "1") -> Judging:
    judge = JudgeLineage(model=model, prompt_sha256="ab" * 32, rubric_version=rubric)
    return Judging(state=JudgeState.ON, models=(model,), lineages=(judge,))


@pytest.mark.parametrize(
    "changes",
    [
        {"suite_sha256": "1" * 64},
        {"run_id": "run-1"},
        {"judging": lineage("gpt-6")},
        {"judging": lineage(rubric="2")},
        {"interrupted": True, "planned": 60},
    ],
    ids=["suite", "same run", "judge", "rubric", "stopped"],
)
def test_incomparable_baselines_are_not_compared_and_say_what_differs(changes, snapshot):
    cases = benign(50)
    before = baseline(run_of(cases, ()), LAX, **({"judging": lineage()} | changes))
    run_report = report(run_of(cases, range(9)), STRICT, before, judging=lineage())
    assert len(run_report.comparison.refused) == 1
    assert run_report.comparison.refused == snapshot
    assert (run_report.comparison.shared, run_report.comparison.severities) == (0, ())
    refusal = reason(run_report, ReasonKind.REGRESSION)
    assert before.report.run_id in refusal.text
    assert not refusal.decisive


def test_a_run_that_failed_is_no_baseline(snapshot):
    cases = [gold_case(f"p-{n}", severity=Severity.CRITICAL) for n in range(50)]
    before = baseline(run_of(cases, {0}))
    run_report = report(run_of(cases, {1}), STRICT, before)
    compared = run_report.comparison
    assert (len(compared.refused), before.report.verdict) == (1, Verdict.FAIL)
    assert (compared.shared, compared.newly_fixed, compared.newly_failing) == (50, ("p-0",), ("p-1",))
    assert compared.rubric is compared.weighted_before is compared.flat_now is None
    refusal = reason(run_report, ReasonKind.REGRESSION)
    assert refusal.text == snapshot
    assert not refusal.decisive, "what changed is listed, and decides nothing"


def test_a_run_that_needed_no_judge_compares_with_any():
    cases = benign(50)
    before = baseline(run_of(cases, ()), LAX, judging=lineage("gpt-6"))
    assert report(run_of(cases, ()), LAX, before).comparison.refused == ()


def test_a_baseline_under_other_weights_is_weighed_under_todays():
    cases = [*batch(Severity.MINOR, 80, 8), *batch(Severity.CRITICAL, 40, 0)]
    heavy = GateSettings(min_weighted_score=0, targets=LAX.targets, weights={"severity_1": 20})
    comparison = report(cases, LAX, baseline(cases, heavy)).comparison
    assert comparison.weighted_before == comparison.weighted_now == pytest.approx(872 / 880)


def test_only_cases_graded_in_both_runs_are_compared():
    cases = benign(30)
    before = baseline(run_of(cases[:20], ()), LAX)
    assert report(run_of(cases[10:], ()), LAX, before).comparison.shared == 10


def test_a_baselines_case_was_right_when_it_was_right_every_time():
    cases = map_baseline_correctness(
        [
            BaselineResult(case_id="always", outcome=CaseOutcome.CORRECT),
            BaselineResult(case_id="always", repeat=1, outcome=CaseOutcome.CORRECT),
            BaselineResult(case_id="once", outcome=CaseOutcome.CORRECT),
            BaselineResult(case_id="once", repeat=1, outcome=CaseOutcome.FAILED),
            BaselineResult(case_id="silent", outcome=CaseOutcome.NO_ANSWER, blame=Blame.APP),
            BaselineResult(case_id="blind", outcome=CaseOutcome.NO_ANSWER, blame=Blame.MONITOR),
            BaselineResult(case_id="open", outcome=CaseOutcome.CORRECT),
            BaselineResult(case_id="open", repeat=1, outcome=CaseOutcome.UNGRADED),
        ]
    )
    assert cases == {"always": True, "once": False, "silent": False}


def test_a_case_that_turned_flaky_counts_as_newly_failing():
    cases = benign(10)
    before = baseline(run_of(cases, ()), LAX)
    run_report = report([*run_of(cases[1:], ()), *times(cases[0], 2, 1)], LAX, before)
    assert run_report.comparison.newly_failing == ("c-0",)


def test_the_comparison_names_target_and_time_of_the_baseline():
    cases = benign(3)
    comparison = report(run_of(cases, ()), LAX, baseline(run_of(cases, ()), LAX)).comparison
    assert (comparison.baseline_target, comparison.baseline_environment) == ("demo", "staging")
    assert comparison.baseline_finished_at == NOON + timedelta(minutes=2)
