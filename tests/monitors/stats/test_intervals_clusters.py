"""Test shares over clusters of cases, against the published example of Rao and Scott and in limiting cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from monitors.stats.intervals import (
    ClusterCount,
    compute_clustered_share,
    compute_design_effect,
    compute_t_quantile,
    compute_wilson_interval,
    count_by_cluster,
)

# C. S. Weil, Food and Cosmetics Toxicology 8 (1970): rat pups alive after 21 days, of those alive after 4, by litter
CONTROL = ((13, 13), (12, 12), (9, 9), (9, 9), (8, 8), (8, 8), (12, 13), (11, 12),
           (9, 10), (9, 10), (8, 9), (11, 13), (4, 5), (5, 7), (7, 10), (7, 10))  # fmt: skip
TREATED = ((12, 12), (11, 11), (10, 10), (9, 9), (10, 11), (9, 10), (9, 10), (8, 9),
           (8, 9), (4, 5), (7, 9), (4, 7), (5, 10), (3, 6), (3, 10), (0, 7))  # fmt: skip

LITTERS = st.lists(
    st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=2, max_size=30
)


def counts(litters) -> list[ClusterCount]:
    return [ClusterCount(*litter) for litter in litters]


@pytest.mark.parametrize(("litters", "effect"), [(CONTROL, 1.23), (TREATED, 3.95)])
def test_the_design_effects_are_those_of_rao_and_scott(litters, effect):
    assert compute_design_effect(counts(litters)) == pytest.approx(effect, abs=5e-3)


@given(LITTERS)
def test_the_design_effect_is_the_sandwich_variance_over_the_binomial_one(litters):
    passed, total = np.array(litters).T
    if passed.sum() in {0, total.sum()}:
        assert compute_design_effect(counts(litters)) is None
        return
    # The cluster-robust variance of an intercept-only linear model, with the usual correction G / (G - 1).
    outcome = np.concatenate([[1.0] * a + [0.0] * (n - a) for a, n in litters])
    member = np.repeat(np.arange(len(litters)), total)
    residual = outcome - outcome.mean()
    scores = np.array([residual[member == g].sum() for g in range(len(litters))])
    robust = len(litters) / (len(litters) - 1) * (scores**2).sum() / len(outcome) ** 2
    plain = outcome.mean() * (1 - outcome.mean()) / len(outcome)
    assert compute_design_effect(counts(litters)) == pytest.approx(robust / plain)


@given(st.integers(1, 500), st.floats(0.5, 0.999))
def test_t_agrees_with_scipy(degrees, confidence):
    assert compute_t_quantile(confidence, degrees) == pytest.approx(t.ppf((1 + confidence) / 2, degrees), rel=1e-8)


@given(LITTERS)
def test_clusters_never_narrow_an_interval(litters):
    found = compute_clustered_share(counts(litters))
    low, high = compute_wilson_interval(found.passed, found.total)
    assert 0 <= found.low <= low + 1e-12
    assert high - 1e-12 <= found.high <= 1
    assert found.low <= found.passed / found.total <= found.high


@given(st.lists(st.booleans(), min_size=1, max_size=200))
def test_cases_that_share_nothing_have_wilsons_interval(passed):
    found = compute_clustered_share(count_by_cluster(enumerate(passed)))
    assert (found.low, found.high) == pytest.approx(compute_wilson_interval(sum(passed), len(passed)))
    assert found.effective == len(passed)


def test_one_policy_alone_is_one_look():
    found = compute_clustered_share([ClusterCount(19, 20)])
    assert found.effective == 1
    assert found.high - found.low > 0.8


def test_with_equal_outcomes_cases_count_as_they_are():
    assert compute_clustered_share(counts([(10, 10), (9, 9)])).effective == 19


def test_litters_that_die_together_count_for_less():
    found = compute_clustered_share(counts(TREATED))
    assert found.effective == pytest.approx(145 / 3.9529 * (1.95996 / 2.13145) ** 2, rel=1e-4)
    assert (found.low, found.high) == (pytest.approx(0.601, abs=5e-3), pytest.approx(0.884, abs=5e-3))


def test_nothing_counted_says_nothing():
    found = compute_clustered_share(())
    assert (found.low, found.high, found.total) == (0.0, 1.0, 0)


def test_no_degrees_of_freedom_are_refused():
    with pytest.raises(ValueError, match="got 0"):
        compute_t_quantile(0.95, 0)
