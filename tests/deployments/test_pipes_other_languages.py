"""German, French and Spanish texts in the output of the commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.deployments.cli.gold.test_gold_check import lookout
from tests.deployments.cli.test_pipes import answers, line, run
from tests.monitors.goldset.gold_cases import PLAIN
from tests.stable_text import replace_volatile

Facts = list[tuple[str, str, str | None]]

FACTS: list[tuple[str, Facts]] = [
    # Number words, months, units, scales and bounds are words.
    ("six mois", []),
    ("once personas", []),
    ("dix jours", []),
    ("mille euros", []),
    ("cent euros", []),
    ("million", []),
    ("an die Kasse", []),
    ("der Herr und sein son", []),
    ("im mai 2024", [("number", "2024", None)]),
    ("le 5 mars 2024", []),
    ("am 3. august", [("number", "3", None)]),
    ("24 Monate", []),
    ("30 jours ouvrables", []),
    ("12 meses", []),
    ("5 Millionen Euro", []),
    ("€ 5 Millionen", []),
    ("EUR 2 Mio. im Jahr", []),
    ("€ 5 bis 10 Millionen", []),
    ("2 mil 500 euros", []),
    ("5 millones de euros", []),
    ("3 minutes", []),
    ("10 percent", []),
    ("20L Wasser", []),
    ("5M €", []),
    ("24-monatige Wartezeit", []),
    ("peso 80 kg", [("quantity", "80000", "g")]),
    # Figures, signs, codes and names of currencies are the same everywhere.
    ("12 500 €", [("money", "12500", "EUR")]),
    ("12\u202f500,50 €", [("money", "12500.5", "EUR")]),
    ("1.234,56 €", [("money", "1234.56", "EUR")]),
    ("1’500 CHF", [("money", "1500", "CHF")]),
    ("1 500 000 EUR", [("money", "1500000", "EUR")]),
    ("5.000 Euro pro Jahr", [("money", "5000", "EUR")]),
    ("US$50 por día", [("money", "50", "USD")]),
    ("hasta 300 dollars", [("money", "300", None)]),
    ("20 % der Kosten", [("percent", "20", "percent")]),
    ("7,5 % et 80 €", [("percent", "7.5", "percent"), ("money", "80", "EUR")]),
    ("2 h 30 min", [("duration", "0.104166667", "day")]),
    ("2024-03-05", [("date", "2024-03-05", None)]),
    ("31/12/2026", [("date", "2026-12-31", None)]),
    ("05.03.2026", [("date", "2026-03-05", None)]),
    ("05/03/2026", []),
    ("10-11-12", []),
    ("1.3e6", [("number", "1300000", None)]),
    ("Artikel 12", [("number", "12", None)]),
]


def test_only_what_every_language_writes_is_read(tmp_path: Path) -> None:
    """If the language of a text is not read, only quantities that have the same form in every language are read."""
    given = [{"id": at, "text": text, "language": "other"} for at, (text, _) in enumerate(FACTS)]
    found = [
        (text, [(fact["kind"], fact["value"], fact["unit"]) for fact in answer["facts"]])
        for (text, _), answer in zip(FACTS, answers("facts", *given, cwd=tmp_path), strict=True)
    ]
    assert [row for row, wanted in zip(found, FACTS, strict=True) if row != wanted] == []


def test_no_bound_is_read(tmp_path: Path) -> None:
    given = [{"text": text, "language": "other"} for text in ("up to 5 €", "min 5 €", "5 min 10 €", "5 € tak")]
    found = [fact["bound"] for answer in answers("facts", *given, cwd=tmp_path) for fact in answer["facts"]]
    assert found == ["exact"] * 5


GRADES: list[tuple[str, str, bool | None]] = [
    # Amounts and percentages are compared.
    ("5.000 €", "Es werden 5.000 € gezahlt.", True),
    ("5 000 €", "Nous payons 5 000 €.", True),
    ("5.000 Euro", "Das sind 5 000 EUR.", True),
    ("20 %", "Es sind 20 %.", True),
    ("5.000 €", "Es sind 7.000 €.", False),
    ("20 %", "Son 30 %.", False),
    ("12 500 €", "C'est 500 €.", False),
    # Words of German, French and Spanish are read.
    ("5.000.000 €", "Es sind € 5 Millionen.", True),
    ("5 €", "Es sind € 5 Millionen.", False),
    ("5.000.000 €", "Es sind fünf Millionen Euro, bei 500 € Beitrag.", True),
    ("5.000.000 €", "Es sind fünf Millionen.", True),
    ("€ 5 Millionen", "Es sind 5 €.", False),
    ("2.500 €", "Son 2 mil 500 euros.", True),
    ("20 %", "Es sind zwanzig Prozent.", True),
    ("24 Monate", "Es sind 36 Monate.", False),
    ("24 Monate", "Es sind 24 Wochen.", False),
    ("24 mois", "C'est deux ans.", True),
    ("6 mois", "C'est six mois.", True),
    ("once meses", "Son 11 meses.", True),
    ("once", "Son once.", True),
    ("mai 2024", "Es war im Juni 2024.", False),
    # What an amount is about, and whether it is denied, is read too.
    ("5.000 €", "Es sind nicht 5.000 €.", False),
    ("5.000 €", "Ce n'est pas 5.000 €.", False),
    ("5.000 €", "No son 5.000 €.", False),
    ("5.000 €", "Der Selbstbehalt ist 5.000 €, gezahlt werden 500 €.", None),
    ("5.000 € je Auge", "Es sind 5.000 €.", None),
    ("mindestens 5.000 €", "Es sind 5.000 €.", True),
    # Yes and no, names.
    ("No, está excluido", "Sí, está cubierto.", None),
    ("no", "Nein.", None),
    ("Lotus Klinik", "Nicht die Lotus Klinik.", False),
    ("Lotus Klinik", "Das weiß ich leider nicht.", False),
]


def test_german_french_and_spanish_replies_are_graded_by_their_figures(tmp_path: Path) -> None:
    """Each reply is compared with its gold: right, wrong, or undecided by rules (``None``)."""
    given = [
        line(question="?", gold=gold, answer=f"{said} [Source: Gold]", language="other") for gold, said, _ in GRADES
    ]
    found = [
        (gold, said, verdict["factual_match"])
        for (gold, said, _), verdict in zip(GRADES, answers("grade", *given, cwd=tmp_path), strict=True)
    ]
    assert [row for row, wanted in zip(found, GRADES, strict=True) if row != wanted] == []


@pytest.mark.parametrize(
    ("said", "refused", "match"),
    [
        ("Dazu kann ich leider nichts sagen.", True, True),
        ("Je ne peux pas vous aider.", None, None),
        ("I'm sorry, I cannot help with that.", True, True),
    ],
)
def test_a_refusal_in_words_that_are_not_read_is_none_and_no_answer_either(
    tmp_path: Path, said: str, refused: bool | None, match: bool | None
) -> None:
    given = line(question="?", gold="-", answer=said, language="other", expected_refusal=True)
    (verdict,) = answers("grade", given, cwd=tmp_path)
    assert (verdict["refused"], verdict["factual_match"]) == (refused, match)


def test_the_reason_names_the_language(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    given = line(question="?", gold="ja", answer="Nein.", language="other")
    (verdict,) = answers("grade", given, cwd=tmp_path)
    assert {grade["grader"]: grade["reason"] for grade in verdict["grades"]} == snapshot


def test_a_language_that_is_not_known_is_refused(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    """An unknown language is refused.

    The commands and the check of a suite report the field and the accepted values.
    """
    for pipe in ("facts", "grade"):
        done = run(pipe, (json.dumps(line(text="6 Monate", language="it")) + "\n").encode(), cwd=tmp_path)
        assert done.stdout == snapshot
    (tmp_path / "suite.jsonl").write_text(json.dumps(PLAIN | {"id": "c", "language": "it"}) + "\n")
    checked = lookout("check", tmp_path / "suite.jsonl")
    assert checked.returncode == 1, checked.stdout + checked.stderr
    assert replace_volatile(checked.stdout, tmp_path) == snapshot
