"""Readers are linear: of 60 repeated patterns, 1 MB takes at most 6 times as long as 200 kB.

    python -m tests.bench.bench_patterns [--small 200000] [--times 5]

`lookout redact`, `lookout facts` and the whole panel of graders read each pattern at both lengths. Seconds are of
processor time, garbage collection aside, the better of two; below 50 ms nothing can be compared. The ratio may be 1.2
times that of the lengths: caches and memory are not free.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable

from monitors.alerts.redact import redact
from monitors.facts.quantities.scan import read_facts
from monitors.graders import golds
from tests.bench.bench_grading import HOSTILE, panel_work

PERSONAL = (
    "a.b@example.com ", "x@y.in", "info@x.com, ", "a@b.com.2024 ", "asha@okaxis ", "a dot b at c dot com ",
    "2345 6789 0123 ", "aadhaar 2345 6789 0123 ", "234567890123/", "+91 98", "+91 98765 43210 ", "9876543210 ",
    "4111 1111 1111 1111 ", "DE89 3704 0044 0532 0130 00 ", "8.8.8.8 ", "1.", "2001:db8::1 ", "::", "123-45-6789 ",
    "ABCDE1234F ", "MH12AB1234 ", "account number 123456789 ", "address: 12, ", "flat 1 ", "born 1.1.2000 ",
    "nine eight seven ",
)  # fmt: skip
"""Forms of personal data, whole and torn."""

PATTERNS = (*HOSTILE, *PERSONAL)
MOST_RATIO = 1.2
SHORTEST_S = 0.05


def seconds(work: Callable[[str], object], text: str) -> float:
    taken: list[float] = []
    for _ in range(2):
        golds.scanned_reply.cache_clear()
        gc.collect()
        gc.disable()
        started = time.process_time()
        work(text)
        taken.append(time.process_time() - started)
        gc.enable()
    return min(taken)


def main(arguments: list[str]) -> int:
    """Print the worst ratios of each reader; exit code 1 when one is above the limit."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_patterns")
    parser.add_argument("--small", type=int, default=200_000, help="characters of the shorter text")
    parser.add_argument("--times", type=int, default=5, help="how many times as long the other one is")
    asked = parser.parse_args(arguments)
    held = True
    for name, work in (("redact", redact), ("facts", read_facts), ("grade", panel_work())):
        ratios: list[tuple[float, float, str]] = []
        for pattern in PATTERNS:
            few, many = (
                seconds(work, (pattern * (length // len(pattern) + 1))[:length])
                for length in (asked.small, asked.small * asked.times)
            )
            ratios.append((many / max(few, SHORTEST_S), many, pattern))
        ratios.sort(reverse=True)
        print(f"{name}: {len(PATTERNS)} patterns, {asked.small:,} and {asked.small * asked.times:,} characters")
        for ratio, many, pattern in ratios[:5]:
            print(f"  {pattern!r:34} ratio {ratio:5.1f}, {many:7.2f} s", flush=True)
        held = held and ratios[0][0] <= MOST_RATIO * asked.times
    print("held" if held else f"MISSED (limit: ratio {MOST_RATIO * asked.times:g})")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
