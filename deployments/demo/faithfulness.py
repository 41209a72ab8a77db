"""The bot's own last look at a reply: a number that stands in no retrieved fact holds it back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from deployments.demo.retrieval import Hit

_CITATION = re.compile(r"\[Source:[^\]]*\]")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True)
class Blocked:
    """A reply that was held back, with the numbers that no fact supports."""

    reply: str
    reasons: tuple[str, ...]
    unsupported_claims: tuple[str, ...]


def check(reply: str, hits: Sequence[Hit], question: str) -> Blocked | None:
    """``None`` when the reply may go out. A number that only the question brought in does not count as support."""
    known = {number for hit in hits for number in _numbers(f"{hit.fact.text} {hit.fact.amount or ''}")}
    stated = _numbers(_CITATION.sub(" ", reply))
    unsupported = tuple(number for number in stated if number not in known)
    if not unsupported:
        return None
    asked = _numbers(question)
    reasons = tuple(
        f"unsupported_number: {number} stands in no retrieved fact"
        + (" and echoes the question" if number in asked else "")
        for number in unsupported
    )
    claims = tuple(
        part.strip() for part in re.split(r"(?<=[.।])\s", reply) if any(n in _numbers(part) for n in unsupported)
    )
    return Blocked(reply, reasons, claims)


def _numbers(text: str) -> tuple[str, ...]:
    plain = (match.group().replace(",", "").rstrip(".") for match in _NUMBER.finditer(text))
    return tuple(dict.fromkeys(plain))
