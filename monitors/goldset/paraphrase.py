"""The same question in other words: another order, a synonym, a frame around it."""

from __future__ import annotations

import re

from monitors.goldset.pick import Pick
from monitors.goldset.wordings import wordings
from monitors.records.base import Language

_NAME = r"[A-Z][\w-]*(?: [A-Z][\w-]*)*"
_BEHIND = re.compile(
    rf"^(?P<head>(?:.*[.!?] )?)(?P<first>[A-Z][a-z]*)(?P<rest> [^.?!]+?) (?P<at>under|in|with) (?P<name>{_NAME})\?$"
)
_TWO_NAMES = re.compile(r"[A-Z][\w-]* [A-Z]")
_FIRST_WORDS = frozenset({
    "What", "Which", "How", "Is", "Are", "Does", "Do", "Can", "Will", "Would", "Could", "May", "Must", "Up", "From",
    "Within", "By", "After", "For", "Till", "Until",
})  # fmt: skip


def paraphrased(question: str, language: Language, pick: Pick) -> str | None:
    """Another wording, or ``None`` where this pick gives none.

    A frame stands around questions only: around an order ("cancel my policy") it would ask something else.
    """
    ways = pick.mixed(["order", "synonym", "frame"])
    for way in ways:
        found = {"order": _reordered, "synonym": _with_synonym, "frame": _framed}[way](question, language, pick)
        if found is not None and found != question:
            return found
    return None


def _reordered(question: str, language: Language, _: Pick) -> str | None:
    """The policy's name in front: of "What is the limit under Gold?" comes "Under Gold, what is the limit?"."""
    match = _BEHIND.match(question) if language is Language.ENGLISH else None
    if match is None or match["first"] not in _FIRST_WORDS:
        return None
    if _TWO_NAMES.search(match["rest"]) or match["rest"].endswith((" or", " and", " than")):
        return None
    return f"{match['head']}{match['at'].capitalize()} {match['name']}, {match['first'].lower()}{match['rest']}?"


def _with_synonym(question: str, language: Language, pick: Pick) -> str | None:
    for said, other in pick.mixed(wordings().synonyms.get(language.value, ())):
        found = re.search(rf"(?<![\w\u0900-\u097f]){re.escape(said)}(?![\w\u0900-\u097f])", question)
        if found is not None:
            return f"{question[: found.start()]}{other}{question[found.end() :]}"
    return None


def _framed(question: str, language: Language, pick: Pick) -> str | None:
    asks = question.rstrip().endswith("?")
    frames = (wordings().frames if asks else wordings().greetings).get(language.value)
    if not frames:
        return None
    frame = pick.one(frames)
    if ", {q}" in frame and question.startswith("Kya "):
        question = f"k{question[1:]}"
    return frame.replace("{q}", question)
