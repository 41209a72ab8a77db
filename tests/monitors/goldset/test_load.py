"""A suite loads completely, or not at all with a report of every invalid line."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.errors import GoldSetError
from monitors.goldset.load import MAX_BAD_LINES_SHOWN, load_suite, parse_suite_lines
from monitors.records.base import Language, Severity
from monitors.records.cases import Pipeline

GOOD: dict[str, object] = {
    "id": "free-look",
    "question": "How many days is the free look?",
    "gold": "30 days",
    "severity": 2,
    "language": "en",
    "type": "claim",
    "provenance": {"pipeline": "template"},
}


def line(**changes: object) -> str:
    """Return a valid suite line with some keys changed. A key that is set to ``None`` is removed."""
    return json.dumps({key: value for key, value in {**GOOD, **changes}.items() if value is not None})


def test_question_is_short_for_one_turn(tmp_path: Path):
    path = tmp_path / "demo.jsonl"
    path.write_text(line() + "\n" + line(id="b", question=None, turns=["Hello", "And Silver?"]) + "\n")
    suite = load_suite(path)
    assert suite.name == "demo"
    assert [case.turns for case in suite.cases] == [("How many days is the free look?",), ("Hello", "And Silver?")]
    assert suite.cases[0].severity is Severity.MAJOR
    assert load_suite(path, name="nightly").name == "nightly"


@pytest.mark.parametrize(
    ("asked", "language"),
    [
        ({"question": "How many days is the free look?"}, Language.ENGLISH),
        ({"question": "फ्री लुक कितने दिन का है?"}, Language.HINDI),
        ({"turns": ["Hello", "Free look kitne din ka hota hai?"]}, Language.HINGLISH),
    ],
)
def test_a_line_says_no_more_than_what_is_asked_what_is_right_and_how_bad(asked, language):
    plain = {"id": "free-look", "gold": "30 days", "severity": 2, **asked}
    (case,) = parse_suite_lines([json.dumps(plain)], name="own").cases
    assert (case.type, case.provenance.pipeline, case.language) == ("general", Pipeline.MANUAL, language)
    said = {**plain, "language": language.value, "type": "general", "provenance": {"pipeline": "manual"}}
    assert parse_suite_lines([json.dumps(said)], name="own").cases == (case,)


BAD_LINES = [
    pytest.param(line(severity=None), ['"severity" is missing', "1 (minor), 2 (major) or 3 (critical: alerts at once)"], id="severity missing"),
    pytest.param(line(severity=4), ['"severity" 4 is not valid', "1 (minor)"], id="severity 4"),
    pytest.param(line(severity="high"), ['"severity" "high" is not valid'], id="severity in words"),
    pytest.param(line(severity=True), ['"severity" true is not valid'], id="severity true"),
    pytest.param(line(severity=2.0), ['"severity" 2.0 is not valid'], id="severity 2.0"),
    pytest.param(line(language="it"), ['"language" "it" is not valid', "en, hi, hinglish, de, fr, es, other"], id="language"),
    pytest.param(line(expected_refusal="no"), ['"expected_refusal" "no" is not valid', "true or false"], id="refusal in words"),
    pytest.param(line(id="../etc"), ['"id" "../etc" is not valid', "no slash"], id="path in id"),
    pytest.param(line(gold=""), ['"gold" "" is not valid'], id="empty gold"),
    pytest.param(line(question=None), ['"question" is missing', '"turns"'], id="no question"),
    pytest.param(line(question=""), ['"question" "" is not valid'], id="empty question"),
    pytest.param(line(turns=["a"]), ['"question" or "turns", not both'], id="question and turns"),
    pytest.param(line(turns=[], question=None), ['"turns" [] is not valid'], id="no turns"),
    pytest.param(line(severty=1), ['unknown key "severty"; did you mean "severity"?'], id="unknown key"),
    pytest.param(line(zebra=1), ['unknown key "zebra"; accepted: alternative_citations, alternatives'], id="unknown key, nothing near"),
    pytest.param(line(provenance={"pipeline": "A"}), ['"provenance.pipeline" "A" is not valid', "template, draft"], id="pipeline"),
    pytest.param(line(when_asked=[{"ask": "version", "answer": "2"}]), ['unknown key "ask"; did you mean "asks"'], id="unknown key of an answer"),
    pytest.param(line(when_asked=[{"asks": "version"}]), ['"when_asked.answer" is missing'], id="an answer that is missing"),
    pytest.param(line(when_asked="2.4"), ['"when_asked" "2.4" is not valid; accepted: a list of objects'], id="answers that are no list"),
    pytest.param(line(provenance={"pipeline": "draft", "claus": "x"}), ['unknown key "claus"; did you mean "clause"?'], id="unknown inner key"),
    pytest.param('{"id": "x",, }', ["broken JSON at column 12"], id="broken JSON"),
    pytest.param(line().replace("2", "NaN"), ["NaN is not a valid value"], id="NaN"),
    pytest.param(line().replace("2", "-Infinity"), ["-Infinity is not a valid value"], id="Infinity"),
    pytest.param('{"id": "x", "id": "y"}', ['has the key "id" twice'], id="key twice"),
    pytest.param("[1, 2]", ["a case as a JSON object", "[1, 2]"], id="array"),
    pytest.param("[" * 100_000, ["nested too deeply"], id="bottomless"),
    pytest.param(line(question="\ud800"), ['"turns" ', "\\ud800"], id="lone surrogate"),
    pytest.param(line(relative_tolerance=2), ['"relative_tolerance" 2 is not valid', "a number of at least 0 and less than 1"], id="tolerance"),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "messages"), BAD_LINES)
def test_a_bad_line_is_named_with_key_value_and_what_is_accepted(bad: str, messages: list[str], tmp_path: Path):
    path = tmp_path / "demo.jsonl"
    path.write_text(line(id="first") + "\n\n" + bad + "\n", encoding="utf-8", errors="surrogatepass")
    with pytest.raises(GoldSetError) as caught:
        load_suite(path)
    text = str(caught.value)
    assert text.startswith(str(path))
    assert "\n  line 3: " in text
    assert all(words in text for words in messages), text


def test_a_duplicate_id_names_both_lines():
    with pytest.raises(GoldSetError, match=r'line 3: line 1 already has the id "free-look"'):
        parse_suite_lines([line(), line(id="other"), line()], name="demo")


def test_a_duplicate_id_is_reported_with_other_errors_of_its_line():
    with pytest.raises(GoldSetError, match=r"line 2: .*severity.*; also: line 1 already has the id"):
        parse_suite_lines([line(), line(severity=9)], name="demo")


def test_bad_lines_are_reported_together_up_to_a_screenful(snapshot):
    lines = [line(id=f"case-{number}", severity=number) for number in range(1, 31)]
    with pytest.raises(GoldSetError) as caught:
        parse_suite_lines(lines, name="demo", source="demo.jsonl")
    assert len(str(caught.value).splitlines()) == 1 + MAX_BAD_LINES_SHOWN + 1
    assert str(caught.value) == snapshot


@pytest.mark.parametrize("content", [b"", b"\n \n\r\n", b"\xef\xbb\xbf"])
def test_an_empty_file_says_so(content: bytes, tmp_path: Path):
    path = tmp_path / "demo.jsonl"
    path.write_bytes(content)
    with pytest.raises(GoldSetError, match=r"demo\.jsonl has no cases; write one JSON object on each line"):
        load_suite(path)


def test_a_byte_order_mark_and_windows_line_ends_are_tolerated(tmp_path: Path):
    path = tmp_path / "demo.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + line().encode() + b"\r\n" + line(id="b").encode() + b"\r\n")
    assert [case.id for case in load_suite(path).cases] == ["free-look", "b"]


def test_a_line_separator_inside_a_text_ends_no_line(tmp_path: Path):
    path = tmp_path / "demo.jsonl"
    path.write_text(json.dumps({**GOOD, "gold": "30\u2028days\u0085"}, ensure_ascii=False), encoding="utf-8")
    assert load_suite(path).cases[0].gold == "30\u2028days\u0085"


def test_invalid_utf8_is_named_by_line_and_byte(tmp_path: Path):
    path = tmp_path / "demo.jsonl"
    path.write_bytes(line().encode() + b'\n{"gold": "\xff"}\n')
    with pytest.raises(GoldSetError, match=r"demo\.jsonl, line 2: not UTF-8 at byte \d+"):
        load_suite(path)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path):
    with pytest.raises(GoldSetError, match=r"none\.jsonl cannot be read: file not found"):
        load_suite(tmp_path / "none.jsonl")
    with pytest.raises(GoldSetError, match="cannot be read: Is a directory"):
        load_suite(tmp_path)


def test_a_suite_with_an_unfit_name_says_what_is_accepted():
    with pytest.raises(GoldSetError, match=r'"my suite" is not a valid suite name; accepted: letters'):
        parse_suite_lines([line()], name="my suite")


@given(seed=st.integers(0, 2**16), indent=st.sampled_from([None, (", ", ": "), (",  ", " :  ")]))
def test_the_hash_is_over_what_the_cases_say(seed: int, indent: tuple[str, str] | None):
    """The hash of a suite depends only on what its cases say.

    White space, key order, line order and written-out defaults do not change it.
    """
    cases = [{**GOOD, "id": f"case-{number}", "severity": 1 + number % 3} for number in range(4)]
    plain = parse_suite_lines([json.dumps(case) for case in cases], name="a")
    shuffler = random.Random(seed)
    shuffler.shuffle(cases)
    spelled_out = [
        {**case, "turns": [case["question"]], "expected_refusal": False, "alternatives": []} for case in cases
    ]
    lines: list[str] = []
    for case in spelled_out:
        del case["question"]
        keys = list(case)
        shuffler.shuffle(keys)
        lines.append(json.dumps({key: case[key] for key in keys}, separators=indent))
    assert parse_suite_lines(lines, name="b").sha256 == plain.sha256


@pytest.mark.parametrize(
    "change",
    [{"gold": "31 days"}, {"severity": 3}, {"question": "How long?"}, {"expected_refusal": True}, {"id": "x"}, {"cluster": "gold"}],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_the_hash_changes_with_what_a_case_says(change: dict[str, object]):
    assert parse_suite_lines([line(**change)], name="a").sha256 != parse_suite_lines([line()], name="a").sha256


@given(st.text(max_size=80))
def test_any_text_gives_a_suite_or_an_error_for_people(text: str):
    with pytest.raises(GoldSetError):
        parse_suite_lines([text], name="demo")


def _without_language(*questions_and_golds: tuple[str, str]) -> list[str]:
    return [
        line(id=f"c{at}", question=question, gold=gold, language=None)
        for at, (question, gold) in enumerate(questions_and_golds)
    ]


def test_a_suite_that_is_mostly_in_another_language_is_so_where_a_text_does_not_tell():
    """If the words of a case show no language, the case gets the language of most other cases in the suite.

    A language that a line states is not changed, and neither is a language that the words of the question show.
    """
    german = [
        ("Wo ist Ihr Laden?", "Venloer Straße 212"),
        ("Habt ihr veganes Brot?", "Ja"),
        ("Was kostet das?", "3 €"),
        ("Sorten?", "24"),
    ]
    lines = [*_without_language(*german, ("Where is it?", "There")), line(id="d", question="Brot?", language="en")]
    found = [case.language.value for case in parse_suite_lines(lines, name="s").cases]
    assert found == ["de", "de", "de", "de", "en", "en"]


def test_a_suite_that_is_mostly_in_english_stays_so():
    asked = [("Where is it?", "There"), ("What is that?", "A lamp"), ("Lamp?", "30"), ("Wo ist das?", "Hier")]
    found = [case.language.value for case in parse_suite_lines(_without_language(*asked), name="s").cases]
    assert found == ["en", "en", "en", "de"]
