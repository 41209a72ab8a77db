"""Texts are scanned once, however many graders look at them."""

from __future__ import annotations

import re
from functools import lru_cache

from monitors.facts.reading import Reading
from monitors.facts.scan import Limits, Scan, scan

_CITATION = re.compile(r"\[[^\[\]\n]{0,300}\]")
"""Square brackets of a source: page numbers there are no facts of the reply. Bounded, so linear."""


@lru_cache(maxsize=256)
def scanned_gold(text: str) -> Scan:
    """The scan of a gold text or question; a suite asks for the same few over and over."""
    return scan(text)


@lru_cache(maxsize=8)
def scanned_reply(text: str) -> Scan:
    """The scan of a reply without what stands in its citations; places are those of the reply."""
    return scan(_blank_citations(text), limits=MOST)


MOST = Limits(tokens=6_000, readings=400)
"""What a reply may hold: ten pages of prose. More is a flood, not an answer: a reply that states every number
states none, and no grader should pay for it. Measured by tests/bench/bench_grading.py."""

FLOOD = "the reply is a flood of words or quantities, not an answer"
"""Why a grader abstains on a reply beyond `MOST`."""


def _blank_citations(text: str) -> str:
    return _CITATION.sub(_blank, text) if "[" in text else text


def _blank(found: re.Match[str]) -> str:
    inside = found.group()
    return " " * len(inside) if any(word in inside.lower() for word in _MARKS) else inside


_MARKS = ("source", "page", "p.", "pp.", "doc", "ref", "स्रोत", "section", "clause")


def of_substance(readings: list[Reading]) -> list[Reading]:
    """Readings that state something: ordinals ("the first policy") only where there is nothing else."""
    cardinal = [reading for reading in readings if not reading.ordinal]
    return cardinal or readings
