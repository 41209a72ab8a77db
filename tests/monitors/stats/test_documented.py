"""The figures that docs/gate.md gives are the gate's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from monitors.stats.paired import mcnemar, smallest_drop

PAGE = (Path(__file__).parents[3] / "docs" / "gate.md").read_text(encoding="utf-8")
DROPS = re.findall(r"^\| (\d+) \| ([\d.]+ %|none.*?) \|$", PAGE, re.MULTILINE)


def test_the_table_of_drops_is_there():
    assert len(DROPS) >= 6


@pytest.mark.parametrize(("pairs", "said"), DROPS)
def test_the_smallest_visible_drop_is_as_documented(pairs, said):
    drop = smallest_drop(int(pairs))
    assert said == ("none: even if all broke" if drop is None else f"{100 * drop:.1f} %")


def test_the_documented_p_values_are_mcnemars():
    assert "6 broken and none fixed" in PAGE
    assert f"has p = {mcnemar(6, 0):.3f}, 5 broken and none fixed {mcnemar(5, 0):.4f}" in PAGE.replace("\n", " ")
