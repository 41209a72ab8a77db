"""Does a short answer say yes or no? Coarse, for twins alone: what is not plain is open."""

from __future__ import annotations

import re
from enum import StrEnum


class Stance(StrEnum):
    """What an answer says to a yes-or-no question."""

    YES = "yes"
    NO = "no"
    OPEN = "open"


_YES = re.compile(r"(?i)^\s*(?:yes|haan|han|ji haan|हाँ|हां)(?![\w\u0900-\u0963])")
_NO = re.compile(
    r"(?i)(?<![^\W\d_])(?:no|not|nothing|none|never|cannot|excluded|excludes|nahi|nahin)(?![\w\u0900-\u0963])"
    r"|n't\b|नहीं|नही"
)


def stance_of(text: str) -> Stance:
    """``NO`` when there is a plain no in it, ``YES`` for a leading yes or a plain statement, else ``OPEN``."""
    denials = len(_NO.findall(text))
    if _YES.match(text):
        return Stance.OPEN if denials else Stance.YES
    if denials:
        return Stance.NO
    return Stance.YES if _STATES.search(text) else Stance.OPEN


_STATES = re.compile(
    r"(?i)\b(?:is|are|was|were|can|will|may|must|does|has|have|hai|hain|hota|hoti|cover(?:s|ed)?|include(?:s|d)?)\b"
    r"|(?<![\u0900-\u0963])(?:है|हैं|होता|होती|कवर|शामिल)(?![\u0900-\u0963])"
)
