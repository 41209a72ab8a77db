"""Test after every nightly run whether a rate has changed. The test is valid for any number of runs.

The test compares two explanations of all runs so far: either every run has the same rate, or the rate changed at
some run. The evidence (the e-value) states how many times better the second explanation fits. An ordinary test that
is repeated every night would raise a false alarm sooner or later. With this test, the probability that a constant
rate ever raises an alarm is at most ``alpha``, over all nights together.

In detail: before and after the change, each rate has a prior, which is an equal mixture of Jeffreys' prior and a
prior for rare failures. The run of the change has a prior over all future runs. The likelihood of this mixture is
divided by the largest likelihood of any single rate. For every single rate, the mixture divided by the likelihood
of this rate is a martingale. Division by the largest likelihood makes the ratio smaller, and the result is an
e-process (A. Ramdas, J. Ruf, M. Larsson, W. Koolen, "Testing exchangeability: fork-convexity, supermartingales and
e-processes", International Journal of Approximate Reasoning 141, 2022). By Ville's inequality, the probability that
the e-process ever reaches 1/alpha is at most alpha. R. Turner, A. Ly, P. Grünwald, "Generic E-variables for exact
sequential k-sample tests that allow for optional stopping" (2021) give such a test for two parallel streams. Here,
one part follows the other, and the run that separates them is unknown.

The counts of a run are numbers of conversations of equal weight, from
`monitors.stats.stratified.compute_counts_for_sequential_test`. The last ``window_runs`` runs are stored separately,
because the change may have begun at any of them. Older runs are stored as one sum, and still count as runs before a
change. A run that leaves the window is no longer a possible start of a change, which can only lower the evidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from math import exp, fsum, lgamma, log
from typing import NamedTuple

from monitors.records.estimates import DriftAlarm, DriftCount, DriftReading, DriftState
from monitors.stats.intervals import compute_binomial_limits

ALPHA = 0.05
"""Maximum probability that a test ever raises a false alarm: 1 in 20. Each new judge starts a new test."""
DEFAULT_WINDOW_RUNS = 60
DEFAULT_START_REASON = "each night is compared with all earlier nights"
RECOVERED_PREFIX = "back"
"""The first word of the stored reason if a test restarted because the rate recovered."""
_CHANGE_PRIOR_RUNS = 30.0
"""A change is about equally likely at each of the first runs of a series, up to about this number of runs.

At later runs, a change is less and less likely.
"""
_MAX_LOG_EVIDENCE = 690.0
"""Maximum logarithm of the reported evidence.

The evidence is then at most about 1e299. The largest float is 1.8e308.
"""
_PRIOR = tuple(
    (fails, passes, lgamma(fails) + lgamma(passes) - lgamma(fails + passes))
    for fails, passes in ((0.5, 0.5), (0.5, 8.0))
)
"""Parameters and log-integrals of two Beta distributions: Jeffreys' prior, and one for rare failures."""


class _Sums(NamedTuple):
    failures: float
    graded: float


class _Change(NamedTuple):
    """A nightly run at which the rate may have changed, with the counts before and after, and the evidence."""

    at: DriftCount
    before: _Sums
    after: _Sums
    log_weight: float


def start_drift_test(graded_by: str, reason: str = DEFAULT_START_REASON) -> DriftState:
    """Return the state of a new test.

    ``graded_by`` identifies the judge and its settings. ``reason`` is the reason why the test starts.

    After an alarm, the test restarts if people accept the new rate. The new test uses only future runs, because the
    runs that raised the alarm were unusual.
    """
    return DriftState(graded_by=graded_by, reason=reason)


