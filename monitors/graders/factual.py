"""Factual match, decided by whichever deterministic grader the gold calls for."""

from __future__ import annotations

from monitors.domains.pack import Domain
from monitors.facts.language import LanguageEvidence, evidence
from monitors.facts.quantities.fact import FactKind
from monitors.facts.quantities.locales import PLAIN, Locale, locale_of
from monitors.facts.quantities.scan import Scan
from monitors.facts.text import WORD
from monitors.graders.base import SAYS_MORE, GraderSettings, abstained, judged
from monitors.graders.conditions import why_unsettled
from monitors.graders.conduct import says_enough
from monitors.graders.golds import (
    FLOOD,
    content_stems,
    is_measured,
    scanned_gold,
    scanned_reply,
    stems_of,
    unread_stems,
)
from monitors.graders.phrases import PhrasesGrader
from monitors.graders.polarity import NEITHER, PolarityGrader
from monitors.graders.quantities import NO_QUANTITY, QuantitiesGrader
from monitors.graders.verbatim import find_word_for_word
from monitors.records.base import Language
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import Abstained, Aspect, FailureKind, Judged, Span


class FactualGrader:
    """Does the reply say what the gold says? Quantities, then yes or no, then short phrases.

    One part that fails is a failure; otherwise one that passes is a pass, save that an unclear quantity is never
    outvoted. It abstains for an expected refusal (the refusal grader decides) and when nothing is comparable.

    What the texts themselves show to be in a language that is not read is read as such, whatever the case says:
    words of it fail nothing. There a gold of three words or more that the reply repeats word for word is stated.
    """

    name = "factual"
    version = "9"
    aspect = Aspect.FACTUAL_MATCH

    def __init__(self, settings: GraderSettings, domain: Domain) -> None:
        self._settings = settings
        self._domain = domain
        self._quantities = QuantitiesGrader(settings, domain)
        self._polarity = PolarityGrader(domain)
        self._phrases = PhrasesGrader()

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """Grade the graded text by what the gold is made of."""
        if case.expected_refusal:
            return abstained(self, "an expected refusal is graded by whether it refused")
        if not exchange.graded_text.strip():
            return judged(self, FailureKind.MISSING_FACT, "the reply is empty", ())
        if scanned_reply(exchange.graded_text, PLAIN).cut:
            return abstained(self, FLOOD)
        if case.language is Language.OTHER or _is_unread(case, exchange.graded_text):
            return self._unread(case, exchange)
        grade = self._by_rules(case, exchange)
        if not (isinstance(grade, Judged) and grade.passed):
            grade = self._by_alternative(case, exchange) or grade
        if isinstance(grade, Judged) and grade.passed:
            reason = why_unsettled(case, exchange.graded_text, grade.evidence)
            return grade if reason is None else abstained(self, reason)
        failed = isinstance(grade, Judged) and not grade.passed
        if (
            failed
            and says_enough(exchange.graded_text)
            and evidence(exchange.graded_text) is LanguageEvidence.UNREAD
        ):
            as_other = self._unread(case, exchange)
            return as_other if isinstance(as_other, Judged) else abstained(self, UNREAD_REPLY)
        return grade

    def _unread(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """A case, or a reply, in a language whose words are not read."""
        stated = self._word_for_word(case, exchange)
        return stated or self._by_rules(case.model_copy(update={"language": Language.OTHER}), exchange)

    def _by_alternative(self, case: GoldCase, exchange: Exchange) -> Judged | None:
        """A reply that states an alternative word for word is right, whatever the rules make of the rest."""
        if not case.alternatives:
            return None
        return self._word_for_word(case.model_copy(update={"gold": case.alternatives[0]}), exchange)

    def _word_for_word(self, case: GoldCase, exchange: Exchange) -> Judged | None:
        place = find_word_for_word((case.gold, *case.alternatives), exchange.graded_text, case.question)
        if place is None:
            return None
        span = Span(where=exchange.graded_channel, start=place[0], end=place[1], label="gold word for word")
        return judged(self, None, "the gold stands in the reply, word for word", (span,))

    def _by_rules(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        quantities = self._quantities.grade(case, exchange)
        polarity = self._polarity.grade(case, exchange)
        graded = [grade for grade in (quantities, polarity) if isinstance(grade, Judged)]
        failed = next((grade for grade in graded if not grade.passed), None)
        if failed is not None:
            return self._failed(failed, case, exchange)
        if (
            isinstance(quantities, Judged)
            and isinstance(polarity, Abstained)
            and self._only_says_when(polarity, case)
        ):
            return abstained(self, polarity.reason)
        if isinstance(quantities, Judged) and says_more(
            case, exchange.graded_text, self._domain, self._locale(case)
        ):
            return abstained(self, SAYS_MORE)
        if graded and (isinstance(quantities, Judged) or _abstains_for(quantities, NO_QUANTITY)):
            reason = "; ".join(grade.reason for grade in graded)
            return judged(self, None, reason, tuple(span for grade in graded for span in grade.evidence))
        if not _abstains_for(quantities, NO_QUANTITY):
            return abstained(self, quantities.reason)
        if not _abstains_for(polarity, NEITHER):
            return abstained(self, polarity.reason)
        return self._by_phrase(case, exchange)

    def _only_says_when(self, polarity: Abstained, case: GoldCase) -> bool:
        """Whether a gold of yes or no has dates and times alone: "No, we're closed on December 25"."""
        readings = [
            reading for text in _measured(case, self._locale(case)) for reading in scanned_gold(text).readings
        ]
        return polarity.reason != NEITHER and all(
            reading.kind in {FactKind.DATE, FactKind.TIME} for reading in readings
        )

    def _locale(self, case: GoldCase) -> Locale:
        return locale_of(case.language, self._settings.locale, self._settings.currency)

    def _failed(self, failed: Judged, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """A failure stands unless another accepted gold, a phrase without quantity, is met or may be."""
        locale = self._locale(case)
        phrases = [text for text in (case.gold, *case.alternatives) if not is_measured(text, locale)]
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
        return self._word_for_word(case, exchange) or abstained(self, phrases.reason)


def _is_unread(case: GoldCase, reply: str) -> bool:
    """Whether question, gold and reply show a language that is not read, and none shows one that is."""
    shown = {evidence(f"{case.question}\n{case.gold}"), evidence(reply)}
    return LanguageEvidence.UNREAD in shown and LanguageEvidence.READ not in shown


UNREAD_REPLY = "the reply is not in English, Hindi or Hinglish: whether it says what the gold says is for a judge"
"""Why a reply in a language that is not read does not fail, whatever the case's language."""


_MORE = 2
"""Words of content that neither reply nor question has: fewer are a turn of phrase."""


def says_more(case: GoldCase, reply: str, domain: Domain, locale: Locale = PLAIN) -> bool:
    """Whether each gold asserts more than its quantities that stands neither in the reply nor in the question.

    Words are compared by their stems. A reply in another script shares none, and says nothing about it. In a
    language that is not read every word may count: one is enough.
    """
    if locale.is_unread:
        there = unread_stems(reply, locale) | unread_stems(case.question, locale)
        return not any(unread_stems(text, locale) <= there for text in _measured(case, locale))
    said = scanned_reply(reply, PLAIN)
    known = stems_of(said.reader.tokens) | stems_of(scanned_gold(case.question).reader.tokens)
    golds = [content_stems(text, domain) for text in _measured(case, locale)]
    return bool(golds) and all(len(_in_its_script(words, said) - known) >= _MORE for words in golds)


def _measured(case: GoldCase, locale: Locale) -> list[str]:
    return [text for text in (case.gold, *case.alternatives) if is_measured(text, locale)]


def _in_its_script(words: frozenset[str], reply: Scan) -> frozenset[str]:
    latin = any(token.kind == WORD and token.key.isascii() for token in reply.reader.tokens)
    indic = any(token.kind == WORD and not token.key.isascii() for token in reply.reader.tokens)
    return frozenset(word for word in words if (latin if word.isascii() else indic))


def _abstains_for(grade: Judged | Abstained, reason: str) -> bool:
    return isinstance(grade, Abstained) and grade.reason == reason
