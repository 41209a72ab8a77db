"""Check the phrases and patterns that a case requires or forbids in a reply (`must_say` and `must_not_say`)."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from monitors.facts.text import Normalised, normalise
from monitors.graders.base import abstain, abstain_as_not_needed, give_verdict
from monitors.records.base import Blame
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import Abstained, Aspect, FailureKind, Judged, Span
from monitors.records.sayings import parse_phrase_or_pattern


class SayingsGrader:
    """Fail a reply that lacks a phrase of ``must_say`` or contains a phrase of ``must_not_say``.

    If a reply passes both checks, this grader gives a pass only if the case has ``must_say`` and expects no
    refusal. Otherwise, this grader abstains, and the other graders decide.
    """

    name = "sayings"
    version = "1"
    aspect = Aspect.FACTUAL_MATCH

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """Grade the graded text against the phrases of its case."""
        if not exchange.graded_text.strip():
            return abstain(self, "the reply is empty", Blame.APP)
        reply = normalise(exchange.graded_text)
        forbidden = [
            (written, place) for written in case.must_not_say if (place := find_phrase_or_pattern(written, reply))
        ]
        if forbidden:
            kind = FailureKind.SHOULD_HAVE_REFUSED if case.expected_refusal else FailureKind.WRONG_FACT
            reason = (
                "the reply contains forbidden text (must_not_say): "
                f"{_quote_all([written for written, _ in forbidden])}"
            )
            return give_verdict(self, kind, reason, _build_spans(exchange, [place for _, place in forbidden]))
        places = {written: find_phrase_or_pattern(written, reply) for written in case.must_say}
        missing = [written for written, place in places.items() if place is None]
        if missing:
            return give_verdict(
                self, FailureKind.MISSING_FACT, (f"the reply lacks required text (must_say): {_quote_all(missing)}")
            )
        if case.expected_refusal or not case.must_say:
            return abstain_as_not_needed(self, "the reply contains no forbidden text (must_not_say)")
        spans = _build_spans(exchange, [place for place in places.values() if place])
        return give_verdict(self, None, "the reply contains all required texts (must_say)", spans)


def find_phrase_or_pattern(written: str, text: Normalised) -> tuple[int, int] | None:
    """Return the span of a phrase or pattern in the original text, or ``None``.

    A phrase must match whole words and numbers.
    """
    pattern, is_phrase = parse_phrase_or_pattern(written)
    if is_phrase:
        plain = normalise(written).text
        if not plain.strip():  # it has no visible characters
            return None
        pattern = parse_phrase_or_pattern(plain).pattern
    for match in pattern.finditer(text.text):
        if not is_phrase or _is_whole_word(text.text, *match.span()):
            return text.find_original_span(*match.span())
    return None


def _is_whole_word(text: str, start: int, end: int) -> bool:
    """Return whether a match consists of whole words and numbers: "5" does not match in "15" or in "5.2"."""
    before, behind = text[max(0, start - 2) : start], text[end : end + 2]
    if text[start].isalnum() and (
        before[-1:].isalnum() or (text[start].isdigit() and _is_decimal_part(before[::-1]))
    ):
        return False
    goes_on = behind[:1].isalnum() or (behind and unicodedata.category(behind[0]).startswith("M"))
    return not (text[end - 1].isalnum() and (goes_on or (text[end - 1].isdigit() and _is_decimal_part(behind))))


def _is_decimal_part(beside: str) -> bool:
    return beside[:1] in {".", ","} and beside[1:2].isdigit()


def _quote_all(written: Sequence[str]) -> str:
    return ", ".join(f"“{text}”" for text in written)


def _build_spans(exchange: Exchange, places: Sequence[tuple[int, int]]) -> tuple[Span, ...]:
    return tuple(Span(where=exchange.graded_channel, start=start, end=end, label="saying") for start, end in places)
