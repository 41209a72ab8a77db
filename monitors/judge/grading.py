"""A ruling becomes a grade: judged with lineage, cost and evidence, or abstained with the reason."""

from __future__ import annotations

from typing import Final

from monitors.judge.prompt import RUBRIC_VERSION, Task, instructions
from monitors.judge.ruling import Ruled, Ruling
from monitors.records.base import Blame
from monitors.records.exchanges import Channel, Exchange, WirePayload
from monitors.records.grades import Abstained, Aspect, Judged, Span

JUDGE: Final = "judge"
REASON_CHARACTERS: Final = 600

OFF: Final = "the judge is off"
"""How every abstention begins that a judge might have settled."""


def grade_of(ruling: Ruling, exchange: Exchange) -> Judged | Abstained:
    """The grade that goes on the assessment."""
    task = ruling.case.task
    if not isinstance(ruling, Ruled):
        return abstention(ruling.reason, ruling.blame, task)
    decision = ruling.decision
    kinds = decision.failure_kinds
    told = f"{decision.speaker.verdict.reason}; {decision.disagreement}".removesuffix("; ")
    return Judged(
        grader=JUDGE,
        version=version_of(task),
        aspect=aspect_of(task),
        passed=decision.passed,
        failure_kind=None if decision.passed else kinds[0],
        score=decision.score,
        rubric=decision.rubric,
        reason=told[:REASON_CHARACTERS],
        evidence=_evidence(decision.speaker.verdict.quotes, exchange),
        lineage=ruling.lineage,
        cost_usd=ruling.cost.usd,
    )


def abstention(reason: str, blame: Blame = Blame.MONITOR, task: Task = Task.FACTUAL) -> Abstained:
    """The judge says nothing, and why."""
    return Abstained(
        grader=JUDGE,
        version=version_of(task),
        aspect=aspect_of(task),
        reason=reason[:REASON_CHARACTERS],
        blame=blame,
    )


def version_of(task: Task) -> str:
    """Changes with every word of the prompt."""
    return f"{RUBRIC_VERSION}-{instructions(task).sha256[:12]}"


def aspect_of(task: Task) -> Aspect:
    """A report's rubric is never part of correctness."""
    return Aspect.USEFULNESS if task is Task.RUBRIC else Aspect.FACTUAL_MATCH


def _evidence(quotes: tuple[str, ...], exchange: Exchange) -> tuple[Span, ...]:
    """Where the quotes stand in the text as it came; one that was made plain before it was judged has no place."""
    text = exchange.graded_text
    graded_on_wire = exchange.graded_channel is Channel.WIRE and isinstance(exchange.wire, WirePayload)
    where = Channel.WIRE if graded_on_wire else Channel.VISIBLE
    found = ((quote, text.find(quote)) for quote in quotes)
    return tuple(
        Span(where=where, start=place, end=place + len(quote), label="quoted by the judge")
        for quote, place in found
        if place >= 0
    )
