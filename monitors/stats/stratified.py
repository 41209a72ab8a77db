"""A rate over a nightly run's whole traffic from its sample, with an interval that holds its level. Pure.

The estimate is Horvitz and Thompson's (JASA 47, 1952): each graded conversation stands for one over its probability
of being sampled, which within a stratum is sampled / conversations, so that it is the sum of the strata's shares,
each by its weight. What is hard is the interval when failures are rare and samples small: a normal interval on no
failure among ten is a point, and intervals that learn their spread from the failures seen forget the stratum in
which one failure stands for a hundred and none was seen.

Interval: M. P. Fay, E. J. Feuer, "Confidence intervals for directly standardized rates: a method based on the gamma
distribution", Statistics in Medicine 16 (1997): the failures seen count as if they were fewer or more of equal
weight (as in L. Kish, Survey Sampling, 1965), and the upper limit asks in addition what one more failure of the
worst weight would have made of it. Theirs is for Poisson counts; here Beta takes the place of gamma, so that equal
weights give Clopper and Pearson's limits (as E. L. Korn and B. I. Graubard do with an effective size, Survey
Methodology 24, 1998), each term of the variance carries its stratum's finite population correction, and the same is
done for the right answers, the wider counting: either may be the rare one. One stratum alone gets its exact
hypergeometric limits. The tests count all samples of small populations: no population is covered less than said.

With a judge that errs the strata's shares are of what it said. Its errors do not vanish when everything is sampled,
so no finite population correction is made, corrected or not; for a correction the design's interval is turned into
the sample size that would have given each limit by Wilson's formula, and `monitors.stats.agreement` corrects with
that.

What rules found and what a judge found among the rest add up (`join_rates`): G. Y. Zou, A. Donner, "Construction of
confidence limits about effect measures: a general approach", Statistics in Medicine 27 (2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from statistics import NormalDist
from typing import NamedTuple

from monitors.records.estimates import GradedStratum, RateEstimate, RateUnknown
from monitors.stats.agreement import Confusion, Estimate, corrected_pass_rate
from monitors.stats.intervals import beta_quantile, binomial_limits, finite_limits

EXACT = "exact hypergeometric limits"
WEIGHTED = "Fay-Feuer limits with Beta distributions over the strata"
CORRECTED = (
    "corrected for the judge's errors by Rogan-Gladen with Lang-Reiczigel limits at the design's effective size"
)
NOT_CORRECTED = "not corrected: the judge's calibration allows no correction"
COUNTED = "counted in every conversation of the night"
JOINED = "what rules found and what was judged, their limits joined by the method of variance estimates recovery"
NOTHING_DRAWN, NOTHING_THERE, ALL_UNTOLD = (
    "no conversation was sampled",
    "there was no conversation",
    "nobody could tell",
)


class _StratumShare(NamedTuple):
    """A stratum, graded in part. ``each`` is what one graded one stands for, as a share of all conversations.

    ``unseen`` is the share of the stratum that was not graded: its finite population correction.
    """

    conversations: int
    graded: int
    failures: int
    each: float
    unseen: float

    @property
    def turned(self) -> _StratumShare:
        """The same with failures and right answers exchanged."""
        return self._replace(failures=self.graded - self.failures)


def estimate_rate(
    strata: Sequence[GradedStratum],
    *,
    confusion: Confusion | None = None,
    judged: bool = False,
    finite: bool = True,
    confidence: float = 0.95,
) -> RateEstimate | RateUnknown:
    """The share of failures among all conversations of ``strata``, with its interval.

    With ``confusion``, the judge's record against people, its errors are taken out where that record allows it: it
    needs answers of both kinds and a judge better than chance, else the estimate says ``corrected = False`` and
    why. A stratum of which nothing was graded may have failed anywhere from not at all to wholly, and the interval
    says so. `RateUnknown` when nothing at all was graded. The finite population is the nightly run's: with every
    conversation graded by rule, low, rate and high are the same. ``judged`` says that a judge decided (as a
    ``confusion`` does too); whoever decided can err where ``finite`` is false or a judge did, and then no interval
    is a point because everything was sampled.
    """
    conversations, sampled, graded = (sum(getattr(one, counted) for one in strata) for counted in _COUNTED)
    if not graded:
        why = ALL_UNTOLD if sampled else NOTHING_DRAWN if conversations else NOTHING_THERE
        return RateUnknown(conversations=conversations, sampled=sampled, why=why)
    judged = judged or confusion is not None
    found, method = _of_those_known(strata, confusion, confidence, finite=finite and not judged)
    among_known = _widened(found, _known_share(strata))
    coverage = _coverage(strata)
    least = _widened(found, coverage)
    return RateEstimate(
        rate=among_known.value,
        low=among_known.low,
        high=among_known.high,
        low_if_ungraded_right=least.low,
        high_if_ungraded_failed=least.high,
        conversations=conversations,
        sampled=sampled,
        graded=graded,
        coverage=coverage,
        confidence=confidence,
        corrected=method == CORRECTED,
        judged=judged,
        method=method,
    )


def counted_rate(found: int, there: int, *, sampled: int) -> RateEstimate | RateUnknown:
    """The share of a kind that rules checked in every conversation: a count, and no estimate."""
    if not there:
        return RateUnknown(conversations=0, sampled=sampled, why=NOTHING_THERE)
    share = found / there
    return RateEstimate(
        rate=share,
        low=share,
        high=share,
        low_if_ungraded_right=share,
        high_if_ungraded_failed=share,
        conversations=there,
        sampled=sampled,
        graded=there,
        coverage=1.0,
        confidence=0.95,
        corrected=False,
        method=COUNTED,
    )


def join_rates(by_rule: RateEstimate, parts: Sequence[tuple[float, RateEstimate]]) -> RateEstimate:
    """The share that rules failed, and of the rest what each part adds: its share of all, and its own rate.

    The shares add up to what rules passed; less than that where a part without a rate never failed.
    """
    rest = fsum(share for share, _ in parts)
    middle = fsum(share * one.rate for share, one in parts) / rest if rest else 0.0

    def limit(of_rules: float, of_parts: Sequence[float]) -> float:
        ends = zip(parts, of_parts, strict=True)
        return sqrt(
            ((1 - middle) * (of_rules - by_rule.rate)) ** 2
            + fsum((share * (end - one.rate)) ** 2 for (share, one), end in ends)
        )

    rate = by_rule.rate + rest * middle
    each = [one for _, one in parts]
    return RateEstimate(
        rate=_clipped(rate),
        low=_clipped(rate - limit(by_rule.low, [one.low for one in each])),
        high=_clipped(rate + limit(by_rule.high, [one.high for one in each])),
        low_if_ungraded_right=_clipped(
            rate - limit(by_rule.low_if_ungraded_right, [one.low_if_ungraded_right for one in each])
        ),
        high_if_ungraded_failed=_clipped(
            rate + limit(by_rule.high_if_ungraded_failed, [one.high_if_ungraded_failed for one in each])
        ),
        conversations=by_rule.conversations,
        sampled=by_rule.sampled,
        graded=by_rule.graded,
        coverage=_clipped(by_rule.coverage - fsum(share * (1 - one.coverage) for share, one in parts)),
        confidence=by_rule.confidence,
        corrected=any(one.corrected for one in each) and not any(one.is_uncorrected for one in each),
        judged=any(one.judged for one in each),
        method=JOINED if each else by_rule.method,
    )


_COUNTED = ("conversations", "sampled", "graded")


def rate_interval(
    strata: Sequence[GradedStratum],
    *,
    confusion: Confusion | None = None,
    judged: bool = False,
    confidence: float = 0.95,
) -> Estimate:
    """The rate and its limits alone, as in `estimate_rate`. ``ValueError`` when nothing was graded."""
    if not any(one.graded for one in strata):
        raise ValueError("nothing was graded: there is no rate")
    found, _ = _of_those_known(strata, confusion, confidence, finite=not judged and confusion is None)
    return _widened(found, _known_share(strata))


def sequential_counts(strata: Sequence[GradedStratum]) -> tuple[float, float]:
    """A nightly run as (failures, graded) of equal weight, for a test that holds run after run; (0, 0) ungraded.

    The rate is the run's; graded is one over the largest share of the run that one conversation stands for, at most
    the number graded. With c the share of an item over that largest share, the likelihood ratio of one item, raised
    to the power c, is at most 1 on average where the item's own rate is the null's (Jensen); where strata have
    other rates than the run, the product of all stays so because the logarithm is concave. So a betting test on
    these counts keeps its error rate under any stratified design, which it would not on Kish's effective size.
    """
    graded = [one for one in strata if one.graded]
    there = sum(one.conversations for one in graded)
    if not there:
        return 0.0, 0.0
    size = there / max(one.conversations / one.graded for one in graded)
    rate = fsum(one.conversations * one.failures / one.graded for one in graded) / there
    return min(size, rate * size), size


def _known_share(strata: Sequence[GradedStratum]) -> float:
    """The share of conversations that lie in strata of which something was graded."""
    return sum(one.conversations for one in strata if one.graded) / sum(one.conversations for one in strata)


def _coverage(strata: Sequence[GradedStratum]) -> float:
    covered = fsum(one.conversations * one.graded / one.sampled for one in strata if one.sampled)
    return _clipped(covered / sum(one.conversations for one in strata))


def _widened(found: Estimate, share: float) -> Estimate:
    """The same when only ``share`` is known and the rest may have failed from not at all to wholly."""
    return Estimate(found.value, found.low * share, _clipped(found.high * share + 1 - share))


def _of_those_known(
    strata: Sequence[GradedStratum], confusion: Confusion | None, confidence: float, *, finite: bool
) -> tuple[Estimate, str]:
    known = sum(one.conversations for one in strata if one.graded)
    if confusion is not None:
        said = _by_design([_part(one, known, finite=False) for one in strata if one.graded], confidence)
        corrected = _without_errors(said, confusion, confidence)
        if corrected is not None:
            return corrected, CORRECTED
    parts = [_part(one, known, finite=finite) for one in strata if one.graded]
    method = EXACT if len(parts) == 1 else WEIGHTED
    return _by_design(parts, confidence), method if confusion is None else NOT_CORRECTED


def _part(one: GradedStratum, known: int, *, finite: bool) -> _StratumShare:
    unseen = 1 - one.graded / one.conversations if finite else 1.0
    return _StratumShare(
        one.conversations, one.graded, one.failures, one.conversations / known / one.graded, unseen
    )


def _by_design(parts: Sequence[_StratumShare], confidence: float) -> Estimate:
    """Strata graded whole add what they are; the limits are those of the others."""
    rate = _clipped(fsum(part.each * part.failures for part in parts))
    open_parts = [part for part in parts if part.unseen]
    certain = fsum(part.each * part.failures for part in parts if not part.unseen)
    if not open_parts:
        return Estimate(rate, rate, rate)
    low, high = _single(open_parts[0], confidence) if len(open_parts) == 1 else _both_ways(open_parts, confidence)
    return Estimate(rate, _clipped(min(rate, certain + low)), _clipped(max(rate, certain + high)))


def _single(part: _StratumShare, confidence: float) -> tuple[float, float]:
    share = part.each * part.graded
    if part.unseen < 1:
        low, high = finite_limits(part.failures, part.graded, part.conversations, confidence=confidence)
    else:
        low, high = binomial_limits(part.failures, part.graded, confidence=confidence)
    return share * low, share * high


def _both_ways(parts: Sequence[_StratumShare], confidence: float) -> tuple[float, float]:
    """The limits by the failures and by the right answers, the wider of each; shares of all conversations."""
    share = fsum(part.each * part.graded for part in parts)
    scaled = [part._replace(each=part.each / share) for part in parts]
    low, high = _weighted(scaled, confidence)
    other_low, other_high = _weighted([part.turned for part in scaled], confidence)
    return share * min(low, 1 - other_high), share * max(high, 1 - other_low)


def _weighted(parts: Sequence[_StratumShare], confidence: float) -> tuple[float, float]:
    """Limits by the failures. The part that was seen is known: they never leave what it allows."""
    left_out = (1 - confidence) / 2
    rate = fsum(part.each * part.failures for part in parts)
    spread = fsum(part.each**2 * part.unseen * part.failures for part in parts)
    low = _quantile(left_out, rate, spread) if spread else rate
    high = max(_quantile(1 - left_out, rate + part.each, spread + part.each**2 * part.unseen) for part in parts)
    seen = fsum(part.each * (1 - part.unseen) * part.failures for part in parts)
    right = fsum(part.each * (1 - part.unseen) * (part.graded - part.failures) for part in parts)
    return max(low, seen), max(rate, min(high, 1 - right))


def _quantile(share: float, rate: float, spread: float) -> float:
    """A quantile of the Beta distribution of as many failures of equal weight as have this rate and this spread."""
    failures, size = rate**2 / spread, rate / spread
    return 1.0 if size <= failures - 1 else beta_quantile(share, failures, size - failures + 1)


def _without_errors(said: Estimate, confusion: Confusion, confidence: float) -> Estimate | None:
    """What people would have found; each limit at the sample size that would have given the design's own.

    Fewer failures than the judge's false ones alone would make (or more than it could find were all wrong) are
    taken as that many for the limit beyond: luck does not narrow the interval to a point.
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    middle = _corrected(said.value, _size_for(said.value, said.high, z), confusion, confidence)
    if middle is None:
        return None
    if_all_right = confusion.failed_right / (confusion.failed_right + confusion.passed_right)
    if_all_wrong = confusion.failed_wrong / (confusion.failed_wrong + confusion.passed_wrong)
    size = _size_for(said.value, said.high, z)
    above = _corrected(max(said.value, if_all_right), size, confusion, confidence) or middle
    size = _size_for(said.value, said.low, z)
    below = _corrected(min(said.value, if_all_wrong), size, confusion, confidence) or middle
    return Estimate(middle.value, min(middle.value, below.low), max(middle.value, above.high))


def _corrected(rate: float, size: float, confusion: Confusion, confidence: float) -> Estimate | None:
    """The failure rate behind a judge's ``rate`` of ``size`` answers."""
    passed = corrected_pass_rate((1 - rate) * size, size, confusion, confidence=confidence)
    return passed and Estimate(1 - passed.value, 1 - passed.high, 1 - passed.low)


def _size_for(rate: float, limit: float, z: float) -> float:
    """The sample size at which Wilson's limit for ``rate`` is ``limit``, solved from its equation.

    A rate of 0 or 1 is its own limit on that side at any size: there one conversation is taken, which claims least.
    """
    return max(1.0, z * z * limit * (1 - limit) / (limit - rate) ** 2) if limit != rate else 1.0


def _clipped(share: float) -> float:
    return min(1.0, max(0.0, share))
