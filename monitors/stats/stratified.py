"""Estimate a rate and its interval for the whole traffic of a night from the sample of a nightly run.

The conversations of a night are divided into strata, groups of similar conversations, and each stratum is sampled
with its own probability. A graded conversation has the weight 1 divided by its sampling probability, because it
represents that number of conversations. The estimate is the average of the strata's failure shares, weighted by
their numbers of conversations (D. G. Horvitz, D. J. Thompson, JASA 47, 1952).

The usual intervals are wrong for rare failures and small samples. If none of ten conversations failed, a normal
interval is a single point. A normal interval also ignores a stratum without an observed failure, even if one
failure in this stratum would represent a hundred failures. The interval used here is based on M. P. Fay, E. J.
Feuer, "Confidence intervals for directly standardized rates: a method based on the gamma distribution", Statistics
in Medicine 16 (1997):

- The observed failures are converted to an equivalent number of failures of equal weight (L. Kish, Survey Sampling,
  1965). The upper limit adds one more failure with the largest weight.
- Beta distributions replace the gamma distributions of the paper. With equal weights, the limits are then Clopper
  and Pearson's limits (E. L. Korn, B. I. Graubard, Survey Methodology 24, 1998, do the same with an effective
  size).
- The more of a stratum was graded, the less the stratum adds to the variance (finite population correction).
- The limits are also computed from the right answers, because either failures or right answers may be rare. The
  wider interval is used.
- A single stratum gets exact hypergeometric limits.

The tests check all samples of small populations. In each of these populations, the interval contains the true rate
at least as often as the stated confidence.

A judge makes errors. In this case, the strata's shares are shares of the judge's verdicts, and the errors remain
even if all conversations are sampled. Therefore, if a judge decided, there is no finite population correction. To
correct the rate for the judge's errors, each limit of the interval is converted to the sample size for which
Wilson's formula gives this limit. `monitors.stats.agreement` computes the correction with this sample size.

`add_rule_and_part_rates` adds the rate that rules found and the rate that a judge found in the remaining
conversations: G. Y. Zou, A. Donner, "Construction of confidence limits about effect measures: a general approach",
Statistics in Medicine 27 (2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from statistics import NormalDist
from typing import NamedTuple

from monitors.records.estimates import GradedStratum, RateEstimate, RateUnknown
from monitors.stats.agreement import Confusion, Estimate, compute_corrected_pass_rate
from monitors.stats.intervals import (
    compute_beta_quantile,
    compute_binomial_limits,
    compute_finite_population_limits,
)

EXACT = "exact hypergeometric limits"
WEIGHTED = "Fay-Feuer limits with Beta distributions over the strata"
CORRECTED = (
    "corrected for the judge's errors by Rogan-Gladen with Lang-Reiczigel limits at the design's effective size"
)
NOT_CORRECTED = "not corrected, because the judge's calibration does not allow a correction"
COUNTED = "counted in every conversation of the night"
JOINED = "findings of rules and of the judge, with limits joined by the method of variance estimates recovery"
NOTHING_SAMPLED, NO_CONVERSATIONS, ALL_UNGRADED = (
    "no conversation was sampled",
    "there were no conversations",
    "no conversation could be graded",
)


class _StratumShare(NamedTuple):
    """A stratum with at least one graded conversation.

    ``item_weight`` is the share of all conversations that one graded conversation represents. ``ungraded_share`` is
    the share of the stratum that was not graded. It serves as the finite population correction, and is 1 if this
    correction is not used.
    """

    conversations: int
    graded: int
    failures: int
    item_weight: float
    ungraded_share: float

    @property
    def with_swapped_outcomes(self) -> _StratumShare:
        """Return the stratum with the counts of failures and of right answers exchanged."""
        return self._replace(failures=self.graded - self.failures)


def estimate_failure_rate(
    strata: Sequence[GradedStratum],
    *,
    confusion: Confusion | None = None,
    judged: bool = False,
    finite: bool = True,
    confidence: float = 0.95,
) -> RateEstimate | RateUnknown:
    """Return the share of failures among all conversations of ``strata``, with its interval.

    - If no conversation was graded, the result is a `RateUnknown`.
    - A stratum without grades may have failed completely or not at all. This possibility widens the interval.
    - If ``confusion`` is given, it compares the judge's grades with human grades, and the rate is corrected for the
      judge's errors. The correction requires reviews of right and of wrong answers, and a judge that is better than
      chance. Otherwise, the result has ``corrected = False``, and ``method`` states that the rate is not corrected.
    - ``judged`` is true if a judge decided. It need not be set if ``confusion`` is given.
    - If rules graded all conversations, the rate and both limits are equal. If a judge decided, or if ``finite`` is
      false, the graders can err. The width of the interval is then above 0, even if all conversations were sampled.
    """
    conversations, sampled, graded = (sum(getattr(stratum, field) for stratum in strata) for field in _COUNT_FIELDS)
    if not graded:
        reason = ALL_UNGRADED if sampled else NOTHING_SAMPLED if conversations else NO_CONVERSATIONS
        return RateUnknown(conversations=conversations, sampled=sampled, why=reason)
    judged = judged or confusion is not None
    estimate, method = _estimate_rate_with_method(strata, confusion, confidence, finite=finite and not judged)
    widened = _widen_by_ungraded(estimate, _compute_share_of_graded_strata(strata))
    coverage = _compute_coverage(strata)
    bounds = _widen_by_ungraded(estimate, coverage)
    return RateEstimate(
        rate=widened.value,
        low=widened.low,
        high=widened.high,
        low_if_ungraded_right=bounds.low,
        high_if_ungraded_failed=bounds.high,
        conversations=conversations,
        sampled=sampled,
        graded=graded,
        coverage=coverage,
        confidence=confidence,
        corrected=method == CORRECTED,
        judged=judged,
        method=method,
    )


def compute_counted_rate(failures: int, conversations: int, *, sampled: int) -> RateEstimate | RateUnknown:
    """Return the rate of a failure kind that rules checked in every conversation.

    The rate is ``failures`` divided by ``conversations``. It is counted, not estimated. Therefore, both limits
    equal the rate. ``sampled`` is the number of sampled conversations. It is only copied to the result. If there
    are no conversations, the result is a `RateUnknown`.
    """
    if not conversations:
        return RateUnknown(conversations=0, sampled=sampled, why=NO_CONVERSATIONS)
    share = failures / conversations
    return RateEstimate(
        rate=share,
        low=share,
        high=share,
        low_if_ungraded_right=share,
        high_if_ungraded_failed=share,
        conversations=conversations,
        sampled=sampled,
        graded=conversations,
        coverage=1.0,
        confidence=0.95,
        corrected=False,
        method=COUNTED,
    )


def add_rule_and_part_rates(by_rule: RateEstimate, parts: Sequence[tuple[float, RateEstimate]]) -> RateEstimate:
    """Add the failure rate that rules found and the failure rates in the conversations that rules passed.

    Each element of ``parts`` stands for a part of the conversations: its share of all conversations, and its rate.
    The shares add up to the share of conversations that rules passed, or to less if the caller omits a part that
    has no failures and no rate.
    """
    rest = fsum(share for share, _ in parts)
    middle = fsum(share * part_rate.rate for share, part_rate in parts) / rest if rest else 0.0

    def compute_distance(of_rules: float, of_parts: Sequence[float]) -> float:
        ends = zip(parts, of_parts, strict=True)
        return sqrt(
            ((1 - middle) * (of_rules - by_rule.rate)) ** 2
            + fsum((share * (end - part_rate.rate)) ** 2 for (share, part_rate), end in ends)
        )

    rate = by_rule.rate + rest * middle
    rates = [part_rate for _, part_rate in parts]
    return RateEstimate(
        rate=_clip_share(rate),
        low=_clip_share(rate - compute_distance(by_rule.low, [part_rate.low for part_rate in rates])),
        high=_clip_share(rate + compute_distance(by_rule.high, [part_rate.high for part_rate in rates])),
        low_if_ungraded_right=_clip_share(
            rate
            - compute_distance(
                by_rule.low_if_ungraded_right, [part_rate.low_if_ungraded_right for part_rate in rates]
            )
        ),
        high_if_ungraded_failed=_clip_share(
            rate
            + compute_distance(
                by_rule.high_if_ungraded_failed, [part_rate.high_if_ungraded_failed for part_rate in rates]
            )
        ),
        conversations=by_rule.conversations,
        sampled=by_rule.sampled,
        graded=by_rule.graded,
        coverage=_clip_share(
            by_rule.coverage - fsum(share * (1 - part_rate.coverage) for share, part_rate in parts)
        ),
        confidence=by_rule.confidence,
        corrected=any(part_rate.corrected for part_rate in rates)
        and not any(part_rate.is_judged_but_uncorrected for part_rate in rates),
        judged=any(part_rate.judged for part_rate in rates),
        method=JOINED if rates else by_rule.method,
    )


_COUNT_FIELDS = ("conversations", "sampled", "graded")


def compute_failure_rate_interval(
    strata: Sequence[GradedStratum],
    *,
    confusion: Confusion | None = None,
    judged: bool = False,
    confidence: float = 0.95,
) -> Estimate:
    """Return the rate and its limits in the same way as `estimate_failure_rate`.

    Raises ``ValueError`` if no conversation was graded.
    """
    if not any(stratum.graded for stratum in strata):
        raise ValueError("no conversation was graded, so there is no rate")
    estimate, _ = _estimate_rate_with_method(strata, confusion, confidence, finite=not judged and confusion is None)
    return _widen_by_ungraded(estimate, _compute_share_of_graded_strata(strata))


def compute_counts_for_sequential_test(strata: Sequence[GradedStratum]) -> tuple[float, float]:
    """Return the numbers of failures and of graded conversations of a nightly run, for the drift test.

    The drift test needs conversations of equal weight. The counts have the same failure rate as the run. The graded
    count is 1 divided by the largest share of the run that one conversation represents. It is at most the real
    number of graded conversations. The result is (0, 0) if no conversation was graded.

    The test has the stated error rate with any strata for the following reason. Let c be the share of a
    conversation divided by this largest share. The likelihood ratio of one conversation, raised to the power c, is
    at most 1 on average if the conversation has the rate of the null hypothesis (Jensen). If strata have other
    rates than the run, the product of all ratios is still at most 1 on average, because the logarithm is concave.
    Counts at Kish's effective size do not have this property.
    """
    graded = [stratum for stratum in strata if stratum.graded]
    conversations = sum(stratum.conversations for stratum in graded)
    if not conversations:
        return 0.0, 0.0
    size = conversations / max(stratum.conversations / stratum.graded for stratum in graded)
    rate = fsum(stratum.conversations * stratum.failures / stratum.graded for stratum in graded) / conversations
    return min(size, rate * size), size


def _compute_share_of_graded_strata(strata: Sequence[GradedStratum]) -> float:
    """Return the share (0 to 1) of conversations that are in strata with at least one graded conversation."""
    return sum(stratum.conversations for stratum in strata if stratum.graded) / sum(
        stratum.conversations for stratum in strata
    )


def _compute_coverage(strata: Sequence[GradedStratum]) -> float:
    covered = fsum(
        stratum.conversations * stratum.graded / stratum.sampled for stratum in strata if stratum.sampled
    )
    return _clip_share(covered / sum(stratum.conversations for stratum in strata))


def _widen_by_ungraded(estimate: Estimate, share: float) -> Estimate:
    """Widen the limits of an estimate that covers ``share`` of the conversations.

    The conversations outside this share are unknown: all of them may be right, or all may have failed.
    """
    return Estimate(estimate.value, estimate.low * share, _clip_share(estimate.high * share + 1 - share))


def _estimate_rate_with_method(
    strata: Sequence[GradedStratum], confusion: Confusion | None, confidence: float, *, finite: bool
) -> tuple[Estimate, str]:
    conversations = sum(stratum.conversations for stratum in strata if stratum.graded)
    if confusion is not None:
        judged_estimate = _estimate_by_design(
            [_build_stratum_share(stratum, conversations, finite=False) for stratum in strata if stratum.graded],
            confidence,
        )
        corrected = _correct_estimate(judged_estimate, confusion, confidence)
        if corrected is not None:
            return corrected, CORRECTED
    parts = [_build_stratum_share(stratum, conversations, finite=finite) for stratum in strata if stratum.graded]
    method = EXACT if len(parts) == 1 else WEIGHTED
    return _estimate_by_design(parts, confidence), method if confusion is None else NOT_CORRECTED


def _build_stratum_share(stratum: GradedStratum, conversations: int, *, finite: bool) -> _StratumShare:
    unseen = 1 - stratum.graded / stratum.conversations if finite else 1.0
    return _StratumShare(
        stratum.conversations,
        stratum.graded,
        stratum.failures,
        stratum.conversations / conversations / stratum.graded,
        unseen,
    )


def _estimate_by_design(parts: Sequence[_StratumShare], confidence: float) -> Estimate:
    """Estimate a rate and its interval from strata. A completely graded stratum does not widen the interval."""
    rate = _clip_share(fsum(stratum.item_weight * stratum.failures for stratum in parts))
    open_parts = [stratum for stratum in parts if stratum.ungraded_share]
    certain = fsum(stratum.item_weight * stratum.failures for stratum in parts if not stratum.ungraded_share)
    if not open_parts:
        return Estimate(rate, rate, rate)
    low, high = (
        _compute_single_stratum_limits(open_parts[0], confidence)
        if len(open_parts) == 1
        else _compute_widest_limits(open_parts, confidence)
    )
    return Estimate(rate, _clip_share(min(rate, certain + low)), _clip_share(max(rate, certain + high)))


def _compute_single_stratum_limits(stratum: _StratumShare, confidence: float) -> tuple[float, float]:
    share = stratum.item_weight * stratum.graded
    if stratum.ungraded_share < 1:
        low, high = compute_finite_population_limits(
            stratum.failures, stratum.graded, stratum.conversations, confidence=confidence
        )
    else:
        low, high = compute_binomial_limits(stratum.failures, stratum.graded, confidence=confidence)
    return share * low, share * high


def _compute_widest_limits(parts: Sequence[_StratumShare], confidence: float) -> tuple[float, float]:
    """Return the lower of two lower limits and the higher of two upper limits, as shares of all conversations.

    One pair of limits is computed from the failures, and the other pair from the right answers.
    """
    share = fsum(stratum.item_weight * stratum.graded for stratum in parts)
    scaled = [stratum._replace(item_weight=stratum.item_weight / share) for stratum in parts]
    low, high = _compute_weighted_limits(scaled, confidence)
    other_low, other_high = _compute_weighted_limits(
        [stratum.with_swapped_outcomes for stratum in scaled], confidence
    )
    return share * min(low, 1 - other_high), share * max(high, 1 - other_low)


def _compute_weighted_limits(parts: Sequence[_StratumShare], confidence: float) -> tuple[float, float]:
    """Return limits for the failure rate, computed from the observed failures.

    The limits never contradict the known grades.
    """
    tail = (1 - confidence) / 2
    rate = fsum(stratum.item_weight * stratum.failures for stratum in parts)
    spread = fsum(stratum.item_weight**2 * stratum.ungraded_share * stratum.failures for stratum in parts)
    low = _compute_quantile(tail, rate, spread) if spread else rate
    high = max(
        _compute_quantile(
            1 - tail, rate + stratum.item_weight, spread + stratum.item_weight**2 * stratum.ungraded_share
        )
        for stratum in parts
    )
    known_failures = fsum(
        stratum.item_weight * (1 - stratum.ungraded_share) * stratum.failures for stratum in parts
    )
    known_right = fsum(
        stratum.item_weight * (1 - stratum.ungraded_share) * (stratum.graded - stratum.failures)
        for stratum in parts
    )
    return max(low, known_failures), max(rate, min(high, 1 - known_right))


def _compute_quantile(share: float, rate: float, spread: float) -> float:
    """Return the value below which a failure rate lies with probability ``share``, by its Beta distribution.

    ``rate`` is the observed rate, and ``spread`` is its variance. The distribution is based on the number of
    equally weighted failures that has the same rate and variance.
    """
    failures, size = rate**2 / spread, rate / spread
    return 1.0 if size <= failures - 1 else compute_beta_quantile(share, failures, size - failures + 1)


def _correct_estimate(judged: Estimate, confusion: Confusion, confidence: float) -> Estimate | None:
    """Correct ``judged``, a failure rate that was estimated from a judge's grades, for the judge's errors.

    Returns ``None`` if the counts in ``confusion`` allow no correction. Each limit is corrected with the sample
    size that fits this limit. Two rules prevent chance from narrowing the interval to a point:

    - If all answers were right, the judge would still fail some of them. If the judge failed fewer answers than
      this expected number, the upper limit is computed from the expected number.
    - If all answers were wrong, the judge would still pass some of them. If the judge failed more answers than
      the number that it would then be expected to fail, the lower limit is computed from this expected number.
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    middle = _correct_rate(
        judged.value, _compute_effective_size(judged.value, judged.high, z), confusion, confidence
    )
    if middle is None:
        return None
    if_all_right = confusion.failed_right / (confusion.failed_right + confusion.passed_right)
    if_all_wrong = confusion.failed_wrong / (confusion.failed_wrong + confusion.passed_wrong)
    size = _compute_effective_size(judged.value, judged.high, z)
    above = _correct_rate(max(judged.value, if_all_right), size, confusion, confidence) or middle
    size = _compute_effective_size(judged.value, judged.low, z)
    below = _correct_rate(min(judged.value, if_all_wrong), size, confusion, confidence) or middle
    return Estimate(middle.value, min(middle.value, below.low), max(middle.value, above.high))


def _correct_rate(rate: float, size: float, confusion: Confusion, confidence: float) -> Estimate | None:
    """Estimate the true failure rate. By the judge's grades, the rate is ``rate`` over ``size`` answers."""
    passed = compute_corrected_pass_rate((1 - rate) * size, size, confusion, confidence=confidence)
    return passed and Estimate(1 - passed.value, 1 - passed.high, 1 - passed.low)


def _compute_effective_size(rate: float, limit: float, z: float) -> float:
    """Return the sample size for which ``limit`` is Wilson's limit for ``rate``.

    ``z`` is the normal quantile of the confidence level, for example 1.96 for 95 %. If the limit equals the
    rate, any size would fit. The result is then 1, which gives the widest interval.
    """
    return max(1.0, z * z * limit * (1 - limit) / (limit - rate) ** 2) if limit != rate else 1.0


def _clip_share(share: float) -> float:
    return min(1.0, max(0.0, share))
