"""Whether the reply is an error of the machinery behind the app."""

from __future__ import annotations

from monitors.facts.error_leaks import find_error_leak
from monitors.graders.base import judged
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import Aspect, FailureKind, Judged, Span


class ErrorLeakGrader:
    """A provider's 429, a stack trace or an error body in a chat bubble. What the question quotes is no leak."""

    name = "error_leak"
    version = "1"
    aspect = Aspect.ERROR_LEAK

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged:
        """Grade whether the graded text shows an error."""
        leak = find_error_leak(exchange.graded_text)
        asked = find_error_leak(case.question)
        if leak is None or (asked is not None and asked.kind is leak.kind):
            return judged(self, None, "it shows no error of the app", ())
        span = Span(where=exchange.graded_channel, start=leak.start, end=leak.end, label=str(leak.kind))
        return judged(self, FailureKind.ERROR_LEAK, f"it shows an error instead of an answer: {leak.kind}", (span,))
