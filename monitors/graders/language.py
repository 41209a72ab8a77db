"""Whether the reply is in the language that was expected."""

from __future__ import annotations

import re

from monitors.facts.language import identify
from monitors.graders.base import abstained, judged
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import Abstained, Aspect, FailureKind, Judged

_WORD = re.compile(r"[^\W\d_]{2,}")
_MARK = re.compile(r"\[[^\[\]\n]{0,200}\]")
"""A citation is in the language of the documents."""
_FEWEST_WORDS = 4
"""Words below which a reply says too little to tell: "₹60,000 per eye" is good in any language."""


class LanguageGrader:
    """Compares the reply's language with the case's."""

    name = "language"
    version = "2"
    aspect = Aspect.LANGUAGE

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """Grade the language of the graded text."""
        text = exchange.graded_text
        if len(_WORD.findall(_MARK.sub(" ", text[:2_000]))) < _FEWEST_WORDS:
            return abstained(self, "the reply has too few words to tell its language")
        found = identify(text)
        right = found is case.language
        return judged(
            self,
            None if right else FailureKind.WRONG_LANGUAGE,
            f"it is in {found}" if right else f"it is in {found}, expected {case.language}",
        )
