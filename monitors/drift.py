"""Whether a rate has changed since an earlier night, looked at every night for as long as one likes. Pure.

Test: a stream in which all nights have one unknown rate, against one whose rate changed at some night. Before and
after the change each rate has a prior, half Jeffreys' and half one for rare failures, the night of the change has
one over all nights to come, and the mixture's likelihood is divided by the largest that any single rate reaches.
Whatever the single rate is, the mixture over its likelihood is a martingale, and dividing by the largest makes it
smaller, so that it is an e-process (A. Ramdas, J. Ruf, M. Larsson, W. Koolen, "Testing exchangeability:
fork-convexity, supermartingales and e-processes", International Journal of Approximate Reasoning 141, 2022): by
Ville's inequality it ever reaches 1/alpha with probability at most alpha. R. Turner, A. Ly, P. Grünwald, "Generic
E-variables for exact sequential k-sample tests that allow for optional stopping" (2021) give the like for two
streams side by side; here the two sides follow each other and the night between them is unknown.

Nights are counted in conversations of equal weight (`monitors.estimators.sequential_counts` makes them so). The
last ``window_nights`` are kept one by one, as nights since when there may have been a change. Older ones stay in
the reference as one sum: what leaves the window takes its share of the prior along, which only lowers the evidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from math import exp, fsum, lgamma, log
from typing import NamedTuple

from monitors.exact_limits import binomial_limits
from monitors.records.drift import DriftAlarm, DriftReading, DriftState, NightCount

ALPHA = 0.05
"""At most one beginning of the test in twenty ever raises a false alarm; a new judge is a beginning."""
WINDOW_NIGHTS = 60
FIRST_NIGHT = "the first night"
_SOON = 30.0
"""The prior over the night of a change is about even over so many nights and then falls as slowly as it may."""
_LARGEST_LOG = 690.0
"""Evidence is shown up to e to this, about 1e299: what a float holds."""
_PRIOR = tuple(
    (fails, passes, lgamma(fails) + lgamma(passes) - lgamma(fails + passes))
    for fails, passes in ((0.5, 0.5), (0.5, 8.0))
)
"""Jeffreys' Beta distribution, and one that expects failures to be rare; with the logarithms of their integrals."""


class _Sums(NamedTuple):
    failures: float
    told: float


class _Change(NamedTuple):
    """A night from which the rate may be another: what was before and after it, and how much speaks for it."""

    at: NightCount
    before: _Sums
    after: _Sums
    log_weight: float


def begin(graded_by: str, reason: str = FIRST_NIGHT) -> DriftState:
    """A test without memory. ``graded_by`` names the judge (and all that makes its verdicts), ``reason`` why anew.

    After an alarm the test begins anew when people took the new rate for granted: then the reference is learnt from
    the nights to come, and the alarm's own nights, chosen because they were odd, are not in it.
    """
    return DriftState(graded_by=graded_by, reason=reason)


def observe(
    state: DriftState | None,
    night: NightCount,
    graded_by: str,
    *,
    alpha: float = ALPHA,
    window_nights: int = WINDOW_NIGHTS,
) -> DriftState:
    """The state after one more night. A night that is not later than the last one was counted already: no change.

    Another judge than the state's begins anew, since its verdicts are another rate, and the reason says so. A night
    of which nothing was told adds nothing. ``alpha`` is how likely one false alarm ever is at most.
    """
    if state is None:
        state = begin(graded_by)
    elif state.graded_by != graded_by:
        state = begin(graded_by, f"the judge changed with the night of {night.night:%Y-%m-%d}: the test began anew")
    if not night.told or (state.nights and night.night <= state.nights[-1].night):
        return state
    longer = _shortened(state.model_copy(update={"nights": (*state.nights, night)}), window_nights)
    evidence = max(longer.log_evidence, log_evidence(longer))
    alarm = longer.alarm
    if alarm is None and evidence >= -log(alpha):
        alarm = DriftAlarm(raised=night.night, since=_likeliest(longer).at.night)
    return longer.model_copy(update={"log_evidence": evidence, "alarm": alarm})


