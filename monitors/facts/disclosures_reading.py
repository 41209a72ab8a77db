"""What the rules share when they read one text: lower case, the telling words, and where the digits are.

Most of a reply has no personal data in it. The rules for numbers look only at **islands**, stretches around four
digits or more that stand close together; the rules for words look only where one of their words occurs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from monitors.facts.disclosures_context import Context, Words

# Four digits with at most seven other characters between two of them: the shortest that the rules mask, a PAN,
# has four. Digits and non-digits exclude each other, so that nothing is read twice.
_DIGITS_TOGETHER = re.compile(r"\d(?:\D{0,7}\d){3,}")
_BEFORE = 88
"""Characters read before an island: a label ("savings account number of the other customer is:") and its number."""
_AFTER = 24
_SHORT = 64
"""A text up to this length is one island: it may be a bare number."""
_LONGEST_NUMBER = 64
_ASCII_LOWER = {ord(upper): ord(upper) + 32 for upper in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


class Reading:
    """One text, ready for the rules. ``lowered`` has the same length as ``text``."""

    def __init__(self, text: str) -> None:
        self.text = text
        lowered = text.lower()  # a few letters (İ) grow when lowered; then only ASCII is
        self.lowered = lowered if len(lowered) == len(text) else text.translate(_ASCII_LOWER)
        self.islands = tuple(_islands(text))
        self.words = Words(text, self.islands)

    def has(self, *words: str) -> bool:
        """Whether one of these lower-case strings occurs anywhere."""
        return any(word in self.lowered for word in words)

    def near_digits(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """The pattern's matches in the islands."""
        for start, end in self.islands:
            yield from pattern.finditer(self.text, start, end)

    def behind(self, context: Context, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """The pattern's matches that begin behind a word of this context, with no other telling word between."""
        until = 0
        for start, end in self.words.regions(context):
            for match in pattern.finditer(self.text, max(start, until), end + _LONGEST_NUMBER):
                if until <= match.start() <= end:
                    until = match.end(1)
                    yield match

    def around(self, start: int, end: int) -> tuple[str, str]:
        """The characters just before and just after a stretch; empty at the ends of the text."""
        return self.text[max(0, start - 1) : start], self.text[end : end + 1]

    def is_glued(self, start: int, end: int) -> bool:
        """Whether letters run into the stretch on either side, as in a hash or a part number."""
        before, after = self.around(start, end)
        return before.isalpha() or after.isalpha()


def _islands(text: str) -> Iterator[tuple[int, int]]:
    if len(text) <= _SHORT:
        yield 0, len(text)
        return
    start = end = 0
    for match in _DIGITS_TOGETHER.finditer(text):
        if match.start() - _BEFORE > end:
            if end:
                yield start, end
            start = match.start() - _BEFORE
        end = min(len(text), match.end() + _AFTER)
    if end:
        yield start, end
