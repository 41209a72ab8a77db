"""Whether the reply states every quantity of the gold, in its role."""

from __future__ import annotations

from monitors.facts.scan import Scan
from monitors.graders.base import abstained, judged
from monitors.graders.equality import Match
from monitors.graders.gold_kinds import is_measured
from monitors.graders.quantity_match import Finding, Looseness, Outcome, weigh
from monitors.graders.quantity_words import measured
from monitors.graders.scanned import FLOOD, scanned_reply
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Channel, Exchange
from monitors.records.grades import Abstained, Aspect, FailureKind, Judged, Span

NO_QUANTITY = "the gold states no quantity"
"""Why the grader abstains where there is nothing for it to do."""


class QuantitiesGrader:
    """Every quantity of the gold must be in the reply, in its role: kind, value, bound, what it is about.

    Any of the case's alternatives is as good as its gold. A different quantity in the same role is a wrong fact,
    none at all a missing one. It abstains when the gold states no quantity, or when the reply is compatible but
    less precise (a year for a whole date).
    """

    name = "quantities"
    version = "2"
    aspect = Aspect.FACTUAL_MATCH

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """Grade the graded text against gold and alternatives; spans point into it and into the gold."""
        reply = scanned_reply(exchange.graded_text)
        loose = Looseness(case.month_is_30_days, case.relative_tolerance)
        outcomes = [
            outcome
            for text in (case.gold, *case.alternatives)
            if is_measured(text) and (outcome := weigh(text, case.question, reply, loose)) is not None
        ]
        if not outcomes:
            return abstained(self, NO_QUANTITY)
        if reply.cut:
            return abstained(self, FLOOD)
        passed = next((outcome for outcome in outcomes if outcome.passed), None)
        if passed is not None:
            return self._judged(passed, reply, exchange.graded_channel)
        if any(outcome.passed is None for outcome in outcomes):
            return abstained(self, "the reply is compatible with the gold, but less precise or one of several")
        worst = next((outcome for outcome in outcomes if _kind(outcome) is FailureKind.WRONG_FACT), outcomes[0])
        return self._judged(worst, reply, exchange.graded_channel)

    def _judged(self, outcome: Outcome, reply: Scan, channel: Channel) -> Judged:
        return judged(
            self, None if outcome.passed else _kind(outcome), _reason(outcome), _evidence(outcome, reply, channel)
        )


# --- telling it -----------------------------------------------------------------------------------------------


def _kind(outcome: Outcome) -> FailureKind:
    wrong = any(finding.match is Match.DIFFERENT for finding in outcome.findings)
    return FailureKind.WRONG_FACT if wrong else FailureKind.MISSING_FACT


def _reason(outcome: Outcome) -> str:
    parts = [_sentence(finding) for finding in outcome.findings if outcome.passed or finding.match < Match.SAME]
    return "; ".join(parts[:4])


def _sentence(finding: Finding) -> str:
    gold = measured(finding.gold)
    if finding.match is Match.SAME:
        return f"states {gold}"
    if finding.other_role:
        return f"states {gold} only about something else"
    if finding.denied:
        return f"expected {gold}, the reply denies {measured(finding.said) if finding.said else gold}"
    if finding.said is not None and finding.match is Match.DIFFERENT:
        return f"expected {gold}, found {measured(finding.said)}"
    return f"does not state {gold}"


def _evidence(outcome: Outcome, reply: Scan, channel: Channel) -> tuple[Span, ...]:
    spans: list[Span] = []
    for finding in outcome.findings[:8]:
        start, end = outcome.gold.normalised.original_span(finding.gold.start, finding.gold.end)
        spans.append(Span(where="gold", start=start, end=end, label=measured(finding.gold)))
        if finding.said is not None:
            start, end = reply.normalised.original_span(finding.said.start, finding.said.end)
            spans.append(Span(where=channel, start=start, end=end, label=measured(finding.said)))
    return tuple(spans)
