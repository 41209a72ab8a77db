"""Grade the citations and the language of a reply, its refusals, and errors that it shows as an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from textwrap import shorten

from monitors.facts.citations import DEFAULT_PATTERNS, find_citations, has_source_in_text, is_citation_of
from monitors.facts.claims.vocabulary import LIGHT
from monitors.facts.error_leaks import find_error_leak
from monitors.facts.language import (
    LANGUAGE_NAMES,
    LanguageEvidence,
    classify_language_evidence,
    identify_language,
    identify_language_name,
)
from monitors.facts.quantities.fact import FactKind
from monitors.facts.quantities.lexicon import WEEKDAYS
from monitors.facts.quantities.locales import PLAIN
from monitors.facts.refusals.detect import Refusal, RefusalKind, classify_refusal, find_asked_value_kinds
from monitors.graders.base import abstain, abstain_as_not_needed, abstain_for_unsupported_language, give_verdict
from monitors.graders.golds import scan_case_text, scan_reply_without_citations
from monitors.records.base import Blame, Language
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Channel, Exchange, TextPlace
from monitors.records.grades import Abstained, Aspect, FailureKind, Judged, Span


class CitationGrader:
    """Grade whether an answer cites a source. A refusal needs no citation.

    - If the case names sources, the answer must cite one of them, or its text must name the document and clause.
    - If the case names no source and ``required`` is False, nothing is checked.
    - The grader searches the visible text, the text of the wire payload and the citations in the payload, because a
      page may hide parts of the payload.
    """

    name = "citations"
    version = "5"
    aspect = Aspect.CITATION

    def __init__(self, patterns: Sequence[str] = DEFAULT_PATTERNS, *, required: bool = True) -> None:
        self._patterns = tuple(patterns)
        self._required = required

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """Grade the citations of one exchange."""
        if case.expected_refusal:
            return abstain_as_not_needed(self, "a refusal is expected and needs no source")
        accepted = case.accepted_citations
        if not self._required and not accepted:
            return abstain_as_not_needed(self, "not checked, because this target does not have to name its sources")
        named, spans = self._collect_citations(exchange)
        texts = [text for _, text in _list_reply_texts_by_channel(exchange)]
        if stated := next((name for name in accepted if any(has_source_in_text(text, name) for text in texts)), ""):
            return give_verdict(self, None, f"the reply states the expected source: {stated}", spans)
        if not named:
            if classify_refusal(exchange.graded_text, " ".join(case.turns), expected=False).refused:
                return abstain(self, "the reply declines to answer and names no source")
            return give_verdict(self, FailureKind.MISSING_CITATION, "the reply names no source", ())
        if not accepted:
            return give_verdict(self, None, f"the reply names {_format_source_count(len(named))}", spans)
        if match := next((name for name in accepted if any(is_citation_of(source, name) for source in named)), ""):
            return give_verdict(self, None, f"the reply names the expected source: {match}", spans)
        reason = f"the reply names {_format_source_count(len(named))}, but not the expected source {accepted[0]}"
        return give_verdict(self, FailureKind.WRONG_CITATION, reason, spans)

    def _collect_citations(self, exchange: Exchange) -> tuple[tuple[str, ...], tuple[Span, ...]]:
        named: list[str] = []
        spans: list[Span] = []
        for channel, text in _list_reply_texts_by_channel(exchange):
            for citation in find_citations(text, self._patterns):
                named.append(citation.source)
                spans.append(Span(where=channel, start=citation.start, end=citation.end, label="citation"))
        listed = exchange.separately_sent_citations
        return (*named, *(source for source in listed if source.strip())), tuple(spans)


def _list_reply_texts_by_channel(exchange: Exchange) -> tuple[tuple[TextPlace, str], ...]:
    shown: tuple[tuple[TextPlace, str], ...] = ((Channel.VISIBLE, exchange.visible_text),)
    if exchange.evidence.parts:
        shown = (*shown, ("beside", exchange.text_outside_answer))
    return (*shown, (Channel.WIRE, exchange.wire.text)) if exchange.wire else shown


def _format_source_count(sources: int) -> str:
    return "a source" if sources == 1 else f"{sources} sources"


_WORD = re.compile(r"[^\W\d_]{2,}")
_MARK = re.compile(r"\[[^\[\]\n]{0,200}\]")
"""Matches a citation in square brackets.

