"""The flat pass rate and the severity-weighted score, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from monitors.gate.settings import Weights
from monitors.records.base import Blame, Severity
from monitors.records.grades import Assessment, CaseOutcome
from monitors.records.runs import Ratio, Scores, SeverityTally

_WORST_FIRST = (CaseOutcome.FAILED, CaseOutcome.NO_ANSWER, CaseOutcome.UNTOLD, CaseOutcome.CORRECT)


def told_cases(assessments: Sequence[Assessment], *, outage: bool) -> frozenset[str]:
    """Ids of the cases that say something about the application: correct, failed, or no answer by its own fault.

    In an outage an unanswered question says only that the app was down, which is said once and not per case.
    """
    return frozenset(a.case_id for a in assessments if is_told(a, outage=outage))


def is_told(assessment: Assessment, *, outage: bool) -> bool:
    """Whether one asking of a case says something about the application."""
    match assessment.outcome:
        case CaseOutcome.CORRECT | CaseOutcome.FAILED:
            return True
        case CaseOutcome.NO_ANSWER:
            return assessment.blame is Blame.APP and not outage
        case CaseOutcome.UNTOLD:
            return False


def one_per_case(assessments: Sequence[Assessment]) -> tuple[Assessment, ...]:
    """Fold repeats: a case asked k times is correct only when all k were (pass^k), so the worst one stands."""
    worst: dict[str, Assessment] = {}
    for assessment in assessments:
        known = worst.get(assessment.case_id)
        if known is None or _badness(assessment) < _badness(known):
            worst[assessment.case_id] = assessment
    return tuple(worst.values())


def _badness(assessment: Assessment) -> tuple[int, int]:
    return _WORST_FIRST.index(assessment.outcome), -assessment.severity


def weight_of(severity: Severity, weights: Weights) -> Decimal:
    """What a case of this severity weighs."""
    return {
        Severity.ANNOYING: weights.severity_1,
        Severity.WRONG: weights.severity_2,
        Severity.PAGE: weights.severity_3,
    }[severity]


def score(assessments: Sequence[Assessment], told: frozenset[str], weights: Weights) -> Scores:
    """Both scores over the ``told`` cases, one assessment per case.

    A case weighs what its own severity says, so that the total is known before anything fails; a failure that the
    policy table lifts to severity 3 is the veto's business.
    """
    counted = [a for a in assessments if a.case_id in told]
    tallies = tuple(_tally(severity, counted, weights) for severity in Severity)
    cases = sum(t.cases for t in tallies)
    lost = sum(t.lost for t in tallies)
    weight = sum((t.weight * t.cases for t in tallies), Decimal(0))
    lost_weight = sum((t.weight * t.lost for t in tallies), Decimal(0))
    return Scores(
        flat=Ratio(earned=Decimal(cases - lost), total=Decimal(cases)),
        weighted=Ratio(earned=weight - lost_weight, total=weight),
        tallies=tallies,
        weights_version=weights.version,
    )


def _tally(severity: Severity, counted: Sequence[Assessment], weights: Weights) -> SeverityTally:
    same = [a for a in counted if a.case_severity is severity]
    lost = sum(a.outcome is not CaseOutcome.CORRECT for a in same)
    return SeverityTally(severity=severity, weight=weight_of(severity, weights), cases=len(same), lost=lost)
