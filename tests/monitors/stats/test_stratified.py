"""Test rates over a night's traffic: they are unbiased, cover every small population as stated, and report gaps."""

from __future__ import annotations

from itertools import product
from math import comb, prod

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from monitors.records.estimates import GradedStratum, RateEstimate, RateUnknown
from monitors.stats.agreement import Confusion, compute_corrected_pass_rate
from monitors.stats.intervals import compute_binomial_limits, compute_finite_population_limits
from monitors.stats.stratified import (
    CORRECTED,
    EXACT,
    NOT_CORRECTED,
    compute_counts_for_sequential_test,
    compute_failure_rate_interval,
    estimate_failure_rate,
)

GOOD_JUDGE = Confusion(passed_right=285, passed_wrong=10, failed_right=15, failed_wrong=90)
"""The confusion matrix of a judge that passes 10 % of wrong answers and fails 5 % of right answers."""


def graded_strata(*counts: tuple[int, int, int] | tuple[int, int, int, int]) -> tuple[GradedStratum, ...]:
    """Return one stratum for each tuple of counts.

    A tuple is (conversations, sampled, failures), or (conversations, sampled, graded, failures).
    """
    return tuple(
        GradedStratum(stratum=f"s{place}", conversations=one[0], sampled=one[1], graded=one[-2], failures=one[-1])
        for place, one in enumerate(counts)
    )


def estimate(strata, **settings) -> RateEstimate:
    found = estimate_failure_rate(strata, **settings)
    assert isinstance(found, RateEstimate)
    return found


@st.composite
def nights(draw, most=5, with_ungraded=True):
    strata = []
    for _ in range(draw(st.integers(1, most))):
        conversations = draw(st.integers(0, 300))
        sampled = draw(st.integers(0, conversations))
        graded = draw(st.integers(0, sampled)) if with_ungraded else sampled
        strata.append((conversations, sampled, graded, draw(st.integers(0, graded))))
    return graded_strata(*strata)


def all_samples(sizes, draws, failures):
    """Yield every possible number of sampled failures in each stratum, with the probability of the combination."""
    for seen in product(*(range(draw + 1) for draw in draws)):
        chance = prod(
            comb(failing, each) * comb(size - failing, draw - each) / comb(size, draw)
            for each, size, draw, failing in zip(seen, sizes, draws, failures, strict=True)
        )
        if chance:
            yield seen, chance


@pytest.mark.parametrize(
    ("sizes", "draws"),
    [
        ((20, 20), (3, 3)),
        ((30, 6), (5, 6)),  # one stratum is graded completely
        ((30, 6), (3, 5)),
        ((40, 4), (4, 2)),
        ((60, 12), (12, 1)),
        ((40, 10), (2, 9)),  # rare failures can be missed where one sampled item stands for twenty
        ((30, 20), (15, 10)),
        ((12, 10, 8), (3, 2, 2)),
    ],
)
@pytest.mark.a_slice(3)
def test_every_population_is_covered_as_often_as_was_said(sizes, draws):
    """For every population, the interval contains the true rate as often as stated, and the estimate is unbiased.

    The test computes all samples of each population with an even number of failures per stratum.
    """
    every = product(*(range(draw + 1) for draw in draws))
    rows = (zip(sizes, draws, seen, strict=True) for seen in every)
    found = {
        tuple(one[2] for one in row): compute_failure_rate_interval(graded_strata(*row)) for row in map(tuple, rows)
    }
    for failures in product(*(range(0, size + 1, 2) for size in sizes)):
        truth = sum(failures) / sum(sizes)
        samples = list(all_samples(sizes, draws, failures))
        covered = sum(
            chance for seen, chance in samples if found[seen].low - 1e-9 <= truth <= found[seen].high + 1e-9
        )
        assert covered >= 0.95 - 1e-9, failures
        assert sum(chance * found[seen].value for seen, chance in samples) == pytest.approx(truth)


@given(nights())
def test_an_estimate_lies_in_its_interval_and_the_cautious_one_around_it(strata):
    assume(any(one.graded for one in strata))
    found = estimate(strata)
    assert 0 <= found.low_if_ungraded_right <= found.low + 1e-12
    assert found.low - 1e-12 <= found.rate <= found.high + 1e-12
    assert found.high - 1e-12 <= found.high_if_ungraded_failed <= 1


@given(nights(with_ungraded=False), st.randoms())
def test_the_order_of_the_strata_says_nothing(strata, chance):
    assume(any(one.graded for one in strata))
    shuffled = chance.sample(strata, len(strata))
    assert compute_failure_rate_interval(shuffled) == pytest.approx(compute_failure_rate_interval(strata), abs=1e-9)


@given(
    st.integers(1, 3_000).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, min(n, 60)))), st.integers(0, 60)
)
def test_one_stratum_has_its_exact_limits(sizes, failures):
    conversations, sampled = sizes
    failures = min(failures, sampled)
    found = estimate(graded_strata((conversations, sampled, failures)))
    assert (found.low, found.high) == pytest.approx(
        compute_finite_population_limits(failures, sampled, conversations), abs=1e-12
    )
    assert found.method == EXACT