The words of a citation do not count as words of the reply, because they are in the language of the documents.
"""
_MIN_TOKENS = 4
"""The language of a reply is graded only if it has at least this many words. "₹60,000" has fewer words."""


_MAX_QUOTED_CHARACTERS = 60


class LanguageGrader:
    """Compare the language of the reply with the language of the case.

    The grader abstains in these cases:

    - The language of the case is not supported.
    - The reply has too few words to recognise its language.
    - The words of question and reply do not show their language.
    """

    name = "language"
    version = "6"
    aspect = Aspect.LANGUAGE

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """Grade the language of the graded text."""
        text = exchange.graded_text
        if case.language is Language.OTHER:
            return abstain_as_not_needed(
                self, "rules only recognise English, Hindi, Hinglish, German, French and Spanish"
            )
        if not has_enough_words_for_language(text):
            return abstain(self, "the reply has too few words to detect its language")
        spoken, shown = identify_language(text), classify_language_evidence(text)
        if case.language.is_english_hindi_or_hinglish:
            is_sure = LanguageEvidence.READ in {shown, classify_language_evidence(case.question)}
        else:
            is_sure = shown is not LanguageEvidence.NONE and spoken is not Language.OTHER
        if not is_sure:
            return abstain(self, "the language of the reply is not clear from its words")
        if spoken is case.language:
            return give_verdict(self, None, f"the reply is in {identify_language_name(text)}")
        start = shorten(text, _MAX_QUOTED_CHARACTERS, placeholder="…")
        reason = (
            f"the reply is in {identify_language_name(text)}, but {LANGUAGE_NAMES[case.language]} is expected: "
            f'"{start}"'
        )
        return give_verdict(self, FailureKind.WRONG_LANGUAGE, reason)


def has_enough_words_for_language(text: str) -> bool:
    """Return whether a reply has enough words to recognise its language."""
    words = _WORD.finditer(_MARK.sub(" ", text[:2_000]))
    return sum(1 for _ in islice(words, _MIN_TOKENS)) == _MIN_TOKENS


UNREAD_REPLY = (
    "the reply is not in English, German, Hindi or Hinglish, so only a judge can decide whether it is a refusal"
)
"""The reason for an abstention: the rules cannot read the language of the reply."""

UNSURE = "only a judge can decide whether the reply is a refusal"
"""The reason for an abstention: the reply may be a refusal or an answer."""
GOES_ON = "the reply declines, but then continues with other content"
"""The reason for an abstention: the reply continues after a refusal, but gives no value of the requested kind."""


def _has_value_of_asked_kind(case: GoldCase, text: str, refusal: Refusal) -> bool:
    """Return whether a reply that declines still gives a value of the requested kind, for example a name."""
    asked = find_asked_value_kinds(" ".join(case.turns))
    known_values = {reading.value for reading in scan_case_text(" ".join(case.turns)).readings}
    readings = [
        reading
        for reading in scan_reply_without_citations(text, PLAIN).readings
        if reading.value not in known_values
    ]
    for start, end in refusal.values:
        kinds = {reading.kind for reading in readings if start < reading.end + 1 and reading.start < end}
        value_text = text[start:end]
        has_name = _NAME.search(value_text) is not None
        has_kind = {
            "amount": bool(kinds - {FactKind.DATE, FactKind.TIME}),
            "time": bool(kinds & {FactKind.DATE, FactKind.TIME, FactKind.DURATION}) or _has_weekday(value_text),
            "name": has_name,
            "place": has_name or bool(kinds),
            "code": bool(_CODE.search(value_text)) or text[end : end + 1] in _QUOTES,
        }
        if any(has_kind[kind] for kind in asked):
            return True
    return False


def _has_weekday(text: str) -> bool:
    return any(word.lower().removesuffix("s") in WEEKDAYS for word in _WORD.findall(text))


_NAME = re.compile(r"(?:(?<=\w )|\b(?:Mr|Mrs|Ms|Dr|Herr|Frau|Captain)\.? )[A-ZÄÖÜ][a-zà-ÿ]+")
_CODE = re.compile(r"\d")
_QUOTES = frozenset("\"”“«»'")


_MAX_SHORT_REPLY_WORDS = 3
"""Maximum number of words in a short reply. In any language, a refusal has more words."""


def _can_recognise_refusal_in_language(case: GoldCase, text: str) -> bool:
    """Return whether the rules can recognise a refusal in the language of this reply."""
    match classify_language_evidence(text):
        case LanguageEvidence.READ:
            return True
        case LanguageEvidence.UNREAD:
            return False
        case LanguageEvidence.NONE:
            is_short_reply = (
                sum(1 for _ in islice(_WORD.finditer(_MARK.sub(" ", text)), _MAX_SHORT_REPLY_WORDS + 1))
                <= _MAX_SHORT_REPLY_WORDS
            )
            is_question_read = classify_language_evidence(case.question) is LanguageEvidence.READ
            return (
                (is_short_reply and is_question_read)
                if case.expected_refusal
                else (is_short_reply or is_question_read)
            )


def _is_answer_required(case: GoldCase) -> bool:
    """Return whether the case requires an answer.

    A case does not require an answer if it expects a refusal, or if its gold is a refusal.
    """
    return not case.expected_refusal and not classify_refusal(case.gold).refused


def _has_gold_word_outside_question(case: GoldCase, text: str) -> bool:
    """Return whether a reply contains a word of the gold that is not in the question.

    Such a reply may be an answer.
    """
    asked, stated = (set(map(str.casefold, _WORD.findall(part))) for part in (" ".join(case.turns), text))
    gold = {token.text.casefold() for token in scan_case_text(case.gold).reader.tokens if token.key not in LIGHT}
    return any(len(word) >= _MIN_TELLING_LETTERS and word in stated for word in gold - asked)


_MIN_TELLING_LETTERS = 4
"""Only words of the gold with at least this many letters are searched for in a reply.

