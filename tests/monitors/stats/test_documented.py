"""Test that the figures in docs/gate.md equal the figures that the gate computes."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import fmean

import pytest

from monitors.gate.settings import GateSettings
from monitors.stats.paired import compute_mcnemar_p_value, compute_min_detectable_drop
from monitors.stats.ratings import compute_mean_lower_bound
from tests.builders import gold_case
from tests.monitors.gate.runs import asked, report

PAGE = (Path(__file__).parents[3] / "docs" / "gate.md").read_text(encoding="utf-8")
DROPS = re.findall(r"^\| (\d+) \| ([\d.]+ %|none.*?) \|$", PAGE, re.MULTILINE)


def test_the_table_of_drops_is_there():
    assert len(DROPS) >= 6


@pytest.mark.parametrize(("pairs", "said"), DROPS)
def test_the_smallest_visible_drop_is_as_documented(pairs, said):
    drop = compute_min_detectable_drop(int(pairs))
    assert said.startswith("none" if drop is None else f"{100 * drop:.1f} %")


def test_the_documented_p_values_are_mcnemars():
    found = re.search(r"6 broken\D+(0\.\d+),\s5 broken\D+(0\.\d+)", PAGE)
    assert found is not None
    assert found.groups() == (f"{compute_mcnemar_p_value(6, 0):.3f}", f"{compute_mcnemar_p_value(5, 0):.4f}")


def compute_bound(mean: float, count: int) -> float:
    return compute_mean_lower_bound(mean, count, lowest=1, highest=5)


EXAMPLES = {"20 × 5": [5] * 20, "19 × 5 and a 1": [5] * 19 + [1], "20 × 4": [4] * 20}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_documented_verdicts_of_twenty_issues_are_the_gates(name):
    ratings = EXAMPLES[name]
    results = [asked(gold_case(f"t-{number}"), rubric=rating) for number, rating in enumerate(ratings)]
    verdicts = [
        report(results, GateSettings(rating_needed=True, rubric_bound_needed=asked_for)).verdict
        for asked_for in (False, True)
    ]
    row = f"| {name} | {fmean(ratings):.2f} | {compute_bound(fmean(ratings), 20):.2f} | {verdicts[0]} | {verdicts[1]} |"
    assert row in PAGE


@pytest.mark.parametrize("count", [20, 50, 200])
def test_the_documented_figures_of_so_many_issues_are_the_bounds(count):
    totals = (total for total in range(4 * count + 1) if compute_bound(1 + total / count, count) >= 4)
    smallest = 1 + next(totals) / count
    row = f"| {count} | {compute_bound(5, count):.2f} | {compute_bound(4.5, count):.2f} | {smallest:.2f} |"
    assert row in PAGE


def test_the_documented_smallest_suite_is_the_smallest():
    assert "Fewer than 11 issues" in PAGE
    assert compute_bound(5, 10) < 4 <= compute_bound(5, 11)
