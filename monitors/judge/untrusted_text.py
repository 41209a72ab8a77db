"""Make untrusted text safe for a judge: reduce the text to its visible characters, and put it between fences.

Normalised text has no invisible characters, no bidirectional controls and no lookalike letters. Characters with a
meaning are not changed: Devanagari and its joiners, emoji, superscripts, fractions and line breaks. Flags report
the changes.

A fence is a line with a random number that the author of the text cannot know. Therefore, no text can end the
fence. The text between the fences is normalised: the judge reads the text that a person would see. Any part that
resembles a fence or the markup of a conversation is made harmless and reported.

Lookalikes are Cyrillic, Greek and Armenian letters that look like one Latin letter in Unicode's confusables table
(UTS 39). Greek small letters for quantities (alpha, nu, mu …) are not replaced. Invisible characters are the
characters with Unicode's property Default_Ignorable_Code_Point (UAX 44), and a few others without a visible form.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

LOOKALIKES: dict[str, str] = dict(
    zip(
        "АВЕЅІЈКМНОРСТУХҮԌԚԜԐаеоорсухѕіјһԁԛԝѵӏԍ"  # Cyrillic
        "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο"  # Greek
        "օոսհցՕՍ"  # Armenian
        "ɑɡ",  # Latin letters of phonetic alphabets
        "ABESIJKMHOPCTYXYGQWEaeoopcyxsijhdqwvlgABEZHIKMNOPTYXoonuhgOUag",
        strict=True,
    )
)
"""For each lookalike character, the Latin letter that it resembles."""

_INVISIBLE_RANGES = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200D),
    (0x2060, 0x2065),
    (0x206A, 0x206F),
    (0x2800, 0x2800),  # a Braille pattern without dots
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),  # with the marks of interlinear notes
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0080, 0xE0FFF),
)

INVISIBLE = frozenset(chr(code) for first, last in _INVISIBLE_RANGES for code in range(first, last + 1))
"""Invisible characters.

`normalise_untrusted_and_flag_tricks` keeps the joiners and variation selectors that a script or a symbol needs.
"""

BIDIRECTIONAL = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Characters that change the order in which text is shown.

The string is a part of a regular expression. Use it inside ``[...]``.
"""

TAGS = "\U000e0000-\U000e007f"
"""Invisible Unicode characters, one for each ASCII character.

The string is a part of a regular expression. Use it inside ``[...]``.
"""


class HostileFlag(StrEnum):
    """A kind of trick in a text, such as invisible characters. Honest answers do not need such tricks."""

    INVISIBLE = "invisible"
    BIDIRECTIONAL = "bidirectional"
    TAG_CHARACTERS = "tag_characters"
    CONTROL = "control"
    STYLED_LETTERS = "styled_letters"
    HOMOGLYPHS = "homoglyphs"
    FORGED_FENCE = "forged_fence"
    CHAT_MARKUP = "chat_markup"
    CUT = "cut"


class NormalisedText(NamedTuple):
    """A normalised text, and the tricks that were found in the original text."""

    text: str
    flags: frozenset[HostileFlag]


_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_TAGS = re.compile(f"[{TAGS}]")
_BIDIRECTIONAL = re.compile(f"[{BIDIRECTIONAL}]")
_JOINERS = "\u200c\u200d"
_SELECTORS = "\ufe0e\ufe0f"
_KEYCAP = "\u20e3"
_GREEK = "Greek"
_ALPHABETS = ((_GREEK, "\u0370", "\u03ff"), ("Cyrillic", "\u0400", "\u052f"), ("Armenian", "\u0530", "\u058f"))
_TO_LATIN = str.maketrans(LOOKALIKES)
_WORD = re.compile(r"[^\W\d_]+")
_FOLDED_FORMS = ("<font>", "<wide>", "<circle>", "<square>")
"""A letter with one of these Unicode decomposition tags is replaced with the plain letter.

For example, a full-width A becomes A. Superscripts, fractions and ligatures are not replaced.
"""


