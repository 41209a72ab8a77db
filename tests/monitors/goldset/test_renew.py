"""Tests of building a suite again: the cases from templates are renewed, and no other case is changed."""

from __future__ import annotations

import json

import pytest

from monitors.errors import GoldSetError
from monitors.goldset.load import load_suite
from monitors.goldset.versions import replace_template_generated_cases
from tests.monitors.goldset.gold_cases import PLAIN, case_of


def hand_written(case_id: str) -> str:
    return json.dumps(
        PLAIN | {"id": case_id, "provenance": {"pipeline": "adversarial"}}, indent=None, sort_keys=True
    )


def test_cases_without_a_template_stay_unchanged(tmp_path):
    """Cases without a template are preserved byte for byte. They come after the cases from templates."""
    path = tmp_path / "suite.jsonl"
    path.write_text(hand_written("mine") + "\n")
    renewal = replace_template_generated_cases(path, [case_of(id="a"), case_of(id="b")])
    assert (renewal.added, renewal.unchanged) == (2, 1)
    assert path.read_text().split("\n")[2] == hand_written("mine")
    assert load_suite(path).sha256 == renewal.sha256


def test_the_same_cases_give_the_same_bytes(tmp_path):
    """The same cases give the same bytes, so a changed file in CI means a changed case."""
    path = tmp_path / "suite.jsonl"
    replace_template_generated_cases(path, [case_of(id="a"), case_of(id="b")])
    first = path.read_bytes()
    renewal = replace_template_generated_cases(path, [case_of(id="a"), case_of(id="b")])
    assert (path.read_bytes(), renewal.same, renewal.added) == (first, 2, 0)


def test_a_case_keeps_the_id_that_an_earlier_version_gave_it(tmp_path):
    """A case keeps the id that an earlier version gave it, because runs, incidents and datasets use this id.

    If a case in a new language has the same pair, it also gets the earlier name of the pair.
    """
    path = tmp_path / "suite.jsonl"
    replace_template_generated_cases(path, [case_of(id="plan::fee::en", pair="plan::fee")])
    english, hindi = case_of(id="plan.fee.en", pair="plan.fee"), case_of(id="plan.fee.hi", pair="plan.fee")
    renewal = replace_template_generated_cases(path, [english, hindi])
    assert (renewal.same, renewal.added, renewal.removed) == (1, 1, 0)
    assert [(case.id, case.pair) for case in load_suite(path).cases] == [
        ("plan::fee::en", "plan::fee"),
        ("plan.fee.hi", "plan::fee"),
    ]


def test_changes_are_counted(tmp_path):
    """Added, changed, removed and unchanged cases are counted."""
    path = tmp_path / "suite.jsonl"
    replace_template_generated_cases(path, [case_of(id="a"), case_of(id="b"), case_of(id="c")])
    renewal = replace_template_generated_cases(
        path, [case_of(id="a"), case_of(id="b", gold="36 months"), case_of(id="d")]
    )
    assert (renewal.added, renewal.changed, renewal.removed, renewal.same) == (1, 1, 1, 1)


def test_a_case_of_another_pipeline_is_not_overwritten(tmp_path):
    """If another pipeline already uses an id, this is an error, and the file stays unchanged."""
    path = tmp_path / "suite.jsonl"
    path.write_text(hand_written("a") + "\n")
    with pytest.raises(GoldSetError, match="a from another pipeline"):
        replace_template_generated_cases(path, [case_of(id="a")])
    assert path.read_text() == hand_written("a") + "\n"
