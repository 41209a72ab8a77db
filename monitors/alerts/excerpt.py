"""A short, redacted piece of a text, cut where a person sees it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from monitors.alerts.inert import ELLIPSIS
from monitors.alerts.redact import redact
from monitors.records.incidents import Redacted

READ_CHARACTERS: Final = 4_000
"""Of a text that are looked at, around its evidence: four times the longest excerpt, so that a hostile answer of
megabytes costs milliseconds."""
EDGE_CHARACTERS: Final = 1_000
"""Dropped after redaction where the text was cut before it: half an account number is one no pattern knows. Longer
than most secrets that are written in one piece."""

_SPACE: Final = re.compile(r"\s+")


def excerpt(text: str, *, limit: int, account_patterns: Sequence[str] = (), around: int | None = None) -> Redacted:
    """Return at most ``limit`` characters of ``text`` on one line, redacted; empty when nothing is there.

    It is redacted before it is cut. ``around`` is the code point of the evidence in ``text``; when it lies too far
    in, the excerpt is moved there.
    """
    flat = _SPACE.sub(" ", text).strip()
    point = len(_SPACE.sub(" ", text[:around]).lstrip()) if around else 0
    begin = 0 if len(flat) <= READ_CHARACTERS else max(0, min(point, len(flat)) - READ_CHARACTERS // 2)
    window = flat[begin : begin + READ_CHARACTERS]
    ends_early = begin + READ_CHARACTERS < len(flat)
    clean = redact(window, account_patterns=account_patterns)
    before = _redacted_length(window[: point - begin], limit, account_patterns)
    seen = _without_edges(clean, begins_late=begin > 0, ends_early=ends_early)
    near = before - (EDGE_CHARACTERS if begin else 0)
    start = 0 if near < limit * 2 // 3 else max(0, min(near - limit // 2, len(seen) - limit + len(ELLIPSIS)))
    cut = _cut(seen, start=start, limit=limit, begins_late=begin > 0, ends_early=ends_early)
    return redact(cut, account_patterns=account_patterns)


def _redacted_length(before: str, limit: int, account_patterns: Sequence[str]) -> int:
    """Where the evidence is once the text is redacted; not looked for where it is in view anyway."""
    if len(before) < limit * 2 // 3:
        return len(before)
    return len(redact(before, account_patterns=account_patterns))


def _without_edges(clean: str, *, begins_late: bool, ends_early: bool) -> str:
    return clean[EDGE_CHARACTERS if begins_late else 0 : len(clean) - (EDGE_CHARACTERS if ends_early else 0)]


def _cut(seen: str, *, start: int, limit: int, begins_late: bool, ends_early: bool) -> str:
    """Cut to ``limit`` with the marks that say where something is missing."""
    late = begins_late or start > 0
    room = limit - len(ELLIPSIS) * late
    early = ends_early or start + room < len(seen)
    piece = seen[start : start + room - len(ELLIPSIS) * early].strip()
    return ELLIPSIS * late + piece + ELLIPSIS * early
