"""What the application's guard and Lookout's nightly runs both missed, estimated from what each found. Pure.

The two examine different things: the guard every reply, of which it holds some back; the nightly run a sample of
what was served. So the total has two parts that do not overlap, and each has its own estimate:

- Held back. People label some entries. Those labelled are taken as a random part of all: precision has Wilson's
  interval, and the number rightly held back the exact hypergeometric one (those labelled are known).
- Served. The share of conversations with a bad reply is Horvitz and Thompson's over the strata of all nightly runs,
  the judge's errors taken out (`monitors.stats.stratified`, `monitors.stats.agreement`). Its errors are those that
  people found when they reviewed it: they are taken to be the same on live traffic.

Recall, rightly held back / (that + served bad), counts replies against conversations: a conversation with two bad
replies counts once, so where that happens recall is somewhat too high (the report says how often it did). Its two
parts come from different samples; their intervals are joined on the logarithm of their ratio as G. Y. Zou and A.
Donner do, "Construction of confidence limits about effect measures: a general approach", Statistics in Medicine 27
(2008).

Missed by both is what was served bad less what the judge found of it. Of the F that it flagged, somewhere from none
to all are truly bad; its value takes as many as its record makes likely, its limits take both ends, so that they
hold wherever those of the bad served do. ``judge_blind`` is the part that grading everything would not find.

``judge_blind`` and the total below are made of two estimates that lean on the same reviews or labels: they take the
corners of both intervals, each at half of what the confidence leaves (C. E. Bonferroni, 1936), and so hold at least
as often as said, whatever the two have to do with each other.

Where the nightly run judged the very replies that the guard held back (a guard that only marks, or a source that
stores what was held back), two detectors saw one population. D. G. Chapman's estimate of its size (University of
California Publications in Statistics 1, 1951) is without bias when both together are at least as many as there are,
and nearly so from seven found by both (D. S. Robson, H. A. Regier, Transactions of the American Fisheries Society
93, 1964). Interval: M. Sadinle, "Transformed logit confidence intervals for small populations in single
capture-recapture estimation", Communications in Statistics - Simulation and Computation 38 (2009), which holds its
level with small counts. Where neither found much alone its upper limit runs away; then the one by Clopper and
Pearson's lower limit for the share of the second's finds that the first has too is taken, the smaller of both. Both
assume detectors that miss independently of each other: where what is hard for one is hard for the other, as it is
for two language models, the total is too low. It therefore stands beside the estimate by labels, never in its
place. What the judge wrongly calls bad makes it larger.
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
from monitors.stats.agreement import Confusion, false_pass_rate
from monitors.stats.intervals import binomial_limits, finite_limits, wilson
from monitors.stats.stratified import estimate_rate

FEWEST_BOTH: Final = 7
"""Replies that both must have found before two detectors give a total: Robson and Regier, as above."""
_BEYOND: Final = 700.0
"""A factor of e to the 700th is as good as no limit, and about the last that a float can hold."""
NO_ENTRIES: Final = "the guard held nothing back"
NO_LABELS: Final = "no person has said of any entry whether it was right"
ONLY_FALSE: Final = "people pointed out false alarms only, and said of no entry that it was right"
NO_REVIEW: Final = "the judge was not calibrated: people have not reviewed right and wrong answers of it"
NO_BETTER: Final = "people's reviews show this judge no better than chance"


def reconcile(counts: ReconciliationCounts, confusion: Confusion, *, confidence: float = 0.95) -> Reconciliation:
    """All figures of a span. ``confusion`` is the judge's record against people, empty where there is none."""
    each = 1 - (1 - confidence) / 2
    nightly, held = counts.nightly, rightly_held_back(counts.guard, confidence=confidence)
    served, corrected = served_bad(nightly, confusion, confidence=confidence)
    surely_held = rightly_held_back(counts.guard, confidence=each)
    surely_served, _ = served_bad(nightly, confusion, confidence=each)
    return Reconciliation(
        counts=counts,
        confidence=confidence,
        reviewed_wrong=confusion.passed_wrong + confusion.failed_wrong,
        reviewed_right=confusion.passed_right + confusion.failed_right,
        precision=precision(counts.guard, confidence=confidence),
        held_back_rightly=held,
        flagged=_flagged(nightly, confidence),
        served_bad=served,
        corrected=corrected,
        recall=_recall(held, served),
        missed=_missed(nightly, served, confusion, corrected=corrected),
        judge_blind=_blind(surely_served, confusion, corrected=corrected, confidence=each),
        total_bad=total_bad(surely_held, counts.overlap, confidence=each),
    )


