"""What came of the planted faults of the triage agent: which a run caught, by what, and what else it found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from deployments.demo.agent.faults import PlantedFault, planted_in
from monitors.plural import plural
from monitors.records.grades import Aspect, CaseOutcome, Judged
from monitors.records.runs import CaseResult, RunReport

CAUGHT_BY: Final = {
    PlantedFault.WRONG_FILE: Aspect.RELEVANT_FILES,
    PlantedFault.EVERY_FILE: Aspect.RELEVANT_FILES,
    PlantedFault.SEARCHES_TWICE: Aspect.EFFICIENCY,
    PlantedFault.NEEDLESS_QUESTION: Aspect.EFFICIENCY,
    PlantedFault.EMPTY_REPORT: Aspect.REPORT_FORM,
    PlantedFault.WRONG_CAUSE: Aspect.USEFULNESS,
}
"""The question of a grader that each fault answers with no."""
LOW_RATING: Final = 2
"""The wrong area, or worse: see the rubric in docs/triage.md."""


class FaultOutcome(NamedTuple):
    """A planted fault, its case, and the reason of the grader that caught it; ``None`` when none did."""

    fault: PlantedFault
    case_id: str
    caught_by: str | None


def fault_outcomes(cases: Sequence[CaseResult]) -> tuple[FaultOutcome, ...]:
    """What came of each fault, in their order."""
    found = [(fault, one) for one in cases if (fault := _fault_of(one)) is not None]
    order = list(PlantedFault)
    return tuple(
        FaultOutcome(fault, one.case.id, next(_objections(one, CAUGHT_BY[fault]), None))
        for fault, one in sorted(found, key=lambda pair: order.index(pair[0]))
    )


def reported_besides(cases: Sequence[CaseResult], *, faults: bool = True) -> tuple[str, ...]:
    """Ids of the cases without a planted fault that are not correct, or rated low."""
    sound = [one for one in cases if not faults or _fault_of(one) is None]
    return tuple(
        one.case.id
        for one in sound
        if one.assessment.outcome is not CaseOutcome.CORRECT or any(_objections(one, Aspect.USEFULNESS))
    )


def _fault_of(result: CaseResult) -> PlantedFault | None:
    task = result.case.triage
    return planted_in(task.issue.text) if task else None


def _objections(result: CaseResult, aspect: Aspect) -> Iterator[str]:
    for grade in result.assessment.grades:
        if not isinstance(grade, Judged) or grade.aspect is not aspect:
            continue
        if aspect is Aspect.USEFULNESS:
            if grade.rubric is not None and grade.rubric <= LOW_RATING:
                yield f"rated {grade.rubric} of 5: {grade.reason}"
        elif not grade.passed:
            yield grade.reason


def format_outcomes(report: RunReport, cases: Sequence[CaseResult], *, faults: bool) -> Iterator[str]:
    """The planted faults line by line, what else was found, and whether reports were rated."""
    outcomes = fault_outcomes(cases) if faults else ()
    if outcomes:
        caught = sum(one.caught_by is not None for one in outcomes)
        yield f"{caught} of {plural(len(outcomes), 'planted fault')} caught:"
        yield from (f"  {_format_outcome(one, rated=report.rubric is not None)}" for one in outcomes)
    others = reported_besides(cases, faults=faults)
    nothing = "Nothing else was reported." if outcomes else "Nothing was reported."
    yield f"Reported without a planted fault: {', '.join(others)}." if others else nothing
    if report.rubric is None:
        yield (
            "No report was rated for usefulness: that takes a judge. `lookout demo --agent --judge` has one, with "
            "ANTHROPIC_API_KEY."
        )
    else:
        yield f"{plural(len(report.rubric.ratings), 'report')} rated, {report.rubric.mean:.1f} of 5 on average."


def _format_outcome(outcome: FaultOutcome, *, rated: bool) -> str:
    name = f"{outcome.fault} ({outcome.case_id})"
    if outcome.caught_by is not None:
        return f"✓ {name}: {outcome.caught_by}"
    needs_judge = CAUGHT_BY[outcome.fault] is Aspect.USEFULNESS and not rated
    return f"✗ {name}: not caught" + ("; no rule can tell a wrong cause, a judge can" if needs_judge else "")
