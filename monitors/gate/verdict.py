"""PASS, FAIL or INCONCLUSIVE, with the reasons in order of weight."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from monitors.gate.score import weight_of
from monitors.gate.settings import GateSettings
from monitors.records.base import Finding, Severity
from monitors.records.grades import Assessment, CaseOutcome
from monitors.records.runs import Coverage, Metric, ReasonKind, Scores, Verdict, VerdictReason


def coverage_of(told: frozenset[str], planned: int, settings: GateSettings) -> Coverage:
    """How many of the ``planned`` cases could be told."""
    return Coverage(asked=planned, told=len(told), floor=settings.coverage_floor)


def decide(
    assessments: Sequence[Assessment],
    *,
    told: frozenset[str],
    outage: str | None,
    scores: Scores,
    metrics: Sequence[Metric],
    coverage: Coverage,
    interrupted: bool,
    settings: GateSettings,
) -> tuple[Verdict, tuple[VerdictReason, ...]]:
    """The verdict over one assessment per case; ``outage`` is what was said of an app that was down.

    FAIL needs proof: a severity-3 failure, or a score or metric below its floor even if all that could not be
    told had been right. Without proof either way, for want of coverage, it is INCONCLUSIVE.
    """
    failing = [
        *_veto(assessments),
        *_weighted(assessments, told, scores, coverage, settings),
        *_missed_targets(metrics, coverage),
    ]
    open_questions = [
        *_outage(outage),
        *_coverage(assessments, told, coverage, interrupted=interrupted),
        *_balance(assessments, settings),
    ]
    reasons = tuple(failing + open_questions)
    if any(reason.decisive for reason in failing):
        return Verdict.FAIL, reasons
    if any(reason.decisive for reason in open_questions):
        return Verdict.INCONCLUSIVE, reasons
    return Verdict.PASS, reasons


def _veto(assessments: Sequence[Assessment]) -> list[VerdictReason]:
    severe = [a for a in assessments if a.outcome is CaseOutcome.FAILED and a.severity is Severity.PAGE]
    if not severe:
        return []
    failures = "failure fails" if len(severe) == 1 else "failures fail"
    text = f"{len(severe)} severity-3 {failures} the run whatever the score"
    return [VerdictReason(kind=ReasonKind.VETO, text=text, case_ids=tuple(a.case_id for a in severe))]


def _outage(said: str | None) -> list[VerdictReason]:
    if said is None:
        return []
    return [VerdictReason(kind=ReasonKind.DEPLOY, text=f"the app did not serve: {said}")]


def _weighted(
    assessments: Sequence[Assessment],
    told: frozenset[str],
    scores: Scores,
    coverage: Coverage,
    settings: GateSettings,
) -> list[VerdictReason]:
    value = scores.weighted.value
    if value is None or value >= settings.min_weighted_score:
        return []
    lost = tuple(a.case_id for a in assessments if a.case_id in told and a.outcome is not CaseOutcome.CORRECT)
    text = (
        f"weighted score {value:.3f} ({scores.weighted.earned}/{scores.weighted.total}) "
        f"is below {settings.min_weighted_score:g}"
    )
    best = _best_case(assessments, told, scores, coverage, settings)
    proven = best < settings.min_weighted_score
    if not proven:
        text += f"; with all that could not be told it might reach {best:.3f}"
    return [VerdictReason(kind=ReasonKind.WEIGHTED_SCORE, text=text, case_ids=lost, decisive=proven)]


def _best_case(
    assessments: Sequence[Assessment],
    told: frozenset[str],
    scores: Scores,
    coverage: Coverage,
    settings: GateSettings,
) -> float:
    """The weighted score if everything that could not be told, or was not asked, had been right.

    Cases that were not asked have no severity here: they count with the weight of severity 3, in the app's favour.
    """
    weights = settings.weights
    untold = sum((weight_of(a.case_severity, weights) for a in assessments if a.case_id not in told), Decimal(0))
    unasked = weight_of(Severity.PAGE, weights) * max(0, coverage.asked - len(assessments))
    total = scores.weighted.total + untold + unasked
    return float((scores.weighted.earned + untold + unasked) / total)


def _missed_targets(metrics: Sequence[Metric], coverage: Coverage) -> list[VerdictReason]:
    """Missed targets decide only when enough could be told."""
    enough = coverage.told >= coverage.floor * coverage.asked
    return [
        VerdictReason(
            kind=ReasonKind.METRIC_TARGET,
            text=f"{m.name} {m.passed / m.total:.3f} ({m.passed}/{m.total}) is below its target {m.target:.3g}",
            decisive=enough,
        )
        for m in metrics
        if m.met is Finding.NO and m.target is not None
    ]


def _coverage(
    assessments: Sequence[Assessment], told: frozenset[str], coverage: Coverage, *, interrupted: bool
) -> list[VerdictReason]:
    reasons: list[VerdictReason] = []
    if interrupted:
        text = f"the run was stopped: {len(assessments)} of {coverage.asked} cases were asked"
        reasons.append(VerdictReason(kind=ReasonKind.COVERAGE, text=text))
    untold = [a for a in assessments if a.case_id not in told]
    if coverage.told < coverage.floor * coverage.asked or coverage.told == 0:
        reasons.append(_too_little(coverage.told, coverage.asked, "cases", untold, coverage))
    severe = [a for a in assessments if a.case_severity is Severity.PAGE]
    seen = sum(a.case_id in told for a in severe)
    if seen < coverage.floor * len(severe):
        blind = [a for a in untold if a.case_severity is Severity.PAGE]
        reasons.append(_too_little(seen, len(severe), "severity-3 cases", blind, coverage))
    return reasons


def _too_little(
    told: int, asked: int, what: str, untold: Sequence[Assessment], coverage: Coverage
) -> VerdictReason:
    text = f"only {told} of {asked} {what} could be told; {coverage.floor:.0%} are needed"
    return VerdictReason(kind=ReasonKind.COVERAGE, text=text, case_ids=tuple(a.case_id for a in untold))


def _balance(assessments: Sequence[Assessment], settings: GateSettings) -> list[VerdictReason]:
    severe = sum(a.case_severity is Severity.PAGE for a in assessments)
    if severe >= settings.min_severity_3_cases:
        return []
    text = f"the suite has {severe} severity-3 cases; at least {settings.min_severity_3_cases} are wanted"
    return [VerdictReason(kind=ReasonKind.BALANCE, text=text, decisive=settings.strict)]
