"""PASS, FAIL or INCONCLUSIVE, with the reasons in order of weight."""

from __future__ import annotations

from monitors.gate import change_reasons, open_reasons, score_reasons
from monitors.gate.parity_reasons import parity_missed
from monitors.gate.settings import GateSettings
from monitors.gate.weighing import Weighing
from monitors.records.runs import Coverage, Verdict, VerdictReason


def coverage_of(told: frozenset[str], planned: int, settings: GateSettings) -> Coverage:
    """How many of the ``planned`` cases could be told."""
    return Coverage(asked=planned, told=len(told), floor=settings.coverage_floor)


def decide(run: Weighing) -> tuple[Verdict, tuple[VerdictReason, ...]]:
    """The verdict over one assessment for each case.

    FAIL needs proof: a severity-3 failure, or a score or metric below its floor even if all that could not be
    told had been right. Without proof either way, for want of coverage, it is INCONCLUSIVE. Proof that rests on one
    flaky case is none.
    """
    failing = [
        *score_reasons.veto(run),
        *score_reasons.weighted(run),
        *score_reasons.missed_targets(run),
        *parity_missed(run),
        *score_reasons.low_rating(run),
        *change_reasons.rating_drop(run),
        *change_reasons.regression(run),
    ]
    open_questions = [
        *open_reasons.outage(run),
        *open_reasons.coverage(run),
        *open_reasons.unrated(run),
        *open_reasons.balance(run),
    ]
    said = [*open_reasons.flaky(run), *open_reasons.sight(run)]
    reasons = (*failing, *open_questions, *said)
    if any(reason.decisive for reason in failing):
        return Verdict.FAIL, reasons
    if any(reason.decisive for reason in open_questions):
        return Verdict.INCONCLUSIVE, reasons
    return Verdict.PASS, reasons
