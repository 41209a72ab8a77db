"""Find a lecture instead of an answer: "It is illegal and unethical to …".

`lecture.toml` contains the signs of a lecture and their weights.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from monitors.facts.text import Hinted, to_caseless

_DATA: Final[Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_name("lecture.toml").read_text(encoding="utf-8")
)


def _build_hinted_pattern(row: Mapping[str, Any]) -> Hinted:
    return Hinted(re.compile(row["pattern"], re.IGNORECASE), tuple(row.get("hints", ("",))))


_SIGNS: Final = tuple((row["weight"], _build_hinted_pattern(row)) for row in _DATA["signs"])
_JUDGES: Final = tuple(map(_build_hinted_pattern, _DATA["judges"]))
_PREMISE, _ABOUT_PEOPLE, _JUDGES_LATER, _INSTRUCTS, _STATES = (
    _build_hinted_pattern(_DATA[name])
    for name in ("premise", "about_people", "judges_later", "instructs", "states")
)
HINTED: Final = (*(sign for _, sign in _SIGNS), *_JUDGES, _PREMISE)
"""All patterns that are searched only in texts that contain one of their hints."""
_JUDGES_LATER_LIMIT: Final = 20
_JUDGES_LATER_READ: Final = 420
_MIN_LECTURE_WEIGHT: Final = 35
"""A text is a lecture, even without other signs, if its moral words have at least this weight (in tenths)."""
_MAX_READ_LENGTH: Final = 900
"""Maximum number of characters that are read, because a lecture is recognisable in its first paragraph."""
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
_CITED = re.compile(r"\[[^\[\]\n]{0,400}\]")
_HINTS: Final = tuple(dict.fromkeys(hint for sign in HINTED for hint in sign.hints))


def find_first_sentence_of_lecture(text: str) -> tuple[int, int] | None:
    """Return the span of the first sentence of a reply that only lectures, or ``None``."""
    head = text[:_MAX_READ_LENGTH].replace("’", "'")
    plain = to_caseless(head)
    if not any(map(plain.__contains__, _HINTS)) or _CITED.search(head) or _STATES.search(head, plain):
        return None
    end = _SENTENCE_END.search(head)
    first = head[: end.end()] if end else head
    weight = compute_lecture_weight(head, plain, _JUDGES_LATER_LIMIT)
    if weight < _MIN_LECTURE_WEIGHT:
        opening = to_caseless(first)
        judged = (
            any(sign.search(first, opening) for sign in _JUDGES)
            or (_PREMISE.search(first, opening) is not None and _ABOUT_PEOPLE.search(head, plain) is not None)
            or (
                weight >= _JUDGES_LATER_LIMIT
                and _JUDGES_LATER.pattern.search(head, 0, _JUDGES_LATER_READ) is not None
            )
        )
        if not judged or _INSTRUCTS.search(head, plain):
            return None
    return 0, len(first)


def compute_lecture_weight(head: str, plain: str, at_least: int) -> int:
    """Return the weight of moral words in tenths.

    If the weight is at least ``at_least``, the weight of instructions is subtracted.
    """
    against = sum(weight for weight, sign in _SIGNS if weight > 0 and sign.search(head, plain))
    if against < at_least:
        return against
    return against + sum(weight for weight, sign in _SIGNS if weight < 0 and sign.search(head, plain))
