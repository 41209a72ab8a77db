"""Fences around graded text: whatever it says, it stays data.

A fence is a line that holds a random number which the text's author cannot know. The text between is made plain
first, so that what the judge reads is what a person would have seen, and everything in it that could be taken for a
fence or for the markup of a conversation is defused and told.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from monitors.judge.plain_text import HostileFlag, plain_text

LIMIT_CHARACTERS = 24_000
"""About 6,000 tokens of English: four times the longest answer or report that was seen from a real application."""

_HEAD_SHARE = 3
"""Of four parts, so many are kept from the beginning and the rest from the end: verdicts hide in both."""

_NONCE = re.compile(r"[0-9a-f]{16,64}")


class Part(StrEnum):
    """Whose words stand between two fences."""

    QUESTION = "question"
    EXPECTED = "expected answer"
    SOURCE = "source passage"
    ANSWER = "graded answer"


class Fenced(NamedTuple):
    """A text between fences. ``inner`` is all that stands between them, as the judge reads it.

    Quotes must be looked up in ``inner``, not in the original. ``cut`` is how many characters were left out of the
    middle: a judge that did not see them may find a fault, but cannot say that there is none.
    """

    text: str
    inner: str
    flags: frozenset[HostileFlag]
    cut: int


def fence(text: str, nonce: str, *, part: Part = Part.ANSWER, limit_characters: int = LIMIT_CHARACTERS) -> Fenced:
    """Put ``text`` between two lines that nothing inside it can close.

    ``nonce`` is 16 to 64 random hexadecimal digits in lower case, new for each prompt (`ValueError` otherwise).
    ``inner`` never holds the nonce but in the mark of a cut, so that of all lines of a prompt only those made here
    are fences. The longest ``inner`` has ``limit_characters`` and about a hundred more for that mark.
    """
    if not _NONCE.fullmatch(nonce):
        raise ValueError("a nonce is 16 to 64 hexadecimal digits in lower case")
    plain, flags = plain_text(text)
    defused, found = _defused(plain, nonce)
    inner, cut = _bounded(defused, nonce, limit_characters)
    told = {*flags, *found, *([HostileFlag.CUT] if cut else [])}
    return Fenced(f"{_opening(part, nonce)}\n{inner}\n{_closing(part, nonce)}", inner, frozenset(told), cut)


def unfenced(prompt: str, nonce: str) -> str:
    """What of a prompt stands outside all fences of this nonce. `ValueError` when a fence is open or out of order.

    For tests and for a last look before sending: no word of a graded text may be in it.
    """
    outside: list[str] = []
    open_part: str | None = None
    for line in prompt.split("\n"):
        fence_line = _FENCE_LINE.fullmatch(line)
        if fence_line is None or fence_line["nonce"] != nonce:
            if open_part is None:
                outside.append(line)
            continue
        is_opening = fence_line["edge"] == "BEGIN"
        if is_opening is (open_part is not None) or not (is_opening or fence_line["part"] == open_part):
            raise ValueError(f"a fence is out of order: {fence_line['edge'].lower()} of {fence_line['part']}")
        open_part = fence_line["part"] if is_opening else None
    if open_part is not None:
        raise ValueError(f"the fence of {open_part} is not closed")
    return "\n".join(outside)


def quoted_in(quote: str, fenced: Fenced) -> bool:
    """Whether a judge's quote really stands in the fenced text, apart from white space. An empty one does not."""
    words = " ".join(plain_text(quote).text.split())
    return bool(words) and words in " ".join(fenced.inner.split())


def _opening(part: Part, nonce: str) -> str:
    return f"<<<BEGIN {part.value.upper()} {nonce}>>>"


def _closing(part: Part, nonce: str) -> str:
    return f"<<<END {part.value.upper()} {nonce}>>>"


_FENCE_LINE = re.compile(r"<<<(?P<edge>BEGIN|END) (?P<part>[A-Z ]+) (?P<nonce>[0-9a-f]{16,64})>>>")

_FORGED = re.compile(
    r"<{2,}[ \t]*/?[ \t]*(?:begin|end|start|stop)\b[^<>\n]{0,200}>{2,}"
    r"|<[ \t]*/?[ \t]*(?:graded|answer|response|reply|question|expected|reference|gold|rubric|verdict|grade|score"
    r"|instructions?|document|source)(?:[ _-][a-z_-]{1,30})*[ \t]*(?:=[^<>\n]{0,80})?>",
    re.IGNORECASE,
)
_MARKUP = re.compile(
    r"<\|[^|<>\n]{1,40}\|>|\[/?INST\]|<</?SYS>>|</?(?:system|assistant|user|human|tool_result|start_of_turn"
    r"|end_of_turn)>|<(?:s|/s|bos|eos)>",
    re.IGNORECASE,
)
_DEFUSED = str.maketrans("<>[]|", "‹›()¦")
"""Brackets that look alike and that no tokenizer takes for a fence or a turn of the conversation."""


def _defused(text: str, nonce: str) -> tuple[str, set[HostileFlag]]:
    flags: set[HostileFlag] = set()
    text, count = re.subn(nonce, "(number left out)", text, flags=re.IGNORECASE)
    text, forged = _FORGED.subn(_harmless, text)
    text, markup = _MARKUP.subn(_harmless, text)
    if count or forged:
        flags.add(HostileFlag.FORGED_FENCE)
    if markup:
        flags.add(HostileFlag.CHAT_MARKUP)
    return text, flags


def _harmless(match: re.Match[str]) -> str:
    return match[0].translate(_DEFUSED)


def _bounded(text: str, nonce: str, limit_characters: int) -> tuple[str, int]:
    if len(text) <= limit_characters:
        return text, 0
    head = limit_characters * _HEAD_SHARE // 4
    tail = limit_characters - head
    cut = len(text) - limit_characters
    mark = f"\n[{nonce}: {cut:,} characters of the text are left out here]\n"
    return f"{text[:head]}{mark}{text[len(text) - tail :]}", cut
