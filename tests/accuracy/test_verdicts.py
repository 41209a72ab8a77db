"""Tests of ``make accuracy`` with ``ROWS=…`` (writes each row's verdict) and ``AGAINST=…`` (lists changes)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.accuracy.verdicts import ROW_SETS, collect_verdicts, compare_verdicts, main, read_verdicts, select_sets
from tests.fork_server import SCRIPT

ROWS = {
    "owners/owners.jsonl": [
        {"id": "bike-1", "question": "What is the deposit?", "gold": "150 euros", "answer": "The deposit is 150 euros."},
        {"id": "bike-2", "question": "What is the deposit?", "gold": "150 euros", "answer": "The deposit is 250 euros."},
    ],
    "owners/pairs.jsonl": [
        {"id": "bike-3", "question": "What is the deposit?", "gold": "150 euros", "right": "It is 150 euros.", "wrong": "It is 15 euros."},
    ],
    "owners/refusals.jsonl": [{"id": "bike-4", "question": "Who rented it?", "answer": "I'm sorry, I can't help with that.", "expected_refusal": True}],
    "pii/indian.jsonl": [{"id": "mail", "text": "Write to jonas.feld@mail.example."}],
    "quantities/texts.jsonl": [{"id": "days", "text": "within 30 days"}, {"id": "none", "text": "soon"}],
    "error_leaks/errors.jsonl": [{"id": "trace", "question": "Is it open?", "answer": "Traceback (most recent call last):\n  File \"bot.py\", line 3, in reply\nKeyError: 'open'"}],
    "language/sentences.jsonl": [{"id": "hindi", "text": "यह कितने दिन चलता है?"}],
}  # fmt: skip


@pytest.fixture
def data(tmp_path):
    """Create a data folder with a few labelled rows in some of the sets, and return its path."""
    for name, rows in ROWS.items():
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path / "data"


@pytest.mark.whole_only
def test_a_verdict_is_what_the_command_says_of_a_row(data):
    verdicts = collect_verdicts(ROW_SETS, data, [str(SCRIPT)])
    assert verdicts.pop(("owners/refusals", "bike-4")) in {"refused", "yes"}  # by class where the version names one
    assert verdicts == {
        ("owners/answers", "bike-1"): "passed",
        ("owners/answers", "bike-2"): "failed",
        ("owners/pairs", "bike-3/right"): "passed",
        ("owners/pairs", "bike-3/wrong"): "failed",
        ("pii/indian", "mail"): "email 9-32",
        ("error leaks/errors", "trace"): "yes",
        ("language", "hindi"): "hi",
        ("quantities/texts", "days"): "duration 30 day",
        ("quantities/texts", "none"): "nothing",
    }


@pytest.mark.whole_only
def test_changed_rows_are_named_with_both_verdicts(data, tmp_path: Path, capsys):
    rows = tmp_path / "rows.jsonl"
    assert main([str(data), "--sets", "owners/answers,language", "--rows", str(rows)]) == 0
    assert main([str(data), "--sets", "owners/answers", "--against", str(rows)]) == 0
    edited = rows.read_text(encoding="utf-8").replace('"failed"', '"open"')
    rows.write_text(edited, encoding="utf-8")
    capsys.readouterr()
    assert main([str(data), "--sets", "owners/answers", "--against", str(rows)]) == 1
    printed = capsys.readouterr().out
    assert "bike-2: open → failed" in printed
    assert "bike-1" not in printed
    assert len(read_verdicts(rows)) == 3


def test_new_rows_and_rows_that_are_gone_are_counted_within_the_measured_sets():
    before = {("a", "1"): "passed", ("a", "2"): "passed", ("b", "1"): "open"}
    now = {("a", "1"): "failed", ("a", "3"): "passed"}
    assert compare_verdicts(before, now).splitlines()[-1] == "1 of 2 verdicts changed; 1 rows are new, 1 are gone"


def test_sets_are_chosen_by_words_of_their_names():
    assert {each.name for each in select_sets(["pairs"])} == {"owners/pairs", "quantities/pairs"}
    assert select_sets([]) == list(ROW_SETS)
    assert len({each.name for each in ROW_SETS}) == len(ROW_SETS)


def test_a_command_that_does_not_answer_is_an_error(data):
    with pytest.raises(RuntimeError):
        collect_verdicts(select_sets(["language"]), data, ["false"])


def test_without_the_data_it_says_so(tmp_path, capsys):
    assert main([str(tmp_path / "none")]) == 2
    assert str(tmp_path / "none") in capsys.readouterr().out
