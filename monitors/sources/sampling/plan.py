"""Plan a nightly run before it starts: compute its cost and its expected confidence interval.

The plan contains the limits that the interval has on average. These limits are not those for the expected number of
failures. For example, at a failure rate of 1 % and with ten sampled conversations, nine of ten runs find no failure
and one run finds one failure. Therefore, the limits are averaged over the possible numbers of failures in each
stratum. The rate itself is also uncertain, and the numbers of failures have a beta-binomial distribution.

With several strata, there are too many combinations to compute all of them. Therefore, they are computed only at
evenly distributed points: a Kronecker sequence (multiples of square roots of primes, H. Weyl, Mathematische Annalen
77, 1916).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from itertools import accumulate
from math import ceil, exp, fsum, inf, isqrt, lgamma, log, log1p, sqrt
from typing import Final, NamedTuple

from monitors.errors import ConfigError
from monitors.records.estimates import GradedStratum, NightlyPlan, NoForecast, RateForecast, StratumPlan
from monitors.records.traffic import StratumCount
from monitors.sources.sampling.sample import DEFAULT_PRIOR, ExpectedRate, compute_judged_rate
from monitors.sources.sampling.settings import SamplingSettings
from monitors.stats.agreement import Confusion, Estimate, compute_corrected_pass_rate
from monitors.stats.intervals import compute_finite_population_limits
from monitors.stats.stratified import compute_failure_rate_interval

POINT_COUNT = 256
"""Number of combinations of failure counts over which the limits are averaged.

