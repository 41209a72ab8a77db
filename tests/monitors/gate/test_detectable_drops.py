"""Tests of the smallest drop that a run could have detected, for each severity."""

from __future__ import annotations

import pytest

from monitors.gate.settings import GateSettings
from monitors.gate.suite_power import format_possible_failure_share, format_undetectable_drop
from monitors.records.base import Severity
from monitors.records.runs import ReasonKind
from monitors.stats.paired import compute_min_detectable_drop
from tests.monitors.gate.runs import baseline, batch, report


def sight_of(run_report, severity):
    return next(sight for sight in run_report.sights if sight.severity is severity)


def test_a_suite_large_enough_has_no_blind_spot():
    run_report = report([*batch(Severity.CRITICAL, 200, 0), *batch(Severity.MINOR, 200, 0)])
    assert not [r for r in run_report.reasons if r.kind is ReasonKind.BLIND_SPOT]


def test_every_blind_severity_is_named_severest_first(snapshot):
    run_report = report([*batch(Severity.MINOR, 20, 0), *batch(Severity.CRITICAL, 40, 0)])
    assert [(one.severity, one.cases) for one in run_report.sights] == [
        (Severity.CRITICAL, 40),
        (Severity.MINOR, 20),
    ]
    assert sight_of(run_report, Severity.CRITICAL).smallest_drop == compute_min_detectable_drop(40)
    texts = [r.text for r in run_report.reasons if r.kind is ReasonKind.BLIND_SPOT]
    assert len(texts) == 2
    assert texts == snapshot


def test_the_detectable_drop_is_a_setting():
    coarse = GateSettings(regressions={"severity_3": 0.5, "severity_1": 0.5, "severity_2": 0.5})
    run_report = report([*batch(Severity.MINOR, 20, 0), *batch(Severity.CRITICAL, 40, 0)], coarse)
    assert not [r for r in run_report.reasons if r.kind is ReasonKind.BLIND_SPOT]


def test_with_a_baseline_only_shared_cases_are_pairs():
    cases = batch(Severity.MINOR, 60, 0)
    gate = GateSettings(min_weighted_score=0)
    seen = sight_of(report(cases, gate, baseline(cases[:30], gate)), Severity.MINOR)
    assert (seen.cases, seen.pairs, seen.smallest_drop) == (60, 30, compute_min_detectable_drop(30))


@pytest.mark.parametrize(
    ("lost", "failing_at_most"),
    [(0, 1 - 0.05 ** (1 / 100)), (2, 0.0616)],  # Clopper and Pearson, one-sided
)
def test_an_upper_limit_of_failures_is_stated(lost, failing_at_most, snapshot):
    sight = sight_of(report(batch(Severity.MINOR, 100, lost)), Severity.MINOR)
    assert (sight.not_correct, sight.failing_at_most) == (lost, pytest.approx(failing_at_most, abs=1e-4))
    assert format_possible_failure_share(sight) == snapshot


def test_a_run_without_grades_says_so():
    seen = sight_of(report(batch(Severity.MINOR, 5, 0)), Severity.MINOR)
    nothing = seen.model_copy(update={"cases": 0, "pairs": 0, "smallest_drop": None})
    assert format_possible_failure_share(nothing) == "none was graded"
    assert format_undetectable_drop(nothing) == "any drop"
