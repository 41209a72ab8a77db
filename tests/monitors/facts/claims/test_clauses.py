"""Tests of clauses: where a text is split into clauses, and which words belong to a figure."""

from __future__ import annotations

import pytest

from monitors.facts.claims.clauses import build_passage_with_clauses
from monitors.facts.claims.vocabulary import STEMS
from monitors.facts.quantities.scan import scan


def figures_with(text: str, word: str) -> list[str]:
    """Return the figures that belong to ``word``, each in the form in which the text contains it."""
    passage = build_passage_with_clauses(scan(text))
    return [
        passage.scan.normalised.text[figure.start : figure.end]
        for clause in passage.clauses
        if STEMS[word] in clause.words or word in clause.words
        for figure in clause.figures
    ]


@pytest.mark.parametrize(
    ("text", "word", "figures"),
    [
        ("Gold members pay £34, Silver members £41 and guests £49.", "silver", ["£41"]),
        ("Gold members pay £34, Silver members £41 and guests £49.", "guests", ["£49"]),
        ("The sauna is kept at 80 °C and the pool at 28 °C.", "pool", ["28 °C"]),
        ("A tent is £21; a caravan is £17.", "caravan", ["£17"]),
        ("The tour used to take 3 hours, but the walk takes 2 hours.", "walk", ["2 hours"]),
        ("| Room | Guests |\n|---|---|\n| Garden | 36 |\n| Library | 52 |", "garden", ["36"]),
        ("Room – children – carers\nFoxes – 20 – 2\nBears – 14 – 4", "bears", ["14", "4"]),
        ("- **Basic**\n  - Gas: £22\n- **Plus**\n  - Gas: £35", "plus", ["£35"]),
        ("**Tide House**\n- Adults: €11\n\n**Lighthouse**\n- Adults: €6", "lighthouse", ["€6"]),
        ("- Hill Street: Mon 18:15, Tue 20:00\n- Dock Road: Mon 20:00, Tue 18:15", "dock", ["20:00", "18:15"]),
        ("Booth\nHalf day: £28\nFull day: £45", "full", ["£45"]),
    ],
)
def test_a_figure_stands_with_the_words_of_its_own_part(text: str, word: str, figures: list[str]) -> None:
    assert figures_with(text, word) == figures


def test_a_sentence_without_two_figures_of_a_kind_is_one_clause() -> None:
    assert (
        len(build_passage_with_clauses(scan("In May, after the break, a tour of the house takes 3 hours.")).clauses)
        == 1
    )
