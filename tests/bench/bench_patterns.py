"""Check that reading takes linear time: 250 kB of 70 repeated patterns take at most 6 times as long as 50 kB.

    python -m tests.bench.bench_patterns [--small 50000] [--times 5]

`lookout redact`, `lookout facts` and the whole panel of graders read each pattern at both lengths. The unit is
seconds of processor time without garbage collection, the lower of two measurements. Times below 50 ms are too short
to compare. The ratio of the times may be 1.2 times the ratio of the lengths, because caches and memory have a cost.
Each figure has one pair for each pattern: the long and the short text.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable

from monitors.alerts.redact import redact
from monitors.facts.quantities.scan import read_facts
from tests.bench.bench_grading import HOSTILE, build_panel_work, variants
from tests.bench.measurements import Figure, report

PERSONAL = (
    "a.b@example.com ", "x@y.in", "info@x.com, ", "a@b.com.2024 ", "asha@okaxis ", "a dot b at c dot com ",
    "2345 6789 0123 ", "aadhaar 2345 6789 0123 ", "234567890123/", "+91 98", "+91 98765 43210 ", "9876543210 ",
    "4111 1111 1111 1111 ", "DE89 3704 0044 0532 0130 00 ", "8.8.8.8 ", "1.", "2001:db8::1 ", "::", "123-45-6789 ",
    "ABCDE1234F ", "MH12AB1234 ", "account number 123456789 ", "address: 12, ", "flat 1 ", "born 1.1.2000 ",
    "nine eight seven ",
)  # fmt: skip
"""Examples of personal data, complete and incomplete."""

PATTERNS = (*HOSTILE, *PERSONAL)
MAX_RATIO = 1.2
MIN_S = 0.05


def measure_s(work: Callable[[str], object], text: str) -> float:
    taken: list[float] = []
    for variant in variants(text):
        gc.collect()
        gc.disable()
        started = time.process_time()
        work(variant)
        taken.append(time.process_time() - started)
        gc.enable()
    return min(taken)


def main(arguments: list[str]) -> int:
    """Print a figure for each command that reads the patterns.

    Return exit code 1 if a figure is above the limit.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_patterns")
    parser.add_argument("--small", type=int, default=50_000, help="characters of the shorter text")
    parser.add_argument("--times", type=int, default=5, help="how many times as long the other one is")
    asked = parser.parse_args(arguments)
    met = True
    for name, work in (("redact", redact), ("facts", read_facts), ("grade", build_panel_work())):
        pairs: list[tuple[float, float, str]] = []
        for pattern in PATTERNS:
            few, many = (
                measure_s(work, (pattern * (length // len(pattern) + 1))[:length])
                for length in (asked.small, asked.small * asked.times)
            )
            pairs.append((many, max(few, MIN_S), pattern))
        worst = max(pairs, key=lambda pair: pair[0] / pair[1])
        figure = Figure(
            id="linear",
            what=f"{name}: {len(PATTERNS)} patterns of {asked.small * asked.times:,} characters",
            unit="s",
            values=tuple(many for many, _, _ in pairs),
            goal=MAX_RATIO * asked.times,
            baseline=f"{asked.small:,} characters",
            baselines=tuple(few for _, few, _ in pairs),
            of="ratio",
            worst=True,
            note=f"the worst: {worst[2]!r}",
        )
        met = report(figure) and met
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
