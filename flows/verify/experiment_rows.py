"""Builds the rows of an experiment on a platform from a run's results: inputs, outputs and scores, redacted.

If a case was asked several times, the worst answer counts, and each row of the case gets an equal part of the
case's points. The average of ``lookout_earned``, divided by the average of ``lookout_weight``, is the run's
weighted score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Final

from monitors.gate.metrics import collect_graded_case_ids, get_weight, select_worst_repeats
from monitors.gate.ratings import MAX_RATING, MIN_RATING, find_rating_grade
from monitors.gate.settings import Weights
from monitors.platforms.platform import ExperimentRow, Json, Score
from monitors.records.base import Blame, Finding, Severity
from monitors.records.exchanges import Exchange
from monitors.records.grades import FAILURE_WORDS, Assessment, CaseOutcome, Criterion
from monitors.records.runs import CaseResult, ReasonKind, RunReport
from monitors.reports.marked_text import Redact, build_case_redactor
from monitors.reports.triage_view import describe_criterion

CORRECT: Final = "lookout_correct"
FACTUAL: Final = "lookout_factual"
USEFULNESS: Final = "lookout_usefulness"
SEVERITY: Final = "lookout_severity"
EARNED: Final = "lookout_earned"
WEIGHT: Final = "lookout_weight"


class CaseWeights:
    """The earned and possible points of each graded case in the weighted score, divided among the case's rows."""

    def __init__(self, report: RunReport, assessments: Iterable[Assessment], weights: Weights) -> None:
        all_assessments = tuple(assessments)
        folded = select_worst_repeats(all_assessments)
        outage = any(reason.kind is ReasonKind.DEPLOY for reason in report.reasons)
        graded = collect_graded_case_ids(folded, outage=outage)
        self._worst = {assessment.case_id: assessment for assessment in folded if assessment.case_id in graded}
        self._asked = Counter(assessment.case_id for assessment in all_assessments)
        self._weights = weights

    def build_point_scores(self, case_id: str) -> Iterator[Score]:
        """Yield two scores for a row of a case: the points earned and the points possible.

        Each is the case's points, divided by the weight of the worst severity and by the number of the case's rows.
        An ungraded case yields no scores.
        """
        worst = self._worst.get(case_id)
        if worst is None:
            return
        heaviest = max(get_weight(severity, self._weights) for severity in Severity)
        weight, rows = get_weight(worst.severity, self._weights), self._asked[case_id]
        earned = weight if worst.outcome is CaseOutcome.CORRECT else Decimal(0)
        among = f"; asked {rows} times, and the worst result counts" if rows > 1 else ""
        for key, points in ((EARNED, earned), (WEIGHT, weight)):
            comment = f"{points} of {weight}{among}" if key == EARNED else f"weight {weight}{among}"
            yield Score(key=key, value=float(points / heaviest / rows), comment=comment)


def build_experiment_rows(
    results: Iterable[CaseResult], examples: Mapping[str, str], weights: CaseWeights, redact: Redact
) -> Iterator[ExperimentRow]:
    """Yield a row for each result whose case has an example. ``examples`` maps case ids to example ids."""
    for result in results:
        example_id = examples.get(result.case.id)
        if example_id is not None:
            yield _build_experiment_row(result, example_id, weights, build_case_redactor(result, redact))


def _build_experiment_row(result: CaseResult, example_id: str, weights: CaseWeights, safe: Redact) -> ExperimentRow:
    probe_result, assessment = result.result, result.assessment
    answered = isinstance(probe_result, Exchange)
    took_ms = probe_result.timings.total_ms if isinstance(probe_result, Exchange) else 0
    return ExperimentRow(
        example_id=example_id,
        case_id=result.case.id,
        repeat=probe_result.repeat,
        inputs=_build_inputs(result, safe),
        outputs=_build_outputs(probe_result, safe) if isinstance(probe_result, Exchange) else None,
        error=None if answered else safe(f"{probe_result.reason}: {probe_result.detail}"),
        started_at=probe_result.asked_at,
        ended_at=probe_result.asked_at + timedelta(milliseconds=took_ms),
        scores=(
            *_build_scores(result),
            *_build_usefulness_scores(result, safe),
            *weights.build_point_scores(result.case.id),
        ),
        metadata=_build_metadata(assessment),
    )