def read(state: DriftState) -> DriftReading:
    """What the state says: drifted or not, how sure, since when, from which rate to which."""
    before, after, since = _total(state), _Sums(0.0, 0.0), None
    if change := _read_change(state):
        before, after, since = change.before, change.after, change.at.night
    (before_low, before_high), (after_low, after_high) = binomial_limits(*before), binomial_limits(*after)
    return DriftReading(
        drifted=state.alarm is not None,
        e_value=exp(min(state.log_evidence, _LARGEST_LOG)),
        since=since,
        before=_rate(before),
        before_low=before_low,
        before_high=before_high,
        after=_rate(after),
        after_low=after_low,
        after_high=after_high,
        told_before=before.told,
        told_after=after.told,
        reason=state.reason,
    )


def log_evidence(state: DriftState) -> float:
    """The logarithm of the e-value after the last night, not the largest so far."""
    whole = _total(state)
    changes = [change.log_weight for change in _changes(state)]
    later = log(_after(max(0, state.older_nights + len(state.nights) - 1)))
    return _log_sum([*changes, later + _log_mixture(whole)]) - _log_largest(whole)


def _read_change(state: DriftState) -> _Change | None:
    """The change of the alarm while its night is kept, else the likeliest."""
    changes = list(_changes(state))
    told = [change for change in changes if state.alarm and change.at.night == state.alarm.since]
    return next(iter(told), max(changes, key=lambda change: change.log_weight, default=None))


def _likeliest(state: DriftState) -> _Change:
    return max(_changes(state), key=lambda change: change.log_weight)


def _changes(state: DriftState) -> Iterator[_Change]:
    """Every night kept, but for the very first of all: before it there was nothing."""
    whole = _total(state)
    older = _Sums(state.older_failures, state.older_told)
    befores = accumulate(state.nights, _with, initial=older)
    for place, (night, before) in enumerate(zip(state.nights, befores, strict=False)):
        number = state.older_nights + place
        if before.told and number:
            after = _Sums(max(0.0, whole.failures - before.failures), whole.told - before.told)
            weight = log(_after(number - 1) - _after(number)) + _log_mixture(before) + _log_mixture(after)
            yield _Change(night, before, after, weight)


def _after(number: int) -> float:
    """How likely, before anything was seen, the change comes later than so many nights: slower than any power."""
    return log(_SOON) / log(number + _SOON)


def _with(sums: _Sums, night: NightCount) -> _Sums:
    return _Sums(sums.failures + night.failures, sums.told + night.told)


def _total(state: DriftState) -> _Sums:
    failures = fsum([state.older_failures, *(night.failures for night in state.nights)])
    return _Sums(failures, fsum([state.older_told, *(night.told for night in state.nights)]))


def _shortened(state: DriftState, window_nights: int) -> DriftState:
    """The state with what is older than the window summed up."""
    gone = state.nights[: max(0, len(state.nights) - window_nights)]
    return state.model_copy(
        update={
            "nights": state.nights[len(gone) :],
            "older_failures": state.older_failures + fsum(night.failures for night in gone),
            "older_told": state.older_told + fsum(night.told for night in gone),
            "older_nights": state.older_nights + len(gone),
        }
    )


def _log_mixture(sums: _Sums) -> float:
    """The logarithm of the counts' likelihood averaged over the prior, half of each of its Beta distributions."""
    right = max(0.0, sums.told - sums.failures)
    parts = [_log_beta(sums.failures + fails, right + passes) - whole for fails, passes, whole in _PRIOR]
    return _log_sum(parts) - log(len(parts))


def _log_beta(first: float, second: float) -> float:
    return lgamma(first) + lgamma(second) - lgamma(first + second)


def _log_largest(sums: _Sums) -> float:
    """The logarithm of the likelihood at the rate that fits best."""
    right = max(0.0, sums.told - sums.failures)
    return fsum(count * log(count / sums.told) for count in (sums.failures, right) if count)


def _log_sum(logs: list[float]) -> float:
    largest = max(logs)
    return largest + log(fsum(exp(each - largest) for each in logs))


def _rate(sums: _Sums) -> float:
    return min(1.0, sums.failures / sums.told) if sums.told else 0.0
