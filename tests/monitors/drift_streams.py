"""A second implementation of the drift test, for thousands of streams at once.

A stream is a series of nights. The implementation follows the formula of the test directly, uses numpy and scipy,
and stores nothing between nights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, logsumexp, xlogy

Streams = NDArray[np.float64]
"""A matrix with a row for each stream and a column for each night."""

PRIORS = ((0.5, 0.5), (0.5, 8.0))


def log_evidence(failures: Streams, graded: Streams, window: int = 60) -> Streams:
    """Return, for each stream, the logarithm of the e-value after each night except the first."""
    failed, counted = (np.cumsum(each, axis=1) for each in (failures, graded))
    return np.stack(
        [_at(failed[:, : night + 1], counted[:, : night + 1], window) for night in range(1, failed.shape[1])],
        axis=1,
    )


def alarms(failures: Streams, graded: Streams, alpha: float, window: int = 60) -> NDArray[np.int64]:
    """Return, for each stream, the index of the first night with an e-value of at least 1/alpha, or -1 for none."""
    reached = log_evidence(failures, graded, window) >= -np.log(alpha)
    return np.where(reached.any(axis=1), reached.argmax(axis=1) + 1, -1)


def _at(failed: Streams, counted: Streams, window: int) -> Streams:
    nights = failed.shape[1]
    whole, size = failed[:, -1:], counted[:, -1:]
    changes = np.arange(max(1, nights - window), nights)
    before, before_size = failed[:, changes - 1], counted[:, changes - 1]
    weights = _later(changes - 1) - _later(changes)
    changed = _mixture(before, before_size) + _mixture(whole - before, size - before_size) + np.log(weights)
    not_yet = _mixture(whole, size) + np.log(_later(np.array([nights - 1])))
    best = xlogy(whole, whole / size) + xlogy(size - whole, 1 - whole / size)
    return logsumexp(np.hstack([changed, not_yet]), axis=1) - best[:, 0]


def _later(nights: NDArray[np.int64]) -> Streams:
    return np.log(30.0) / np.log(nights + 30.0)


def _mixture(failures: Streams, graded: Streams) -> Streams:
    parts = [betaln(failures + one, graded - failures + other) - betaln(one, other) for one, other in PRIORS]
    return logsumexp(np.stack(parts), axis=0) - np.log(len(PRIORS))
