"""Test the comparison of a benchmark's figure with its goal."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tests.bench.measurements import FIGURES_VARIABLE, Figure, format_line, report


def figure(**changed):
    given = {"id": "P0", "what": "a thing", "unit": "ms", "values": (3.0, 1.0, 2.0), "goal": 2.0}
    return Figure.model_validate(given | changed)


@pytest.mark.parametrize(
    ("changed", "met"),
    [
        ({}, True),
        ({"goal": 1.9}, False),
        ({"worst": True}, False),
        ({"better": "higher"}, True),
        ({"better": "higher", "worst": True}, False),
        ({"goal": None}, None),
        ({"baselines": (3.0, 2.0, 1.0), "of": "ratio", "goal": 1.0}, True),
        ({"baselines": (1.0, 1.0, 1.0), "of": "ratio", "goal": 1.9}, False),
    ],
)
def test_the_median_decides_or_the_worst_where_it_says_so(changed, met):
    assert figure(**changed).met is met


@pytest.mark.parametrize("changed", [{"values": ()}, {"baselines": (1.0,)}, {"of": "ratio"}])
def test_a_figure_without_samples_or_pairs_is_refused(changed):
    with pytest.raises(ValidationError):
        figure(**changed)


def test_a_line_says_spread_baseline_goal_and_whether_it_was_met(snapshot):
    assert (
        format_line(figure(baseline="a loop", baselines=(3.0, 2.0, 2.0), of="ratio", goal=1.0, note="quiet"))
        == snapshot
    )


def test_a_reported_figure_reaches_the_table_whole(tmp_path, monkeypatch):
    monkeypatch.setenv(FIGURES_VARIABLE, str(tmp_path / "figures.jsonl"))
    assert not report(figure(goal=1.0))
    (line,) = (tmp_path / "figures.jsonl").read_text("utf-8").splitlines()
    assert Figure.model_validate_json(line) == figure(goal=1.0)
