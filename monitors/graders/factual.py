"""Factual match, decided by whichever deterministic grader the gold calls for."""

from __future__ import annotations

from monitors.graders.base import abstained, judged
from monitors.graders.gold_kinds import is_measured
from monitors.graders.phrases import PhrasesGrader
from monitors.graders.polarity import NEITHER, PolarityGrader
from monitors.graders.quantities import NO_QUANTITY, QuantitiesGrader
from monitors.graders.scanned import FLOOD, scanned_reply
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import Abstained, Aspect, FailureKind, Judged


class FactualGrader:
    """Does the reply say what the gold says? Quantities, then yes or no, then short phrases.

    One part that fails is a failure; otherwise one that passes is a pass, save that an unclear quantity is never
    outvoted. It abstains for an expected refusal (the refusal grader decides) and when nothing is comparable.
    """

    name = "factual"
    version = "2"
    aspect = Aspect.FACTUAL_MATCH

    def __init__(self) -> None:
        self._quantities = QuantitiesGrader()
        self._polarity = PolarityGrader()
        self._phrases = PhrasesGrader()

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """Grade the graded text by what the gold is made of."""
        if case.expected_refusal:
            return abstained(self, "an expected refusal is graded by whether it refused")
        if not exchange.graded_text.strip():
            return judged(self, FailureKind.MISSING_FACT, "the reply is empty", ())
        if scanned_reply(exchange.graded_text).cut:
            return abstained(self, FLOOD)
        quantities = self._quantities.grade(case, exchange)
        polarity = self._polarity.grade(case, exchange)
        told = [grade for grade in (quantities, polarity) if isinstance(grade, Judged)]
        failed = next((grade for grade in told if not grade.passed), None)
        if failed is not None:
            return self._failed(failed, case, exchange)
        if told and (isinstance(quantities, Judged) or _abstains_for(quantities, NO_QUANTITY)):
            reason = "; ".join(grade.reason for grade in told)
            return judged(self, None, reason, tuple(span for grade in told for span in grade.evidence))
        if not _abstains_for(quantities, NO_QUANTITY):
            return abstained(self, quantities.reason)
        if not _abstains_for(polarity, NEITHER):
            return abstained(self, polarity.reason)
        return self._by_phrase(case, exchange)

    def _failed(self, failed: Judged, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """A failure stands unless another accepted gold, a phrase without quantity, is met or may be."""
        phrases = [text for text in (case.gold, *case.alternatives) if not is_measured(text)]
        if failed.grader == self._quantities.name and phrases and len(phrases) < 1 + len(case.alternatives):
            named = case.model_copy(update={"gold": phrases[0], "alternatives": tuple(phrases[1:])})
            by_phrase = self._by_phrase(named, exchange)
            if isinstance(by_phrase, Abstained) or by_phrase.passed:
                return by_phrase
        return judged(self, failed.failure_kind, failed.reason, failed.evidence)

    def _by_phrase(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        phrases = self._phrases.grade(case, exchange)
        if isinstance(phrases, Judged):
            return judged(self, phrases.failure_kind, phrases.reason, phrases.evidence)
        return abstained(self, phrases.reason)


def _abstains_for(grade: Judged | Abstained, reason: str) -> bool:
    return isinstance(grade, Abstained) and grade.reason == reason
