"""Decide whether a text contains a given value, in any format.

For example, a telephone number with and without its country code counts as the same value. Numbers in words,
dictated e-mail addresses and dates with the month as a word are also recognized.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Final

from monitors.facts.disclosures.candidates import DisclosureKind, build_normalised_view
from monitors.facts.disclosures.find import find_disclosures
from monitors.facts.disclosures.labelled import build_date_key, read_spoken_digits
from monitors.facts.disclosures.phrases import PLACES, list_words

_MIN_SHARED_CHARACTERS: Final = 5
"""A value with at least this many characters may be a part of a known text.

A shorter value must be equal to a whole text.
"""
_PHONE_DIGITS: Final = 8
"""Number of digits at the end of a telephone number that are compared.

The country code and the leading zero are therefore ignored.
"""
_MAIL_WORDS: Final = frozenset(
    word for key in ("at", "dot") for phrase in PLACES["mail"][key] for word in phrase.split()
) - {"@"}


def reduce_to_letters_and_digits(text: str) -> str:
    """Return only the letters and digits, in lower case, with the digits of every script as ASCII digits."""
    return "".join(character for character in build_normalised_view(text).text.lower() if character.isalnum())


@lru_cache(maxsize=1)  # a value is compared with several texts, one after the other
def convert_to_one_spelling(kind: DisclosureKind, text: str) -> str:
    """Return a value in a standard spelling. Different spellings of one value have the same result."""
    if kind is DisclosureKind.BIRTH_DATE and (date := build_date_key(text)):
        return date
    words = list_words(build_normalised_view(text).text.lower())
    if kind is DisclosureKind.EMAIL and "@" not in text:
        return "".join(word for word in words if word not in _MAIL_WORDS)
    if kind is DisclosureKind.PERSON:
        return " ".join(words)
    return read_spoken_digits(words) or reduce_to_letters_and_digits(text)


class KnownValues:
    """Texts that are searched for values, for example the texts of a suite."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = tuple(texts)

    @cached_property
    def _reduced_texts(self) -> tuple[str, ...]:
        return tuple(map(reduce_to_letters_and_digits, self._texts))

    @cached_property
    def _texts_as_padded_words(self) -> tuple[str, ...]:
        return tuple(f" {' '.join(list_words(build_normalised_view(text).text.lower()))} " for text in self._texts)

    @cached_property
    def _disclosed_values(self) -> frozenset[str]:
        return frozenset(
            convert_to_one_spelling(find.kind, text[find.start : find.end])
            for text in self._texts
            for find in find_disclosures(text)
        )

    def contains(self, kind: DisclosureKind, value: str) -> bool:
        """Return whether one of the texts contains the value, in any format."""
        key = convert_to_one_spelling(kind, value)
        if kind is DisclosureKind.PERSON:
            return any(f" {key} " in words for words in self._texts_as_padded_words)
        if len(key) < _MIN_SHARED_CHARACTERS:
            return key in self._reduced_texts
        if kind is DisclosureKind.PHONE and key.isdigit():
            key = key[-_PHONE_DIGITS:]
            return any(key in text for text in self._reduced_texts) or any(
                phone.endswith(key) for phone in self._disclosed_values
            )
        return any(key in text for text in self._reduced_texts) or key in self._disclosed_values
