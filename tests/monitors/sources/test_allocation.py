"""Whole numbers for the strata: bounded, growing only by adding, and the best that there are."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.sources.allocation import Claim, allocate

claims = st.lists(
    st.builds(Claim, st.integers(0, 60), st.floats(0, 50), st.booleans()), min_size=1, max_size=6
)  # fmt: skip


@given(claims, st.integers(0, 200), st.integers(1, 5))
def test_the_number_is_kept_and_every_stratum_has_its_minimum(asked, budget, minimum):
    drawn = allocate(asked, budget, minimum)
    least = [min(minimum, claim.conversations) for claim in asked]
    assert all(low <= count <= claim.conversations for low, count, claim in zip(least, drawn, asked, strict=True))
    assert sum(drawn) == min(max(budget, sum(least)), sum(claim.conversations for claim in asked))


@given(claims, st.integers(0, 150), st.integers(0, 150), st.integers(1, 5))
def test_a_larger_number_only_adds(asked, budget, more, minimum):
    smaller, larger = allocate(asked, budget, minimum), allocate(asked, budget + more, minimum)
    assert all(one <= other for one, other in zip(smaller, larger, strict=True))


def test_what_is_wanted_whole_comes_before_the_rest():
    assert allocate([Claim(8, 1, whole=True), Claim(1_000, 1)], 20, 1) == (8, 12)
    assert allocate([Claim(30, 1, whole=True), Claim(1_000, 1)], 20, 1) == (19, 1)


def test_a_weight_makes_likelier_in_proportion():
    drawn = allocate([Claim(100, 10), Claim(1_000, 1)], 100, 1)
    assert drawn == (50, 50)


@pytest.mark.parametrize("budget", range(3, 16))
def test_no_other_whole_numbers_have_less_variance(budget):
    """Sum of (size times spread) squared over drawn, for every way to share the budget."""
    asked = [Claim(40, 0.1), Claim(12, 0.45), Claim(7, 0.3)]

    def variance(drawn):
        return sum((one.conversations * one.weight) ** 2 / count for one, count in zip(asked, drawn, strict=True))

    ways = product(*(range(1, claim.conversations + 1) for claim in asked))
    best = min(variance(way) for way in ways if sum(way) == budget)
    assert variance(allocate(asked, budget, 1)) == pytest.approx(best)
