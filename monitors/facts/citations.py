"""The sources that a text names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated

from pydantic import Field

from monitors.records.base import Record

DEFAULT_PATTERNS: tuple[str, ...] = (
    r"\[\s*(?:Sources?|Regulations?|स्रोत|Srot)\s*[:：]\s*(?P<source>[^\[\]\n]{1,400}?)\s*\]",
)
"""``[Source: …]`` and ``[Regulation: …]``, in English and Hindi. A group ``source`` holds what is named."""

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_SPACES = re.compile(r"\s+")


class Citation(Record):
    """A source that a text names. ``start`` and ``end`` count code points of the whole mark, end exclusive."""

    source: str
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]


def find_citations(text: str, patterns: Sequence[str] = DEFAULT_PATTERNS) -> tuple[Citation, ...]:
    """All citations in order of place; case does not matter, and one mark is one citation.

    Each of ``patterns`` is a regular expression; what it names is its group ``source``, else its first group,
    else the whole match. A mark that names nothing (``[Source: ]``) is no citation. Raises ``re.error`` for a
    pattern that is none; the settings check that first.
    """
    found = {
        match.span(): name
        for pattern in _compiled(tuple(patterns))
        for match in pattern.finditer(text)
        if (name := _named(match))
    }
    return tuple(Citation(source=name, start=start, end=end) for (start, end), name in sorted(found.items()))


def names_source(citation: str, expected: str) -> bool:
    """Whether a citation contains the expected source: letter case, spacing and invisible characters aside."""
    return _plain(expected) in _plain(citation)


@lru_cache(maxsize=64)
def _compiled(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


def _named(match: re.Match[str]) -> str:
    groups = match.groupdict()
    name = groups.get("source") or (match[1] if match.re.groups else match[0])
    return _SPACES.sub(" ", _INVISIBLE.sub("", name or "")).strip(" .,;:-–")


def _plain(text: str) -> str:
    folded = _INVISIBLE.sub("", text).casefold().replace("\u2011", "-").replace("\u2010", "-")
    return _SPACES.sub(" ", folded).strip()
