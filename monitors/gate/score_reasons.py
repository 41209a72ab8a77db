"""Reasons from the run itself: the veto, the weighted score, missed targets, the reports' ratings.

Each decides only when it still stands with any one flaky case taken to have been right (`monitors.gate.flaky`).
"""

from __future__ import annotations

from decimal import Decimal
from statistics import fmean

from monitors.gate.metrics import Measured
from monitors.gate.ratings import lowest_first, without_worst
from monitors.gate.score import weight_of
from monitors.gate.weighing import Weighing
from monitors.records.base import Finding, Severity
from monitors.records.grades import CaseOutcome
from monitors.records.runs import ReasonKind, VerdictReason

ENOUGH_FLAKY = 2
"""So many flaky severity-3 cases veto together: one may be one odd question, two are the application."""


def veto(run: Weighing) -> list[VerdictReason]:
    """One severity-3 failure fails the run, unless its case is flaky and the only one."""
    severe = [a for a in run.assessments if a.outcome is CaseOutcome.FAILED and a.severity is Severity.PAGE]
    if not severe:
        return []
    ids = tuple(a.case_id for a in severe)
    flaky = [one for one in run.flaky if one.case_id in ids]
    if len(severe) == len(flaky) < ENOUGH_FLAKY:
        text = f"1 severity-3 failure is of a flaky case ({flaky[0].words}): it pages, it does not veto alone"
        return [VerdictReason(kind=ReasonKind.VETO, text=text, case_ids=ids, decisive=False)]
    some = f" ({len(flaky)} of flaky cases)" if flaky else ""
    failures = "failure fails" if len(severe) == 1 else f"failures{some} fail"
    text = f"{len(severe)} severity-3 {failures} the run whatever the score"
    return [VerdictReason(kind=ReasonKind.VETO, text=text, case_ids=ids)]


def weighted(run: Weighing) -> list[VerdictReason]:
    """The weighted score below its floor; proven when nothing that could not be told could have lifted it."""
    scores, floor = run.scores, run.settings.min_weighted_score
    value = scores.weighted.value
    if value is None or value >= floor:
        return []
    lost = [a for a in run.assessments if a.case_id in run.told and a.outcome is not CaseOutcome.CORRECT]
    text = f"weighted score {value:.3f} ({scores.weighted.earned}/{scores.weighted.total}) is below {floor:g}"
    spare = max(
        (weight_of(a.case_severity, run.settings.weights) for a in lost if a.case_id in run.flaky_ids),
        default=Decimal(0),
    )
    best, without_flaky = _best_case(run, Decimal(0)), _best_case(run, spare)
    if best >= floor:
        text += f"; with all that could not be told it might reach {best:.3f}"
    elif without_flaky >= floor:
        text += f"; without one flaky case it would be {without_flaky:.3f}"
    ids = tuple(a.case_id for a in lost)
    decisive = without_flaky < floor
    return [VerdictReason(kind=ReasonKind.WEIGHTED_SCORE, text=text, case_ids=ids, decisive=decisive)]


def _best_case(run: Weighing, spare: Decimal) -> float:
    """The weighted score if everything that could not be told, or was not asked, had been right, and ``spare`` too.

    Cases that were not asked have no severity here: they count with the weight of severity 3, in the app's favour.
    """
    weights = run.settings.weights
    untold = [weight_of(a.case_severity, weights) for a in run.assessments if a.case_id not in run.told]
    unasked = weight_of(Severity.PAGE, weights) * max(0, run.coverage.asked - len(run.assessments))
    more = sum(untold, Decimal(0)) + unasked
    earned, total = run.scores.weighted.earned, run.scores.weighted.total
    return float((earned + more + spare) / (total + more))


def missed_targets(run: Weighing) -> list[VerdictReason]:
    """Missed targets decide only when enough could be told."""
    return [
        VerdictReason(
            kind=ReasonKind.METRIC_TARGET,
            text=_missed_words(measured),
            case_ids=measured.missed,
            decisive=run.enough_told and _missed_without_flaky(measured, run.flaky_ids),
        )
        for measured in run.measured
        if measured.metric.met is Finding.NO
    ]


def _missed_words(measured: Measured) -> str:
    metric = measured.metric
    return (
        f"{metric.name} {metric.passed / metric.total:.3f} ({metric.passed}/{metric.total}) is below its target "
        f"{metric.target:.3g}"
    )


def _missed_without_flaky(measured: Measured, flaky: frozenset[str]) -> bool:
    metric = measured.metric
    spare = any(case_id in flaky for case_id in measured.missed)
    return metric.target is not None and (metric.passed + spare) / metric.total < metric.target


def low_rating(run: Weighing) -> list[VerdictReason]:
    """The reports' average rating below its floor."""
    floor = run.settings.min_rubric
    if not run.ratings or fmean(run.ratings.values()) >= floor:
        return []
    others = without_worst(run.ratings, run.flaky_ids)
    low = tuple(case_id for case_id in lowest_first(run.ratings) if run.ratings[case_id] < floor)
    average = fmean(run.ratings.values())
    text = f"average rating {average:.2f} of {len(run.ratings)} reports is below {floor:g} of 5"
    decisive = run.enough_told and bool(others) and fmean(others.values()) < floor
    return [VerdictReason(kind=ReasonKind.RUBRIC, text=text, case_ids=low, decisive=decisive)]
