"""Fold equivalent characters to one spelling, with a map back to the original text.

The folding is like NFKC, character by character: full-width digits and ligatures such as ﬁ become ordinary letters.
But vulgar fractions and superscripts are not changed, because NFKC would turn ``1½`` into ``11⁄2`` and ``m²`` into
``m2``. Unicode spaces become a space, hyphens and the minus sign become ``-``, and Devanagari and other digits
become ASCII. Invisible and bidirectional characters are removed. Line ends are not changed.

Tokens are the words, numerals and signs of a folded text, in order. In a very long text, only the two ends are
read. A note shows how many characters between them are not read.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import accumulate, islice
from operator import attrgetter
from typing import Final, NamedTuple


class Normalised(NamedTuple):
    """A folded text. ``places[i]`` is the index in the original text of character ``i`` of the folded text.

    ``places`` is ``None`` if no character moved.
    """

    text: str
    places: list[int] | None

    def find_original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original text for a span of the folded text. Each ``end`` is exclusive."""
        if self.places is None:
            return start, end
        if end <= start:
            at = self.places[start] if start < len(self.places) else (self.places[-1] + 1 if self.places else 0)
            return at, at
        return self.places[start], self.places[end - 1] + 1


_HYPHENS = "\u2010\u2011\u2012\u2212\ufe63\uff0d"
_DASHES = "\u2013\u2014\u2015"
"""En dash, em dash and bar. Unlike hyphens, they are not folded, because they show ranges and insertions."""

_UNFOLDED_CHARACTERS = frozenset("½¼¾⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞²³¹⁰⁴⁵⁶⁷⁸⁹…™℠№ªº" + _DASHES)


def _normalise_character(character: str) -> str:
    if character in _UNFOLDED_CHARACTERS:
        return character
    if character in _HYPHENS:
        return "-"
    category = unicodedata.category(character)
    if category in {"Cf", "Cs"} or character == "\ufe0f":
        # Zero-width and bidirectional characters, soft hyphen, byte-order mark, and lone surrogates.
        return ""
    if category == "Zs":
        return " "
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if character == "\u02bc" or character in "‘’′":
        return "'"
    return unicodedata.normalize("NFKC", character)


class _Folding(dict[int, str]):
    """A translation table for characters. The entry of a character is computed on first use, once per process."""

    def __missing__(self, code: int) -> str:
        folded = _normalise_character(chr(code))
        self[code] = folded
        return folded


_FOLDING = _Folding()


def normalise(text: str) -> Normalised:
    """Fold ``text`` in linear time. Lone surrogates are removed, like other invisible characters."""
    if text.isascii():
        return Normalised(text, None)
    changed = [
        (character, folded)
        for character in set(text)
        if character > "\x7f" and (folded := _FOLDING[ord(character)]) != character
    ]
    if all(len(folded) == 1 for _, folded in changed):
        return Normalised(_replace_characters(text, changed), None)
    parts: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        folded = _FOLDING[ord(character)]
        parts.append(folded)
        places.extend([place] * len(folded))
    return Normalised("".join(parts), places)


_MAX_SINGLE_REPLACEMENTS = 8


def _replace_characters(text: str, changed: list[tuple[str, str]]) -> str:
    """Replace single characters. For a few different characters, single replacements are faster than a table."""
    if len(changed) > _MAX_SINGLE_REPLACEMENTS:
        return text.translate(_FOLDING)
    for character, folded in changed:
        text = text.replace(character, folded)
    return text


def to_caseless(text: str) -> str:
    """Return a text in lower case, with ``ſ``, ``ı`` and ``İ`` as ASCII letters.

    A case-insensitive pattern treats these letters like the ASCII letters. The hints of a `Hinted` pattern must be
    in this form too.
    """
    lowered = text.lower()
    if text.isascii():
        return lowered
    return lowered.replace("ſ", "s").replace("ı", "i").replace("i\u0307", "i")


