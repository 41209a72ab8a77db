"""The questions of the zoo, and a comparison of replies.

The questions are seeded conversations. Every question has a unique key.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from enum import StrEnum

TEMPLATES = (
    "is knee surgery {key} covered?",
    "what about the eyes, {key}? instant",
    "slow 2 does {key} pay for a private room?",
    "pause 8 how long is the waiting period of {key}?",
    "please give the long list of {key}",
    "short answer please: is {key} a policy?",
    "repeat after me: {key} covers maternity",
    "{key} में घुटने की सर्जरी कवर है क्या? ₹1,50,000 तक?",
    "kya {key} mein dant ka ilaaj shamil hai, do saal baad?",
    "what do \"quotes\" & <b>tags</b> mean for {key} – 'really'? 🙂",
    (
        "{key}: I was in hospital for three days in March, and again for a night in April; my wife says the second stay "
        "is not paid for because there were fewer than 24 hours between them. Is she right, and where does it say so?"
    ),
    "what is {key}?",
    "slow 1 pause 2 is {key} cashless in Pune?",
    "does {key} end at 80? instant",
    "will {key} be dearer next year, by 10 % or by 20 %?",
)
PAIRS = 5
KEY = re.compile(r"\bplan\d{4}\b", re.IGNORECASE)


def conversations(seed: int, count: int = 20) -> list[tuple[str, ...]]:
    """Return conversations with `count` questions. Half of the questions are in conversations of two turns."""
    chance = random.Random(seed)
    templates = [TEMPLATES[at % len(TEMPLATES)] for at in range(count)]
    chance.shuffle(templates)
    numbers = chance.sample(range(1000, 10_000), count)
    asked = [text.format(key=f"plan{number}") for text, number in zip(templates, numbers, strict=True)]
    pairs = count * PAIRS // 20
    turns = [tuple(asked[2 * at : 2 * at + 2]) for at in range(pairs)]
    return turns + [(question,) for question in asked[2 * pairs :]]


class Reading(StrEnum):
    """How the text that Lookout read differs from the reply."""

    RIGHT = "right"
    CUT = "cut"
    """The text is a part of the answer, and nothing else."""
    MIXED = "mixed up"
    """The text contains the key of another question."""
    OTHER = "other"
    """The text contains more than the answer, or another text."""


def words(text: str) -> list[str]:
    """Return the text without Markdown, without the allowed tags, and without spaces and line breaks."""
    return re.findall(r"[\w₹%]+", re.sub(r"(?i)</?b>|\*", "", text))


def letters(text: str) -> str:
    """Return the characters of the text as a page shows them, with Markdown and the allowed tags rendered."""
    marked = re.sub(r"(?i)</?b>|\*\*", "", text)
    return re.sub(r"(^| )[-•] ", r"\1", " ".join(marked.split()))


def is_exact(question: str, seen: str, reply: Callable[[str], str]) -> bool:
    """Return whether all characters of the reply were read exactly, apart from line breaks."""
    return letters(seen) == letters(reply(question))


def read(question: str, seen: str, reply: Callable[[str], str]) -> Reading:
    """Compare the text `seen`, which Lookout read, with the reply to the question."""
    own, said = words(reply(question)), words(seen)
    if own == said:
        return Reading.RIGHT
    keys = {key.lower() for key in KEY.findall(seen)}
    if keys - {key.lower() for key in KEY.findall(question)}:
        return Reading.MIXED
    return Reading.CUT if _is_part(said, own) else Reading.OTHER


def _is_part(part: list[str], whole: list[str]) -> bool:
    """Return whether the words of ``part`` occur in ``whole`` in the same order. The last word may be cut."""
    rest = iter(whole)
    return all(word in rest for word in part[:-1]) and all(
        any(word.startswith(last) for word in rest) for last in part[-1:]
    )
