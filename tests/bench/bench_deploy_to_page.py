"""How long a deploy takes to a page: each leg of a signed delivery's way to a verdict in Slack.

    python -m tests.bench.bench_deploy_to_page [--delay-s 0.2]

The demo with its faults and its whole suite, under `lookout up`, every part a process of its own; see
`tests.deployments.deploy_to_page`. There is no number to reach: how long the suite takes is the application's own
matter, and how fast a message follows an answer is measured by `bench_run`.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
from pathlib import Path

from tests.deployments.deploy_to_page import Way, followed

SHORT_S = 1.0


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--delay-s", type=float, default=0.2, help="how long the demo's bot takes for an answer")
    chosen = options.parse_args()
    for name in [name for name in os.environ if name.startswith(("PREFECT_", "SLACK_", "LOOKOUT_"))]:
        del os.environ[name]
    with tempfile.TemporaryDirectory() as folder:
        way = followed(Path(folder), "--delay-s", str(chosen.delay_s))
    told(way)


def told(way: Way) -> None:
    legs = sorted(way.legs, key=lambda leg: leg.at)
    print(f"{len(way.questions)} questions, {len(way.runs)} run, on {os.cpu_count()} cores, load {load()}")
    print(f"{'':<30}{'since the one before':>22}{'since the delivery':>22}")
    for before, leg in itertools.pairwise(legs):
        print(f"{leg.name:<30}{shown(leg.at - before.at):>22}{shown(leg.at - legs[0].at):>22}")
    for part, pids in way.processes.items():
        print(f"{part}: {len(pids)} process{'' if len(pids) == 1 else 'es'}")


def shown(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < SHORT_S else f"{seconds:.1f} s"


def load() -> str:
    return " ".join(f"{one:.1f}" for one in os.getloadavg())


if __name__ == "__main__":
    main()