def _build_inputs(result: CaseResult, safe: Redact) -> Json:
    task, turns = result.case.triage, [safe(turn) for turn in result.case.turns]
    if task is not None:
        return {"issue_url": turns[0], "issue_title": safe(task.issue.title)}
    if len(turns) == 1:
        return {"question": turns[0]}
    return {"messages": [{"role": "user", "content": turn} for turn in turns]}


def _build_outputs(exchange: Exchange, safe: Redact) -> Json:
    answer: Json = {"answer": safe(exchange.graded_text)}
    if exchange.earlier_answers:
        answer["earlier_answers"] = [safe(text) for text in exchange.earlier_answers]
    return answer


def _build_metadata(assessment: Assessment) -> Json:
    metadata: Json = {
        "outcome": assessment.outcome.value,
        "severity": assessment.severity.value,
        "type": assessment.type,
        "language": assessment.language,
        "failures": [kind.value for kind in assessment.failure_kinds],
    }
    return metadata if assessment.app_path is None else metadata | {"app_path": assessment.app_path}


def _build_scores(result: CaseResult) -> Iterator[Score]:
    """Yield the scores of one answer. If the answer is not graded, its correctness score has no value."""
    assessment = result.assessment
    match assessment.outcome:
        case CaseOutcome.CORRECT:
            yield Score(key=CORRECT, value=1.0)
            yield Score(key=SEVERITY, value=1.0, comment="nothing found")
        case CaseOutcome.FAILED:
            yield Score(key=CORRECT, value=0.0, comment=_format_failures(assessment))
            yield _build_severity_score(assessment)
        case CaseOutcome.NO_ANSWER if assessment.blame is Blame.APP:
            yield Score(key=CORRECT, value=0.0, comment="no answer")
            yield _build_severity_score(assessment)
        case CaseOutcome.NO_ANSWER | CaseOutcome.UNGRADED:
            yield Score(key=CORRECT, comment="not graded")
    if assessment.factual_match is not Finding.UNGRADED:
        yield Score(key=FACTUAL, value=float(assessment.factual_match is Finding.YES))


def _build_usefulness_scores(result: CaseResult, safe: Redact) -> Iterator[Score]:
    """Yield the rating, and a score of 1 or 0 for each of its criteria, with the quote and the reason."""
    grade = find_rating_grade(result.assessment)
    if grade is None or grade.rubric is None:
        return
    yield Score(
        key=USEFULNESS,
        value=(grade.rubric - MIN_RATING) / (MAX_RATING - MIN_RATING),
        comment=f"{grade.rubric} of {MAX_RATING}",
    )
    for criterion in grade.criteria:
        comment = describe_criterion(criterion, result.result, safe)
        yield Score(key=f"{USEFULNESS}_{criterion.name}", value=float(criterion.score), comment=comment)
    if grade.criteria_problem:
        for name in Criterion:
            yield Score(key=f"{USEFULNESS}_{name}", comment=f"not rated: {grade.criteria_problem}")


def _build_severity_score(assessment: Assessment) -> Score:
    """Build the severity score of a failure: 0 for severity 3, and higher for a lower severity."""
    value = 1 - assessment.severity / Severity.CRITICAL
    return Score(key=SEVERITY, value=value, comment=f"severity {assessment.severity.value}")


def _format_failures(assessment: Assessment) -> str:
    """Format the failure kinds without their reasons, because a reason may quote the reply."""
    return ", ".join(FAILURE_WORDS[kind] for kind in assessment.failure_kinds)


def split_into_batches(rows: Iterator[ExperimentRow], size: int) -> Iterator[Sequence[ExperimentRow]]:
    """Split rows into lists of up to ``size`` rows. One list exists at a time, to save memory."""
    batch = list[ExperimentRow]()
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