def test_strata_sampled_alike_count_like_one_sample():
    """If all strata have the same weight and only a very small share is sampled, the strata count like one sample.

    The limits are then the limits of Clopper and Pearson for one sample.
    """
    alike = compute_failure_rate_interval(
        graded_strata((1_000_000, 50, 1), (1_000_000, 50, 0), (2_000_000, 100, 2))
    )
    assert alike[1:] == pytest.approx(compute_binomial_limits(3, 200), abs=1e-5)


@given(nights(with_ungraded=False))
def test_a_full_census_has_an_exact_rate(strata):
    whole = graded_strata(*((one.conversations, one.conversations, one.failures) for one in strata))
    assume(any(one.graded for one in whole))
    found = estimate(whole)
    assert found.low == pytest.approx(found.rate)
    assert found.high == pytest.approx(found.rate)


def test_no_failure_among_ten_does_not_prove_a_rate_of_zero():
    found = estimate(graded_strata((2_000, 10, 0)))
    assert (found.rate, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(0.307, abs=0.001)


def test_a_stratum_where_each_stands_for_many_keeps_the_interval_wide():
    """A fully sampled stratum does not make the interval narrow if another stratum was hardly sampled.

    One stratum has 100 conversations, all sampled, with 10 failures. The other has 1,900, of which 20 were sampled.
    """
    found = estimate(graded_strata((100, 100, 10), (1_900, 20, 0)))
    assert found.rate == pytest.approx(10 / 2_000)
    assert found.high > 0.95 * compute_finite_population_limits(0, 20, 1_900)[1]


def test_ungraded_answers_widen_the_interval_and_never_count_as_right():
    all_graded, half_graded = (
        estimate(graded_strata((1_000, 40, 40, 2))),
        estimate(graded_strata((1_000, 40, 20, 1))),
    )
    assert half_graded.rate == all_graded.rate == 0.05
    assert half_graded.width > all_graded.width
    assert half_graded.coverage == 0.5
    assert half_graded.high_if_ungraded_failed >= 0.5
    assert (all_graded.low_if_ungraded_right, all_graded.high_if_ungraded_failed) == (
        all_graded.low,
        all_graded.high,
    )


def test_a_stratum_without_grades_may_have_failed_wholly():
    found = estimate(graded_strata((900, 50, 50, 0), (100, 0, 0, 0)))
    assert found.high > 0.1
    assert found.low == 0.0


@pytest.mark.parametrize(
    ("strata", "why"),
    [
        ((), "no conversation"),
        (graded_strata((0, 0, 0)), "no conversation"),
        (graded_strata((9, 0, 0)), "sampled"),
        (graded_strata((9, 3, 0, 0)), "no conversation could be graded"),
    ],
)
def test_without_grades_there_is_no_rate(strata, why):
    found = estimate_failure_rate(strata)
    assert isinstance(found, RateUnknown)
    assert why in found.why


def test_a_simple_sample_is_corrected_as_any_judged_answers_are():
    """For one stratum, the corrected rate equals that of `compute_corrected_pass_rate`.

    Its limits are exact and therefore slightly wider.
    """
    found = estimate(graded_strata((20_000, 400, 60)), confusion=GOOD_JUDGE)
    plain = compute_corrected_pass_rate(340, 400, GOOD_JUDGE)
    assert plain is not None
    assert found.corrected
    assert found.method == CORRECTED
    assert found.rate == pytest.approx(1 - plain.value)
    assert found.low <= 1 - plain.high
    assert found.high >= 1 - plain.low
    assert found.width == pytest.approx(plain.high - plain.low, rel=0.1)


@given(nights(with_ungraded=False))
def test_a_judge_that_errs_is_never_believed_more_than_one_that_does_not(strata):
    """Even if a judge that makes errors graded every conversation, the interval has a width.

    The reason is that the grades contain the errors of the judge.
    """
    whole = graded_strata(*((one.conversations, one.conversations, one.failures) for one in strata))
    assume(sum(one.graded for one in whole) >= 10)
    assert estimate(whole, confusion=GOOD_JUDGE).width > 0


def test_a_judge_no_better_than_chance_is_not_corrected_for():
    found = estimate(graded_strata((500, 50, 5)), confusion=Confusion(10, 10, 10, 10))
    assert not found.corrected
    assert found.method == NOT_CORRECTED
    assert found.rate == 0.1


def test_sequential_test_counts_keep_the_rate_and_never_exceed_the_graded():
    assert compute_counts_for_sequential_test(graded_strata((2_000, 50, 2))) == pytest.approx((2, 50))
    failures, size = compute_counts_for_sequential_test(graded_strata((100, 50, 10), (1_900, 19, 0)))
    assert size == pytest.approx(2_000 / 100)  # one sampled item of the second stratum stands for a hundred
    assert failures / size == pytest.approx(0.05 * 0.2)
    assert compute_counts_for_sequential_test(graded_strata((5, 0, 0))) == (0.0, 0.0)


def test_a_rate_is_written_as_people_read_it():
    found = estimate(graded_strata((2_000, 1_000, 6)))
    assert found.text.split() == ["0.6", "%", "(95", "%", "CI", "0.4", "to", "1.1)"]
