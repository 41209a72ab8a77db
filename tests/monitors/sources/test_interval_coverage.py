"""Test that intervals contain the true rate and have the planned width, over some seeded nights.

``tests.soak.soak_nights`` simulates more nights.
"""

from __future__ import annotations

from statistics import fmean

import pytest

from tests.monitors.sources.simulated_nightly_runs import DESIGNS, PLANTED, Design, planned_width, simulate


@pytest.mark.parametrize("judged", [False, True], ids=["graded", "judge"])
@pytest.mark.parametrize("name", ["simple 10", "simple 50", "stratified 200"])
@pytest.mark.parametrize("planted", ["1 % everywhere", "1 % hidden in the rest"])
@pytest.mark.a_slice(2)
def test_of_a_hundred_nights_at_least_93_hold_the_truth(planted, name, judged):
    """Of a hundred simulated nights, at least 93 have an interval that contains the true rate.

    A night has 2,000 conversations, of which 1 % fail with severity 3. The mean width is within 20 % of the plan.
    """
    design = Design(DESIGNS[name], PLANTED[planted], judged=judged)
    found = simulate(design, 100, seed=3)
    assert sum(each.covered for each in found) >= 93
    width = fmean(each.estimate.width for each in found)
    planned = fmean(planned_width(design, design.rates, number) for number in range(4))
    assert abs(planned / width - 1) <= 0.2
    assert all(each.estimate.corrected == judged for each in found)
