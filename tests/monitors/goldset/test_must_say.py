"""Tests of the drafted phrases that a reply must contain.

The phrases are the values and names of the gold in their usual forms, and nothing else.
"""

from __future__ import annotations

import json
import re

import pytest

from monitors.errors import GoldSetError
from monitors.goldset.must_say import (
    apply_must_say_drafts,
    propose_must_say,
    read_must_say_drafts,
    write_must_say_drafts,
)
from tests.builders import gold_case


def says(sayings, reply):
    """Return whether a reply contains all required phrases, by the rules of the grader."""
    return all(
        re.search(saying[1:-1], reply, re.IGNORECASE) if saying.startswith("/") else saying in reply
        for saying in sayings
    )


@pytest.mark.parametrize(
    ("gold", "says_it", "says_another"),
    [
        ("14 days", ["It is 14 days.", "a 14-day loan", "fourteen days"], ["40 days", "114 days", "14 weeks"]),
        ("€1,400 per term", ["€1,400", "1400 EUR", "1.400 euros"], ["€14,000", "$1,400", "€140"]),
        ("1800 266 9966", ["call 18002669966", "1800-266-9966"], ["1800 9966 266"]),
        ("3:1", ["Mix it 3:1.", "3 : 1"], ["1:3"]),
        ("28 °C", ["28 °C", "28°C", "28 degrees Celsius"], ["28 °F"]),
        ("4.90", ["4.90", "4,90"], ["4.9", "49.0"]),
        ("Members 12 euros, guests 16 euros", ["€12 for members and 16 EUR for guests"], ["€12 for all"]),
        ("It is led by Ada Winter", ["Ask Ada Winter"], ["Ask Ada Sommer"]),
        ("free of charge", ["It is free of charge."], ["It costs 3 euros."]),
    ],
)
def test_a_draft_accepts_the_usual_forms_of_the_gold_and_no_other_value(gold, says_it, says_another):
    draft = propose_must_say(gold_case(gold=gold))
    assert draft is not None
    assert [reply for reply in [gold, *says_it] if not says(draft.must_say, reply)] == []
    assert [reply for reply in says_another if says(draft.must_say, reply)] == []


@pytest.mark.parametrize(
    "changes",
    [{"gold": "You may, when the caretaker agrees and stays nearby."}, {"gold": "12", "expected_refusal": True}],
    ids=["no value and no name", "a refusal"],
)
def test_without_certainty_there_is_no_draft(changes):
    assert propose_must_say(gold_case(**changes)) is None


def test_drafts_are_written_once_and_read_as_a_person_left_them(tmp_path):
    path = tmp_path / "drafts.jsonl"
    drafts = [draft for gold in ("14 days", "40 mg") if (draft := propose_must_say(gold_case(gold=gold)))]
    write_must_say_drafts(path, drafts)
    assert read_must_say_drafts(path) == tuple(drafts)
    with pytest.raises(GoldSetError):
        write_must_say_drafts(path, drafts)
    path.write_text(path.read_text(encoding="utf-8").split("\n")[1] + "\n{}\n", encoding="utf-8")
    with pytest.raises(GoldSetError, match="line 2"):
        read_must_say_drafts(path)


def test_accepted_drafts_join_their_cases_and_every_other_line_stays(tmp_path):
    suite, path = tmp_path / "suite.jsonl", tmp_path / "drafts.jsonl"
    rows = [{"id": name, "question": f"What of {name}?", "gold": "14 days", "severity": 3} for name in "ab"]
    lines = [json.dumps(row) for row in rows]
    suite.write_text("\n".join(lines) + "\n")
    path.write_text(json.dumps({"id": "b", "must_say": ["/14 ?days/"]}) + "\n")
    assert apply_must_say_drafts(suite, path) == 1
    first, second, _ = suite.read_text().split("\n")
    assert first == lines[0]
    assert json.loads(second) == rows[1] | {"must_say": ["/14 ?days/"]}


def test_a_pattern_that_is_none_is_refused_and_changes_nothing(tmp_path):
    suite, path = tmp_path / "suite.jsonl", tmp_path / "drafts.jsonl"
    suite.write_text(json.dumps({"id": "a", "question": "How long?", "gold": "14 days", "severity": 3}) + "\n")
    path.write_text(json.dumps({"id": "a", "must_say": ["/14 (days/"]}) + "\n")
    before = suite.read_bytes()
    with pytest.raises(GoldSetError):
        apply_must_say_drafts(suite, path)
    assert suite.read_bytes() == before


def test_a_draft_for_a_case_that_the_suite_does_not_have_changes_nothing(tmp_path):
    suite, path = tmp_path / "suite.jsonl", tmp_path / "drafts.jsonl"
    suite.write_text(json.dumps({"id": "a", "question": "How long?", "gold": "14 days", "severity": 3}) + "\n")
    path.write_text(json.dumps({"id": "b", "must_say": ["14"]}) + "\n")
    before = suite.read_bytes()
    with pytest.raises(GoldSetError, match="b"):
        apply_must_say_drafts(suite, path)
    assert suite.read_bytes() == before
