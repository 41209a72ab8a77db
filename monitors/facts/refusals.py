"""Does a reply decline to answer? In English, Hindi and Hinglish.

Three ways to decline count: the writer will not or cannot ("I can't help with that"), the documents do not say
("is not specified in the policy"), and a lecture instead of an answer ("It is illegal and unethical to …"). A hedge
that still answers ("I'm not sure, but it is 24 months") is no refusal, and neither is a denial ("does not cover").
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, NamedTuple

from pydantic import Field

from monitors.facts.refusals_hindi import HINDI_ABSENCE, HINDI_DECLINE
from monitors.facts.refusals_patterns import (
    ABSENCE,
    ADVICE,
    ANSWER,
    ANSWER_ANYWAY,
    CONTRAST,
    DECLINE,
    DISCLAIMER,
    FILLER,
    HEDGE,
    NEGATIVE,
    SAYS_SO,
    SENTENCE,
    STATED,
    TURNS,
    UNSURE,
)
from monitors.facts.refusals_safety import lecture
from monitors.records.base import Record

_READ = 6_000
"""Characters read: a refusal stands at the beginning of a reply."""
_OPENING = 2
"""Sentences that say something, from the beginning, in which a refusal must stand."""
_FOLLOWING = 4
"""Sentences after a refusal in which an answer given all the same is looked for."""


class Refusal(Record):
    """How a reply declines. ``start`` and ``end`` are the words it declines by (code points), both 0 without any.

    ``hedged`` is true for a reply that says it is unsure, or that something is not in its documents, and still
    answers.
    """

    refused: bool
    hedged: bool = False
    start: Annotated[int, Field(ge=0)] = 0
    end: Annotated[int, Field(ge=0)] = 0


class _Decline(NamedTuple):
    start: int
    end: int
    silent: bool
    """The documents are silent; otherwise the writer will not or cannot."""


_ENGLISH = ((DECLINE, False), (ABSENCE, True), (UNSURE, False))
_ALL = (*_ENGLISH, (HINDI_DECLINE, False), (HINDI_ABSENCE, True))
_HINDI_NO = re.compile("नही|असमर्थ|अनुपलब्ध| न |बाहर|इनकार|मना |nahi|nahe|nhi|asamarth|bah?ar| na ")
"""What every Hindi refusal has in it: only then are the Hindi patterns tried."""
_HEDGE_READ = 800
_ADVICE_READ = 120
_LECTURE_READ = 900
"""Characters without a quantity, a citation or a statement of cover in what is taken for a lecture."""
_NOISE = re.compile(r"\[[^\[\]\n]{0,400}\]")


@lru_cache(maxsize=8)  # several graders ask about one reply
def read_refusal(text: str) -> Refusal:
    """Whether a reply declines to answer what it was asked, judged from the reply alone."""
    head = _NOISE.sub(lambda mark: " " * len(mark[0]), text[:_READ].replace("’", "'"))
    lowered = head.lower()
    if any(map(lowered.__contains__, NEGATIVE)):
        found = _refusal_in(head)
        if found is not None:
            return found
        cited = _NOISE.search(text[:_LECTURE_READ])
        if not cited and (span := lecture(head)) and not STATED.search(head[:_LECTURE_READ]):
            return Refusal(refused=True, start=span[0], end=span[1])
    return _hedge(head[:_HEDGE_READ])


def _refusal_in(head: str) -> Refusal | None:
    sentences = [(match.start(), match.end()) for match in SENTENCE.finditer(head) if match[0].strip(" *_#>-")]
    telling = [span for span in sentences if not FILLER.match(head[slice(*span)])]
    for index, (start, end) in enumerate(telling[:_OPENING]):
        found = _declined(head, start, end)
        if found is None:
            continue
        if index and ANSWER.search(head[slice(*telling[0])]):
            return Refusal(refused=False, hedged=True, start=found.start, end=found.end)
        rest = [head[slice(*span)] for span in telling[index + 1 : index + 1 + _FOLLOWING]]
        refused = not _answers_anyway(
            head[start:end], found.start - start, found.end - start, rest, silent=found.silent
        )
        return Refusal(refused=refused, hedged=not refused, start=found.start, end=found.end)
    return None


def _declined(head: str, start: int, end: int) -> _Decline | None:
    sentence = head[start:end].lower()
    if not any(map(sentence.__contains__, NEGATIVE)):
        return None
    found = [
        _Decline(match.start(), match.end(), silent)
        for pattern, silent in (_ALL if _HINDI_NO.search(sentence) else _ENGLISH)
        if (match := pattern.search(head, start, end))
    ]
    return min(found, default=None)


def _answers_anyway(sentence: str, start: int, end: int, rest: list[str], *, silent: bool) -> bool:
    """Whether an answer stands beside the refusal: before it, behind a "but", or in the sentences that follow."""
    if ANSWER_ANYWAY.search(sentence[:start]):
        return True
    turn = CONTRAST.search(sentence, end)
    if turn and ANSWER_ANYWAY.search(sentence, turn.end()):
        return True
    if DISCLAIMER.search(sentence):
        behind = sentence[turn.end() :] if turn else next((after for after in rest if TURNS.match(after)), "")
        return bool(behind) and not ADVICE.search(behind[:_ADVICE_READ])
    if silent:
        return any(SAYS_SO.search(after) for after in rest)
    return any(TURNS.match(after) and ANSWER_ANYWAY.search(after) for after in rest)


def _hedge(head: str) -> Refusal:
    match = HEDGE.search(head)
    if match is None:
        return Refusal(refused=False)
    return Refusal(refused=False, hedged=True, start=match.start(), end=match.end())
