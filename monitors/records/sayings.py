"""Phrases and patterns that a reply must contain or must not contain.

A pattern is a regular expression between two slashes. In a pattern, ``*`` and ``+`` match at most `REACH` times.
This limit ensures that the search is fast for every reply.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Final, NamedTuple

from pydantic import AfterValidator, Field

REACH: Final = 60
"""Maximum number of repeats that ``*`` and ``+`` match in a pattern."""
MAX_WAYS: Final = 5_000
"""Maximum number of ways in which a pattern can match at one position. A pattern with more ways raises an error."""
_MAX_REPEATS: Final = 1_000
_PATTERN_PIECE = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?(?:P?<[^>=!]*>|[:=!>]|<[=!]|[aiLmsux-]+[:)]))?"
    r"|\{\d*(?:,\d*)?\}|[)|*+?]|.",
    re.DOTALL,
)
_QUANTIFIER_REPEATS: Final = {"*": (0, REACH), "+": (1, REACH), "?": (0, 1)}


class Saying(NamedTuple):
    """A compiled phrase or pattern."""

    pattern: re.Pattern[str]
    is_phrase: bool
    """Whether the saying is a phrase. A phrase matches only whole words and whole numbers."""


@lru_cache(maxsize=1_000)
def parse_phrase_or_pattern(written: str) -> Saying:
    """Parse a phrase, or a pattern between two slashes. Letter case and the amount of white space are ignored.

    Raises a `ValueError` that states what is wrong with the pattern.
    """
    if len(written) > 1 and written.startswith("/") and written.endswith("/"):
        return Saying(_compile_bounded_pattern(written[1:-1]), is_phrase=False)
    words = written.split()
    if not any(character.isprintable() for word in words for character in word):
        raise ValueError("it is empty")
    return Saying(re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE), is_phrase=True)


def _require_valid_saying(written: str) -> str:
    parse_phrase_or_pattern(written)
    return written


SayingText = Annotated[str, Field(min_length=1), AfterValidator(_require_valid_saying)]


class _OpenBracket:
    """A group of a pattern whose closing bracket has not been read yet.

    ``branches`` is the number of alternatives so far. ``is_open`` is true if a part of the group can match texts of
    different lengths.
    """

    def __init__(self) -> None:
        self.branches, self.is_open = 1, False

    @property
    def has_variable_length(self) -> bool:
        return self.is_open or self.branches > 1


def _compile_bounded_pattern(source: str) -> re.Pattern[str]:
    written, groups, ways = list[str](), [_OpenBracket()], 1
    closed: _OpenBracket | None = None
    repeated = False
    for piece in _PATTERN_PIECE.findall(source):
        repeat = None if repeated and piece in "?+" else _parse_quantifier(piece)
        if repeat is not None:
            if closed is not None and closed.has_variable_length and repeat[1] > 1:
                raise ValueError(
                    "a repeated group must not contain | or a quantifier with a variable number of repeats"
                )
            ways *= repeat[1] - repeat[0] + 1
            groups[-1].is_open |= repeat[1] > repeat[0]
            written.append(f"{{{repeat[0]},{repeat[1]}}}")
        else:
            closed = _update_open_groups(piece, groups)
            ways *= closed.branches if closed else 1
            written.append(piece)
        repeated = repeat is not None
    if ways > MAX_WAYS:
        raise ValueError(
            "the pattern can match in too many ways; limit repeats, as in .{0,20}, or use fewer alternatives"
        )
    try:
        pattern = re.compile("".join(written), re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"the pattern is not a valid regular expression: {error}") from None
    if pattern.match(""):
        raise ValueError("the pattern matches the empty string; require at least one character")
    return pattern


def _update_open_groups(piece: str, groups: list[_OpenBracket]) -> _OpenBracket | None:
    """Update ``groups``, the open groups of a pattern, with the next ``piece`` of the pattern.

    Return the group that ``piece`` closes, or ``None`` if it does not close a group.
    """
    if piece.startswith("(") and not piece.endswith(")"):
        groups.append(_OpenBracket())
    elif piece == "|":
        groups[-1].branches += 1
    elif piece == ")" and len(groups) > 1:
        closed = groups.pop()
        groups[-1].is_open |= closed.has_variable_length
        return closed
    return None


def _parse_quantifier(piece: str) -> tuple[int, int] | None:
    """Parse the minimum and maximum of a quantifier. Return ``None`` for any other piece."""
    if piece in _QUANTIFIER_REPEATS:
        return _QUANTIFIER_REPEATS[piece]
    if not piece.startswith("{") or piece == "{":
        return None
    low, comma, high = piece[1:-1].partition(",")
    if not low and not comma:
        return None
    minimum = int(low or 0)
    maximum = int(high) if high else max(minimum, REACH) if comma else minimum
    if maximum > _MAX_REPEATS or minimum > maximum:
        raise ValueError(
            f"{piece} is not allowed; use at most {_MAX_REPEATS} repeats, and write the smaller number first"
        )
    return minimum, maximum
