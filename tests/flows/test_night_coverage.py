"""Test that the interval of the estimated failure rate of simulated nights contains the true rate. Seeds are fixed.

This is a short version of the soak test of the demo's nights.
"""

from __future__ import annotations

import pytest

from tests.flows.demo_nightly_runs import DemoNights
from tests.monitors.sources.night_traffic import simple


@pytest.mark.whole_only
def test_nights_of_the_demos_own_log_hold_the_planted_rate(tmp_path):
    found = list(DemoNights(tmp_path, simple(number=100), conversations=300, planted=30, seed=4).nights(8))
    assert sum(one.covered for one in found) >= 7
    assert all(0 < one.estimate.width < 0.25 for one in found)


def test_sampled_whole_the_rate_is_the_planted_one(tmp_path):
    (found,) = DemoNights(tmp_path, simple(rate=1.0), conversations=120, planted=6, seed=4).nights(1)
    assert (found.estimate.rate, found.estimate.coverage) == (0.05, 1.0)
