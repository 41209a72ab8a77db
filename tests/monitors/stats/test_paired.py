"""Test McNemar's test, with and without clusters, and its detectable drop against published examples."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from monitors.stats.paired import (
    compute_clustered_mcnemar_p_value,
    compute_mcnemar_p_value,
    compute_min_detectable_breaks,
    compute_min_detectable_drop,
)

COUNTS = st.integers(0, 400)


@pytest.mark.parametrize(
    ("broken", "fixed", "p_value"),
    [
        # P. Armitage, G. Berry, Statistical Methods in Medical Research (1994), p. 127: two media for a culture
        (12, 2, 0.0129),
        # M. W. Fagerland, S. Lydersen, P. Laake, BMC Medical Research Methodology 13:91 (2013): airways, 21 children
        (1, 7, 0.0703),
        (6, 0, 0.03125),
        (5, 0, 0.0625),
        (0, 0, 1.0),
    ],
)
def test_mcnemar_agrees_with_published_examples(broken, fixed, p_value):
    assert compute_mcnemar_p_value(broken, fixed) == pytest.approx(p_value, abs=5e-5)


@given(COUNTS, COUNTS)
def test_mcnemar_agrees_with_scipy(broken, fixed):
    expected = binomtest(broken, broken + fixed).pvalue if broken + fixed else 1.0
    assert compute_mcnemar_p_value(broken, fixed) == pytest.approx(expected, rel=1e-8, abs=1e-14)


@given(COUNTS, COUNTS)
def test_the_two_ways_are_judged_alike(broken, fixed):
    assert compute_mcnemar_p_value(broken, fixed) == compute_mcnemar_p_value(fixed, broken)


def test_a_negative_count_is_refused():
    with pytest.raises(ValueError, match="-1 broken"):
        compute_mcnemar_p_value(-1, 0)


@given(st.integers(0, 60), st.integers(0, 60))
def test_clusters_of_one_case_give_mcnemars_test(broken, fixed):
    assert compute_clustered_mcnemar_p_value([1] * broken + [-1] * fixed) == pytest.approx(
        compute_mcnemar_p_value(broken, fixed)
    )


@given(st.lists(st.integers(-5, 5), max_size=9))
def test_by_cluster_it_is_the_share_of_all_settings_of_signs_that_are_as_far_apart(differences):
    seen = abs(sum(differences))
    settings = [abs(sum(s * abs(d) for s, d in zip(signs, differences, strict=True)))
                for signs in product((1, -1), repeat=len(differences))]  # fmt: skip
    expected = sum(total >= seen for total in settings) / len(settings)
    assert compute_clustered_mcnemar_p_value(differences) == pytest.approx(expected, abs=1e-12)


def test_one_policy_that_breaks_with_twenty_cases_is_one_event():
    assert compute_mcnemar_p_value(20, 0) < 1e-5
    assert compute_clustered_mcnemar_p_value([20]) == 1.0
    assert compute_clustered_mcnemar_p_value([20, 3, 2, 1, 1]) == pytest.approx(2 / 32)


def test_thousands_of_clusters_are_weighed():
    assert compute_clustered_mcnemar_p_value([1] * 3_000 + [-2] * 1_400) == pytest.approx(
        0.0301, abs=2e-3
    )  # normal: z = 200/92.2


@pytest.mark.parametrize("pairs", [6, 11, 40, 61, 440, 20_000])
def test_the_smallest_drop_is_noticed_four_times_in_five(pairs):
    drop = compute_min_detectable_drop(pairs)
    assert binom.sf(compute_min_detectable_breaks() - 1, pairs, drop) == pytest.approx(0.8, abs=1e-9)


def test_six_must_break_before_anything_is_proved():
    assert compute_min_detectable_breaks() == 6
    assert compute_mcnemar_p_value(6, 0) < 0.05 < compute_mcnemar_p_value(5, 0)
    assert compute_min_detectable_breaks(alpha=0.01) == 8
    assert compute_mcnemar_p_value(8, 0) < 0.01 < compute_mcnemar_p_value(7, 0)


def test_five_pairs_could_not_have_shown_anything():
    assert compute_min_detectable_drop(5) is None
    assert compute_min_detectable_drop(0) is None


@given(st.integers(6, 3_000))
def test_more_pairs_see_smaller_drops(pairs):
    assert compute_min_detectable_drop(pairs + 1) < compute_min_detectable_drop(pairs) <= 1