With 256 points, the width of the interval for five strata was within 1 % of the mean of 20,000 random runs.
"""
_NEGLIGIBLE_CHANCE = 1e-9
"""Numbers of failures at the upper end are ignored if their total probability is smaller than this value."""


class ExpectedStratum(NamedTuple):
    """The values of one stratum from which the expected interval is computed.

    These are the number of conversations, the number of conversations that will be graded, and the expected failure
    rate.
    """

    conversations: int
    graded: int
    expected: ExpectedRate


def compute_expected_interval(
    strata: Sequence[ExpectedStratum], *, confusion: Confusion | None = None, confidence: float = 0.95
) -> tuple[Estimate, bool]:
    """Return the expected estimate of a rate, and whether the rate will be corrected for the judge's errors.

    The ``value`` of the estimate is the expected true rate, and its limits are averages over possible runs. A
    stratum without graded conversations widens the interval by the stratum's share of all conversations. Raises
    ``ValueError`` if no conversation will be graded.
    """
    corrects = confusion is not None and compute_corrected_pass_rate(1, 1, confusion) is not None
    distributions = [
        _compute_cumulative_failure_chances(stratum, confusion if corrects else None) for stratum in strata
    ]
    estimates = [
        compute_failure_rate_interval(
            _simulate_graded_counts(strata, distributions, point), confusion=confusion, confidence=confidence
        )
        for point in _build_quasi_random_points(len(strata))
    ]
    conversations = sum(stratum.conversations for stratum in strata)
    rate = fsum(stratum.conversations * stratum.expected.rate for stratum in strata) / conversations
    low, high = (
        fsum(limits) / len(estimates) for limits in zip(*(estimate[1:] for estimate in estimates), strict=True)
    )
    return Estimate(rate, low, high), corrects


def _simulate_graded_counts(
    strata: Sequence[ExpectedStratum], distributions: Sequence[Sequence[float]], point: Sequence[float]
) -> Sequence[GradedStratum]:
    """Return the simulated counts of a run. ``point`` contains a number from 0 to 1 for each stratum.

    The stratum's number of failures is the value at which the stratum's cumulative distribution reaches this
    number.
    """
    return [
        GradedStratum(
            stratum=f"s{index}",
            conversations=stratum.conversations,
            sampled=stratum.graded,
            graded=stratum.graded,
            failures=min(stratum.graded, bisect_left(distribution, coordinate)),
        )
        for index, (stratum, distribution, coordinate) in enumerate(zip(strata, distributions, point, strict=True))
    ]


def _build_quasi_random_points(dimensions: int) -> Sequence[Sequence[float]]:
    steps = [1 / POINT_COUNT, *(sqrt(prime) % 1 for prime in _list_primes(dimensions - 1))]
    return [[((number + 0.5) * step) % 1 for step in steps[:dimensions]] for number in range(POINT_COUNT)]


def _list_primes(count: int) -> Sequence[int]:
    primes: list[int] = []
    candidate = 2
    while len(primes) < count:
        if all(candidate % divisor for divisor in range(2, isqrt(candidate) + 1)):
            primes.append(candidate)
        candidate += 1
    return primes


def _compute_cumulative_failure_chances(stratum: ExpectedStratum, confusion: Confusion | None) -> Sequence[float]:
    """Return the probabilities of at most 0, 1, 2, … failures in a stratum.

    The list ends when the probability is nearly 1.
    """
    expected = compute_judged_rate(stratum.expected, confusion) if confusion else stratum.expected
    return _cumulate_chances(stratum.graded, *expected)


@lru_cache(1024)
def _cumulate_chances(graded: int, rate: float, weight: float) -> Sequence[float]:
    if rate <= 0 or rate >= 1:
        return [0.0] * (graded if rate else 0) + [1.0]
    return list(_accumulate_failure_chances_until_negligible(graded, rate, weight))


def _accumulate_failure_chances_until_negligible(graded: int, rate: float, weight: float) -> Sequence[float]:
    chances: list[float] = []
    for failures in range(graded + 1):
        chances.append(exp(_compute_log_chance(failures, graded, rate, weight)))
        if sum(chances) > 1 - _NEGLIGIBLE_CHANCE:
            break
    return list(accumulate(chances))


def _compute_log_chance(failures: int, graded: int, rate: float, weight: float) -> float:
    ways = lgamma(graded + 1) - lgamma(failures + 1) - lgamma(graded - failures + 1)
    if weight == inf:
        return ways + failures * log(rate) + (graded - failures) * log1p(-rate)
    fails, passes = rate * weight, (1 - rate) * weight
    return ways + _compute_log_beta(failures + fails, graded - failures + passes) - _compute_log_beta(fails, passes)


def _compute_log_beta(first: float, second: float) -> float:
    return lgamma(first) + lgamma(second) - lgamma(first + second)


_CENT = Decimal("0.01")


class Grading(NamedTuple):
    """The cost of grading one conversation, and how often the judge errs.

    ``calls_per_conversation`` is the number of the judge's calls for a conversation, including panel members,
    turns, and canaries (answers with a known grade that check the judge). Without a judge, the number is 0.
    ``confusion`` compares the judge's grades with human grades, and is used to correct the estimate.
    """

    calls_per_conversation: float
    usd_per_call: Decimal
    confusion: Confusion | None = None
    confidence: float = 0.95


class PlannedRate(NamedTuple):
    """A rate that the run will report, with the expected rate of each stratum.

    - A stratum that is missing in ``expected`` has the rate of `DEFAULT_PRIOR`.
    - ``learnt`` is true if the rates come from earlier runs.
    - ``graded_share`` is the share of the sampled conversations that will be graded for the rate.
    - If no expected interval can be computed, ``why_none`` is the reason.
    """

    name: str
    expected: Mapping[str, ExpectedRate]
    graded_share: float = 1.0
    learnt: bool = False
    why_none: str = ""


SEVERE_RATE_NAME: Final = "severity-3 rate"
ANY_FAILURE_NAME: Final = "any failure"


def plan_nightly(
    counts: Sequence[StratumCount],
    planned_rates: Sequence[PlannedRate],
    grading: Grading,
    settings: SamplingSettings,
) -> NightlyPlan:
    """Return the plan of the sample with these ``counts``.

    The first of ``planned_rates`` is the rate of severity-3 failures.

    Raises `ConfigError` if there are no conversations, because an empty nightly run needs no plan.
    """
    if not any(count.sampled for count in counts):
        raise ConfigError("the source has no conversations for this night. Check the source")
    severe = planned_rates[0].expected
    calls = ceil(sum(count.sampled for count in counts) * grading.calls_per_conversation)
    return NightlyPlan(
        strata=tuple(
            StratumPlan(
                stratum=count.stratum,
                conversations=count.conversations,
                sampled=count.sampled,
                expected_rate=severe.get(count.stratum, DEFAULT_PRIOR).rate,
            )
            for count in counts
        ),
        judge_calls=calls,
        cost_usd=(calls * grading.usd_per_call).quantize(_CENT, ROUND_HALF_UP),
        rates=tuple(_forecast_failure_rate(counts, count, grading) for count in planned_rates),
        notes=_list_notes(counts, settings),
    )


def _forecast_failure_rate(
    counts: Sequence[StratumCount], planned: PlannedRate, grading: Grading
) -> RateForecast | NoForecast:
    if planned.why_none:
        return NoForecast(name=planned.name, why=planned.why_none)
    expected = [
        ExpectedStratum(
            count.conversations,
            min(count.sampled, max(1, round(count.sampled * planned.graded_share))),
            planned.expected.get(count.stratum, DEFAULT_PRIOR),
        )
        for count in counts
    ]
    estimate, corrects = compute_expected_interval(
        expected, confusion=grading.confusion, confidence=grading.confidence
    )
    return RateForecast(
        name=planned.name,
        expected_rate=estimate.value,
        low=estimate.low,
        high=estimate.high,
        confidence=grading.confidence,
        corrected=corrects,
        learnt=planned.learnt,
    )


def _list_notes(counts: Sequence[StratumCount], settings: SamplingSettings) -> tuple[str, ...]:
    sampled, budget = sum(count.sampled for count in counts), settings.budget
    sampled_whole = [count.stratum for count in counts if count.sampled == count.conversations]
    missed = [
        str(sign)
        for sign in settings.certainty
        if any(count.stratum.startswith(str(sign)) and count.sampled < count.conversations for count in counts)
    ]
    conversations = sum(count.conversations for count in counts)
    notes = [
        f"sampled completely (no sampling error): {', '.join(sampled_whole)}" if sampled_whole else "",
        f"not sampled completely, because sampling.number is too small: {', '.join(missed)}" if missed else "",
        f"the sample has {sampled} conversations instead of {budget}, because each stratum gives at least "
        f"{settings.minimum_per_stratum}"
        if budget is not None and sampled > budget
        else "",
        format_small_sample_warning(sampled, conversations),
    ]
    return tuple(note for note in notes if note)


MAX_HIDDEN_SHARE: Final = 0.05
"""Highest failure rate that a sample without failures may leave possible (with 95 % confidence).

If a higher rate is possible, a warning reports that the sample is small.
"""
ADVISED_NUMBER: Final = 200


def format_small_sample_warning(sampled: int, conversations: int) -> str:
    """Return a warning that a small sample may miss many failures. Empty text if the sample is large enough."""
    hidden = _compute_hidden_failure_share(sampled, conversations)
    if not sampled or hidden <= MAX_HIDDEN_SHARE:
        return ""
    advised = min(ADVISED_NUMBER, conversations)
    return (
        f"the sample of {sampled:,} of {conversations:,} conversations is small. Even if it contains no failure, "
        f"up to {100 * hidden:.0f} % of all conversations may fail. Set traffic.sampling.number = {advised} to "
        f"lower this share to {100 * _compute_hidden_failure_share(advised, conversations):.1f} %."
    )


def _compute_hidden_failure_share(sampled: int, conversations: int) -> float:
    """Return the upper limit (with 95 % confidence) for the share of failures if the sample contains no failure."""
    return compute_finite_population_limits(0, sampled, conversations, confidence=0.9)[1]