class Hinted(NamedTuple):
    """A slow pattern that is searched only in texts with one of its hints.

    Each match of the pattern contains one of ``hints``, written as `to_caseless` returns it. A text that has a hint
    but no match only makes the search slower.
    """

    pattern: re.Pattern[str]
    hints: tuple[str, ...] = ("",)

    def search(self, text: str, plain: str) -> re.Match[str] | None:
        """Return the first match in ``text``. ``plain`` must be the result of `to_caseless` for ``text``."""
        return self.pattern.search(text) if any(map(plain.__contains__, self.hints)) else None


_NUKTA = "\u093c"
_WORD_FOLDING = str.maketrans({_NUKTA: None, "ँ": "ं", "’": "'"})


def to_word_key(word: str) -> str:
    """Return the lookup key of a word: lower case, without nukta, with anusvara for candrabindu (हज़ार = हजार)."""
    if word.isascii():
        return word.lower()
    return word.lower().translate(_WORD_FOLDING)


def split_into_word_keys(words: str) -> frozenset[str]:
    """Return the lookup keys of words that are separated by spaces."""
    return frozenset(to_word_key(normalise(word).text) for word in words.split())


LATIN = "A-Za-z\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f"
DEVANAGARI = "\u0900-\u0963\u0970-\u097f"

# Takes linear time: four disjoint alternatives without nested quantifiers over the same characters, and the spaces
# after them. Together they cover every character. A piece begins at the end of the previous piece.
_PIECE = re.compile(
    rf"(?:[{LATIN}{DEVANAGARI}]+(?:'[{LATIN}]+)*|\d+(?:[.,]\d+)*|(?<![\w.{DEVANAGARI}])\.\d+|\S)\s*|\s+"
)
_LETTER = re.compile(f"[{LATIN}{DEVANAGARI}]")

NUMERAL, WORD, SIGN = 1, 2, 3


class Token(NamedTuple):
    """A word, a numeral or a sign of a text. ``kind`` is `NUMERAL`, `WORD` or `SIGN` (one character).

    A numeral consists of digits with their separators. ``key`` is the lookup key of a word; for other tokens, it is
    the text of the token. ``start`` and ``end`` are the span of the token in the folded text.
    """

    kind: int
    key: str
    start: int
    end: int
    text: str


class _Forms(dict[str, tuple[int, str, str]]):
    """A cache that maps each piece of a text to its kind, key and text. It is cleared when it becomes too large."""

    def __missing__(self, piece: str) -> tuple[int, str, str]:
        form = _build_token_form(piece)
        if len(piece) <= _MAX_CACHED_PIECE_LENGTH:
            if len(self) >= _MAX_CACHED_PIECES:
                self.clear()
            self[piece] = form
        return form


_MAX_CACHED_PIECE_LENGTH: Final = 24
_MAX_CACHED_PIECES: Final = 20_000
"""Maximum number of cached pieces.

This many pieces need about 4 MB and cover the words of most conversations of an application.
"""


def _build_token_form(piece: str) -> tuple[int, str, str]:
    text = piece.rstrip()
    if not text:
        return 0, "", ""
    first = text[0]
    if first.isdecimal() or (first == "." and len(text) > 1):
        return NUMERAL, text, text
    if not _LETTER.match(first):
        return SIGN, text, text
    return WORD, text.lower() if text.isascii() else to_word_key(text), text


_FORMS: Final = _Forms()
_new_token: Final[Callable[[tuple[int, str, int, int, str]], Token]] = partial(tuple[int | str, ...].__new__, Token)
"""Build a token from its five fields. The constructor of the named tuple takes twice as long."""


def tokenise(text: str, *, limit: int | None = None) -> list[Token]:
    """Return the tokens of a folded text, at most ``limit``. Spaces are not tokens."""
    # A text that may have many more tokens than ``limit`` is not split completely. Only the first piece may be
    # spaces.
    many = limit is not None and len(text) > 2 * limit
    cut = (match[0] for match in islice(_PIECE.finditer(text), (limit or 0) + 1))
    pieces = list(cut) if many else _PIECE.findall(text)
    starts = accumulate(map(len, pieces), initial=0)
    tokens = [
        _new_token((kind, key, start, start + len(written), written))
        for start, (kind, key, written) in zip(starts, map(_FORMS.__getitem__, pieces), strict=False)
        if kind
    ]
    return tokens if limit is None else tokens[:limit]


