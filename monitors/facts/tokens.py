"""Words, numerals and signs of a folded text, in order."""

from __future__ import annotations

import re
from itertools import islice
from typing import NamedTuple

from monitors.facts.normalise import word_key

LATIN = "A-Za-z\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f"
DEVANAGARI = "\u0900-\u0963\u0970-\u097f"

# Three disjoint alternatives, each without nested quantifiers over the same characters: linear.
_TOKEN = re.compile(rf"(\d+(?:[.,]\d+)*|(?<![\w.{DEVANAGARI}])\.\d+)|([{LATIN}{DEVANAGARI}]+(?:'[{LATIN}]+)*)|(\S)")

NUMERAL, WORD, SIGN = 1, 2, 3


class Token(NamedTuple):
    """A piece of text. ``kind`` is `NUMERAL` (digits with their separators), `WORD` or `SIGN` (one character).

    ``key`` is a word as it is looked up, otherwise the text itself. ``start`` and ``end`` are places in that text.
    """

    kind: int
    key: str
    start: int
    end: int
    text: str


def tokenise(text: str, *, most: int | None = None) -> list[Token]:
    """The tokens of a folded text, at most ``most`` of them; spaces are not kept."""
    found: list[Token] = []
    for match in islice(_TOKEN.finditer(text), most):
        kind = match.lastindex or SIGN
        start, end = match.span()
        piece = text[start:end]
        key = piece if kind != WORD else piece.lower() if piece.isascii() else word_key(piece)
        found.append(Token(kind, key, start, end, piece))
    return found


END = Token(SIGN, "", -1, -1, "")
"""What stands beyond either end of a text."""
