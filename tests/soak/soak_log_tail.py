"""Run the state machine test of a followed log for at least ten thousand steps.

This takes too long for the test suite.

python -m tests.soak.soak_log_tail --examples 1000
"""

from __future__ import annotations

import argparse
from collections import Counter

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.monitors.sources.logs.test_tail_state_machine import LogStory

COUNTED: Counter[str] = Counter()


class CountedStory(LogStory):
    """The state machine of the test. It also counts steps, written lines, read entries and reported gaps."""

    def teardown(self) -> None:
        COUNTED["stories"] += 1
        COUNTED["lines written"] += self.written
        COUNTED["entries read"] += len(self.reader.entries)
        COUNTED["gaps reported"] += len(self.reader.notices)
        super().teardown()

    def check_invariants(self, *arguments: object, **named: object) -> None:
        COUNTED["steps"] += 1
        super().check_invariants(*arguments, **named)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=1_000)
    parser.add_argument("--steps", type=int, default=40)
    asked = parser.parse_args()
    longer = settings(
        max_examples=asked.examples,
        stateful_step_count=asked.steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(CountedStory, settings=longer)
    summary = ", ".join(f"{count:,} {what}" for what, count in COUNTED.items())
    print(f"{summary}: nothing lost that a file still held, nothing twice, every gap reported")


if __name__ == "__main__":
    main()
