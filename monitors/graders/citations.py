"""Whether the reply names its source, and the right one."""

from __future__ import annotations

from collections.abc import Sequence

from monitors.facts.citations import DEFAULT_PATTERNS, find_citations, names_source
from monitors.facts.refusals import read_refusal
from monitors.graders.base import abstained, judged
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Channel, Exchange
from monitors.records.grades import Abstained, Aspect, FailureKind, Judged, Span


class CitationGrader:
    """A citation is required of every answer; a refusal, expected or not, has nothing to cite.

    It looks in the visible text, in the wire payload's text and in the citations that the payload lists: pages
    hide what they were sent. Where a target need not cite (``required`` false), none is missed. Where the case
    names a source, one of the citations must contain it.
    """

    name = "citations"
    version = "1"
    aspect = Aspect.CITATION

    def __init__(self, patterns: Sequence[str] = DEFAULT_PATTERNS, *, required: bool = True) -> None:
        self._patterns = tuple(patterns)
        self._required = required

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """Grade the citations of one exchange."""
        if case.expected_refusal:
            return abstained(self, "an expected refusal needs no source")
        named, spans = self._citations(exchange)
        if not named and not self._required and case.expected_citation is None:
            return judged(self, None, "this target need not name its sources", ())
        if not named:
            if read_refusal(exchange.graded_text).refused:
                return abstained(self, "the reply declined to answer and has nothing to cite")
            return judged(self, FailureKind.MISSING_CITATION, "the reply names no source", ())
        if case.expected_citation is None:
            return judged(self, None, f"the reply names {_count(len(named))}", spans)
        if any(names_source(source, case.expected_citation) for source in named):
            return judged(self, None, f"the reply names the expected source, {case.expected_citation}", spans)
        reason = f"the reply names {_count(len(named))}, not the expected {case.expected_citation}"
        return judged(self, FailureKind.WRONG_CITATION, reason, spans)

    def _citations(self, exchange: Exchange) -> tuple[tuple[str, ...], tuple[Span, ...]]:
        named: list[str] = []
        spans: list[Span] = []
        for channel, text in _texts(exchange):
            for citation in find_citations(text, self._patterns):
                named.append(citation.source)
                spans.append(Span(where=channel, start=citation.start, end=citation.end, label="citation"))
        listed = exchange.wire.citations if exchange.wire else ()
        return (*named, *(source for source in listed if source.strip())), tuple(spans)


def _texts(exchange: Exchange) -> tuple[tuple[Channel, str], ...]:
    visible = ((Channel.VISIBLE, exchange.visible_text),)
    return (*visible, (Channel.WIRE, exchange.wire.text)) if exchange.wire else visible


def _count(sources: int) -> str:
    return "a source" if sources == 1 else f"{sources} sources"
