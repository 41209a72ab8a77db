"""Tests of citations: the default markers, a target's own patterns, and expected sources."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from monitors.facts import citations
from monitors.facts.citations import (
    DEFAULT_PATTERNS,
    find_citations,
    has_source_in_text,
    is_citation_form_or_raise,
    is_citation_of,
)


@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("Two years [Source: Gold Plan, clause 4.2].", ["Gold Plan, clause 4.2"]),
        ("[source:Gold Plan] and [Regulation: Circular 7]", ["Gold Plan", "Circular 7"]),
        ("[Sources: A; B]", ["A; B"]),
        ("दो साल [स्रोत: गोल्ड, धारा 4]", ["गोल्ड, धारा 4"]),
        ("[Source:\u00a0Gold\u200b Plan]", ["Gold Plan"]),
        ("[Source: ]", []),
        ("[Same source]", []),
        ("see (Source: Gold)", ["Gold"]),
        ("Five days. Sources: claims", ["claims"]),
        ("**Source:** Berth rules, p. 3", ["Berth rules, p. 3"]),
        ("Five days (see clause 4.1).", ["clause 4.1"]),
        ("Drei Tage (AGB § 5 Abs. 2).", ["AGB § 5 Abs. 2"]),
        ("Five days.\n\n### Sources\n- Berth rules\n- Tariff 2026\n\nBye", ["Berth rules - Tariff 2026"]),
        ("Cited policies\n• Berth rules, clause 4.1", ["Berth rules, clause 4.1"]),
        ("Five days [1].\n[1] Berth rules", ["Berth rules"]),
        ("Five days¹.\n\n¹ Berth rules, page 3", ["Berth rules, page 3"]),
        (
            "Five days ([rules](https://marina.example/docs/rules.pdf)).",
            ["rules https://marina.example/docs/rules.pdf"],
        ),
        ("Log in [here](https://marina.example/login).", []),
        ("The energy source: solar. It costs 5 euros (2 a day).", []),
        ("Sources of noise are banned.\nBring ear plugs.", []),
        ("Five days [1].", []),
        ("[Source: never closed", []),
        ("", []),
    ],
)
def test_marks_and_what_they_name(text: str, sources: list[str]) -> None:
    assert [citation.source for citation in find_citations(text)] == sources


def test_places_are_those_of_the_whole_mark() -> None:
    text = "Two years [Source: Gold]."
    (citation,) = find_citations(text)
    assert text[citation.start : citation.end] == "[Source: Gold]"


def test_patterns_of_a_target_replace_the_default() -> None:
    patterns = (r"\(see (?P<source>[^)]+)\)", r"§ ?(\d+)", r"Annexure [A-Z]")
    text = "x (see Gold) y §7 z Annexure B [Source: no]"
    assert [citation.source for citation in find_citations(text, patterns)] == ["Gold", "7", "Annexure B"]


def test_one_mark_that_two_patterns_match_is_one_citation() -> None:
    assert len(find_citations("§7", (r"§(\d)", r"§(?P<source>\d)"))) == 1


@pytest.mark.parametrize(
    ("citation", "expected", "named"),
    [
        ("Suraksha GOLD, clause 4.2", "Suraksha Gold, clause 4.2", True),
        ("Suraksha  Gold\u200b, clause 4\u20112", "suraksha gold, clause 4-2", True),
        ("Suraksha Silver, clause 4.2", "Suraksha Gold", False),
        ("Suraksha Gold, § 4.2", "Suraksha Gold, clause 4.2", True),
        ("clause 4.2 of Suraksha Gold", "Suraksha Gold, clause 4.2", True),
        ("Suraksha Gold, clause 4.21", "Suraksha Gold, clause 4.2", False),
        ("Suraksha Gold, clause 4.2.1", "Suraksha Gold, clause 4.2", False),
    ],
)
def test_an_expected_source_is_contained_whatever_its_case_and_spacing(
    citation: str, expected: str, named: bool
) -> None:
    assert is_citation_of(citation, expected) is named


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("As the Berth Rules say (clause 4.2), five days.", True),
        ("Berth rules\nSection 4.2\nRead more", True),
        ("As the Berth Rules say (clause 4.20), five days.", False),
        ("As the Berth Rules say, 4.2 days.", False),
        ("As clause 4.2 of the Tariff says, five days.", False),
    ],
)
def test_document_and_clause_count_whatever_surrounds_them(text: str, stated: bool) -> None:
    assert has_source_in_text(text, "Berth Rules, clause 4.2") is stated


def test_a_document_alone_must_be_cited_and_the_name_of_a_file_need_not() -> None:
    assert not has_source_in_text("The berth rules are strict.", "Berth rules")
    assert has_source_in_text("Open berth-rules.pdf for more.", "berth-rules.pdf")


def test_a_form_is_named_or_refused() -> None:
    assert all(map(is_citation_form_or_raise, DEFAULT_PATTERNS))
    assert not is_citation_form_or_raise(r"§ ?\d+")
    with pytest.raises(ValueError, match="footnotes"):
        is_citation_form_or_raise("footnote")


@pytest.mark.parametrize("form", DEFAULT_PATTERNS)
def test_each_form_finds_its_own_example(form: str) -> None:
    rows = tomllib.loads(Path(citations.__file__).with_suffix(".toml").read_text(encoding="utf-8"))["forms"]
    (example,) = [row["example"] for row in rows if row["name"] == form]
    assert [citation.form for citation in find_citations(example, (form,))] == [form]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", ["[Source: ", "[", "[Source: a", " ", "(", "[1](", "[^", "\n"])
def test_hostile_texts_end(piece: str) -> None:
    assert find_citations(piece * (200_000 // len(piece))) == ()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", ["(clause ", "Sources: ", "\nSources\n- a", "\n[1] a", "[1](x", "(p. 4 "])
def test_texts_full_of_marks_end(piece: str) -> None:
    find_citations(piece * (200_000 // len(piece)))
