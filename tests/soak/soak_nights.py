"""Simulate nights. Count how often the interval contains the true rate, and compare its width with the plan.

    python -m tests.soak.soak_nights --nights 1000

Each night has 2,000 conversations with planted severity-3 failures: everywhere, in the risk strata, or hidden in
the remaining stratum. The conversations are sampled, graded and estimated as in the nightly run. A judge, if used,
passes 10 % of wrong answers, fails 5 % of right answers, and has a calibration set of 400 answers. In every design
the interval must contain the true rate in at least 93 % of the nights, and the mean width must be within 20 % of
the planned width.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from statistics import fmean

from tests.monitors.sources.simulated_nightly_runs import DESIGNS, PLANTED, Design, planned_width, simulate

MIN_COVERED = 0.93
MAX_OFF = 0.20
PLANS = 12
"""The number of plans over which the planned width of a design is averaged.

The planned width varies from night to night, because two values vary: the sample size of a design with a rate, and
the calibration of a judge.
"""


def designs() -> Iterator[tuple[str, str, Design]]:
    """Yield each combination of a design and planted failures: the names of both, and the design.

    Each combination is simulated without grading errors, and with a judge that makes errors. In two further
    combinations, 10 % of the sample is not graded.
    """
    for planted, failures in PLANTED.items():
        for name, facts in DESIGNS.items():
            yield planted, name, Design(facts, failures)
            yield planted, f"{name}, judge", Design(facts, failures, judged=True)
    for name in ("simple 50", "stratified 200"):
        hidden = PLANTED["1 % hidden in the rest"]
        yield "1 % hidden in the rest", f"{name}, 10 % ungraded", Design(DESIGNS[name], hidden, graded_share=0.9)


def report(design: Design, nights: int, seed: int) -> tuple[bool, str]:
    """Simulate the nights of a design.

    Return whether the design met its targets, and the row of the design in the table.
    """
    found = simulate(design, nights, seed)
    covered = fmean(each.covered for each in found)
    width = fmean(each.estimate.width for each in found)
    planned = fmean(planned_width(design, design.rates, number) for number in range(PLANS))
    off = planned / width - 1
    mean_sampled = fmean(each.estimate.sampled for each in found)
    is_met = covered >= MIN_COVERED and abs(off) <= MAX_OFF
    rate = fmean(each.estimate.rate for each in found)
    line = f"{mean_sampled:6.0f} {100 * rate:8.2f} {100 * covered:8.1f} {100 * width:8.2f} {100 * planned:8.2f} {100 * off:+7.1f}"
    return is_met, line


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nights", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print(
        f"{'planted':<24} {'design':<28} {'sample':>6} {'rate %':>8} {'holds %':>8} {'width':>8} {'planned':>8} {'off %':>7}"
    )
    failed = 0
    for planted, name, design in designs():
        is_met, line = report(design, asked.nights, asked.seed)
        failed += not is_met
        print(f"{planted:<24} {name:<28} {line}{'' if is_met else '  BROKEN'}", flush=True)
    print(f"{asked.nights:,} nights of each design: {failed} designs broke their word")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
