"""Is a quote really in the document, and where? Spacing, hyphens and Unicode spellings aside; letters never."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from monitors.facts.normalise import normalise

FEWEST_WORDS: Final = 3
"""A quote of one or two words stands in every document and shows nothing."""

_DASHES: Final = str.maketrans({"\u2013": "-", "\u2014": "-", "\u2015": "-"})
_QUOTES: Final = str.maketrans({"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u201f": '"'})
_INSIDE_A_WORD: Final = re.compile(r"(?<=[^\W\d_])-[ ]?(?=[^\W\d_])")
"""A hyphen between letters, also one at the end of a line: "hospitali-⏎sation" is one word, "pre-existing" another
spelling of "preexisting". Between digits a hyphen stays: it is a range."""


class Folded(NamedTuple):
    """A text to look quotes up in. ``places[i]`` is where folded character ``i`` stands in the text as given."""

    text: str
    places: tuple[int, ...]


@lru_cache(maxsize=8)
def folded(document: str) -> Folded:
    """Fold a text, linear in its length: runs of white space become one space."""
    plain = normalise(document)
    text = plain.text.translate(_DASHES).translate(_QUOTES)
    kept = [at for at in range(len(text)) if not (text[at].isspace() and (at == 0 or text[at - 1].isspace()))]
    spaced = "".join(" " if text[at].isspace() else text[at] for at in kept)
    gone = {at for match in _INSIDE_A_WORD.finditer(spaced) for at in range(*match.span())}
    left = [at for at in range(len(spaced)) if at not in gone]
    where = plain.places
    places = tuple(kept[at] if where is None else where[kept[at]] for at in left)
    return Folded("".join(spaced[at] for at in left), places)


def find_quote(quote: str, document: str) -> tuple[int, int] | None:
    """The span of a quote in ``document`` as given (code points, end exclusive); ``None`` where it does not stand.

    It must stand there as whole words, letter by letter. A quote of fewer than three words is found nowhere.
    """
    wanted = folded(quote).text.strip()
    if len(wanted.split()) < FEWEST_WORDS:
        return None
    here = folded(document)
    at = here.text.find(wanted)
    while at >= 0:
        after = at + len(wanted)
        if not (_joined(here.text, at) or _joined(here.text, after)):
            return here.places[at], here.places[after - 1] + 1
        at = here.text.find(wanted, at + 1)
    return None


def _joined(text: str, at: int) -> bool:
    """Whether the characters on both sides of ``at`` belong to one word or number."""
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()