def precision(guard: GuardCounts, *, confidence: float = 0.95) -> Figure:
    """The share of entries that were rightly held back, from those that people labelled; Wilson's interval.

    Unknown where nobody called any entry right: false alarms that were pointed out alone give no share.
    """
    if not guard.entries:
        return Unknown(why=NO_ENTRIES)
    if not guard.right:
        return Unknown(why=ONLY_FALSE if guard.wrong else NO_LABELS)
    low, high = wilson(guard.right, guard.labelled, confidence=confidence)
    return _interval(guard.right / guard.labelled, low, high)


def rightly_held_back(guard: GuardCounts, *, confidence: float = 0.95) -> Figure:
    """How many entries were rightly held back: those labelled are known, the others are like them."""
    if not guard.entries:
        return Interval(value=0, low=0, high=0)
    share = precision(guard, confidence=confidence)
    if isinstance(share, Unknown):
        return share
    low, high = finite_limits(guard.right, guard.labelled, guard.entries, confidence=confidence)
    return _interval(share.value * guard.entries, low * guard.entries, high * guard.entries)


def served_bad(nightly: TrafficCounts, confusion: Confusion, *, confidence: float = 0.95) -> tuple[Figure, bool]:
    """How many conversations held a bad reply that was served, and whether the judge's errors are taken out."""
    if nightly.why_none:
        return Unknown(why=nightly.why_none), False
    rate = estimate_rate(nightly.strata, confusion=confusion, confidence=confidence)
    if isinstance(rate, RateUnknown):
        return Unknown(why=rate.why), False
    size = nightly.conversations
    return _interval(rate.rate * size, rate.low * size, rate.high * size), rate.corrected


def chapman(first: float, second: float, both: float, *, confidence: float = 0.95) -> Interval:
    """How many there are, of which one detector found ``first``, another ``second``, and both ``both``.

    Chapman's estimate with Sadinle's limits. Counts may be effective ones. ``ValueError`` when ``both`` is more
    than either found.
    """
    if not 0 <= both <= min(first, second):
        raise ValueError(f"both find at most what each finds, got {both} of {first} and {second}")
    value = (first + 1) * (second + 1) / (both + 1) - 1
    alone, other, shared = first - both + 0.5, second - both + 0.5, both + 0.5
    error = sqrt(1 / shared + 1 / alone + 1 / other + shared / (alone * other))
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * error
    found, unseen = first + second - both - 0.5, alone * other / shared
    fewest_shared, _ = binomial_limits(both, second, confidence=confidence)
    most = first / fewest_shared if fewest_shared else inf
    return _interval(value, found + unseen * exp(-reach), min(most, found + unseen * exp(reach)))


def total_bad(held: Figure, overlap: OverlapCounts, *, confidence: float = 0.95) -> Figure:
    """All bad replies, held back or served, where both detectors saw enough of the same ones.

    ``held`` is how many the guard found. What the nightly runs found is weighted by how likely it was to be
    sampled, at Kish's effective size. The limits take those of ``held`` too: each at the ``confidence`` that is
    given.
    """
    if overlap.both < FEWEST_BOTH:
        return Unknown(
            why=f"both found only {overlap.both} of the same replies; from {FEWEST_BOTH} on they tell a total"
        )
    if isinstance(held, Unknown):
        return held
    second, both = _effective(overlap.found)
    at = [
        chapman(max(first, both), second, both, confidence=confidence)
        for first in (held.value, held.low, held.high)
    ]
    return _interval(at[0].value, at[1].low, at[2].high)


