"""Tests of the phrases that a case requires or forbids in a reply."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from monitors.domains.pack import INSURANCE, load_domain
from monitors.facts.text import normalise
from monitors.goldset.lines import Unusable, parse_case_object
from monitors.graders.base import GraderSettings
from monitors.graders.panel import build_rule_panel, grade_exchange
from monitors.graders.sayings import SayingsGrader, find_phrase_or_pattern
from monitors.records.cases import GoldCase
from monitors.records.grades import Abstained, FailureKind, Judged
from monitors.records.sayings import MAX_WAYS, REACH, parse_phrase_or_pattern
from tests.builders import exchange, gold_case


def grade(text: str, **case: Any) -> Judged | Abstained:
    of = gold_case(**case)
    return SayingsGrader().grade(of, exchange(of, text))


@pytest.mark.parametrize(
    ("must", "must_not", "text", "outcome"),
    [
        (["two stamps"], [], "You get Two  Stamps back.", True),
        (["two stamps", "9 am"], [], "You get two stamps back.", FailureKind.MISSING_FACT),
        (["/(?:two|2) stamps/"], [], "You get 2 stamps.", True),
        ([], ["three stamps"], "You get three stamps.", FailureKind.WRONG_FACT),
        ([], ["three stamps"], "You get two stamps.", None),
        (["two stamps"], ["three"], "Two stamps, or three.", FailureKind.WRONG_FACT),
        (["24"], [], "It takes 240 days.", FailureKind.MISSING_FACT),
        (["24"], [], "It takes 24.5 days.", FailureKind.MISSING_FACT),
        (["24"], [], "It takes 1,024 days.", FailureKind.MISSING_FACT),
        (["24"], [], "It takes 24, not 30.", True),
        (["art"], [], "The start is free.", FailureKind.MISSING_FACT),
        (["दिन"], [], "यह दिनों की बात है।", FailureKind.MISSING_FACT),
        (["३० दिन"], [], "३० दिन लगते हैं।", True),
        (["don't bend"], [], "Don’t bend it.", True),
        (["10 °C"], [], "Store it at 10\u00a0°C.", True),
    ],
)
def test_all_that_must_be_said_and_nothing_that_must_not(
    must: list[str], must_not: list[str], text: str, outcome: FailureKind | bool | None
) -> None:
    found = grade(text, must_say=tuple(must), must_not_say=tuple(must_not))
    if isinstance(found, Abstained):
        assert outcome is None
        assert not found.needed
    else:
        assert (found.failure_kind or found.passed) == outcome


def test_a_forbidden_word_behind_a_refusal_is_a_disclosure_and_a_required_one_does_not_settle_it() -> None:
    wrong = grade("I can't say. It is Fern.", expected_refusal=True, must_not_say=("Fern",))
    assert isinstance(wrong, Judged)
    assert wrong.failure_kind is FailureKind.SHOULD_HAVE_REFUSED
    passing = grade("I can't say. Please call 116 123.", expected_refusal=True, must_say=("116 123",))
    assert isinstance(passing, Abstained)


def test_the_evidence_stands_where_the_phrase_does() -> None:
    text = "\u200bIt is  two\u00a0stamps."
    found = grade(text, must_say=("two stamps",))
    assert isinstance(found, Judged)
    assert [text[span.start : span.end] for span in found.evidence] == ["two\u00a0stamps"]


def test_only_a_case_that_has_sayings_is_graded_by_them() -> None:
    panel = build_rule_panel(GraderSettings(), load_domain((INSURANCE,)))
    for case, graded in ((gold_case(), False), (gold_case(must_say=("24",)), True)):
        names = [one.grader for one in grade_exchange(panel, case, exchange(case))]
        assert ("sayings" in names) is graded


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        "\u00ad",
        "/[/",
        "/(a+)+b/",
        "/(a{,})+b/",
        "/(a|ab){2,9}c/",
        "/.*.*.*x/",
        "/a*/",
        "/x{1,5000}/",
        "/(?:(?:a|b)(?:c|d)?){9}e/",
    ],
)
def test_a_bad_pattern_is_named_with_its_key(written: str) -> None:
    with pytest.raises(ValidationError):
        gold_case(must_say=(written,))
    line = {"id": "c", "question": "How many?", "gold": "two", "severity": 1, "must_say": ["fine", written]}
    problem = parse_case_object(line)
    assert isinstance(problem, Unusable)
    assert len(problem.problems) == 1
    assert '"must_say"' in problem.problems[0]
    assert "[1]" in problem.problems[0]


def test_the_problem_of_a_pattern_reads_as_a_person_sees_it(snapshot: object) -> None:
    line = {"id": "c", "question": "How many?", "gold": "two", "severity": 1}
    bad = [parse_case_object(line | {"must_not_say": [text]}) for text in ("/[/", "/(a+)+b/", "/.*.*.*x/", "/a*/")]
    assert "\n".join(one.problems[0] for one in bad if isinstance(one, Unusable)) == snapshot


def test_a_case_keeps_its_hash_until_it_has_sayings() -> None:
    plain, empty, full = gold_case(), gold_case(must_say=()), gold_case(must_say=("24",))
    assert plain.question_and_answer_sha256 == empty.question_and_answer_sha256 != full.question_and_answer_sha256
    assert GoldCase.model_validate_json(full.model_dump_json()) == full


@pytest.mark.parametrize("repeat", ["*", "{,}", "{0,}"])
def test_an_open_repeat_reaches_so_far(repeat: str) -> None:
    pattern = parse_phrase_or_pattern(f"/a.{repeat}b/").pattern
    assert pattern.search("a" + "x" * REACH + "b")
    assert not pattern.search("a" + "x" * (REACH + 1) + "b")
    assert (REACH + 1) ** 2 <= MAX_WAYS


@settings(max_examples=100, deadline=None, database=None)
@given(st.text(max_size=30), st.text(max_size=60))
def test_any_phrase_is_found_in_itself_or_refused(written: str, around: str) -> None:
    try:
        parse_phrase_or_pattern(written)
    except ValueError:
        return
    text = normalise(f"{around} {written} {around}")
    place = find_phrase_or_pattern(written, text)
    assert place is None or 0 <= place[0] <= place[1] <= 2 * len(around) + len(written) + 2


@pytest.mark.whole_only
def test_the_worst_pattern_that_is_allowed_ends_on_a_hostile_reply() -> None:
    started = time.process_time()
    assert find_phrase_or_pattern("/x.*x.*y/", normalise("x" * 20_000)) is None
    assert time.process_time() - started < 20