def update_drift_test(
    state: DriftState | None,
    count: DriftCount,
    graded_by: str,
    *,
    alpha: float = ALPHA,
    window_runs: int = DEFAULT_WINDOW_RUNS,
) -> DriftState:
    """Return the state after one more nightly run.

    - A run that is not later than the last run was already counted, and does not change the state.
    - A run without grades adds nothing.
    - If the judge differs from the judge of the state, the test restarts, because the new judge may find another
      rate for the same answers. The stored reason states that the judge changed.

    ``alpha`` is the largest probability of ever raising a false alarm.
    """
    if state is None:
        state = start_drift_test(graded_by)
    elif state.graded_by != graded_by:
        state = start_drift_test(
            graded_by, f"the judge changed in the night of {count.due_at:%Y-%m-%d}: the test restarted"
        )
    if not count.graded or (state.nightly_runs and count.due_at <= state.nightly_runs[-1].due_at):
        return state
    longer = state.add_run(count, window_runs=window_runs)
    evidence = max(longer.log_evidence, compute_log_evidence(longer))
    alarm = longer.alarm
    if alarm is None and evidence >= -log(alpha):
        alarm = DriftAlarm(
            raised=count.due_at,
            since=max(_list_possible_changes(longer), key=lambda change: change.log_weight).at.due_at,
        )
    return longer.with_evidence(evidence, alarm)


def restart_if_recovered(state: DriftState, *, alpha: float = ALPHA) -> DriftState:
    """Restart the test if the runs after the alarm have the earlier rate again. Otherwise, return the same state.

    The runs since the alarm are compared with two rates: the rate before the change, and the changed rate that
    raised the alarm. Wald's likelihood ratio states how many times better the earlier rate fits. The rate has
    recovered if this ratio reaches 1 / ``alpha``. The ratio is reset to 1 whenever the changed rate fits better (E.
    S. Page, "Continuous inspection schemes", Biometrika 41, 1954). The restarted test does not use the runs with
    the changed rate.
    """
    if state.alarm is None:
        return state
    recovered = _find_recovered_runs(state, -log(alpha))
    if not recovered:
        return state
    before = [count for count in state.nightly_runs if count.due_at < state.alarm.since]
    changed = _Sums(
        fsum(count.failures for count in state.nightly_runs[len(before) : -len(recovered)]),
        fsum(count.graded for count in state.nightly_runs[len(before) : -len(recovered)]),
    )
    now = _Sums(fsum(count.failures for count in recovered), fsum(count.graded for count in recovered))
    reason = (
        f"{RECOVERED_PREFIX} at {100 * _compute_rate(now):.1f} % since {recovered[0].due_at:%Y-%m-%d}, "
        f"after {100 * _compute_rate(changed):.1f} % "
        f"from {state.alarm.since:%Y-%m-%d} on"
    )
    return state.restart((*before, *recovered), reason)


def _find_recovered_runs(state: DriftState, threshold: float) -> tuple[DriftCount, ...]:
    """Return the nightly runs since the rate returned to its value before the alarm.

    The result is empty while the logarithm of the evidence for a recovery is below ``threshold``.
    """
    alarm = state.alarm
    if alarm is None:
        return ()
    changed = [count for count in state.nightly_runs if alarm.since <= count.due_at <= alarm.raised]
    before = [count for count in state.nightly_runs if count.due_at < alarm.since]
    old = _smooth_rate(_add_runs(_Sums(state.older_failures, state.older_graded), before))
    new = _smooth_rate(_add_runs(_Sums(0.0, 0.0), changed))
    recovered: list[DriftCount] = []
    evidence = 0.0
    for count in (run for run in state.nightly_runs if run.due_at > alarm.raised):
        right = max(0.0, count.graded - count.failures)
        evidence += count.failures * log(old / new) + right * log((1 - old) / (1 - new))
        recovered = [*recovered, count] if evidence > 0 else []
        evidence = max(0.0, evidence)
    return tuple(recovered) if evidence >= threshold else ()


def _add_runs(sums: _Sums, nightly_runs: list[DriftCount]) -> _Sums:
    return _Sums(
        fsum([sums.failures, *(count.failures for count in nightly_runs)]),
        fsum([sums.graded, *(count.graded for count in nightly_runs)]),
    )


def _smooth_rate(sums: _Sums) -> float:
    """Return the rate with half a failure and half a right answer added. The result is never exactly 0 or 1."""
    return (sums.failures + 0.5) / (sums.graded + 1)


