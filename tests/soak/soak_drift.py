"""Test the drift detector: false alarms in a year without a change, and alarms after a planted change.

    python -m tests.soak.soak_drift --streams 2000

A stream is a series of nights. Without a change, the share of streams with an alarm must stay below alpha. The
streams have rare or common failures, nights of different size, or strata that were sampled unequally. With a
change, the table shows how many changes were detected, after how many nights, and how far the reported date of the
change is from the true date.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import numpy as np

from monitors.stats.drift import ALPHA
from tests.monitors import drift_streams
from tests.monitors.drift_streams import Streams

NIGHTS = 365
CHANGES = (
    (0.01, 0.03, 50), (0.01, 0.05, 50), (0.01, 0.03, 200), (0.05, 0.10, 50), (0.05, 0.15, 50), (0.15, 0.50, 25),
    (0.30, 0.10, 25), (0.01, 0.10, 10),
)  # fmt: skip
"""The planted changes: the failure rate before, the rate after, and the conversations of each night.

The change comes after thirty nights, and sixty nights follow.
"""
BEFORE, AFTER = 30, 60
AT_ONCE = 250
"""How many streams are computed together, to limit the memory."""


def quiet(chance: np.random.Generator, streams: int) -> Iterator[tuple[str, Streams, Streams]]:
    """Yield groups of streams without a change: their name, and each night's failures and graded answers."""
    shape = (streams, NIGHTS)
    for rate, graded in ((0.003, 200), (0.01, 50), (0.1, 10), (0.5, 25)):
        yield (
            f"{100 * rate:g} % of {graded}",
            chance.binomial(graded, rate, shape).astype(float),
            np.full(shape, float(graded)),
        )
    sizes = chance.integers(1, 120, shape)
    yield "2 % of 1 to 119", chance.binomial(sizes, 0.02).astype(float), sizes.astype(float)
    heavy, light = chance.binomial(20, 0.01, shape), chance.binomial(30, 0.4, shape)
    rates = (1_900 * heavy / 20 + 100 * light / 30) / 2_000
    graded = 2_000 / (1_900 / 20)  # one over the largest share that one conversation stands for
    yield "strata sampled unequally", rates * graded, np.full(shape, graded)


def in_parts(failures: Streams, graded: Streams) -> np.ndarray:
    """Return the night of each stream's alarm, counted from 0, or -1 if the stream has no alarm.

    Compute `AT_ONCE` streams at a time.
    """
    parts = range(0, len(failures), AT_ONCE)
    found = [drift_streams.alarms(failures[at : at + AT_ONCE], graded[at : at + AT_ONCE], ALPHA) for at in parts]
    return np.concatenate(found)


def changed(chance: np.random.Generator, streams: int, before: float, after: float, graded: int) -> str:
    """Simulate ``streams`` streams with one planted change, and return the table row about this change."""
    rates = np.where(np.arange(BEFORE + AFTER) < BEFORE, before, after)
    failures = chance.binomial(graded, rates, (streams, BEFORE + AFTER)).astype(float)
    raised = in_parts(failures, np.full(failures.shape, float(graded)))
    after_nights = raised[raised >= BEFORE] - BEFORE + 1
    shares = [((raised >= BEFORE) & (raised < BEFORE + nights)).mean() for nights in (7, 14, 30, AFTER)]
    middle = f"{np.median(after_nights):.0f}" if len(after_nights) else "never"
    share = " ".join(f"{100 * each:7.1f}" for each in shares)
    return f"{100 * before:5.1f} → {100 * after:4.1f} % of {graded:3d}  {share}  {middle:>8}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    chance, broken = np.random.default_rng(asked.seed), 0
    print(f"{asked.streams:,} streams without a change, {NIGHTS} nights each, alpha {100 * ALPHA:g} %")
    for name, failures, graded in quiet(chance, asked.streams):
        share = (in_parts(failures, graded) >= 0).mean()
        broken += int(share > ALPHA)
        print(
            f"  {name:<24} {100 * share:6.2f} % ever raised an alarm{'  BROKEN' if share > ALPHA else ''}",
            flush=True,
        )
    print(
        f"{'change after 30 nights':<24} {'7':>6} {'14':>7} {'30':>7} {'60':>7}  % detected within nights, median of those"
    )
    for change in CHANGES:
        print(f"  {changed(chance, asked.streams, *change)}", flush=True)
    print(f"{broken} kinds of streams broke their word")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
