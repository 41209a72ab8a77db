"""What the zoo is asked: seeded conversations in which every question has a key of its own, and how replies are read."""

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
    """`count` questions as conversations of one or two turns (a quarter of the questions open such a pair)."""
    chance = random.Random(seed)
    templates = [TEMPLATES[at % len(TEMPLATES)] for at in range(count)]
    chance.shuffle(templates)
    numbers = chance.sample(range(1000, 10_000), count)
    asked = [text.format(key=f"plan{number}") for text, number in zip(templates, numbers, strict=True)]
    pairs = count * PAIRS // 20
    turns = [tuple(asked[2 * at : 2 * at + 2]) for at in range(pairs)]
    return turns + [(question,) for question in asked[2 * pairs :]]


class Reading(StrEnum):
    """How what was read compares with what was said."""

    RIGHT = "right"
    CUT = "cut"
    """A part of the answer, and nothing else."""
    MIXED = "mixed up"
    """The key of another question stands in it."""
    OTHER = "other"
    """More than the answer, or something else."""


def words(text: str) -> list[str]:
    """The text without Markdown and the tags it lets through, spaces, and how lines are broken."""
    return re.findall(r"[\w₹%]+", re.sub(r"(?i)</?b>|\*", "", text))


def letters(text: str) -> str:
    """The text as it is shown, to the character: Markdown and the tags it lets through are rendered, not shown."""
    marked = re.sub(r"(?i)</?b>|\*\*", "", text)
    return re.sub(r"(^| )[-•] ", r"\1", " ".join(marked.split()))


def is_exact(question: str, seen: str, reply: Callable[[str], str]) -> bool:
    """Whether all was read to the character, but for how lines are broken."""
    return letters(seen) == letters(reply(question))


def read(question: str, seen: str, reply: Callable[[str], str]) -> Reading:
    """Compares what was `seen` with the reply to the question."""
    own, said = words(reply(question)), words(seen)
    if own == said:
        return Reading.RIGHT
    keys = {key.lower() for key in KEY.findall(seen)}
    if keys - {key.lower() for key in KEY.findall(question)}:
        return Reading.MIXED
    return Reading.CUT if _is_part(said, own) else Reading.OTHER


def _is_part(part: list[str], whole: list[str]) -> bool:
    """Whether the words stand in the whole in the same order; the last one may be cut."""
    rest = iter(whole)
    return all(word in rest for word in part[:-1]) and all(
        any(word.startswith(last) for word in rest) for last in part[-1:]
    )
