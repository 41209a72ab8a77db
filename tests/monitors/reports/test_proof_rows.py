"""Test that all reports use the same words to describe the data on which a verdict is based."""

from __future__ import annotations

import re

import pytest

from monitors.records.base import Finding, Language, Severity
from monitors.records.comparisons import DetectableDrop, ParityGap
from monitors.records.runs import Metric
from monitors.reports.proof_rows import (
    build_detectable_drop_rows,
    build_score_rows,
    build_severity_change_rows,
    build_suite_balance_rows,
    format_best_app_path,
    format_comparison_outcome,
    format_language_gap,
    format_p_value,
)
from monitors.stats.intervals import compute_wilson_interval
from tests.monitors.reports.example_run import COMPARISON, example_run


def sight(**changes) -> DetectableDrop:
    values = {
        "severity": Severity.CRITICAL, "cases": 40, "not_correct": 0, "failing_at_most": 0.0722, "pairs": 40,
        "smallest_drop": 0.19,
    }  # fmt: skip
    return DetectableDrop(**(values | changes))


@pytest.mark.parametrize(
    ("changes", "figures"),
    [
        ({}, ["126", "5", "1", "0.22"]),
        ({"p_value": 0.00002, "cluster_p_value": 0.5}, ["126", "5", "1", "0.0001", "0.5"]),
        ({"severities": (), "p_value": 1.0}, ["126"]),
        ({"severities": (), "p_value": 1.0, "shared": 0}, []),
    ],
    ids=["may be chance", "by policy too", "nothing changed", "nothing shared"],
)
def test_the_outcome_is_one_sentence(changes, figures, snapshot):
    outcome = format_comparison_outcome(COMPARISON.model_copy(update=changes))
    assert re.findall(r"\d+(?:\.\d+)?", outcome) == figures
    assert outcome == snapshot


def test_scores_stand_side_by_side_with_their_change():
    weighted, flat, rating = build_score_rows(COMPARISON)
    assert (weighted.before, weighted.now, weighted.change, weighted.hurts) == ("0.996", "0.911", "-0.085", True)
    assert flat.change == "-0.043"
    assert (rating.name, rating.change) == ("rating of 18 reports", "-0.28")


def test_an_ungraded_score_has_no_change():
    unknown = COMPARISON.model_copy(update={"weighted_before": None})
    assert (build_score_rows(unknown)[0].before, build_score_rows(unknown)[0].change) == ("none", "")


def test_changes_come_severest_first():
    assert [row.severity for row in build_severity_change_rows(COMPARISON)] == [3, 2, 1]


@pytest.mark.parametrize(
    ("changes", "may_fail", "drop"),
    [
        ({}, "up to 7.2 % (3/40)", "19.0 % or more"),
        ({"not_correct": 2}, "up to 7.2 %", "19.0 % or more"),
        ({"cases": 0, "pairs": 0, "smallest_drop": None, "failing_at_most": 1}, "anything", "none"),
    ],
)
def test_a_sight_says_what_may_still_fail_and_what_could_be_seen(changes, may_fail, drop):
    (row,) = build_detectable_drop_rows([sight(**changes)])
    assert (row.may_fail, row.drop) == (may_fail, drop)


def test_balance_is_by_severity_theme_type_and_language():
    rows = build_suite_balance_rows(example_run(correct=30).report.balance)
    assert [row.group for row in rows] == ["severity", "severity 3 about", "type", "language"]
    assert [key for key, _ in rows[1].counts] == ["personal data", "destructive action", "financial claim", "other"]


@pytest.mark.parametrize(("value", "words"), [(1.0, "p = 1"), (0.03125, "p = 0.031"), (1e-9, "p < 0.0001")])
def test_a_p_value_has_two_digits(value, words):
    assert format_p_value(value) == words


def path(name: str, passed: int, total: int) -> Metric:
    low, high = compute_wilson_interval(passed, total)
    return Metric(name=f"path_accuracy:{name}", passed=passed, total=total, low=low, high=high)


@pytest.mark.parametrize(
    ("metrics", "named"),
    [
        ([], []),
        ([path("primary", 9, 10)], []),
        ([path("fallback", 12, 20), path("primary", 195, 200)], ["primary 97.5 %", "fallback 60.0 %"]),
        ([path("a", 9, 10), path("b", 8, 10), path("silent", 0, 0)], ["a 90.0 %", "b 80.0 %"]),
    ],
    ids=["no path", "one path", "intervals apart", "intervals that meet"],
)
def test_the_path_that_answers_best_is_named_and_whether_it_is_proved(metrics, named, snapshot):
    text = format_best_app_path(metrics)
    assert re.findall(r"\w+ [0-9.]+ %", text) == named
    assert text == snapshot


@pytest.mark.parametrize(
    ("english_only", "hindi_only", "limits"),
    [(3, 0, (0.052, 0.36)), (0, 2, (-0.3, 0.01))],
    ids=["behind", "ahead"],
)
def test_a_gap_says_who_is_behind(english_only, hindi_only, limits, snapshot):
    gap = ParityGap(
        language=Language.HINDI,
        both=20 - english_only - hindi_only,
        english_only=english_only,
        other_only=hindi_only,
        neither=0,
        gap=(english_only - hindi_only) / 20,
        low=limits[0],
        high=limits[1],
        target=0.05 if english_only else None,
        met=Finding.NO if english_only else Finding.UNGRADED,
    )
    assert format_language_gap(gap) == snapshot