Shorter words occur in most replies.
"""


class RefusalGrader:
    """Grade whether a reply refuses or answers, as the case expects.

    If a refusal is expected, this grade is also the factual grade. A reply that declines and then gives a value of
    the requested kind fails. A reply that declines and then continues without such a value stays ungraded.

    If no refusal is expected:

    - A reply that helps, but adds a caveat, is an answer.
    - A reply that seems to decline, but contains words of the gold, stays ungraded.
    - If the gold says that the documents do not mention something, a reply that says the same is an answer.

    In an unsupported language, the grader gives a verdict only if a refusal is expected and the reply declines in
    English, German or Hindi words.
    """

    name = "refusals"
    version = "8"
    aspect = Aspect.REFUSAL

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:  # noqa: C901 - one row for each kind
        """Grade whether the reply refused as expected."""
        text = exchange.graded_text
        if not text.strip():
            return abstain(self, "the reply is empty", Blame.APP)
        refusal = classify_refusal(text, " ".join(case.turns), expected=case.expected_refusal)
        german = refusal.language == "de"
        if not (case.language.is_english_hindi_or_hinglish or german) and not (
            refusal.refused and case.expected_refusal
        ):
            return abstain_for_unsupported_language(self, "refusals are")
        if not refusal.refused and not german and not _can_recognise_refusal_in_language(case, text):
            return abstain(self, UNREAD_REPLY)
        is_error = refusal.kind is None and case.expected_refusal and find_error_leak(text) is not None
        match RefusalKind.ANSWERED if is_error else refusal.kind:
            case None:
                return abstain(self, UNSURE)
            case RefusalKind.REFUSED_THEN_ANSWERED if not _has_value_of_asked_kind(case, text, refusal):
                return abstain(self, GOES_ON)
            case RefusalKind.REFUSED if _is_answer_required(case) and _has_gold_word_outside_question(case, text):
                return abstain(self, UNSURE)
            case RefusalKind.REFUSED if _is_answer_required(case):
                kind, reason = FailureKind.OVER_REFUSAL, "the reply declines, but this case expects an answer"
            case RefusalKind.REFUSED if case.expected_refusal:
                kind, reason = None, "the reply declines, as expected"
            case RefusalKind.REFUSED_THEN_ANSWERED:
                kind, reason = (
                    FailureKind.SHOULD_HAVE_REFUSED,
                    "the reply declines, but then discloses the requested data",
                )
            case _ if case.expected_refusal:
                kind, reason = FailureKind.SHOULD_HAVE_REFUSED, "the reply answers, but this case expects a refusal"
            case _:
                kind, reason = None, "the reply answers, as expected"
        label = "refusal" if refusal.refused else "hedge"
        span = Span(where=exchange.graded_channel, start=refusal.start, end=refusal.end, label=label)
        return give_verdict(self, kind, reason, (span,) if refusal.end else ())


class ErrorLeakGrader:
    """Fail replies that show an error, such as HTTP 429 or a stack trace. An answer about an error passes."""

    name = "error_leak"
    version = "4"
    aspect = Aspect.ERROR_LEAK

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged:
        """Grade whether the graded text shows an error."""
        leak = find_error_leak(exchange.graded_text, case.question)
        if leak is None:
            return give_verdict(self, None, "the reply shows no error of the app", ())
        span = Span(where=exchange.graded_channel, start=leak.start, end=leak.end, label=str(leak.kind))
        return give_verdict(
            self, FailureKind.ERROR_LEAK, f"the reply is an error instead of an answer: {leak.kind}", (span,)
        )
