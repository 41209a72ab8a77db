"""What a page says to whoever comes, learnt from those that were opened: it may come late, and is no answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

SHORTEST = 20
"""Characters; a shorter line ("Yes.") may well be an answer too."""
LONGEST = 500
LINES_AT_MOST = 100
PAGES = 2
"""So many pages must have said a line before they were asked, and at least half of all."""


class Greetings:
    """The lines that stood on fresh pages of one target before anything was asked."""

    def __init__(self) -> None:
        self._pages = 0
        self._said: Counter[str] = Counter()

    def note(self, lines: Iterable[str]) -> None:
        """Takes what one fresh page said."""
        self._pages += 1
        self._said.update({line for line in lines if SHORTEST <= len(line) <= LONGEST})

    @property
    def known(self) -> bool:
        """Whether enough pages were seen to tell what they say."""
        return self._pages >= PAGES

    def lines(self) -> tuple[str, ...]:
        """Those that the page says to everybody, the most frequent first."""
        said = self._said.most_common(LINES_AT_MOST)
        return tuple(line for line, pages in said if pages >= PAGES and 2 * pages >= self._pages)
