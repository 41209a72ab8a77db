"""Percentages: what stands behind an amount."""

from __future__ import annotations

from monitors.facts.normalise import keys_of
from monitors.facts.words import Reader

PERCENT_WORDS = keys_of(
    "percent percents pct percentage प्रतिशत फीसदी फीसद परसेंट पर्सेंट pratishat pratisat fisadi feesadi parsent"
)


def percent_after(reader: Reader, at: int) -> int:
    """The token after a percent sign or word that begins at ``at``; ``at`` itself when there is none."""
    token = reader.token(at)
    if token.text in {"%", "٪"} or token.key in PERCENT_WORDS:
        return at + 1
    if token.key == "per" and reader.token(at + 1).key == "cent":
        return at + 2
    if token.text == "-" and reader.token(at + 1).key in PERCENT_WORDS:
        return at + 2
    return at


def percent_before(reader: Reader, at: int) -> bool:
    """``percents of twenty`` as a whole text; inside one, "percent of 500 people" is no percentage of 500."""
    words = [reader.token(place).key for place in range(at)]
    return words in (["percents", "of"], ["percent", "of"], ["per", "cent", "of"])