def summarise_drift(state: DriftState) -> DriftReading:
    """Summarise the state: whether the rate drifted, the evidence, the start of the drift, and both rates."""
    before, after, since = _sum_runs(state), _Sums(0.0, 0.0), None
    if change := _find_alarm_or_likeliest_change(state):
        before, after, since = change.before, change.after, change.at.due_at
    (before_low, before_high), (after_low, after_high) = (
        compute_binomial_limits(*before),
        compute_binomial_limits(*after),
    )
    return DriftReading(
        drifted=state.alarm is not None,
        e_value=exp(min(state.log_evidence, _MAX_LOG_EVIDENCE)),
        since=since,
        before=_compute_rate(before),
        before_low=before_low,
        before_high=before_high,
        after=_compute_rate(after),
        after_low=after_low,
        after_high=after_high,
        graded_before=before.graded,
        graded_after=after.graded,
        reason=state.reason,
    )


def compute_log_evidence(state: DriftState) -> float:
    """Return the natural logarithm of the e-value after the last run.

    The e-values after earlier runs may have been larger.
    """
    total = _sum_runs(state)
    changes = [change.log_weight for change in _list_possible_changes(state)]
    later = log(_compute_prior_of_later_change(max(0, state.older_runs + len(state.nightly_runs) - 1)))
    return _compute_log_sum_exp([*changes, later + _compute_log_mixture(total)]) - _compute_max_log_likelihood(
        total
    )


def _find_alarm_or_likeliest_change(state: DriftState) -> _Change | None:
    """Return the change that raised the alarm, if the run of this change is still stored separately.

    Otherwise, return the likeliest change. Returns ``None`` if no change is possible yet.
    """
    changes = list(_list_possible_changes(state))
    alarm_changes = [change for change in changes if state.alarm and change.at.due_at == state.alarm.since]
    return next(iter(alarm_changes), max(changes, key=lambda change: change.log_weight, default=None))


def _list_possible_changes(state: DriftState) -> Iterator[_Change]:
    """Yield a possible change at each run that is stored separately, except at the first run of the test."""
    total = _sum_runs(state)
    older = _Sums(state.older_failures, state.older_graded)
    befores = accumulate(state.nightly_runs, _add_run, initial=older)
    for index, (count, before) in enumerate(zip(state.nightly_runs, befores, strict=False)):
        number = state.older_runs + index
        if before.graded and number:
            after = _Sums(max(0.0, total.failures - before.failures), total.graded - before.graded)
            weight = (
                log(_compute_prior_of_later_change(number - 1) - _compute_prior_of_later_change(number))
                + _compute_log_mixture(before)
                + _compute_log_mixture(after)
            )
            yield _Change(count, before, after, weight)


def _compute_prior_of_later_change(number: int) -> float:
    """Return the prior probability that the rate does not change in the first ``number`` nightly runs."""
    return log(_CHANGE_PRIOR_RUNS) / log(number + _CHANGE_PRIOR_RUNS)


def _add_run(sums: _Sums, count: DriftCount) -> _Sums:
    return _Sums(sums.failures + count.failures, sums.graded + count.graded)


def _sum_runs(state: DriftState) -> _Sums:
    failures = fsum([state.older_failures, *(count.failures for count in state.nightly_runs)])
    return _Sums(failures, fsum([state.older_graded, *(count.graded for count in state.nightly_runs)]))


def _compute_log_mixture(sums: _Sums) -> float:
    """Return the logarithm of the average likelihood of the counts.

    The average is taken over all rates, weighted by the two Beta priors.
    """
    right = max(0.0, sums.graded - sums.failures)
    parts = [_compute_log_beta(sums.failures + fails, right + passes) - whole for fails, passes, whole in _PRIOR]
    return _compute_log_sum_exp(parts) - log(len(parts))


def _compute_log_beta(first: float, second: float) -> float:
    return lgamma(first) + lgamma(second) - lgamma(first + second)


def _compute_max_log_likelihood(sums: _Sums) -> float:
    """Return the logarithm of the likelihood of the counts at the rate that fits them best."""
    right = max(0.0, sums.graded - sums.failures)
    return fsum(count * log(count / sums.graded) for count in (sums.failures, right) if count)


def _compute_log_sum_exp(logs: list[float]) -> float:
    largest = max(logs)
    return largest + log(fsum(exp(value - largest) for value in logs))


def _compute_rate(sums: _Sums) -> float:
    return min(1.0, sums.failures / sums.graded) if sums.graded else 0.0
