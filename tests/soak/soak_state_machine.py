"""The warehouse's state machine for longer than the suite has time for.

python -m tests.soak.soak_state_machine --examples 200
"""

from __future__ import annotations

import argparse

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.warehouse.test_state_machine import Warehouse


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--steps", type=int, default=25)
    asked = parser.parse_args()
    longer = settings(
        max_examples=asked.examples,
        stateful_step_count=asked.steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Warehouse, settings=longer)
    print(f"{asked.examples} stories of up to {asked.steps} steps each ended as they must")


if __name__ == "__main__":
    main()
