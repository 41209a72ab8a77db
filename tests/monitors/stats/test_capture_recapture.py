"""Test the estimate of how many bad replies two detectors missed.

It is tested with published examples, mathematical laws and simulations with known counts.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from itertools import pairwise
from math import comb

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from monitors.records.estimates import GradedStratum, RateEstimate
from monitors.records.reconciliation import (
    FoundReply,
    GuardCounts,
    Interval,
    OverlapCounts,
    Reconciliation,
    ReconciliationCounts,
    TrafficCounts,
    Unknown,
)
from monitors.stats.agreement import Confusion
from monitors.stats.capture_recapture import (
    MIN_FOUND_BY_BOTH,
    NO_LABELS,
    NO_REVIEW,
    NOT_BETTER_THAN_CHANCE,
    ONLY_FALSE,
    compute_guard_precision,
    estimate_chapman_total,
    estimate_rightly_held_back,
    estimate_total_bad,
    reconcile_counts,
)
from monitors.stats.stratified import estimate_failure_rate

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOBODY = Confusion(0, 0, 0, 0)
GOOD_JUDGE = Confusion(passed_right=95, passed_wrong=6, failed_right=5, failed_wrong=54)
NIGHT = TrafficCounts(
    nightly_runs=1,
    strata=(
        GradedStratum(stratum="risky", conversations=200, sampled=100, graded=100, failures=12),
        GradedStratum(stratum="rest", conversations=1800, sampled=100, graded=100, failures=6),
    ),
    bad_replies=18,
)


def counts(
    guard: GuardCounts | None = None, night: TrafficCounts = NIGHT, overlap: OverlapCounts | None = None
) -> ReconciliationCounts:
    return ReconciliationCounts(
        target="helpdesk",
        since=NOON,
        until=NOON,
        guard=guard or GuardCounts(entries=41, right=17, wrong=3),
        nightly=night,
        overlap=overlap or OverlapCounts(),
    )


def known(strata) -> Interval:
    assert isinstance(strata, Interval), strata
    return strata


def holds(strata, truth: float) -> bool:
    return known(strata).low <= truth <= known(strata).high


def test_two_detectors_as_in_print():
    """The estimate equals the example in Wikipedia's article "Mark and recapture".

    Of the turtles, 10 were marked. Then 15 were caught, of which 5 were marked. The estimate is 28, with "22 to
    65".
    """
    found = estimate_chapman_total(10, 15, 5)
    assert found.value == pytest.approx(11 * 16 / 6 - 1)
    assert (round(found.low), round(found.high)) == (22, 65)


def test_two_detectors_that_agree_on_all_have_found_all():
    found = estimate_chapman_total(20, 20, 20)
    assert found.value == 20
    assert 20 < found.high < 25


def test_chapman_is_without_bias_where_both_find_at_least_as_many_as_there_are():
    """If the two detectors' counts add up to at least the true total, Chapman's estimate is unbiased.

    The mean of the estimate over every possible overlap, weighted by the hypergeometric distribution, is then the
    true total.
    """
    there, first, second = 18, 10, 9
    total = sum(
        comb(first, both) * comb(there - first, second - both) * ((first + 1) * (second + 1) / (both + 1) - 1)
        for both in range(max(0, first + second - there), min(first, second) + 1)
    )
    assert total / comb(there, second) == pytest.approx(there)
    mean = sum(
        comb(first, both) * comb(there - first, second - both) * estimate_chapman_total(first, second, both).value
        for both in range(max(0, first + second - there), min(first, second) + 1)
    )
    assert mean / comb(there, second) == pytest.approx(there)


@given(first=st.integers(1, 500), second=st.integers(1, 500))
def test_more_overlap_makes_a_smaller_total(first, second):
    steps = [
        estimate_chapman_total(first, second, both)
        for both in range(0, min(first, second) + 1, max(1, first // 20))
    ]
    for less, more in pairwise(steps):
        assert more.value < less.value


@given(first=st.integers(20, 500), second=st.integers(20, 500))
@pytest.mark.whole_only
def test_more_overlap_lowers_the_upper_limit_while_each_finds_some_alone(first, second):
    steps = [
        estimate_chapman_total(first, second, both)
        for both in range(MIN_FOUND_BY_BOTH, min(first, second) // 2 + 1)
    ]
    for less, more in pairwise(steps):
        assert more.high < less.high


@given(first=st.integers(0, 400), second=st.integers(0, 400), share=st.floats(0, 1))
def test_a_total_is_never_less_than_what_was_found(first, second, share):
    both = int(share * min(first, second))
    found = estimate_chapman_total(first, second, both)
    assert found.value >= first + second - both - 1e-9
    assert found.low >= first + second - both - 0.5


def test_no_more_can_be_found_by_both_than_by_each():
    with pytest.raises(ValueError, match="both must be between"):
        estimate_chapman_total(2, 9, 3)


@pytest.mark.parametrize("confidence", [0.9, 0.95])
@pytest.mark.parametrize(("one_finds", "other_finds"), [(0.6, 0.4), (0.95, 0.9), (0.5, 0.1)])
def test_two_detectors_that_miss_independently_are_covered(confidence, one_finds, other_finds):
    """If two detectors miss independently, the limits contain the true total as often as their confidence states.

    The test simulates 600 populations of 150 bad replies each.
    """
    rng, held = random.Random(7), 0
    for _ in range(600):
        pairs = [(rng.random() < one_finds, rng.random() < other_finds) for _ in range(150)]
        first, second = sum(one for one, _ in pairs), sum(two for _, two in pairs)
        found = estimate_chapman_total(first, second, sum(one and two for one, two in pairs), confidence=confidence)
        held += found.low <= 150 <= found.high
    assert held / 600 >= confidence - 0.02


# --- reviews of the guard's entries --------------------------------------------------------------------------


def test_precision_is_wilsons():
    """If 17 of 20 flagged replies are bad, the guard's precision has Wilson's interval: 0.85 [0.640, 0.948]."""
    found = known(compute_guard_precision(GuardCounts(entries=41, right=17, wrong=3)))
    assert (round(found.value, 3), round(found.low, 3), round(found.high, 3)) == (0.85, 0.640, 0.948)


@pytest.mark.parametrize(
    ("guard", "why"),
    [
        (GuardCounts(entries=41), NO_LABELS),
        (GuardCounts(entries=41, wrong=3), ONLY_FALSE),
    ],
)
def test_without_a_word_for_any_entry_the_guards_figures_are_unknown_and_say_why(guard, why):
    found = reconcile_counts(counts(guard), GOOD_JUDGE)
    assert found.precision == found.held_back_rightly == found.recall == Unknown(why=why)
    assert isinstance(found.missed, Interval)


def test_entries_that_were_all_labelled_are_known_exactly():
    found = known(estimate_rightly_held_back(GuardCounts(entries=20, right=17, wrong=3)))
    assert (found.value, found.low, found.high) == (17, 17, 17)


def test_a_guard_that_held_nothing_back_has_recall_nought_beside_bad_replies():
    found = reconcile_counts(counts(GuardCounts(entries=0)), GOOD_JUDGE)
    assert isinstance(found.precision, Unknown)
    assert found.recall == Interval(value=0, low=0, high=0)


# --- bad replies served --------------------------------------------------------------------------------------


def test_bad_served_is_the_estimators_rate_of_all_conversations():
    found = reconcile_counts(counts(), GOOD_JUDGE)
    rate = estimate_failure_rate(NIGHT.strata, confusion=GOOD_JUDGE)
    assert isinstance(rate, RateEstimate)
    assert found.corrected
    assert known(found.served_bad).value == pytest.approx(2000 * rate.rate)
    assert known(found.served_bad).high == pytest.approx(2000 * rate.high)


@pytest.mark.parametrize(
    ("confusion", "why"),
    [
        (NOBODY, NO_REVIEW),
        (Confusion(50, 0, 1, 0), NO_REVIEW),
        (Confusion(0, 20, 0, 0), NO_REVIEW),
        (Confusion(10, 10, 10, 10), NOT_BETTER_THAN_CHANCE),
    ],
)
def test_without_a_calibrated_judge_what_both_missed_is_unknown_and_says_why(confusion, why):
    found = reconcile_counts(counts(), confusion)
    assert found.missed == Unknown(why=why)
    assert found.judge_blind == Unknown(why=why)
    assert not found.corrected
    assert isinstance(found.flagged, RateEstimate)
    assert known(found.recall).value == pytest.approx(0.85 * 41 / (0.85 * 41 + 2000 * found.flagged.rate))


def test_without_a_night_all_but_the_guards_own_is_unknown():
    found = reconcile_counts(counts(night=TrafficCounts(why_none="no night")), GOOD_JUDGE)
    assert found.served_bad == found.recall == found.missed == found.judge_blind == Unknown(why="no night")
    assert isinstance(found.precision, Interval)


def test_a_night_without_grades_is_unknown():
    stratum = GradedStratum(stratum="rest", conversations=10, sampled=4, graded=0, failures=0)
    found = reconcile_counts(counts(night=TrafficCounts(nightly_runs=1, strata=(stratum,))), GOOD_JUDGE)
    assert isinstance(found.served_bad, Unknown)
    assert isinstance(found.missed, Unknown)


def test_with_nothing_bad_anywhere_recall_is_unknown():
    quiet = GradedStratum(stratum="rest", conversations=100, sampled=100, graded=100, failures=0)
    found = reconcile_counts(counts(GuardCounts(entries=0), TrafficCounts(nightly_runs=1, strata=(quiet,))), NOBODY)
    assert isinstance(found.recall, Unknown)


@given(
    entries=st.integers(0, 200),
    right=st.integers(0, 40),
    wrong=st.integers(0, 40),
    strata=st.lists(st.tuples(*[st.integers(0, 60)] * 4), min_size=1, max_size=3),
    record=st.tuples(*[st.integers(0, 60)] * 4),
)
@example(entries=0, right=0, wrong=0, strata=[(0, 21, 21, 21)] * 3, record=(0, 0, 0, 0))
def test_figures_stay_in_bounds_for_any_counts(entries, right, wrong, strata, record):
    ordered = [sorted(counts) for counts in strata]
    night = TrafficCounts(
        nightly_runs=1,
        strata=tuple(
            GradedStratum(
                stratum=f"s{n}", conversations=counts[3], sampled=counts[2], graded=counts[1], failures=counts[0]
            )
            for n, counts in enumerate(ordered)
        ),
    )
    guard = GuardCounts(entries=entries + right + wrong, right=right, wrong=wrong)
    found = reconcile_counts(counts(guard, night), Confusion(*record))
    for figure, most in (
        (found.precision, 1),
        (found.recall, 1),
        (found.held_back_rightly, guard.entries),
        (found.served_bad, night.conversations),
        (found.missed, night.conversations),
        (found.judge_blind, night.conversations),
    ):
        assert isinstance(figure, Unknown) or figure.high <= most + 1e-9
    if isinstance(found.missed, Interval):
        assert found.missed.value <= known(found.served_bad).value + 1e-9
    assert Reconciliation.model_validate_json(found.model_dump_json()) == found


# --- where both detectors overlap ------------------------------------------------------------------------------


def seen(both: int, alone: int, probability: float = 0.5) -> OverlapCounts:
    one = {"inclusion_probability": probability}
    found = [FoundReply(held_back=True, **one)] * both + [FoundReply(held_back=False, **one)] * alone
    return OverlapCounts(matched=both, same_reply=both, found=tuple(found))


def test_two_detectors_tell_nothing_on_a_small_overlap():
    held = Interval(value=30, low=25, high=35)
    few = estimate_total_bad(held, seen(MIN_FOUND_BY_BOTH - 1, 20))
    assert isinstance(few, Unknown)
    assert "only 6" in few.why
    assert isinstance(estimate_total_bad(held, seen(MIN_FOUND_BY_BOTH, 20)), Interval)
    assert estimate_total_bad(Unknown(why=NO_LABELS), seen(MIN_FOUND_BY_BOTH, 20)) == Unknown(why=NO_LABELS)


def test_equal_sampling_probabilities_leave_the_plain_counts():
    exact = Interval(value=30, low=30, high=30)
    found, plain = known(estimate_total_bad(exact, seen(10, 20, 0.1))), estimate_chapman_total(30, 30, 10)
    assert (found.value, found.low, found.high) == pytest.approx((plain.value, plain.low, plain.high))


def test_unlikely_samples_weigh_more():
    """Bad replies from a stratum with a low sampling probability have a higher weight in the estimate.

    In this test, the guard missed the replies of this stratum. The estimate of all bad replies is therefore higher
    than one from the plain counts.
    """
    common = seen(10, 0, 1.0).found + seen(0, 20, 0.1).found
    exact = Interval(value=30, low=30, high=30)
    found = known(estimate_total_bad(exact, OverlapCounts(matched=10, same_reply=10, found=common)))
    assert found.value > estimate_chapman_total(30, 30, 10).value


# --- known true counts ---------------------------------------------------------------------------------------

SPANS = 400
PASSES_WRONG, FAILS_RIGHT = 0.2, 0.02
STRATA = {"risky": (500, 200, 0.12), "rest": (2500, 250, 0.02)}
"""The strata of the simulation: the number of conversations, the number sampled, and the rate of bad replies."""


class Planted:
    """A simulated time span of traffic with two detectors, and its true counts."""

    def __init__(self, rng: random.Random, *, wrong: int = 60, right: int = 150) -> None:
        entries = [rng.random() < 0.85 for _ in range(60)]
        labelled = rng.sample(entries, 25)
        guard = GuardCounts(entries=60, right=sum(labelled), wrong=25 - sum(labelled))
        self.rightly, self.bad, self.known = sum(entries), 0, 0
        strata = []
        for name, (size, sample_size, rate) in STRATA.items():
            bad = [rng.random() < rate for _ in range(size)]
            flagged = [
                (one, rng.random() < (1 - PASSES_WRONG if one else FAILS_RIGHT)) for one in bad[:sample_size]
            ]
            self.bad += sum(bad)
            self.known += sum(one and said for one, said in flagged)
            failures = sum(said for _, said in flagged)
            strata.append(
                GradedStratum(
                    stratum=name, conversations=size, sampled=sample_size, graded=sample_size, failures=failures
                )
            )
        passed = sum(rng.random() < PASSES_WRONG for _ in range(wrong))
        failed = sum(rng.random() < FAILS_RIGHT for _ in range(right))
        record = Confusion(right - failed, passed, failed, wrong - passed)
        night = TrafficCounts(nightly_runs=1, strata=tuple(strata))
        self.found = reconcile_counts(counts(guard, night), record)

    def truths(self) -> dict[str, float]:
        return {
            "held_back_rightly": self.rightly,
            "served_bad": self.bad,
            "recall": self.rightly / (self.rightly + self.bad),
            "missed": self.bad - self.known,
            "judge_blind": self.bad * PASSES_WRONG,
        }


@pytest.mark.parametrize(("wrong", "right"), [(60, 150), (200, 1500)])
def test_planted_truths_are_covered_at_least_93_times_in_100(wrong, right):
    rng = random.Random(20260301)
    spans = [Planted(rng, wrong=wrong, right=right) for _ in range(SPANS)]
    for name in spans[0].truths():
        covered = sum(holds(getattr(span.found, name), span.truths()[name]) for span in spans)
        assert covered / SPANS >= 0.93, (name, covered)


def test_intervals_of_planted_truths_are_of_use():
    """In simulations with known counts and many reviews, the intervals are narrow and the estimates near the truth.

    Coverage alone would prove little: an interval from zero to everything also contains the truth.
    """
    rng = random.Random(4)
    spans = [Planted(rng, wrong=200, right=1500) for _ in range(100)]
    width = sum(known(span.found.recall).high - known(span.found.recall).low for span in spans) / 100
    assert width < 0.6
    for name in ("held_back_rightly", "served_bad", "recall", "missed", "judge_blind"):
        mean = sum(known(getattr(span.found, name)).value for span in spans) / 100
        assert mean == pytest.approx(sum(span.truths()[name] for span in spans) / 100, rel=0.1), name
