"""Test the interval of a paired difference.

It is tested against published examples, mathematical laws and its stated coverage.
"""

from __future__ import annotations

from itertools import product
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.stats.paired import PairedCounts, compute_paired_difference

TABLES = st.builds(PairedCounts, *[st.integers(0, 60)] * 4)


def test_a_published_example_comes_out():
    """The interval equals a published example.

    The example is the airway hyper-responsiveness of 21 children before and after a transplantation (Bentur et al.,
    2009). The interval is given in Fagerland, Lydersen, Laake, "Recommended tests and confidence intervals for
    paired binomial proportions", Statistics in Medicine 33 (2014).
    """
    found = compute_paired_difference(PairedCounts(1, 1, 7, 12))
    assert tuple(round(value, 3) for value in found) == (-0.286, -0.507, -0.026)


@given(TABLES)
def test_the_gap_lies_in_its_interval_and_the_interval_in_its_range(table):
    gap, low, high = compute_paired_difference(table)
    assert -1 <= low <= gap + 1e-12
    assert gap - 1e-12 <= high <= 1


@given(TABLES)
def test_the_other_way_round_is_the_mirror_image(table):
    gap, low, high = compute_paired_difference(table)
    back = compute_paired_difference(PairedCounts(table.both, table.second_only, table.first_only, table.neither))
    assert back == pytest.approx((-gap, -high, -low))


def test_pairs_that_all_agree_still_leave_doubt_and_none_leave_everything_open():
    gap, low, high = compute_paired_difference(PairedCounts(20, 0, 0, 0))
    assert gap == 0
    assert low < -0.1
    assert high > 0.1
    assert compute_paired_difference(PairedCounts(0, 0, 0, 0)) == (0.0, -1.0, 1.0)


@pytest.mark.parametrize(
    "chances", [(0.85, 0.08, 0.02, 0.05), (0.7, 0.1, 0.1, 0.1), (0.5, 0.25, 0.05, 0.2)], ids=str
)
def test_with_twenty_pairs_it_covers_the_truth_as_often_as_it_says(chances):
    """With twenty pairs, the interval contains the true difference as often as its confidence states.

    The coverage is computed exactly over all tables of twenty pairs, without random samples.
    """
    total, covered = 20, 0.0
    truth = chances[1] - chances[2]
    for a, b, c in product(range(total + 1), repeat=3):
        d = total - a - b - c
        if d < 0:
            continue
        ways = comb(total, a) * comb(total - a, b) * comb(total - a - b, c)
        chance = ways * chances[0] ** a * chances[1] ** b * chances[2] ** c * chances[3] ** d
        _, low, high = compute_paired_difference(PairedCounts(a, b, c, d))
        covered += chance if low <= truth <= high else 0.0
    assert covered >= 0.94
