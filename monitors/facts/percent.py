"""Percentages: what stands behind an amount."""

from __future__ import annotations

from monitors.facts.tokens import Token
from monitors.facts.words import Reader

PERCENT_WORDS = frozenset(
    "percent percents pct percentage प्रतिशत फीसदी फीसद परसेंट पर्सेंट pratishat pratisat fisadi feesadi parsent".split()
)


def percent_after(reader: Reader, at: int) -> int:
    """The token after a percent sign or word that begins at ``at``; ``at`` itself when there is none."""
    token: Token = reader.token(at)
    if token.text in {"%", "٪"} or token.key in PERCENT_WORDS:
        return at + 1
    if token.key == "per" and reader.token(at + 1).key == "cent":
        return at + 2
    if token.text == "-" and reader.token(at + 1).key in PERCENT_WORDS:
        return at + 2
    return at
