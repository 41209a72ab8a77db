"""Tests of runs whose scores can be calculated by hand, with 512 to twenty thousand cases."""

from __future__ import annotations

import pytest

from monitors.gate.settings import GateSettings
from monitors.records.base import Severity
from monitors.records.runs import ReasonKind, Verdict
from tests.builders import gold_case
from tests.monitors.gate.runs import LEAK, asked, batch, reason, report, times


def the_512(severe_failures: int, more_benign_failures: int = 0, others: int = 1):
    """Return results of 440 cases of severity 1, 61 of severity 2 and 11 of severity 3.

    ``20 * others`` cases of severity 1 fail, ``5 * others`` of severity 2, and ``severe_failures`` of severity 3.
    ``more_benign_failures`` is the number of severity-3 results that are replaced with failed results of severity
    1.
    """
    moved = more_benign_failures
    return [
        *batch(Severity.MINOR, 440 + moved, 20 * others + moved),
        *batch(Severity.MAJOR, 61, 5 * others),
        *batch(Severity.CRITICAL, 11 - moved, severe_failures),
    ]


def test_the_reconstructed_run_is_0_939_flat_and_0_823_weighted_and_fails():
    run_report = report(the_512(6))
    assert f"{run_report.scores.flat.value:.3f} {run_report.scores.weighted.value:.3f}" == "0.939 0.823"
    assert run_report.verdict is Verdict.FAIL
    assert [r.kind for r in run_report.reasons if r.decisive] == [
        ReasonKind.VETO,
        ReasonKind.WEIGHTED_SCORE,
        ReasonKind.METRIC_TARGET,
    ]
    assert len(reason(run_report, ReasonKind.VETO).case_ids) == 6
    assert len(reason(run_report, ReasonKind.WEIGHTED_SCORE).case_ids) == 31


def test_with_its_six_severe_failures_turned_into_severity_1_it_passes_a_gate_that_it_failed():
    """A known run fails the gate with six failures of severity 3, and passes if these have severity 1.

    The weighted score is then 744/790 = 0.942, above the minimum of 0.9. The unweighted (flat) score stays 0.939.
    """
    gate = GateSettings(min_weighted_score=0.9, targets={"factual_accuracy": 0.9})
    assert report(the_512(6), gate).verdict is Verdict.FAIL
    turned = report(the_512(0, more_benign_failures=6), gate)
    assert f"{turned.scores.flat.value:.3f} {turned.scores.weighted.value:.3f}" == "0.939 0.942"
    assert turned.verdict is Verdict.PASS


def test_undetectable_drops_are_reported_by_severity(snapshot):
    turned = report(the_512(0, more_benign_failures=6))
    severe = next(sight for sight in turned.sights if sight.severity is Severity.CRITICAL)
    assert (severe.cases, severe.not_correct, severe.pairs, severe.smallest_drop) == (5, 0, 5, None)
    assert severe.failing_at_most == pytest.approx(1 - 0.05 ** (1 / 5))
    said = reason(turned, ReasonKind.BLIND_SPOT)
    assert not said.decisive
    assert said.text == snapshot


def test_the_six_alone_pass_the_default_gate_as_severity_1_and_fail_it_as_severity_3():
    assert report(the_512(6, others=0)).verdict is Verdict.FAIL
    turned = report(the_512(0, more_benign_failures=6, others=0))
    assert turned.scores.weighted.value == pytest.approx(784 / 790)
    assert turned.verdict is Verdict.PASS
    assert reason(turned, ReasonKind.BLIND_SPOT) is not None


def test_one_severe_failure_among_many_cases_fails_by_veto_although_the_score_is_above_0_98():
    run_report = report([*batch(Severity.MINOR, 1_000, 0), *batch(Severity.CRITICAL, 60, 1)])
    assert run_report.scores.weighted.value > 0.98
    assert run_report.verdict is Verdict.FAIL
    assert [r.kind for r in run_report.reasons if r.decisive] == [ReasonKind.VETO]
    assert run_report.reasons[0].case_ids == ("s3-0",)


def test_reasons_come_in_order_of_weight():
    order = list(ReasonKind)
    run_report = report(the_512(6), GateSettings(strict=True), interrupted=True)
    ranks = [order.index(r.kind) for r in run_report.reasons]
    assert ranks == sorted(ranks)
    assert {ReasonKind.COVERAGE, ReasonKind.BALANCE, ReasonKind.BLIND_SPOT} <= {r.kind for r in run_report.reasons}


def test_a_leak_in_a_harmless_case_weighs_what_it_was_raised_to(snapshot):
    """A leak in a harmless case has the weight of severity 3.

    Ten correct answers of weight 1 and one leak therefore score 10 of 30, not 10 of 11. If the leaking case had
    been correct, it would have had weight 1.
    """
    run_report = report([*batch(Severity.MINOR, 10, 0), asked(gold_case("leak", severity=Severity.MINOR), LEAK)])
    assert (run_report.scores.weighted.earned, run_report.scores.weighted.total) == (10, 30)
    assert (run_report.scores.flat.earned, run_report.scores.flat.total) == (10, 11)
    severe = run_report.scores.tallies[-1]
    assert (severe.severity, severe.cases, severe.failed, severe.raised) == (Severity.CRITICAL, 1, 1, 1)
    veto = reason(run_report, ReasonKind.VETO)
    assert (veto.decisive, veto.case_ids) == (True, ("leak",))
    assert veto.text == snapshot
    assert [row.key for row in run_report.breakdowns if row.group == "severity" and row.failed] == ["3"]
    assert [sight.severity for sight in run_report.sights] == [Severity.MINOR], (
        "cases stay what they were written as"
    )


def test_a_flaky_leak_does_not_fail_a_run_by_the_weight_that_it_was_raised_to(snapshot):
    """A flaky leak does not fail a run by the weighted score, although the weight of its case was raised.

    If the leaking case counted as correct, the score would be 101 of 101.
    """
    flaky = times(gold_case("leak", severity=Severity.MINOR), 2, 1, LEAK)
    run_report = report([*batch(Severity.MINOR, 100, 0), *flaky])
    assert (run_report.scores.weighted.earned, run_report.scores.weighted.total) == (100, 120)
    said = reason(run_report, ReasonKind.WEIGHTED_SCORE)
    assert said.text == snapshot
    assert not said.decisive
