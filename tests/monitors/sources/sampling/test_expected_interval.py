"""Test the expected interval of a nightly run against scipy's distributions and against random nights."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import betabinom, binom

from monitors.records.estimates import GradedStratum
from monitors.sources.sampling.plan import ExpectedStratum, compute_expected_interval
from monitors.sources.sampling.sample import ExpectedRate
from monitors.stats.agreement import Confusion
from monitors.stats.intervals import compute_finite_population_limits
from monitors.stats.stratified import compute_failure_rate_interval

GOOD_JUDGE = Confusion(285, 10, 15, 90)


def width(strata, **settings) -> float:
    found, _ = compute_expected_interval(strata, **settings)
    return found.high - found.low


@pytest.mark.parametrize(("graded", "rate"), [(10, 0.01), (50, 0.01), (200, 0.003), (30, 0.4)])
def test_one_stratum_has_the_mean_over_all_that_may_be_seen(graded, rate):
    """For one stratum, the expected width is the weighted mean of the widths for all possible numbers of failures.

    The weights are scipy's binomial distribution. The width at the mean number of failures would be another value.
    """
    exact = sum(
        binom.pmf(failures, graded, rate) * np.diff(compute_finite_population_limits(failures, graded, 2_000))[0]
        for failures in range(graded + 1)
    )
    assert width([ExpectedStratum(2_000, graded, ExpectedRate(rate))]) == pytest.approx(exact, rel=0.01)


def test_a_rate_that_is_itself_guessed_is_averaged_too():
    expected = ExpectedRate(0.05, 20)
    exact = sum(
        betabinom.pmf(failures, 40, 1, 19) * np.diff(compute_finite_population_limits(failures, 40, 2_000))[0]
        for failures in range(41)
    )
    assert width([ExpectedStratum(2_000, 40, expected)]) == pytest.approx(exact, rel=0.01)
    assert exact > width([ExpectedStratum(2_000, 40, ExpectedRate(0.02))])


@pytest.mark.whole_only
@pytest.mark.parametrize("confusion", [None, GOOD_JUDGE])
def test_many_strata_have_the_mean_of_random_nights(confusion):
    strata = [
        ExpectedStratum(20, 20, ExpectedRate(0.3)),
        ExpectedStratum(60, 10, ExpectedRate(0.1)),
        ExpectedStratum(100, 12, ExpectedRate(0.05, 50)),
        ExpectedStratum(200, 12, ExpectedRate(0.02)),
        ExpectedStratum(1_600, 60, ExpectedRate(0.01)),
    ]
    chance = np.random.default_rng(2)
    widths = [np.diff(random_night(strata, chance, confusion)[1:])[0] for _ in range(1_500)]
    assert width(strata, confusion=confusion) == pytest.approx(np.mean(widths), rel=0.02)


def random_night(strata, chance, confusion):
    strata_graded = []
    for place, (conversations, sample_size, (rate, weight)) in enumerate(strata):
        true = rate if weight == np.inf else chance.beta(rate * weight, (1 - rate) * weight)
        said = 0.05 + 0.85 * true if confusion else true
        failures = int(chance.binomial(sample_size, said))
        strata_graded.append(
            GradedStratum(
                stratum=f"s{place}",
                conversations=conversations,
                sampled=sample_size,
                graded=sample_size,
                failures=failures,
            )
        )
    return compute_failure_rate_interval(strata_graded, confusion=confusion)


def test_a_full_census_has_no_width_except_from_the_judge():
    whole = [ExpectedStratum(300, 300, ExpectedRate(0.02)), ExpectedStratum(50, 50, ExpectedRate(0.2))]
    assert width(whole) == pytest.approx(0)
    found, corrects = compute_expected_interval(whole, confusion=GOOD_JUDGE)
    assert corrects
    assert found.high - found.low > 0.02


def test_a_stratum_that_is_left_out_widens_by_all_it_is():
    parts = [ExpectedStratum(900, 100, ExpectedRate(0.01)), ExpectedStratum(100, 0, ExpectedRate(0.01))]
    assert width(parts) > 0.1


def test_a_rate_of_none_or_all_is_no_distribution():
    assert width([ExpectedStratum(500, 20, ExpectedRate(0.0))]) == pytest.approx(
        compute_finite_population_limits(0, 20, 500)[1]
    )
    assert width([ExpectedStratum(500, 20, ExpectedRate(1.0))]) == pytest.approx(
        1 - compute_finite_population_limits(20, 20, 500)[0]
    )
