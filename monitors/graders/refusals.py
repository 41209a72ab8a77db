"""Whether the reply refused exactly when it should."""

from __future__ import annotations

from monitors.facts.refusals import Refusal, read_refusal
from monitors.graders.base import abstained, judged
from monitors.records.base import Blame
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import Abstained, Aspect, FailureKind, Judged, Span


class RefusalGrader:
    """For an expected refusal this is also its factual match: it is right when it refused.

    A hedge that still answers is no refusal. Where the gold itself says that the documents are silent, a reply
    that says so answers the question.
    """

    name = "refusals"
    version = "1"
    aspect = Aspect.REFUSAL

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """Grade whether the reply refused as expected."""
        text = exchange.graded_text
        if not text.strip():
            return abstained(self, "the reply is empty: neither an answer nor a refusal", Blame.APP)
        refusal = read_refusal(text)
        if case.expected_refusal:
            return self._of_expected_refusal(refusal, exchange)
        if refusal.refused and not read_refusal(case.gold).refused:
            return self._judged(
                FailureKind.OVER_REFUSAL, "it declined a question it should answer", refusal, exchange
            )
        return self._judged(None, "it did not decline, as it should", refusal, exchange)

    def _of_expected_refusal(self, refusal: Refusal, exchange: Exchange) -> Judged:
        if refusal.refused:
            return self._judged(None, "it declined, as it should", refusal, exchange)
        said = "it hedged and still answered" if refusal.hedged else "it answered"
        return self._judged(
            FailureKind.SHOULD_HAVE_REFUSED, f"{said} a question it should decline", refusal, exchange
        )

    def _judged(self, kind: FailureKind | None, reason: str, refusal: Refusal, exchange: Exchange) -> Judged:
        label = "refusal" if refusal.refused else "hedge"
        span = Span(where=exchange.graded_channel, start=refusal.start, end=refusal.end, label=label)
        return judged(self, kind, reason, (span,) if refusal.end else ())
