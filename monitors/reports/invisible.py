"""Makes invisible characters visible, so that an answer cannot hide text from a reader.

Some characters reverse a sentence, split a word or contain a hidden message. Each invisible character is shown as
its code point in brackets.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

_JOINERS: Final = frozenset("\u200c\u200d")
_VISIBLE_CONTROLS: Final = frozenset("\n\t")
# These are letters and symbols by category, but invisible (Unicode 15, Default_Ignorable_Code_Point and U+2800).
_BLANK_LETTERS: Final = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")
# Format characters that are visible: Arabic, Syriac and Kaithi number signs.
_VISIBLE_FORMATS: Final = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
_VARIATION_SELECTORS: Final = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0), range(0x180B, 0x1810))


def is_suspicious_invisible_character(character: str, before: str) -> bool:
    """Return whether ``character`` is invisible and has no legitimate use after the character ``before``.

    For example, joiners are needed in Indic and Arabic words and in emoji, and variation selectors after a symbol.
    """
    if character in _VISIBLE_CONTROLS:
        return False
    if character in _BLANK_LETTERS:
        return True
    if character in _JOINERS:
        return not _can_precede_joiner(before)
    if any(ord(character) in selectors for selectors in _VARIATION_SELECTORS):
        return not _is_symbol(before)
    category = unicodedata.category(character)
    if category == "Cf":
        return character not in _VISIBLE_FORMATS
    return category in {"Cc", "Co", "Cs", "Cn", "Zl", "Zp"}


def _is_symbol(character: str) -> bool:
    return bool(character) and (unicodedata.category(character)[0] == "S" or character in "0123456789#*")


def _can_precede_joiner(before: str) -> bool:
    if not before:
        return False
    name = unicodedata.name(before, "")
    is_word = unicodedata.category(before)[0] in "LM" and not name.startswith(("LATIN", "GREEK", "CYRILLIC"))
    return is_word or _is_symbol(before) or name.startswith(("VARIATION SELECTOR", "EMOJI MODIFIER"))


def format_code_point(character: str) -> str:
    """Format a code point, for example ``U+202E`` for a right-to-left override."""
    return f"U+{ord(character):04X}"


def format_character_name(character: str) -> str:
    """Return the character's Unicode name in lower case, or ``control character``."""
    return unicodedata.name(character, "control character").lower()


def split_at_invisible_characters(text: str) -> Iterator[tuple[str, bool]]:
    """Split the text into parts: ``(visible text, False)`` or ``(one invisible character, True)``."""
    start = 0
    before = ""
    for place, character in enumerate(text):
        if not (character.isascii() and character.isprintable()) and is_suspicious_invisible_character(
            character, before
        ):
            if place > start:
                yield text[start:place], False
            yield character, True
            start = place + 1
        before = character
    if start < len(text):
        yield text[start:], False


def replace_invisible_by_code_points(text: str) -> str:
    """Replace each invisible character with its code point, such as ``[U+202E]``."""
    return "".join(
        f"[{format_code_point(run)}]" if hidden else run for run, hidden in split_at_invisible_characters(text)
    )
