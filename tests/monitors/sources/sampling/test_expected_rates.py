"""Test the expected rate of a stratum: the counts of earlier nights are added to a prior.

The rate is then converted to the rate that an imperfect judge will report.
"""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from monitors.records.estimates import GradedStratum
from monitors.sources.sampling.sample import ExpectedRate, compute_expected_failure_rates, compute_judged_rate
from monitors.stats.agreement import Confusion


def graded_stratum(stratum: str, sampled: int, failures: int) -> GradedStratum:
    return GradedStratum(stratum=stratum, conversations=1_000, sampled=sampled, graded=sampled, failures=failures)


def test_before_the_first_night_the_prior_speaks():
    prior = ExpectedRate(0.02, 50)
    assert compute_expected_failure_rates(["rest"], (), prior) == {"rest": prior}


def test_nights_add_up_and_other_strata_say_nothing():
    earlier = [
        graded_stratum("rest", 40, 1),
        graded_stratum("rest", 40, 0),
        graded_stratum("fallback", 40, 20),
        graded_stratum("gone", 9, 9),
    ]
    found = compute_expected_failure_rates(["rest", "fallback"], earlier, ExpectedRate(0.01, 20))
    assert found["rest"] == ExpectedRate(pytest.approx(1.2 / 100), 100)
    assert found["fallback"] == ExpectedRate(pytest.approx(20.2 / 60), 60)


def test_a_given_rate_is_not_changed_by_what_was_counted():
    given = ExpectedRate(0.05, inf)
    assert compute_expected_failure_rates(["rest"], [graded_stratum("rest", 100, 90)], given) == {"rest": given}


def test_a_judges_word_has_the_mean_and_spread_of_the_turned_rates():
    """The expected rate that a judge will report has the right mean and spread.

    The test converts ten thousand random true rates itself, and compares their mean and spread.
    """
    confusion, expected = Confusion(285, 10, 15, 90), ExpectedRate(0.05, 60)
    rates = np.random.default_rng(1).beta(0.05 * 60, 0.95 * 60, 10_000)
    said = 0.05 + rates * 0.85
    turned = compute_judged_rate(expected, confusion)
    assert turned.rate == pytest.approx(said.mean(), rel=0.02)
    assert turned.rate * (1 - turned.rate) / (turned.weight + 1) == pytest.approx(said.var(), rel=0.05)
    assert compute_judged_rate(ExpectedRate(0.05), confusion).weight == inf
