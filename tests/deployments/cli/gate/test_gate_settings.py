"""Tests of which settings the options of the gate change, and which settings keep their value from the file."""

from __future__ import annotations

import pytest

from deployments.cli.gate.gate import apply_gate_flags
from monitors.errors import ConfigError
from monitors.gate.settings import GateSettings

FILE = GateSettings(min_weighted_score=0.9, min_rubric=3.5, strict=True)


def flags(min_score=None, *, fail_on_regression=False, strict=False, settings=FILE):
    return apply_gate_flags(settings, min_score=min_score, fail_on_regression=fail_on_regression, strict=strict)


def test_without_a_flag_the_file_stands():
    assert flags() == FILE


@pytest.mark.parametrize(
    ("score", "weighted", "rubric", "needed"),
    [
        (0.0, 0.0, 3.5, False),
        (0.98, 0.98, 3.5, False),
        (1.0, 1.0, 3.5, False),
        (1.01, 0.9, 1.01, True),
        (4.0, 0.9, 4.0, True),
        (5.0, 0.9, 5.0, True),
    ],
)
def test_up_to_one_it_is_the_weighted_score_above_it_the_average_rating(score, weighted, rubric, needed):
    found = flags(score)
    assert (found.min_weighted_score, found.min_rubric, found.rating_needed) == (weighted, rubric, needed)


@pytest.mark.parametrize("score", [-0.1, 5.1, 98.0, float("nan"), float("inf")])
def test_any_other_score_is_an_error_with_what_is_accepted(score):
    with pytest.raises(ConfigError, match="out of range"):
        flags(score)


def test_the_switches_switch_on_and_never_off():
    assert flags(fail_on_regression=True, strict=True, settings=GateSettings()) == GateSettings(
        fail_on_regression=True, strict=True
    )
    assert flags().strict