def normalise_untrusted_and_flag_tricks(text: str) -> NormalisedText:
    """Return the normalised text and the tricks in it.

    The function takes linear time, and a second call on the result changes nothing.
    """
    flags: set[HostileFlag] = set()
    text = _LINE_ENDS.sub("\n", text)
    if text.isascii() and _CONTROL.search(text) is None:
        return NormalisedText(text, frozenset())
    for pattern, flag, instead in (
        (_CONTROL, HostileFlag.CONTROL, "\ufffd"),
        (_TAGS, HostileFlag.TAG_CHARACTERS, ""),
        (_BIDIRECTIONAL, HostileFlag.BIDIRECTIONAL, ""),
    ):
        text, count = pattern.subn(instead, text)
        if count:
            flags.add(flag)
    text = _fold_styled_letters(text, flags)
    text = _remove_invisible(text, flags)
    text = _replace_lookalikes(text, flags)
    return NormalisedText(text, frozenset(flags))


def _fold_styled_letters(text: str, flags: set[HostileFlag]) -> str:
    folded = {character: letter for character in set(text) if (letter := _fold_letter(character)) != character}
    if not folded:
        return text
    if any(letter.isascii() and letter.isalnum() for letter in folded.values()):
        flags.add(HostileFlag.STYLED_LETTERS)
    return text.translate({ord(character): letter for character, letter in folded.items()})


@lru_cache(maxsize=4096)
def _fold_letter(character: str) -> str:
    if character.isascii() or not unicodedata.decomposition(character).startswith(_FOLDED_FORMS):
        return character
    return unicodedata.normalize("NFKC", character)


def _remove_invisible(text: str, flags: set[HostileFlag]) -> str:
    """Remove invisible characters. Joiners in scripts that need them, and selectors after symbols, stay."""
    if INVISIBLE.isdisjoint(text):
        return text
    left: list[str] = []
    before = ""
    for place, character in enumerate(text):
        if character in INVISIBLE and not _is_needed_for_display(character, before, text[place + 1 : place + 2]):
            flags.add(HostileFlag.INVISIBLE)
            continue
        left.append(character)
        before = character
    return "".join(left)


def _is_needed_for_display(character: str, before: str, after: str) -> bool:
    if not before:
        return False
    symbol = unicodedata.category(before) in {"So", "Sk", "Sm"}
    if character in _SELECTORS:
        return symbol or after == _KEYCAP
    if character in _JOINERS:
        return symbol or before == "\ufe0f" or "\u0600" <= before <= "\u06ff" or "\u0900" <= before <= "\u0dff"
    return False


def _replace_lookalikes(text: str, flags: set[HostileFlag]) -> str:
    """Replace lookalikes with Latin letters in two kinds of words.

    - words that also have Latin letters;
    - words that have only lookalikes, if the text has no other letters of their alphabet.

    A single Greek letter is a symbol and is not replaced.
    """
    characters = set(text)
    if LOOKALIKES.keys().isdisjoint(characters):
        return text
    other_alphabets = {_find_alphabet(c) for c in characters if c not in LOOKALIKES and c.isalpha()}

    def replace_word(match: re.Match[str]) -> str:
        word = match[0]
        lookalike_alphabets = {_find_alphabet(c) for c in word if c in LOOKALIKES}
        mixed = any(c.isascii() for c in word)
        alone = len(word) == 1 and lookalike_alphabets == {_GREEK}
        if not lookalike_alphabets or alone or not (mixed or lookalike_alphabets.isdisjoint(other_alphabets)):
            return word
        flags.add(HostileFlag.HOMOGLYPHS)
        return word.translate(_TO_LATIN)

    return _WORD.sub(replace_word, text)


def _find_alphabet(letter: str) -> str:
    for name, first, last in _ALPHABETS:
        if first <= letter <= last:
            return name
    return ""


DEFAULT_MAX_CHARACTERS = 24_000
"""Maximum number of characters of a text that a judge reads: about 6,000 tokens of English.

This is four times the length of the longest answer or report of a real application.
"""

_HEAD_SHARE = 3
"""The beginning of a shortened text takes this many quarters of the maximum length.

The end of the text takes the remaining quarter.
"""

_NONCE = re.compile(r"[0-9a-f]{16,64}")


class TextSource(StrEnum):
    """The role of the text between two fences: question, expected answer, source passage or graded answer."""

    QUESTION = "question"
    EXPECTED = "expected answer"
    SOURCE = "source passage"
    ANSWER = "graded answer"


