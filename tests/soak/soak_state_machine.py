"""Run the state machine test of the warehouse with more random step sequences than the test suite has time for.

python -m tests.soak.soak_state_machine --examples 200 [--write docs/warehouse.md]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.figures import measured_where, write_section
from tests.warehouse.database.test_state_machine import STEPS_TAKEN, Warehouse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument(
        "--write", type=Path, default=None, help="a document whose section figures:stories is renewed"
    )
    asked = parser.parse_args()
    started = time.monotonic()
    longer = settings(
        max_examples=asked.examples,
        stateful_step_count=asked.steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Warehouse, settings=longer)
    summary = (
        f"{asked.examples} random sequences of up to {asked.steps} steps ran without a fault in "
        f"{time.monotonic() - started:.0f} s"
    )
    steps = ", ".join(f"{name} {times}" for name, times in STEPS_TAKEN.most_common())
    print(f"{steps}\n{summary}")
    if asked.write:
        counts = f"The number of times that each step ran: {steps}."
        write_section(asked.write, "stories", [measured_where(), "", f"{summary}.", "", counts])


if __name__ == "__main__":
    main()
