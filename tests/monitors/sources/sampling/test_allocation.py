"""Test the allocation of a sample to strata: sizes are bounded whole numbers, and the allocation is optimal.

No stratum's size shrinks as the budget grows.
"""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.records.estimates import GradedStratum, RateEstimate
from monitors.sources.sampling.sample import BY_RISK, BY_SPREAD, NextStratumRule, StratumClaim, allocate_sample
from monitors.stats.stratified import estimate_failure_rate

claims = st.lists(
    st.builds(StratumClaim, st.integers(0, 60), st.floats(0, 50), st.booleans()), min_size=1, max_size=6
)  # fmt: skip


turns = st.sampled_from([BY_RISK, BY_SPREAD])


@given(claims, st.integers(0, 200), st.integers(1, 5), turns)
def test_the_total_is_exact_and_every_stratum_has_its_minimum(asked, budget, minimum, by):
    sample_sizes = allocate_sample(asked, budget, minimum, by)
    least = [min(minimum, claim.conversations) for claim in asked]
    assert all(
        low <= count <= claim.conversations for low, count, claim in zip(least, sample_sizes, asked, strict=True)
    )
    assert sum(sample_sizes) == min(max(budget, sum(least)), sum(claim.conversations for claim in asked))


@given(claims, st.integers(0, 150), st.integers(0, 150), st.integers(1, 5), turns)
def test_a_larger_number_only_adds(asked, budget, more, minimum, by):
    smaller, larger = (
        allocate_sample(asked, budget, minimum, by),
        allocate_sample(asked, budget + more, minimum, by),
    )
    assert all(one <= other for one, other in zip(smaller, larger, strict=True))


@pytest.mark.parametrize("whole", [False, True], ids=["by risk", "wanted whole"])
def test_one_stratum_does_not_take_it_all(whole):
    """One stratum does not get the whole sample, even if it contains all failures.

    In this test, 500 of 100,000 conversations are sampled. Only the 1,173 conversations with a disclosure fail.
    """
    asked = [
        StratumClaim(1_173, 20, whole),
        StratumClaim(900, 10),
        StratumClaim(3_000, 10),
        StratumClaim(8_000, 2),
        StratumClaim(86_927, 1),
    ]
    sample_sizes = allocate_sample(asked, 500, 1)
    assert sum(sample_sizes) == 500
    assert min(sample_sizes) >= 500 / 4 / len(asked), "a quarter of the number is shared out equally"
    share = max(claim.conversations / count for claim, count in zip(asked, sample_sizes, strict=True)) / 100_000
    assert share < 2.1 / 500, "nothing that is sampled stands for more than twice what it would in a simple sample"
    graded = [
        GradedStratum(
            stratum=f"s{place}", conversations=claim.conversations, sampled=count, graded=count, failures=failed
        )
        for place, (claim, count) in enumerate(zip(asked, sample_sizes, strict=True))
        for failed in [count if place == 0 else 0]
    ]
    found = estimate_failure_rate(graded)
    assert isinstance(found, RateEstimate)
    assert found.low < 0.01173 < found.high < 0.04


@given(claims, st.integers(0, 200), turns)
def test_every_stratum_has_its_part_of_a_quarter_or_is_sampled_whole(asked, budget, by):
    sample_sizes = allocate_sample(asked, budget, 1, by)
    floor = budget // 4 // len(asked)
    assert all(count >= min(floor, claim.conversations) for count, claim in zip(sample_sizes, asked, strict=True))


@given(claims, st.integers(0, 200))
def test_no_stratum_falls_behind_half_of_its_share(asked, budget):
    """Each stratum gets at least half of the sample that it would get in proportion to its size.

    Half of the sample is allocated by the sizes of the strata, so that the overall interval is about as wide as in
    a simple sample.
    """
    sample_sizes = allocate_sample(asked, budget, 1)
    there = sum(claim.conversations for claim in asked)
    for claim, count in zip(asked, sample_sizes, strict=True):
        assert count >= min(claim.conversations, budget / 2 * claim.conversations / max(1, there) - 1)


def test_a_stratum_wanted_whole_comes_first_in_its_quarter():
    assert allocate_sample([StratumClaim(8, 1, whole=True), StratumClaim(1_000, 1)], 40, 1) == (8, 32)
    wanted, _ = allocate_sample([StratumClaim(30, 1, whole=True), StratumClaim(1_000, 30)], 40, 1)
    alike, _ = allocate_sample([StratumClaim(30, 1), StratumClaim(1_000, 30)], 40, 1)
    assert wanted > alike


@pytest.mark.parametrize("budget", range(3, 16))
def test_no_other_whole_numbers_have_less_variance(budget):
    """No other allocation of the budget has a smaller variance.

    The variance is the sum of (size times spread) squared over the sample size.
    """
    asked = [StratumClaim(40, 0.1), StratumClaim(12, 0.45), StratumClaim(7, 0.3)]

    def variance(sample_sizes):
        return sum(
            (one.conversations * one.weight) ** 2 / count for one, count in zip(asked, sample_sizes, strict=True)
        )

    ways = product(*(range(1, claim.conversations + 1) for claim in asked))
    best = min(variance(way) for way in ways if sum(way) == budget)
    assert variance(allocate_sample(asked, budget, 1, [NextStratumRule.CLAIM])) == pytest.approx(best)
