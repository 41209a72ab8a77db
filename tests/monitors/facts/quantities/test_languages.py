"""German, French and Spanish words are read as the rows of `languages.toml` define them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.facts.quantities.locales import PLAIN
from monitors.facts.quantities.scan import scan
from monitors.facts.quantities.translations import LANGUAGES, load_translations

TENS = {
    2: "zwanzig",
    3: "dreißig",
    4: "vierzig",
    5: "fünfzig",
    6: "sechzig",
    7: "siebzig",
    8: "achtzig",
    9: "neunzig",
}
ONES = {1: "ein", 2: "zwei", 3: "drei", 4: "vier", 5: "fünf", 6: "sechs", 7: "sieben", 8: "acht", 9: "neun"}


@pytest.mark.parametrize(
    ("language", "text", "english"),
    [
        ("de", "spätestens in sechs Wochen", "in six weeks"),
        ("de", "am 14. Oktober 2025", "on 14 October 2025"),
        ("de", "zwischen zwei und acht Grad Celsius", "between two and eight degrees Celsius"),
        ("de", "höchstens 13 Tage", "at most 13 days"),
        ("de", "2 Millionen Euro", "2 million euros"),
        ("de", "40 Prozent", "40 percent"),
        ("fr", "entre 6 et 8 jours", "between 6 and 8 days"),
        ("fr", "un an et demi", "a year and a half"),
        ("fr", "3 € par heure", "€3 per hour"),
        ("es", "hasta 50 minutos", "up to 50 minutes"),
        ("es", "más de 20 kg", "over 20 kg"),
        ("es", "no más de 3 días", "up to 3 days"),
        ("es", "como mínimo 6 meses", "at least 6 months"),
        ("fr", "moins de 5 kg", "below 5 kg"),
        ("fr", "15 kg au maximum", "15 kg maximum"),
        ("fr", "fermé à 18 h", "closed at 18:00"),
        ("de", "nicht mehr als 5 Tage", "up to 5 days"),
        ("es", "el 5 de marzo de 2024", "5 March 2024"),
    ],
)
def test_a_text_reads_as_its_translation(language: str, text: str, english: str) -> None:
    said = scan(text, locale=PLAIN.copy_for_foreign_language(language)).readings
    wanted = scan(english).readings
    assert [(one.kind, one.value, one.months, one.days, one.bound, one.date) for one in said] == [
        (one.kind, one.value, one.months, one.days, one.bound, one.date) for one in wanted
    ]


@given(st.integers(min_value=2, max_value=9), st.integers(min_value=1, max_value=9))
def test_german_number_words_are_put_together(tens: int, ones: int) -> None:
    (reading,) = scan(f"{ONES[ones]}und{TENS[tens]} Tage", locale=PLAIN.copy_for_foreign_language("de")).readings
    assert reading.days == 10 * tens + ones


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_row_is_one_word_in_small_letters(language: str) -> None:
    """Every row of `languages.toml` is one lower-case word; a new row is tested too."""
    assert all(word == word.casefold() or "ß" in word for word in load_translations(language))
