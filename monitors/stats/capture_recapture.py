"""Estimate the number of bad replies that both the application's guard and the nightly runs missed.

The guard examines all replies and blocks some of them. The nightly run examines a sample of the replies that users
received ("served" replies). Therefore, the bad replies have two parts that do not overlap, and each part is
estimated separately:

- Blocked. People label some entries of the guard's log, which are assumed to be a random sample. The share of bad
  replies among these entries has Wilson's interval. The number of bad replies has exact hypergeometric limits.
- Served. The share of conversations with a bad reply is estimated from the strata of all nightly runs and corrected
  for the judge's errors (`monitors.stats.stratified`, `monitors.stats.agreement`). These errors are known from
  human reviews. They are assumed to be the same on live traffic.

Recall is the number of bad replies that were blocked, divided by the number of all bad replies: blocked plus
served. The served part counts conversations. A conversation with two bad replies counts once, which makes recall
somewhat too high (the report contains the number of such cases). The two parts come from different samples. Their
intervals are joined on the logarithm of their ratio: G. Y. Zou, A. Donner, "Construction of confidence limits about
effect measures: a general approach", Statistics in Medicine 27 (2008).

The replies that both detectors missed are the bad served replies minus the bad served replies that the judge found.
Not every reply that the judge flagged is really bad. The value uses the likely number of really bad replies,
computed from the judge's errors. The lower limit assumes that all flagged replies are bad, and the upper limit
assumes that none is bad. Therefore, the limits are valid if the limits of the bad served replies are valid.
``judge_blind`` is the number of bad served replies that the judge would still pass if it graded all replies.

``judge_blind`` and the total below combine two estimates from the same reviews or labels. They combine the extreme
limits of both intervals, each computed at half of the error probability (C. E. Bonferroni, 1936). The confidence is
then at least the stated confidence, even if the two estimates depend on each other.

The nightly run may also judge replies that the guard blocked, because the guard only marks replies, or because the
source stores blocked replies. In this case, both detectors examined the same replies, and the size of their overlap
shows how many bad replies exist in total. This is the capture-recapture method, which biologists use to count
animals:

- Estimate: D. G. Chapman, University of California Publications in Statistics 1 (1951). The estimate is nearly
  unbiased if both detectors found at least seven of the same replies (D. S. Robson, H. A. Regier, Transactions of
  the American Fisheries Society 93, 1964).
- Interval: M. Sadinle, "Transformed logit confidence intervals for small populations in single capture-recapture
  estimation", Communications in Statistics - Simulation and Computation 38 (2009). The interval has the stated
  confidence even with small counts. Its upper limit becomes very large if few replies were found by only one
  detector. A second upper limit comes from Clopper and Pearson's lower limit for the share of the second detector's
  findings that the first detector also found. The smaller of both upper limits is used.
- Assumption: the detectors miss replies independently of each other. Two language models do not: replies that are
  hard for one model are also hard for the other. The total is then too low. Therefore, the total is shown beside
  the estimate from labels, and never replaces this estimate. Replies that the judge wrongly calls bad increase the
  total.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, fsum, hypot, inf, log, sqrt
from statistics import NormalDist
from typing import Final

from monitors.records.estimates import RateEstimate, RateUnknown
from monitors.records.reconciliation import (
    Figure,
    FoundReply,
    GuardCounts,
    Interval,
    OverlapCounts,
    Reconciliation,
    ReconciliationCounts,
    TrafficCounts,
    Unknown,
)
from monitors.stats.agreement import Confusion, compute_false_pass_rate
from monitors.stats.intervals import (
    compute_binomial_limits,
    compute_finite_population_limits,
    compute_wilson_interval,
)
from monitors.stats.stratified import estimate_failure_rate

MIN_FOUND_BY_BOTH: Final = 7
"""The total is estimated only if both detectors found at least this many of the same replies.

