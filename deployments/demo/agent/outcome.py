"""Functions that list which planted faults of the triage agent a run detected or missed, and other failures.

Each detected fault is listed with the reason of the grade that detected it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from deployments.demo.agent.faults import PlantedFault, find_fault_triggered_by_issue
from monitors.plural import plural
from monitors.records.grades import Aspect, CaseOutcome, Judged
from monitors.records.runs import CaseResult, RunReport

ASPECT_OF_FAULT: Final = {
    PlantedFault.WRONG_FILE: Aspect.RELEVANT_FILES,
    PlantedFault.EVERY_FILE: Aspect.RELEVANT_FILES,
    PlantedFault.SEARCHES_TWICE: Aspect.EFFICIENCY,
    PlantedFault.NEEDLESS_QUESTION: Aspect.EFFICIENCY,
    PlantedFault.EMPTY_REPORT: Aspect.REPORT_FORM,
    PlantedFault.WRONG_CAUSE: Aspect.USEFULNESS,
}
"""The aspect of a report that each fault affects."""
MAX_LOW_RATING: Final = 2
"""Maximum rating that counts as low. A report with this rating names the wrong area (rubric in docs/triage.md).

If a report with a planted fault gets a low rating, Lookout has detected the fault.
"""


class FaultOutcome(NamedTuple):
    """A planted fault, its case, and the reason of the grade that detected it.

    If no grade detected the fault, the reason is ``None``.
    """

    fault: PlantedFault
    case_id: str
    caught_by: str | None


def list_fault_outcomes(cases: Sequence[CaseResult]) -> tuple[FaultOutcome, ...]:
    """Return the outcome of each planted fault, in the order of `PlantedFault`."""
    faulty = [(fault, result) for result in cases if (fault := _find_fault_triggered_by_case(result)) is not None]
    order = list(PlantedFault)
    return tuple(
        FaultOutcome(
            fault, result.case.id, next(_list_failure_reasons_of_aspect(result, ASPECT_OF_FAULT[fault]), None)
        )
        for fault, result in sorted(faulty, key=lambda pair: order.index(pair[0]))
    )


def list_failed_ids_without_fault(cases: Sequence[CaseResult], *, faults: bool = True) -> tuple[str, ...]:
    """List the ids of cases that have no planted fault, but are not correct or have a low rating.

    If ``faults`` is false, the agent has no faults, so all cases are checked.
    """
    without_fault = [result for result in cases if not faults or _find_fault_triggered_by_case(result) is None]
    return tuple(
        result.case.id
        for result in without_fault
        if result.assessment.outcome is not CaseOutcome.CORRECT
        or any(_list_failure_reasons_of_aspect(result, Aspect.USEFULNESS))
    )


def _find_fault_triggered_by_case(result: CaseResult) -> PlantedFault | None:
    task = result.case.triage
    return find_fault_triggered_by_issue(task.issue.title_and_body) if task else None


def _list_failure_reasons_of_aspect(result: CaseResult, aspect: Aspect) -> Iterator[str]:
    for grade in result.assessment.grades:
        if not isinstance(grade, Judged) or grade.aspect is not aspect:
            continue
        if aspect is Aspect.USEFULNESS:
            if grade.rubric is not None and grade.rubric <= MAX_LOW_RATING:
                yield f"rated {grade.rubric} of 5: {grade.reason}"
        elif not grade.passed:
            yield grade.reason


def format_outcomes(report: RunReport, cases: Sequence[CaseResult], *, faults: bool) -> Iterator[str]:
    """Format one line for each planted fault, then the other failures and the average rating."""
    outcomes = list_fault_outcomes(cases) if faults else ()
    if outcomes:
        caught = sum(outcome.caught_by is not None for outcome in outcomes)
        yield f"{caught} of {plural(len(outcomes), 'planted fault')} caught:"
        yield from (f"  {_format_outcome(outcome, rated=report.rubric is not None)}" for outcome in outcomes)
    other_ids = list_failed_ids_without_fault(cases, faults=faults)
    nothing = "There are no other failures." if outcomes else "There are no failures."
    yield f"Failures without a planted fault: {', '.join(other_ids)}." if other_ids else nothing
    if report.rubric is None:
        yield (
            "No report was rated for usefulness, because a rating needs a judge. Set ANTHROPIC_API_KEY and run "
            "`lookout demo --agent --judge`."
        )
    else:
        yield f"{plural(len(report.rubric.ratings), 'report')} rated, {report.rubric.mean:.1f} of 5 on average."
        if report.rubric.criteria is not None:
            yield f"Criteria: {report.rubric.criteria.text}."


def _format_outcome(outcome: FaultOutcome, *, rated: bool) -> str:
    name = f"{outcome.fault} ({outcome.case_id})"
    if outcome.caught_by is not None:
        return f"✓ {name}: {outcome.caught_by}"
    needs_judge = ASPECT_OF_FAULT[outcome.fault] is Aspect.USEFULNESS and not rated
    return f"✗ {name}: not caught" + (". Only a judge can detect a wrong cause" if needs_judge else "")
