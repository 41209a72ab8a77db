"""Split a text into words, and find the phrases of all word lists in one pass.

A phrase of a list (`labels.toml`, `names.toml` …) is in lower case, with spaces between its words. A phrase
matches in any letter case, with up to three punctuation marks or spaces between its words: "d o b" matches
"D.O.B.".
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from operator import sub
from pathlib import Path
from typing import Any, Final, NamedTuple

# For `re`, Devanagari vowel signs are not letters. Devanagari full stops (U+0964, U+0965) end words.
_WORD: Final = re.compile(r"[^\W_\u0900-\u097f]+|[\u0900-\u0963\u0966-\u097f]+")
_MAX_GAP_IN_PHRASE: Final = 3


class TextWords(NamedTuple):
    """The words of a text in lower case, with their character offsets (end exclusive)."""

    words: list[str]
    starts: list[int]
    ends: list[int]


def list_words(lowered: str) -> list[str]:
    """Return the words of a text that is already in lower case."""
    return _WORD.findall(lowered)


def split_words(lowered: str) -> TextWords:
    """Return the words of a text that is already in lower case, with their offsets."""
    words = list_words(lowered)
    starts: list[int] = []
    ends: list[int] = []
    end = 0
    for word in words:
        start = lowered.index(word, end)
        end = start + len(word)
        starts.append(start)
        ends.append(end)
    return TextWords(words, starts, ends)


class CuePhrase(NamedTuple):
    """A phrase of a word list that was found in a text.

    It consists of the words ``first`` to ``end`` (exclusive) of the text. ``topic`` is the name of the word list.
    """

    first: int
    end: int
    topic: str


class PhraseTable:
    """A table of phrases, keyed by their first word.

    At each word of a text, only the longest phrase of a topic is found.
    """

    def __init__(self, topics: Iterable[tuple[str, Iterable[str]]]) -> None:
        self.phrases: dict[str, list[str]] = {}
        self._by_first_words: dict[str, dict[str, list[tuple[list[str], str]]]] = {}
        for topic, phrases in topics:
            for phrase in phrases:
                first, *rest = _WORD.findall(phrase.lower())
                self.phrases.setdefault(topic, []).append(phrase)
                second = rest[0] if rest else ""
                self._by_first_words.setdefault(first, {}).setdefault(second, []).append((rest, topic))
        for by_second_word in self._by_first_words.values():
            for continuations in by_second_word.values():
                continuations.sort(key=lambda continuation: -len(continuation[0]))

    def find_phrases(self, text_words: TextWords) -> Iterator[CuePhrase]:
        """Yield the phrases in the order in which they start in the text."""
        words, starts, ends = text_words
        table = self._by_first_words
        for index in [index for index, word in enumerate(words) if word in table]:
            by_second_word = table[words[index]]
            following = by_second_word.get(words[index + 1], ()) if index + 1 < len(words) else ()
            topics: list[str] = []
            for rest, topic in (*following, *by_second_word.get("", ())):
                end = index + 1 + len(rest)
                if rest and words[index + 1 : end] != rest:
                    continue
                if topic in topics:
                    continue
                if rest and max(map(sub, starts[index + 1 : end], ends[index : end - 1])) > _MAX_GAP_IN_PHRASE:
                    continue
                topics.append(topic)
                yield CuePhrase(index, end, topic)


def _read_tables(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


LABELS: Final = _read_tables("labels.toml")
NAMES: Final = _read_tables("names.toml")
PLACES: Final = _read_tables("places.toml")

THING, PASSWORD, BIRTH = "thing", "password", "birth"
IDENTIFIER: Final = "identifier "
"""The prefix of the topics for identifiers.

The index of the identifier in `labels.toml` follows the prefix.
"""
NAME_TOPICS: Final = (
    "title",
    "greeting",
    "closing",
    "role",
    "relation",
    "owner",
    "recipient",
    "honorific",
    "possession",
)
COMPANY, PERSON, MAIL_AT = "company", "person", "mail at"

CUES: Final = PhraseTable(
    (
        *((f"{IDENTIFIER}{number}", table["labels"]) for number, table in enumerate(LABELS["identifier"])),
        (PASSWORD, LABELS["password"]["labels"]),
        (BIRTH, LABELS["birth"]["labels"]),
        (THING, LABELS["things"]["words"]),
        *((topic, NAMES[topic]) for topic in NAME_TOPICS),
        (COMPANY, PLACES["company"]),
        (PERSON, PLACES["person"]),
        (MAIL_AT, [phrase for phrase in PLACES["mail"]["at"] if phrase != "@"]),
    )
)
"""All phrases that context-dependent rules search for. A rule reads the text around each phrase."""
