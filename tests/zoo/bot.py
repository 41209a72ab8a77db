"""The bot behind every page of the zoo, which uses only the standard library.

Words in a question control its answer. `slow 2` waits two seconds before the answer, `pause 8` pauses for eight
seconds in the middle of the answer. `instant` sends it in one piece, `long list` makes several paragraphs with a
list, `short` makes one word, `repeat` repeats the question first, and `boom` fails in the middle.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

TOKEN_S = 0.015
PIECE, LARGE_PIECE = r"(?:\S+\s*){1,3}", r"(?:\S+\s*){1,8}"
LONG = 300  # characters


class ProviderLost(RuntimeError):
    """The error that `boom` raises."""


def seconds(word: str, question: str) -> float:
    """Return the number of seconds after `word` in the question, or 0 if the question does not contain the word."""
    found = re.search(rf"\b{word} (\d+(?:\.\d+)?)", question)
    return float(found.group(1)) if found else 0.0


def reply(question: str) -> str:
    """Return the whole answer in Markdown.

    Every answer except that of `short` contains the question, so that mixed-up answers are detected.
    """
    if "long list" in question:
        return "Here is the list:\n\n" + "".join(f"- item {n} of **{question}**\n" for n in range(40)) + "\nEND"
    if "short" in question:
        return "Yes."
    if "repeat" in question:
        return f"{question}\n\nIt is **24 months**, as clause 4.2 says."
    return f"The waiting period for {question} is **24 months** [Source: Policy P-100, clause 4.2]."


def tokens(question: str) -> Iterator[str]:
    """Yield the answer piece by piece, as a model sends it.

    Raises `ProviderLost` in the middle if the question contains `boom`.
    """
    time.sleep(seconds("slow", question))
    whole = reply(question)
    pieces = [whole] if "instant" in question else re.findall(PIECE if len(whole) < LONG else LARGE_PIECE, whole)
    for number, piece in enumerate(pieces):
        if number == (len(pieces) + 1) // 2:
            time.sleep(seconds("pause", question))
            if "boom" in question:
                raise ProviderLost("the model's provider is out of reach")
        time.sleep(TOKEN_S)
        yield piece


def growing(question: str) -> Iterator[str]:
    """Yield the answer so far after each piece."""
    said = ""
    for piece in tokens(question):
        said += piece
        yield said
