"""A short, redacted piece of a text, cut where a person sees it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from monitors.alerts.inert import ELLIPSIS
from monitors.alerts.redact import redact
from monitors.records.incidents import Redacted

READ_AT_MOST: Final = 20_000
"""Characters of a text that are looked at. Far above any excerpt, so that the cut cannot split an identifier that
would be shown, and small enough that a hostile answer of megabytes costs nothing."""

_SPACE: Final = re.compile(r"\s+")


def excerpt(text: str, *, limit: int, account_patterns: Sequence[str] = (), around: int | None = None) -> Redacted:
    """Return at most ``limit`` characters of ``text`` on one line, redacted; empty when nothing is there.

    The whole text is redacted before it is cut: a cut first could leave half an account number that no pattern
    knows. ``around`` is the code point of the evidence; when it lies beyond the limit the window is moved there.
    """
    read = text[:READ_AT_MOST]
    clean = _SPACE.sub(" ", redact(read, account_patterns=tuple(account_patterns))).strip()
    start = _window_start(read, around, limit=limit, length=len(clean), account_patterns=account_patterns)
    return redact(_cut(clean, start=start, limit=limit), account_patterns=tuple(account_patterns))


def _window_start(
    read: str, around: int | None, *, limit: int, length: int, account_patterns: Sequence[str]
) -> int:
    if around is None or length <= limit:
        return 0
    before = _SPACE.sub(" ", redact(read[:around], account_patterns=tuple(account_patterns)))
    if len(before) < limit * 2 // 3:
        return 0
    return max(0, min(len(before) - limit // 2, length - limit))


def _cut(clean: str, *, start: int, limit: int) -> str:
    if len(clean) <= limit:
        return clean
    head = ELLIPSIS if start else ""
    room = limit - len(head)
    piece = clean[start : start + room]
    if start + room >= len(clean):
        return head + piece
    return head + piece[: room - 1].rstrip() + ELLIPSIS
