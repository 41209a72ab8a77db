"""Citations: the default marks, a target's own patterns, and expected sources."""

from __future__ import annotations

import pytest

from monitors.facts.citations import find_citations, names_source


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
        ("see (Source: Gold)", []),
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
    ],
)
def test_an_expected_source_is_contained_whatever_its_case_and_spacing(
    citation: str, expected: str, named: bool
) -> None:
    assert names_source(citation, expected) is named


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", ["[Source: ", "[", "[Source: a", " "])
def test_hostile_texts_end(piece: str) -> None:
    assert find_citations(piece * (200_000 // len(piece))) == ()
