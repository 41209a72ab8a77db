"""Test that a verdict that cannot be checked is rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.errors import JudgeRefused, VerdictUnreadable
from monitors.judge.model import ModelReply, Stop
from monitors.judge.untrusted_text import fence_text
from monitors.judge.verdict import (
    KINDS,
    SCHEMA,
    JudgeVerdict,
    parse_and_validate_criteria,
    parse_and_validate_verdict,
)
from monitors.records.grades import Criterion, FailureKind
from tests.monitors.asking import MODEL, NONCE
from tests.servers.anthropic_replies import SPOILED, SPOILED_CRITERIA
from tests.servers.anthropic_rules import wrong_with

QUOTE = "up to ₹40,000"
ANSWER = "It is covered after two years, up to ₹40,000 for each eye."
GRADED = fence_text(ANSWER, NONCE)
GOOD: dict[str, Any] = {
    "reason": "says what the gold says",
    "quotes": ["covered after two years"],
    "failure_kinds": [],
    "factual_match": True,
    "citation_present": False,
    "score": 0.9,
    "rubric": 4,
}
BAD = GOOD | {"factual_match": False, "failure_kinds": ["wrong_fact"], "score": 0.1, "rubric": 2}


CRITERIA: dict[str, Any] = {
    "helpfulness": {"score": 1, "quote": QUOTE, "reason": ""},
    "completeness": {"score": 1, "quote": QUOTE, "reason": ""},
    "accuracy": {"score": 0, "quote": QUOTE, "reason": "another cause"},
}
RATED = GOOD | {"criteria": CRITERIA}


def reply(text: str, stop: Stop = Stop.DONE) -> ModelReply:
    return ModelReply(text=text, stop=stop, answered_by=MODEL)


def read(**changes: Any) -> JudgeVerdict:
    return parse_and_validate_verdict(reply(json.dumps(GOOD | changes)), GRADED)


def test_a_whole_verdict_is_read():
    assert read().factual_match
    assert parse_and_validate_verdict(reply(json.dumps(BAD)), GRADED).failure_kinds == (FailureKind.WRONG_FACT,)
    assert read(score=1).score == 1.0


@pytest.mark.parametrize("fault", sorted(SPOILED))
def test_malformed_model_output_is_never_a_verdict(fault):
    with pytest.raises(VerdictUnreadable):
        parse_and_validate_verdict(reply(SPOILED[fault](GOOD)), GRADED)


def test_the_criteria_of_a_report_are_read_beside_its_rating():
    """The criteria of a report are read together with its rating.

    A missing part of the report cannot be quoted, so a criterion with score 0 can have a reason instead of a quote.
    A long reason is shortened, and personal data in a reason is masked.
    """
    reason = f"no fix, says asha.verma@example.com {'x' * 300}"
    rated = RATED | {"criteria": CRITERIA | {"completeness": {"score": 0, "quote": "", "reason": reason}}}
    reading = parse_and_validate_criteria(reply(json.dumps(rated)), GRADED)
    assert parse_and_validate_verdict(reply(json.dumps(rated)), GRADED).rubric == 4
    assert [(c.name, c.score, c.quote) for c in reading.criteria] == [
        (Criterion.HELPFULNESS, 1, QUOTE),
        (Criterion.COMPLETENESS, 0, ""),
        (Criterion.ACCURACY, 0, QUOTE),
    ]
    assert reading.problem == ""
    shown = reading.criteria[1].reason
    assert (len(shown), "asha.verma" in shown) == (200, False)


@pytest.mark.parametrize("fault", sorted(SPOILED_CRITERIA))
def test_a_faulty_criterion_leaves_all_three_unknown_and_the_rating_as_it_is(fault):
    spoiled = reply(SPOILED_CRITERIA[fault](RATED))
    reading = parse_and_validate_criteria(spoiled, GRADED)
    assert (reading.criteria, bool(reading.problem)) == ((), True)
    assert parse_and_validate_verdict(spoiled, GRADED).rubric == 4


@pytest.mark.parametrize(
    "text", ["", "null", "true", "[]", '""', "{", json.dumps(GOOD) * 2, "x" * 30_000, '{"score": 1, "score": 1}']
)
def test_output_that_is_not_an_object_is_never_a_verdict(text):
    with pytest.raises(VerdictUnreadable):
        parse_and_validate_verdict(reply(text), GRADED)


@pytest.mark.parametrize(
    "changes",
    [
        {"score": 0.3},
        {"factual_match": False},
        {"factual_match": False, "failure_kinds": ["wrong_fact"]},
        {"failure_kinds": ["pii_disclosure"], "factual_match": False, "score": 0},
        {"failure_kinds": ["unsafe_action"], "factual_match": False, "score": 0},
        {"quotes": []},
        {"quotes": ["covered after two years", "and something else"]},
        {"quotes": ["x"] * 9},
        {"reason": ""},
        {"rubric": "4"},
        {"rubric": True},
        {"score": "0.9"},
        {"score": None},
        {"citation_present": 0},
    ],
    ids=str,
)
def test_a_verdict_that_contradicts_itself_or_its_answer_is_none(changes):
    """A verdict that contradicts itself or the judged answer is rejected.

    A judge alone cannot report a kind of failure that alerts an engineer. Only a rule can prove such a failure.
    """
    with pytest.raises(VerdictUnreadable):
        read(**changes)


def test_a_refusal_and_a_cut_are_distinguished():
    with pytest.raises(JudgeRefused):
        parse_and_validate_verdict(reply("", Stop.REFUSED), GRADED)
    with pytest.raises(VerdictUnreadable, match="cut off"):
        parse_and_validate_verdict(reply(json.dumps(GOOD), Stop.CUT), GRADED)


def test_no_error_repeats_the_answer():
    with pytest.raises(VerdictUnreadable) as caught:
        read(quotes=["SECRET 4111 1111 1111 1111"], reason="SECRET")
    assert "SECRET" not in str(caught.value)
    assert "4111" not in str(caught.value)


def test_a_quote_may_differ_in_white_space_and_in_nothing_else():
    assert read(quotes=["covered  after\ntwo years"]).quotes
    with pytest.raises(VerdictUnreadable):
        read(quotes=["covered after three years"])


def test_a_reason_is_one_short_line_without_personal_data():
    reason = read(reason="It names\nanna.schmidt@example.com " + "and more " * 100).reason
    assert "anna" not in reason
    assert "[email]" in reason
    assert "\n" not in reason
    assert len(reason) <= 400


def test_the_schema_is_one_that_the_api_takes_and_asks_for_all_that_is_read():
    body = {
        "model": MODEL,
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "x"}],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    }
    assert wrong_with(body) is None
    assert set(SCHEMA["required"]) == set(SCHEMA["properties"]) == set(JudgeVerdict.model_fields)
    assert SCHEMA["properties"]["failure_kinds"]["items"]["enum"] == [kind.value for kind in KINDS]


@given(st.text(max_size=300))
def test_no_text_is_a_verdict_by_chance_and_none_breaks_the_reader(text):
    with pytest.raises(VerdictUnreadable):
        parse_and_validate_verdict(reply(text), GRADED)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(GOOD)), inner, max_size=7),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(GOOD)), JSON, min_size=1))
def test_a_changed_verdict_is_refused_or_valid(changes):
    """A verdict with random changes is either rejected or valid.

    In a valid verdict, the score is in range, the quotes are in the answer, and match, kinds and score agree.
    """
    try:
        verdict = read(**changes)
    except VerdictUnreadable:
        return
    assert 0 <= verdict.score <= 1
    assert verdict.factual_match == (not verdict.failure_kinds) == (verdict.score >= 0.5)
    assert all(" ".join(quote.split()) in ANSWER for quote in verdict.quotes)
