"""Test that a figure has the same value in any form, and that words around it do not change its value."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.claims.clauses import build_passage_with_clauses
from monitors.facts.claims.compare import Leeway, Likeness, compare_figures
from monitors.facts.claims.figures import Figure
from monitors.facts.quantities.locales import PLAIN, Locale
from monitors.facts.quantities.scan import scan

GERMAN, FRENCH, SPANISH = (PLAIN.copy_for_foreign_language(language) for language in ("de", "fr", "es"))


def figures(text: str, locale: Locale = PLAIN) -> list[Figure]:
    return build_passage_with_clauses(scan(text, locale=locale)).figures


FORMS: list[list[tuple[str, Locale]]] = [
    [("1.5 m", PLAIN), ("150 cm", PLAIN), ("1,500 mm", PLAIN), ("1,5 Meter", GERMAN), ("1,5 mètre", FRENCH)],
    [("0.63 tonnes", PLAIN), ("630 kg", PLAIN), ("630 Kilogramm", GERMAN)],
    [("90 minutes", PLAIN), ("an hour and a half", PLAIN), ("1.5 hours", PLAIN), ("anderthalb Stunden", GERMAN)],
    [("6 weeks", PLAIN), ("six weeks", PLAIN), ("sechs Wochen", GERMAN), ("six semaines", FRENCH), ("seis semanas", SPANISH)],
    [("21 days", PLAIN), ("three weeks", PLAIN), ("einundzwanzig Tage", GERMAN)],
    [("8:30 pm", PLAIN), ("20:30", PLAIN), ("20:30 Uhr", GERMAN)],
    [("7:15", PLAIN), ("quarter past seven", PLAIN), ("सवा सात बजे", PLAIN)],
    [("£0.60", PLAIN), ("60p", PLAIN), ("60 pence", PLAIN)],
    [("€1,234.50", PLAIN), ("1.234,50 €", GERMAN), ("1234.50 euros", PLAIN)],
    [("free of charge", PLAIN), ("costs nothing", PLAIN), ("kostenlos", GERMAN), ("gratuit", FRENCH)],
    [("unlimited", PLAIN), ("as many as you like", PLAIN), ("कोई सीमा नहीं", PLAIN)],
    [("0800 123 456", PLAIN), ("0800123456", PLAIN), ("0800-123-456", PLAIN)],
    [("TH/2290/09-B", PLAIN), ("TH-2290-09B", PLAIN)],
    [("12 to 28 pupils", PLAIN), ("between 12 and 28 pupils", PLAIN), ("at least 12 and at most 28 pupils", PLAIN)],
    [("3:1", PLAIN)],
    [("£34 per session", PLAIN), ("£34 a session", PLAIN), ("£34 for each session", PLAIN)],
    [("38.5 °C", PLAIN), ("101.3 °F", PLAIN), ("38.5 degrees Celsius", PLAIN)],
]  # fmt: skip


@pytest.mark.parametrize("forms", FORMS, ids=[forms[0][0] for forms in FORMS])
def test_a_value_in_any_of_its_forms_is_the_same(forms: list[tuple[str, Locale]]) -> None:
    first = figures(*forms[0])[0]
    for text, locale in forms:
        assert compare_figures(first, figures(text, locale)[0], Leeway()) is Likeness.SAME, text


@pytest.mark.parametrize(
    ("gold", "said", "likeness"),
    [
        ("40 mg", "40 g", Likeness.OTHER_UNIT),
        ("5 GB", "5 MB", Likeness.OTHER_UNIT),
        ("32 kg", "32 lb", Likeness.OTHER_UNIT),
        ("28 °C", "28 °F", Likeness.OTHER_UNIT),
        ("50 pages", "50 MB", Likeness.OTHER_UNIT),
        ("-5 °C", "5 °C", Likeness.OTHER_SIGN),
        ("€9 per user", "€9 per month", Likeness.OTHER_PER),
        ("€9 per user", "€9", Likeness.NEAR),
        ("£8 a month", "£96 a year", Likeness.SAME),
        ("at least 30 days", "up to 30 days", Likeness.OTHER_BOUND),
        ("3:1", "1:3", Likeness.DIFFERENT),
        ("from 9 am to 5 pm", "from 5 pm to 9 am", Likeness.DIFFERENT),
        ("1800 266 9966", "1800 9966 266", Likeness.DIFFERENT),
        ("3.10.1", "3.1.10", Likeness.DIFFERENT),
        ("0042", "42", Likeness.OTHER),
        ("12 children", "12 carers", Likeness.OTHER),
        ("four", "1947", Likeness.OTHER),
    ],
)
def test_another_unit_per_bound_sign_or_order_is_another_figure(gold: str, said: str, likeness: Likeness) -> None:
    assert compare_figures(figures(gold)[0], figures(said)[0], Leeway()) is likeness


AMOUNTS = st.integers(min_value=2, max_value=900)
UNITS = st.sampled_from(["kg", "km", "GB", "days", "hours", "%", "euros", "litres"])
PADDING = st.sampled_from(["Please note: ", "Thank you for asking. ", "As you know, ", "Well, ", ""])
TAIL = st.sampled_from([".", " in all.", ", as agreed.", " at the desk."])


@given(AMOUNTS, UNITS, PADDING, TAIL)
def test_words_around_a_text_change_no_value(amount: int, unit: str, before: str, behind: str) -> None:
    alone = figures(f"{amount} {unit}")
    padded = figures(f"{before}It is {amount} {unit}{behind}")
    assert [figure.low.value for figure in padded] == [figure.low.value for figure in alone]
    assert [figure.kind for figure in padded] == [figure.kind for figure in alone]


@given(AMOUNTS, AMOUNTS, UNITS)
def test_equal_amounts_are_the_same_and_no_others(first: int, second: int, unit: str) -> None:
    likeness = compare_figures(figures(f"{first} {unit}")[0], figures(f"{second} {unit}")[0], Leeway())
    assert (likeness is Likeness.SAME) is (Decimal(first) == Decimal(second))


@given(st.text(max_size=200))
def test_figures_are_read_from_any_text(text: str) -> None:
    passage = build_passage_with_clauses(scan(text))
    assert all(clause.first <= clause.after for clause in passage.clauses)
