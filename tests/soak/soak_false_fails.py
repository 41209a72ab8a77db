"""Test how often the interval of the gate's false-FAIL rate contains the true rate, on suites with known noise.

    python -m tests.soak.soak_false_fails --suites 100

Each suite's noise is sampled around a mean, its cases are asked twice against several builds, and the estimated
rate is compared with the true rate. If nearly all noise is in a few cases (concentration 0.5), the interval is
known to be slightly too narrow.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from tests.monitors.gate.noisy_suites import coverage

SUITES: tuple[tuple[dict[str, Any], float], ...] = (
    ({"severe": 10, "others": 14, "mean": 0.0, "concentration": 2, "builds": 2}, 0.90),
    ({"severe": 10, "others": 14, "mean": 0.005, "concentration": 2, "builds": 2}, 0.85),
    ({"severe": 10, "others": 14, "mean": 0.02, "concentration": 2, "builds": 2}, 0.85),
    ({"severe": 10, "others": 14, "mean": 0.02, "concentration": 2, "builds": 7}, 0.85),
    ({"severe": 10, "others": 14, "mean": 0.02, "concentration": 32, "builds": 7}, 0.82),
    ({"severe": 10, "others": 14, "mean": 0.02, "concentration": 0.5, "builds": 7}, 0.72),
    ({"severe": 10, "others": 14, "mean": 0.05, "concentration": 2, "builds": 7}, 0.85),
    ({"severe": 20, "others": 10, "mean": 0.01, "concentration": 2, "builds": 14}, 0.85),
)
"""The parameters of each kind of suite, and the minimum share of suites whose interval contains the true rate."""
MAX_BIAS = 0.05
"""The maximum mean error of the estimated false-FAIL rate over the suites."""


def main() -> int:
    """Print a line for each kind of suite, and return 1 if the coverage or bias of one kind misses its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suites", type=int, default=100)
    suites: int = parser.parse_args().suites
    bad = 0
    for suite, least in SUITES:
        held, bias = coverage(range(suites), **suite)
        failed = held < least or abs(bias) > MAX_BIAS
        bad += failed
        print(f"{suite}: held {held:.0%}, bias {100 * bias:+.1f} points{' FAILED' if failed else ''}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
