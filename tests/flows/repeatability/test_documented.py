"""Test that docs/gate.md shows the output of the command for a suite with known noise."""

from __future__ import annotations

from pathlib import Path
from random import Random

from flows.repeatability.format import format_repeatability
from monitors.gate.repeatability import compute_repeatability
from monitors.gate.settings import GateSettings
from tests.monitors.gate.noisy_suites import facts_of, noisy_suite

PAGE = Path(__file__).parents[3] / "docs" / "gate.md"


def documented() -> str:
    """Return the command's output for seven nights and 60 cases. One in 250 answers fails by chance."""
    noisy = noisy_suite(Random(10), severe=20, others=40, mean=0.004, concentration=2, builds=7)
    found = compute_repeatability(facts_of(noisy.suite), noisy.suite, noisy.repeats, GateSettings(), Random(10))
    return "\n".join(format_repeatability(found.model_copy(update={"sessions": 7})))


def test_the_documented_output_is_the_commands_own():
    """docs/gate.md contains the output of `documented`.

    To update it, run `python -m tests.flows.repeatability.test_documented`, and paste the output into the page.
    """
    assert f"```\n{documented()}\n```" in PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    print(documented())
