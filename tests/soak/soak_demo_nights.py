"""Simulate nights of the demo's logs. Count how often the interval contains the true rate, and measure its width.

    python -m tests.soak.soak_demo_nights --nights 100

Each night the demo's `TurnLog` writes 2,000 conversations, 1 % of them with a planted disclosure (severity 3). They
are read by the file source, sampled, protected, graded with rules and estimated with the parts of a nightly run. In
at least 93 of 100 nights the interval must contain the true rate, and the mean planned width must be within 20 % of
the mean width.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import fmean
from time import monotonic

from tests.flows.demo_nightly_runs import DemoNights
from tests.monitors.sources.night_traffic import simple, stratified

MIN_COVERED = 0.93
MAX_OFF = 0.20
WARM = 5
"""The number of nights at the start, when little is known about the rates.

These nights are included in the coverage of the interval, but not in its mean width.
"""
DESIGNS = {
    "simple 200": simple(number=200),
    "stratified 200": stratified(number=200, minimum_per_stratum=5, primary_path="retrieval"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nights", type=int, default=100)
    parser.add_argument("--design", choices=[*DESIGNS, "all"], default="all")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    broken = 0
    for name in DESIGNS if asked.design == "all" else [asked.design]:
        began = monotonic()
        with tempfile.TemporaryDirectory() as folder:
            found = list(DemoNights(Path(folder), DESIGNS[name], seed=asked.seed).nights(asked.nights))
        covered = fmean(one.covered for one in found)
        width = fmean(one.estimate.width for one in found[WARM:])
        planned = fmean(one.planned_width for one in found[WARM:])
        off = planned / width - 1
        is_met = covered >= MIN_COVERED and abs(off) <= MAX_OFF
        broken += not is_met
        print(
            f"{name}: {asked.nights} nights, {sum(one.covered for one in found)} hold the truth of"
            f" {100 * found[0].truth:.1f} % (mean rate {100 * fmean(one.estimate.rate for one in found):.2f} %), mean"
            f" width {100 * width:.2f} points, planned {100 * planned:.2f} ({100 * off:+.1f} %),"
            f" {monotonic() - began:.0f} s{'' if is_met else '  BROKEN'}",
            flush=True,
        )
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
