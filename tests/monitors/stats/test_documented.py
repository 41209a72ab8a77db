"""The figures that docs/gate.md gives are the gate's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from monitors.stats.paired import compute_mcnemar_p_value, compute_min_detectable_drop

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
