"""The same question as people mix their languages: English into Hinglish, English words into Hindi."""

from __future__ import annotations

import re
from functools import lru_cache

from monitors.goldset.pick import Pick
from monitors.goldset.wordings import Pair, wordings
from monitors.records.base import Language

_NAME = r"[A-Z][\w-]*(?: [A-Z][\w-]*)+"
_ARTICLE = re.compile(r"^(?:the|an|a) ")
_SENTENCE = re.compile(r"(?<=[.!?]) ")
_FEWEST, _MOST = 1, 3
"""Words that are switched in one question."""


def code_switched(question: str, language: Language, pick: Pick) -> str | None:
    """The question with its languages mixed, or ``None`` where there is nothing to switch."""
    match language:
        case Language.ENGLISH:
            return _from_english(question, pick)
        case Language.HINDI:
            return _words_switched(question, wordings().switches.hi, pick)
        case Language.HINGLISH:
            return _words_switched(question, wordings().switches.hinglish, pick)
        case _:
            return None


def _from_english(question: str, pick: Pick) -> str | None:
    """Its last sentence turned round where a pattern knows it, else a sentence in Hindi around it.

    What is not a question, and does not fit a pattern, is an order: a sentence around it would ask something else.
    """
    *before, last = _SENTENCE.split(question)
    for pattern, template in _patterns():
        match = pattern.match(last)
        if match is not None and pick.below(4):
            said = template.format(n=match["n"], x=_ARTICLE.sub("", match["x"]))
            return " ".join((*before, said))
    if not last.endswith("?"):
        return None
    return pick.one(wordings().switches.any).replace("{q}", question)


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    names = rf"{_NAME}(?:, {_NAME})*(?: and {_NAME})?"
    return tuple(
        (re.compile(pattern.replace("NAMES", names).replace("NAME", _NAME)), template)
        for pattern, template in wordings().switches.en
    )


def _words_switched(question: str, pairs: tuple[Pair, ...], pick: Pick) -> str | None:
    there = [pair for pair in pairs if _find(question, pair[0])]
    if not there:
        return None
    for said, other in pick.mixed(there)[: _FEWEST + pick.below(_MOST)]:
        found = _find(question, said)
        if found is not None:
            question = f"{question[: found.start()]}{other}{question[found.end() :]}"
    return question


def _find(question: str, said: str) -> re.Match[str] | None:
    return re.search(rf"(?<![\w\u0900-\u097f-]){re.escape(said)}(?![\w\u0900-\u097f-])", question)
