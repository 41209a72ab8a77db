"""A text as the disclosure rules read it: one spelling for digits, spaces and hyphens, and nothing invisible.

People and models write one number in many ways: Devanagari or full-width digits, a zero-width space in the
middle, a no-break hyphen, bold marks around half of it. The rules read the view; every place in it is known in
the text as it was given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

HIDDEN = "￼"
"""Stands for a stretch that is masked already (U+FFFC, the object replacement character). No rule matches it."""

# First digits of the decimal blocks of Unicode 15 that people write with; the nine others follow each.
_ZEROS = (
    0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0DE6,
    0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x17E0, 0x1810, 0x1946, 0xFF10,
    0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6,
)  # fmt: skip
_SPACES = (0x00A0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)
_HYPHENS = (*range(0x2010, 0x2016), 0x2043, 0x2212, 0xFE58, 0xFE63)


def _folding() -> dict[int, int]:
    table = {zero + n: ord("0") + n for zero in _ZEROS for n in range(10)}
    table |= {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}  # full-width ASCII
    table |= {0x2460 + n: ord("1") + n for n in range(9)} | {0x24EA: ord("0")}  # circled digits
    table |= dict.fromkeys(_SPACES, ord(" ")) | dict.fromkeys(_HYPHENS, ord("-"))
    return table | {0xFE6B: ord("@"), 0x2024: ord("."), 0x00B7: ord("."), 0x2044: ord("/"), 0x2215: ord("/")}


_FOLDING = _folding()
# Invisible and bidirectional characters, soft hyphens, keycaps, variation selectors; bold and code marks.
_INVISIBLE = re.compile(
    r"[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\u20e3\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]+"
)
_MARKS = re.compile(r"(?<!\*)\*\*(?!\*)|`+")
_FOLDABLE = re.compile("[" + "".join(map(chr, _FOLDING)) + "]")
"""A quick look that spares most texts the translation."""


class View(NamedTuple):
    """The text as the rules read it. ``offsets`` gives each character's place, or is empty where none moved."""

    text: str
    offsets: tuple[int, ...]

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where a stretch of the view, which is not empty, stands in the text as it was given."""
        if not self.offsets:
            return start, end
        return self.offsets[start], self.offsets[end - 1] + 1


def view_of(text: str, hidden: Iterable[tuple[int, int]] = ()) -> View:
    """The view of a text in which each ``hidden`` stretch (sorted, not overlapping) is one `HIDDEN`."""
    folded = text.translate(_FOLDING) if not text.isascii() and _FOLDABLE.search(text) else text
    cuts = sorted(_cuts(folded, tuple(hidden)))
    if not cuts:
        return View(folded, ())
    return _cut(folded, cuts)


def _cuts(folded: str, hidden: tuple[tuple[int, int], ...]) -> list[tuple[int, int, str]]:
    """Stretches to leave out, with what stands for each. A drop inside a hidden stretch belongs to it."""
    drops = [] if folded.isascii() else [match.span() for match in _INVISIBLE.finditer(folded)]
    if "**" in folded or "`" in folded:
        drops += [match.span() for match in _MARKS.finditer(folded)]
    if not hidden:
        return [(start, end, "") for start, end in drops]
    covered = bytearray(len(folded))
    for start, end in hidden:
        covered[start:end] = b"\x01" * (end - start)
    kept = [(start, end, "") for start, end in drops if not any(covered[start:end])]
    return kept + [(start, end, HIDDEN) for start, end in hidden]


def _cut(folded: str, cuts: list[tuple[int, int, str]]) -> View:
    parts: list[str] = []
    offsets: list[int] = []
    at = 0
    for start, end, instead in cuts:
        parts += (folded[at:start], instead)
        offsets.extend(range(at, start))
        offsets.extend([start] * len(instead))
        at = end
    parts.append(folded[at:])
    offsets.extend(range(at, len(folded)))
    return View("".join(parts), tuple(offsets))
