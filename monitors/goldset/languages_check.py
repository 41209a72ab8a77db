"""Cases that are not in the language that they say they are in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from monitors.facts.language import identify
from monitors.goldset.findings import Check, GoldFinding, Weight
from monitors.goldset.numbered import NumberedCase
from monitors.records.base import Language
from monitors.records.cases import GoldCase

FEWEST_WORDS = 4
"""Words below which a text is in any language: "₹60,000 per eye"."""
_WORD = re.compile(r"[^\W\d_]{2,}")


def languages(cases: Sequence[NumberedCase]) -> Iterator[GoldFinding]:
    """Questions and golds whose language is told and is another; a mixed question may be meant."""
    for one in cases:
        for part, text in _parts(one.case):
            found = _told(text)
            if found is not None and found is not one.case.language:
                yield GoldFinding(
                    check=Check.LANGUAGE,
                    weight=Weight.SHOULD,
                    places=(one.place,),
                    what=f"the {part} is in {found}, the case says {one.case.language}",
                    do="correct `language`, or translate: replies are held to the case's language",
                )


def _parts(case: GoldCase) -> Iterator[tuple[str, str]]:
    yield "question", case.question
    if not case.expected_refusal:  # there the gold says why it must refuse, to people
        yield "gold", case.gold


def _told(text: str) -> Language | None:
    return identify(text) if len(_WORD.findall(text)) >= FEWEST_WORDS else None
