"""Measure each part of the time from a signed webhook delivery to the verdict in Slack.

    python -m tests.bench.bench_deploy_to_page [--delay-s 0.2] [--cases 32]

The demo with its faults runs under `lookout up`, with each part as its own process; see
`tests.deployments.deploy_to_page`. A deploy is verified with 32 cases of the demo's suite, a quarter of them
severe. One deploy is one sample. The bench has no goal and no baseline: the duration of the suite depends on the
application, and `bench_run` measures the time from an answer to its alert.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
from pathlib import Path

from tests.bench.measurements import Figure, report
from tests.deployments.deploy_to_page import Way, followed
from tests.flows.few_cases import few_cases

SHORT_DELAY_S = 1.0
REPORTED = {
    "delivery acknowledged": "signed delivery to its acknowledgement",
    "first question asked": "signed delivery to the first question",
    "first severity-3 alert sent": "signed delivery to the first severity-3 alert",
    "verdict message sent": "signed delivery to the verdict in Slack",
}
"""The parts of the time (legs) that become figures, with the names of these figures."""


def main() -> int:
    """Print the time of each leg from the delivery to the verdict, and report the legs that people wait for."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--delay-s", type=float, default=0.2, help="how long the demo's bot takes for an answer")
    options.add_argument("--cases", type=int, default=32, help="a quarter of them of severity 3")
    chosen = options.parse_args()
    for name in [name for name in os.environ if name.startswith(("PREFECT_", "SLACK_", "LOOKOUT_"))]:
        del os.environ[name]
    with tempfile.TemporaryDirectory() as folder:
        severe = max(1, chosen.cases // 4)
        suite = few_cases(Path(folder), severe=severe, others=chosen.cases - severe)
        way = followed(Path(folder), "--delay-s", str(chosen.delay_s), suite=suite)
    print_legs(way)
    for figure in build_figures(way, chosen.delay_s):
        report(figure)
    return 0


def build_figures(way: Way, delay_s: float) -> list[Figure]:
    """Build the figures for how long people wait, measured from the moment when the delivery is sent."""
    began = min(leg.at for leg in way.legs)
    note = f"one deploy, {len(way.questions)} questions to a bot that takes {delay_s:g} s"
    return [
        Figure(id="deploy", what=REPORTED[leg.name], unit="s", values=(leg.at - began,), note=note)
        for leg in way.legs
        if leg.name in REPORTED
    ]


def print_legs(way: Way) -> None:
    """Print for every leg the seconds since the end of the previous leg and since the delivery."""
    legs = sorted(way.legs, key=lambda leg: leg.at)
    print(f"{len(way.questions)} questions, {len(way.runs)} run, on {os.cpu_count()} cores, load {format_load()}")
    print(f"{'':<30}{'since the one before':>22}{'since the delivery':>22}")
    for before, leg in itertools.pairwise(legs):
        print(f"{leg.name:<30}{format_seconds(leg.at - before.at):>22}{format_seconds(leg.at - legs[0].at):>22}")
    for part, pids in way.processes.items():
        print(f"{part}: {len(pids)} process{'' if len(pids) == 1 else 'es'}")


def format_seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < SHORT_DELAY_S else f"{seconds:.1f} s"


def format_load() -> str:
    return " ".join(f"{average:.1f}" for average in os.getloadavg())


if __name__ == "__main__":
    sys.exit(main())