def _effective(found: Sequence[FoundReply]) -> tuple[float, float]:
    """How many the nightly runs found, and how many of them both did; plain counts where all were as likely."""
    weights = [1 / one.inclusion_probability for one in found]
    scale = fsum(weights) / fsum(weight * weight for weight in weights)
    both = fsum(weight for weight, one in zip(weights, found, strict=True) if one.held_back)
    size = fsum(weights) * scale
    return size, min(size, both * scale)


def _flagged(nightly: TrafficCounts, confidence: float) -> RateEstimate | RateUnknown:
    if nightly.why_none:
        sampled = sum(one.sampled for one in nightly.strata)
        return RateUnknown(conversations=nightly.conversations, sampled=sampled, why=nightly.why_none)
    return estimate_rate(nightly.strata, confidence=confidence)


def _recall(held: Figure, served: Figure) -> Figure:
    if isinstance(held, Unknown):
        return held
    if isinstance(served, Unknown):
        return served
    if not held.value + served.value:
        return Unknown(why="nothing bad was found by either")
    if not (held.value and served.value):
        found, fewest, most = (_share(*each) for each in _corners(held, served))
        return _interval(found, fewest, most)
    below = hypot(_apart(held.value, held.low), _apart(served.high, served.value))
    above = hypot(_apart(held.high, held.value), _apart(served.value, served.low))
    ratio = held.value / served.value
    return _interval(_share(ratio, 1), _share(ratio * exp(-below), 1), _share(_grown(ratio, above), 1))


def _corners(held: Interval, served: Interval) -> Sequence[tuple[float, float]]:
    return (held.value, served.value), (held.low, served.high), (held.high, served.low)


def _apart(high: float, low: float) -> float:
    return log(high / low) if low else inf


def _grown(ratio: float, by: float) -> float:
    return ratio * exp(by) if by < _BEYOND else inf


def _share(held: float, served: float) -> float:
    if held == inf:
        return 1.0
    return held / (held + served) if held else 0.0


def _missed(nightly: TrafficCounts, served: Figure, confusion: Confusion, *, corrected: bool) -> Figure:
    if isinstance(served, Unknown):
        return served
    if not corrected:
        return _uncalibrated(confusion)
    known = min(nightly.found * _likely_right(nightly, served, confusion), served.value)
    return _interval(served.value - known, max(0.0, served.low - nightly.found), served.high)


def _likely_right(nightly: TrafficCounts, served: Interval, confusion: Confusion) -> float:
    """The share of what the judge flags that is bad, by Bayes' rule from its record and the rate."""
    rate = served.value / nightly.conversations
    wrong = confusion.passed_wrong + confusion.failed_wrong
    right = confusion.passed_right + confusion.failed_right
    truly, falsely = rate * confusion.failed_wrong / wrong, (1 - rate) * confusion.failed_right / right
    return truly / (truly + falsely) if truly + falsely else 0.0


def _blind(served: Figure, confusion: Confusion, *, corrected: bool, confidence: float) -> Figure:
    passes = false_pass_rate(confusion, confidence=confidence)
    if isinstance(served, Unknown):
        return served
    if passes is None or not corrected:
        return _uncalibrated(confusion)
    return _interval(served.value * passes.value, served.low * passes.low, served.high * passes.high)


def _uncalibrated(confusion: Confusion) -> Unknown:
    wrong = confusion.passed_wrong + confusion.failed_wrong
    right = confusion.passed_right + confusion.failed_right
    return Unknown(why=NO_BETTER if wrong and right else NO_REVIEW)


def _interval(value: float, low: float, high: float) -> Interval:
    """Rounding never puts a limit on the wrong side of the value."""
    return Interval(value=max(0.0, value), low=max(0.0, min(low, value)), high=max(high, value, 0.0))
