"""What a verdict rests on, in the words that every report shares."""

from __future__ import annotations

import pytest

from monitors.records.base import Severity
from monitors.records.comparisons import Sight
from monitors.reports.proof_rows import (
    balance_rows,
    change_rows,
    outcome_words,
    p_words,
    score_rows,
    sight_rows,
)
from tests.monitors.reports.example_run import COMPARISON, example_run


def sight(**changes) -> Sight:
    values = {
        "severity": Severity.PAGE, "cases": 40, "lost": 0, "failing_at_most": 0.0722, "pairs": 40,
        "smallest_drop": 0.19,
    }  # fmt: skip
    return Sight(**(values | changes))


def test_the_outcome_is_one_sentence():
    assert outcome_words(COMPARISON) == (
        "Of 126 shared cases 5 newly fail and 1 is fixed: worse, chance alone may explain it "
        "(p = 0.22, exact McNemar)."
    )


def test_policies_are_spoken_of_where_cases_share_one():
    sure = COMPARISON.model_copy(update={"p_value": 0.00002, "cluster_p_value": 0.5})
    assert outcome_words(sure).endswith("more than chance explains (p < 0.0001, exact McNemar; by policy p = 0.5).")


def test_a_run_in_which_nothing_changed_says_so():
    same = COMPARISON.model_copy(update={"severities": (), "p_value": 1.0})
    assert outcome_words(same) == "Of 126 shared cases none came out differently."


def test_scores_stand_side_by_side_with_their_change():
    weighted, flat, rating = score_rows(COMPARISON)
    assert (weighted.before, weighted.now, weighted.change, weighted.hurts) == ("0.996", "0.911", "-0.085", True)
    assert flat.change == "-0.043"
    assert (rating.name, rating.change) == ("rating of 18 reports", "-0.28 [-0.61, +0.06]")


def test_a_score_that_was_not_told_has_no_change():
    unknown = COMPARISON.model_copy(update={"weighted_before": None})
    assert (score_rows(unknown)[0].before, score_rows(unknown)[0].change) == ("none", "")


def test_changes_come_severest_first():
    assert [row.severity for row in change_rows(COMPARISON)] == [3, 2, 1]


@pytest.mark.parametrize(
    ("changes", "may_fail", "drop"),
    [
        ({}, "up to 7.2 % (3/40)", "19.0 % or more"),
        ({"lost": 2}, "up to 7.2 %", "19.0 % or more"),
        ({"cases": 0, "pairs": 0, "smallest_drop": None, "failing_at_most": 1}, "anything", "none"),
    ],
)
def test_a_sight_says_what_may_still_fail_and_what_could_be_seen(changes, may_fail, drop):
    (row,) = sight_rows([sight(**changes)])
    assert (row.may_fail, row.drop) == (may_fail, drop)


def test_balance_is_by_severity_theme_type_and_language():
    rows = balance_rows(example_run(correct=30).report.balance)
    assert [row.group for row in rows] == ["severity", "severity 3 about", "type", "language"]
    assert [key for key, _ in rows[1].counts] == ["personal data", "destructive action", "financial claim", "other"]


@pytest.mark.parametrize(("value", "words"), [(1.0, "p = 1"), (0.03125, "p = 0.031"), (1e-9, "p < 0.0001")])
def test_a_p_value_has_two_digits(value, words):
    assert p_words(value) == words
