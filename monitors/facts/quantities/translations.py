"""Translate German, French and Spanish words to English words that the readers know, with `languages.toml`.

A word with a row in the table gets the key of that row, and a number word becomes a numeral. Spans refer to the
original text. A word without a row is not read as English: "once" is eleven in Spanish and "an" is not an article
in German.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from monitors.facts.text import NUMERAL, Token, normalise, to_word_key

_TABLES: Final[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "languages.toml").read_text(encoding="utf-8")
)
LANGUAGES: Final = frozenset(_TABLES)
"""The languages (ISO 639-1) whose words are translated."""
_UNITS_BELOW_TEN: Final = 10
_TEENS: Final = 20
_HUNDRED: Final = 100


@lru_cache(maxsize=8)
def load_translations(language: str) -> Mapping[str, str]:
    """Return the English key or the digits of each word of a language.

    The result is empty for an unsupported language. The 111,000 German words take 24 MB. A process that reads no
    German text does not load them.
    """
    if language not in _TABLES:
        return {}
    listed_words = _TABLES[language]["words"].items()
    words = {
        _to_key(word): english for english, listed in listed_words for word in listed.split() if "_" not in word
    }
    numbers = load_listed_numbers(language)
    compounds = _build_german_compounds(numbers) if language == "de" else {}
    return {**words, **numbers, **compounds}


@lru_cache(maxsize=8)
def _load_phrases(language: str) -> Mapping[str, list[tuple[tuple[str, ...], str]]]:
    """Return the phrases of a language (``más_de``), keyed by their first word. The longest phrase comes first."""
    phrases: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for english, listed in _TABLES.get(language, {"words": {}})["words"].items():
        for phrase in listed.split():
            if "_" in phrase:
                keys = tuple(map(_to_key, phrase.split("_")))
                phrases.setdefault(keys[0], []).append((keys, english))
    return {first: sorted(listed, key=lambda row: -len(row[0])) for first, listed in phrases.items()}


def join_and_translate_phrases(tokens: Sequence[Token], text: str, language: str) -> list[Token]:
    """Join the words of each known phrase to one token: ``a partir de`` gets the key of the English word."""
    phrases = _load_phrases(language)
    joined: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        for keys, english in phrases.get(token.key, ()):
            last = tokens[min(at + len(keys), len(tokens)) - 1]
            if tuple(other.key for other in tokens[at : at + len(keys)]) == keys:
                token = token._replace(key=english, text=text[token.start : last.end], end=last.end)
                at += len(keys) - 1
                break
        joined.append(token)
        at += 1
    return joined


def load_listed_numbers(language: str) -> Mapping[str, str]:
    """Return the digits of each number word in `languages.toml`. German compound numbers are not included."""
    listed_numbers = _TABLES[language]["numbers"].items()
    return {_to_key(word): value for value, listed in listed_numbers for word in listed.split()}


def _build_german_compounds(numbers: Mapping[str, str]) -> dict[str, str]:
    """Build German compound numbers: ``einundzwanzig``, ``zweihundertfünfzig``, ``viertausend``."""
    small = {word: int(value) for word, value in numbers.items() if value.isdecimal() and int(value) < _HUNDRED}
    units = {word: value for word, value in small.items() if 0 < value < _UNITS_BELOW_TEN} | {"ein": 1}
    for unit, value in list(units.items()):
        for tens, ten in list(small.items()):
            if ten >= _TEENS and unit != "eins":
                small[f"{unit}und{tens}"] = value + ten
    made = {word: str(value) for word, value in small.items()}
    for unit, value in units.items():
        made[f"{unit}einhalb"] = f"{value}.5"
        for scale, factor in (("hundert", 100), ("tausend", 1000)):
            made[f"{unit}{scale}"] = str(value * factor)
            if factor == _HUNDRED:
                made.update(
                    {f"{unit}{scale}{rest}": str(value * factor + more) for rest, more in small.items() if more}
                )
    return made


def _to_key(word: str) -> str:
    return to_word_key(normalise(word).text)


def translate_token(token: Token, words: Mapping[str, str]) -> Token | None:
    """Return the token with an English word or a numeral in place of its word, or ``None`` for an unknown word."""
    english = words.get(token.key)
    if english is None:
        return None
    if english[0].isdecimal():
        return Token(NUMERAL, english, token.start, token.end, english)
    return token._replace(key=english)