class FencedText(NamedTuple):
    """A text between fences. ``inner`` is the text between the fences as the judge reads it.

    A judge's quote must occur in ``inner``. The original text does not matter. ``cut`` is the number of characters
    that were removed from the middle. If characters were removed, a judge may fail the answer, but cannot pass it.
    """

    text: str
    inner: str
    flags: frozenset[HostileFlag]
    cut: int


def fence_text(
    text: str, nonce: str, *, part: TextSource = TextSource.ANSWER, max_characters: int = DEFAULT_MAX_CHARACTERS
) -> FencedText:
    """Return ``text`` between two fences that the text cannot imitate.

    ``nonce`` is 16 to 64 random hexadecimal digits in lower case, new for each prompt. Any other ``nonce`` raises
    `ValueError`. Any copy of the nonce in ``text`` is removed. A text with more than ``max_characters`` is
    shortened in the middle, and a note of about a hundred characters is inserted in the middle.
    """
    if not _NONCE.fullmatch(nonce):
        raise ValueError("internal error: a nonce must have 16 to 64 hexadecimal digits in lower case")
    plain, flags = normalise_untrusted_and_flag_tricks(text)
    escaped, escaped_flags = _escape_fences_and_markup(plain, nonce)
    inner, cut = _shorten_middle(escaped, nonce, max_characters)
    flagged = {*flags, *escaped_flags, *([HostileFlag.CUT] if cut else [])}
    return FencedText(
        f"<<<BEGIN {part.value.upper()} {nonce}>>>\n{inner}\n<<<END {part.value.upper()} {nonce}>>>",
        inner,
        frozenset(flagged),
        cut,
    )


def is_quoted(quote: str, fenced: FencedText) -> bool:
    """Return whether the fenced text contains a judge's quote. The amount of white space is ignored.

    White space and punctuation alone are not a quote. A single letter or digit is a quote only as a whole word.
    """
    words = " ".join(normalise_untrusted_and_flag_tricks(quote).text.split())
    text, letters = " ".join(fenced.inner.split()), [mark for mark in words if mark.isalnum()]
    if len(letters) == 1:
        return words in text and re.search(rf"(?<!\w){re.escape(letters[0])}(?!\w)", text) is not None
    return bool(letters) and words in text


_FORGED_FENCE = re.compile(
    r"<{2,}[ \t]*/?[ \t]*(?:begin|end|start|stop)\b[^<>\n]{0,200}>{2,}"
    r"|<[ \t]*/?[ \t]*(?:graded|answer|response|reply|question|expected|reference|gold|rubric|verdict|grade|score"
    r"|instructions?|document|source)(?:[ _-][a-z_-]{1,30})*[ \t]*(?:=[^<>\n]{0,80})?>",
    re.IGNORECASE,
)
_MARKUP = re.compile(
    r"<\|[^|<>\n]{1,40}\|>|\[/?INST\]|<</?SYS>>|</?(?:system|assistant|user|human|tool_result|start_of_turn"
    r"|end_of_turn)>|<(?:s|/s|bos|eos)>",
    re.IGNORECASE,
)
_BRACKET_LOOKALIKES = str.maketrans("<>[]|", "‹›()¦")
"""For each bracket, a similar character that replaces it.

A tokenizer does not read the replacement as a fence or a turn of the conversation.
"""


def _escape_fences_and_markup(text: str, nonce: str) -> tuple[str, set[HostileFlag]]:
    flags: set[HostileFlag] = set()
    text, count = re.subn(nonce, "(number left out)", text, flags=re.IGNORECASE)
    text, forged = _FORGED_FENCE.subn(_escape_brackets, text)
    text, markup = _MARKUP.subn(_escape_brackets, text)
    if count or forged:
        flags.add(HostileFlag.FORGED_FENCE)
    if markup:
        flags.add(HostileFlag.CHAT_MARKUP)
    return text, flags


def _escape_brackets(match: re.Match[str]) -> str:
    return match[0].translate(_BRACKET_LOOKALIKES)


def _shorten_middle(text: str, nonce: str, max_characters: int) -> tuple[str, int]:
    if len(text) <= max_characters:
        return text, 0
    head = max_characters * _HEAD_SHARE // 4
    tail = max_characters - head
    cut = len(text) - max_characters
    mark = f"\n[{nonce}: {cut:,} characters of the text are left out here]\n"
    return f"{text[:head]}{mark}{text[len(text) - tail :]}", cut