Source: Robson, Regier, 1964.
"""
_MAX_LOG_FACTOR: Final = 700.0
"""Largest logarithm of a factor: e to the power 700 is about the largest number that a float can store."""
NO_ENTRIES: Final = "the guard did not block any reply"
NO_LABELS: Final = "people have not labelled any entry"
ONLY_FALSE: Final = "people labelled only false alarms, but no reply that was rightly blocked"
NO_REVIEW: Final = "the judge is not calibrated: people must review right answers and wrong answers"
NOT_BETTER_THAN_CHANCE: Final = "according to human reviews, this judge is not better than chance"


def reconcile_counts(
    counts: ReconciliationCounts, confusion: Confusion, *, confidence: float = 0.95
) -> Reconciliation:
    """Compute all figures of a period.

    ``confusion`` compares the judge's grades with human grades. Its counts are 0 if there are no reviews.
    """
    half_confidence = 1 - (1 - confidence) / 2
    nightly, held = counts.nightly, estimate_rightly_held_back(counts.guard, confidence=confidence)
    served, corrected = estimate_conversations_with_bad_reply(nightly, confusion, confidence=confidence)
    surely_held = estimate_rightly_held_back(counts.guard, confidence=half_confidence)
    surely_served, _ = estimate_conversations_with_bad_reply(nightly, confusion, confidence=half_confidence)
    return Reconciliation(
        counts=counts,
        confidence=confidence,
        reviewed_wrong=confusion.passed_wrong + confusion.failed_wrong,
        reviewed_right=confusion.passed_right + confusion.failed_right,
        precision=compute_guard_precision(counts.guard, confidence=confidence),
        held_back_rightly=held,
        flagged=_estimate_flagged_rate(nightly, confidence),
        served_bad=served,
        corrected=corrected,
        recall=_estimate_guard_recall(held, served),
        missed=_estimate_bad_unflagged_replies(nightly, served, confusion, corrected=corrected),
        judge_blind=_estimate_missed_by_judge(
            surely_served, confusion, corrected=corrected, confidence=half_confidence
        ),
        total_bad=estimate_total_bad(surely_held, counts.overlap, confidence=half_confidence),
    )


def compute_guard_precision(guard: GuardCounts, *, confidence: float = 0.95) -> Figure:
    """Return the share of blocked replies that were rightly blocked, with Wilson's interval.

    The share is computed from the entries of the guard's log that people labelled. The share is unknown if no entry
    was labelled as rightly blocked, even if some were labelled as false alarms.
    """
    if not guard.entries:
        return Unknown(why=NO_ENTRIES)
    if not guard.right:
        return Unknown(why=ONLY_FALSE if guard.wrong else NO_LABELS)
    low, high = compute_wilson_interval(guard.right, guard.labelled, confidence=confidence)
    return _build_interval(guard.right / guard.labelled, low, high)


def estimate_rightly_held_back(guard: GuardCounts, *, confidence: float = 0.95) -> Figure:
    """Estimate how many of the entries in the guard's log were rightly blocked.

    The share of rightly blocked entries is assumed to be the same among unlabelled and labelled entries.
    """
    if not guard.entries:
        return Interval(value=0, low=0, high=0)
    share = compute_guard_precision(guard, confidence=confidence)
    if isinstance(share, Unknown):
        return share
    low, high = compute_finite_population_limits(guard.right, guard.labelled, guard.entries, confidence=confidence)
    return _build_interval(share.value * guard.entries, low * guard.entries, high * guard.entries)


def estimate_conversations_with_bad_reply(
    nightly: TrafficCounts, confusion: Confusion, *, confidence: float = 0.95
) -> tuple[Figure, bool]:
    """Estimate the number of conversations with a bad served reply.

    Return the estimate, and whether it is corrected for the judge's errors.
    """
    if nightly.why_none:
        return Unknown(why=nightly.why_none), False
    rate = estimate_failure_rate(nightly.strata, confusion=confusion, confidence=confidence)
    if isinstance(rate, RateUnknown):
        return Unknown(why=rate.why), False
    size = nightly.conversations
    return _build_interval(rate.rate * size, rate.low * size, rate.high * size), rate.corrected


def estimate_chapman_total(first: float, second: float, both: float, *, confidence: float = 0.95) -> Interval:
    """Estimate how many items exist in total, from two detectors that each found some of them.

    One detector found ``first`` items, the other detector found ``second`` items, and ``both`` is the number of
    items that both found. The smaller the overlap, the more items both detectors have missed. The estimate is
    Chapman's, with Sadinle's limits. Counts may be fractions. Raises ``ValueError`` if ``both`` is larger than
    ``first`` or ``second``.
    """
    if not 0 <= both <= min(first, second):
        raise ValueError(f"both must be between 0 and the smaller of {first} and {second}, got {both}")
    value = (first + 1) * (second + 1) / (both + 1) - 1
    first_only, second_only, shared = first - both + 0.5, second - both + 0.5, both + 0.5
    error = sqrt(1 / shared + 1 / first_only + 1 / second_only + shared / (first_only * second_only))
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * error
    known_total, unseen = first + second - both - 0.5, first_only * second_only / shared
    min_shared, _ = compute_binomial_limits(both, second, confidence=confidence)
    max_total = first / min_shared if min_shared else inf
    return _build_interval(
        value, known_total + unseen * exp(-reach), min(max_total, known_total + unseen * exp(reach))
    )


def estimate_total_bad(held: Figure, overlap: OverlapCounts, *, confidence: float = 0.95) -> Figure:
    """Estimate the number of all bad replies, blocked or served.

    The number is unknown if both detectors found fewer than `MIN_FOUND_BY_BOTH` of the same replies. ``held`` is
    the estimated number of bad replies that the guard blocked. The replies that the nightly runs found are weighted
    by 1 divided by their sampling probability. The lower limit is computed with the lower limit of ``held``, and
    the upper limit with its upper limit.
    """
    if overlap.both < MIN_FOUND_BY_BOTH:
        return Unknown(
            why=f"the guard and the nightly runs found only {overlap.both} of the same replies. An estimate needs "
            f"{MIN_FOUND_BY_BOTH}"
        )
    if isinstance(held, Unknown):
        return held
    second, both = _compute_effective_counts(overlap.found)
    estimates = [
        estimate_chapman_total(max(first, both), second, both, confidence=confidence)
        for first in (held.value, held.low, held.high)
    ]
    return _build_interval(estimates[0].value, estimates[1].low, estimates[2].high)


def _compute_effective_counts(replies: Sequence[FoundReply]) -> tuple[float, float]:
    """Count the bad replies that the nightly runs found, and how many of these replies the guard also found.

    The counts are weighted and scaled to Kish's effective size, as in
    `monitors.stats.agreement.compute_effective_counts`.
    """
    weights = [1 / reply.inclusion_probability for reply in replies]
    scale = fsum(weights) / fsum(weight * weight for weight in weights)
    both = fsum(weight for weight, reply in zip(weights, replies, strict=True) if reply.held_back)
    size = fsum(weights) * scale
    return size, min(size, both * scale)


def _estimate_flagged_rate(nightly: TrafficCounts, confidence: float) -> RateEstimate | RateUnknown:
    if nightly.why_none:
        sampled = sum(stratum.sampled for stratum in nightly.strata)
        return RateUnknown(conversations=nightly.conversations, sampled=sampled, why=nightly.why_none)
    return estimate_failure_rate(nightly.strata, confidence=confidence)


def _estimate_guard_recall(held: Figure, served: Figure) -> Figure:
    if isinstance(held, Unknown):
        return held
    if isinstance(served, Unknown):
        return served
    if not held.value + served.value:
        return Unknown(why="neither the guard nor the nightly runs found a bad reply")
    if not (held.value and served.value):
        value, low, high = (
            _compute_guard_recall(*corner)
            for corner in ((held.value, served.value), (held.low, served.high), (held.high, served.low))
        )
        return _build_interval(value, low, high)
    below = hypot(_compute_log_ratio(held.value, held.low), _compute_log_ratio(served.high, served.value))
    above = hypot(_compute_log_ratio(held.high, held.value), _compute_log_ratio(served.value, served.low))
    ratio = held.value / served.value
    return _build_interval(
        _compute_guard_recall(ratio, 1),
        _compute_guard_recall(ratio * exp(-below), 1),
        _compute_guard_recall(_scale_ratio(ratio, above), 1),
    )


def _compute_log_ratio(high: float, low: float) -> float:
    return log(high / low) if low else inf


def _scale_ratio(ratio: float, log_factor: float) -> float:
    return ratio * exp(log_factor) if log_factor < _MAX_LOG_FACTOR else inf


def _compute_guard_recall(held: float, served: float) -> float:
    if held == inf:
        return 1.0
    return held / (held + served) if held else 0.0


def _estimate_bad_unflagged_replies(
    nightly: TrafficCounts, served: Figure, confusion: Confusion, *, corrected: bool
) -> Figure:
    if isinstance(served, Unknown):
        return served
    if not corrected:
        return _explain_uncalibrated(confusion)
    flagged_bad = min(nightly.found * _compute_flag_precision(nightly, served, confusion), served.value)
    return _build_interval(served.value - flagged_bad, max(0.0, served.low - nightly.found), served.high)


def _compute_flag_precision(nightly: TrafficCounts, served: Interval, confusion: Confusion) -> float:
    """Return the share of flagged replies that are really bad.

    The share is computed with Bayes' rule from the rate of bad replies and from how often the judge fails bad and
    good replies.
    """
    rate = served.value / nightly.conversations
    wrong = confusion.passed_wrong + confusion.failed_wrong
    right = confusion.passed_right + confusion.failed_right
    truly, falsely = rate * confusion.failed_wrong / wrong, (1 - rate) * confusion.failed_right / right
    return truly / (truly + falsely) if truly + falsely else 0.0


def _estimate_missed_by_judge(
    served: Figure, confusion: Confusion, *, corrected: bool, confidence: float
) -> Figure:
    """Estimate how many bad served replies the judge would pass.

    The estimate is the number of bad served replies times the judge's false pass rate.
    """
    passes = compute_false_pass_rate(confusion, confidence=confidence)
    if isinstance(served, Unknown):
        return served
    if passes is None or not corrected:
        return _explain_uncalibrated(confusion)
    return _build_interval(served.value * passes.value, served.low * passes.low, served.high * passes.high)


def _explain_uncalibrated(confusion: Confusion) -> Unknown:
    wrong = confusion.passed_wrong + confusion.failed_wrong
    right = confusion.passed_right + confusion.failed_right
    return Unknown(why=NOT_BETTER_THAN_CHANCE if wrong and right else NO_REVIEW)


def _build_interval(value: float, low: float, high: float) -> Interval:
    """Build an interval whose limits are moved, if necessary, so that it contains ``value``.

    This is needed because of rounding errors.
    """
    return Interval(value=max(0.0, value), low=max(0.0, min(low, value)), high=max(high, value, 0.0))
