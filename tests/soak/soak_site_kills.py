"""Kill the site a hundred times while people decide about alerts: each submitted decision is stored once."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.deployments.site.safety.site_kills import kill_while_people_decide

KILLS = 20
SEEDS = range(5)


def main() -> int:
    """Print for each seed how many decisions are missing or stored twice. Return 1 if there is a fault."""
    bad = 0
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            report = kill_while_people_decide(Path(folder), KILLS, seed)
        bad += len(report.missing) + len(report.twice) + len(report.leftovers)
        print(
            f"seed {seed}: {KILLS} kills, {report.unanswered} presses unanswered and sent again, "
            f"missing {report.missing}, twice {report.twice}, left over {report.leftovers}",
            flush=True,
        )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