class TokenisedText(NamedTuple):
    """A folded text and its tokens."""

    normalised: Normalised
    tokens: list[Token]

    def copy_with_blanked_spans(self, spans: Sequence[tuple[int, int]]) -> TokenisedText:
        """Return the text with spaces instead of ``spans``. Each span must begin and end with a sign."""
        firsts = [bisect_left(self.tokens, span[0], key=_get_start) for span in spans]
        afters = [bisect_left(self.tokens, span[1], key=_get_start) for span in spans]
        outside = zip([0, *afters], [*firsts, len(self.tokens)], strict=True)
        tokens = [token for first, after in outside for token in self.tokens[first:after]]
        return TokenisedText(Normalised(replace_spans_with_spaces(self.normalised.text, spans), None), tokens)


_get_start: Final = attrgetter("start")


def replace_spans_with_spaces(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return a text with spaces instead of ``spans``. The spans must be in order."""
    parts: list[str] = []
    at = 0
    for start, end in spans:
        parts += text[at:start], " " * (end - start)
        at = end
    return "".join((*parts, text[at:]))


def normalise_and_tokenise(text: str, limit: int | None = None) -> TokenisedText:
    """Return a folded text and its tokens, at most ``limit``.

    The result is cached, because several readers process the same reply.
    """
    return _normalise_and_tokenise_cached(text, None if limit is None or len(text) <= limit else limit)


@lru_cache(maxsize=8)
def _normalise_and_tokenise_cached(text: str, limit: int | None) -> TokenisedText:
    normalised = normalise(text)
    return TokenisedText(normalised, tokenise(normalised.text, limit=limit))


_BREAK = re.compile(r"[\n\t\v\f\r\u2028\u2029]")


def find_tokens_after_breaks(tokens: Sequence[Token], text: str) -> frozenset[int]:
    """Return the indexes of tokens that follow a line break or a tab. No number continues across such a break."""
    first: set[int] = set()
    at = 0
    for line_break in _BREAK.finditer(text):
        while at < len(tokens) and tokens[at].start < line_break.start():
            at += 1
        first.add(at)
    return frozenset(first)


END = Token(SIGN, "", -1, -1, "")
"""The empty token that is returned for any index before the first or after the last token of a text."""


MAX_TEXT_LENGTH: Final = 1_000_000
"""Maximum length of a text that is read completely. In a longer text, only the beginning and the end are read.

A long answer of a real application has 5,000 characters.
"""

PART_LENGTH: Final = 400_000
"""Number of characters that are read at each end of a text longer than `MAX_TEXT_LENGTH`.

Together, both ends do not exceed `MAX_TEXT_LENGTH`, even after labels replace the personal data in them.
"""

MARGIN_LENGTH: Final = 1_000
"""Number of characters that are read beyond each part.

A value at the border of a part is therefore not cut in two.
"""


class Unread(NamedTuple):
    """The part of a text that is not read, from character ``start`` to ``end``."""

    start: int
    end: int

    @property
    def mark(self) -> str:
        """Return the note that replaces the unread part where the text is shown."""
        return f"[… {self.end - self.start:,} characters not read …]"

    @property
    def reason(self) -> str:
        """Return the reason why the text stays ungraded."""
        length = self.end - self.start
        return (
            f"Lookout did not read {length:,} characters in the middle, because the text is longer than "
            f"{MAX_TEXT_LENGTH:,} characters"
        )


def find_unread_middle(text: str) -> Unread | None:
    """Return the part of a long text that is not read, or ``None`` if all of it is read."""
    return Unread(PART_LENGTH, len(text) - PART_LENGTH) if len(text) > MAX_TEXT_LENGTH else None


def split_around_unread(text: str, unread: Unread) -> tuple[str, str, int]:
    """Return the first and the last part of a long text with their margins, and the offset of the last part."""
    tail_start = unread.end - MARGIN_LENGTH
    return text[: unread.start + MARGIN_LENGTH], text[tail_start:], tail_start
