"""A run's results as rows of an experiment: what was asked, what came back, what it was worth, all texts redacted.

Severe cases are asked several times, and the worst asking counts (pass^k). So a case's share of the weighted score
is divided among its rows: over a whole experiment the average of ``lookout_earned`` divided by that of
``lookout_weight`` is the run's weighted score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Final

from monitors.gate.metrics import graded_cases, one_per_case, weight_of
from monitors.gate.ratings import BEST, WORST, rating_of
from monitors.gate.settings import Weights
from monitors.platforms.platform import ExperimentRow, Json, Score
from monitors.records.base import Blame, Finding, Severity
from monitors.records.exchanges import Exchange
from monitors.records.grades import FAILURE_WORDS, Assessment, CaseOutcome
from monitors.records.runs import CaseResult, ReasonKind, RunReport
from monitors.reports.marked_text import Redact, redaction_of

CORRECT: Final = "lookout_correct"
FACTUAL: Final = "lookout_factual"
USEFULNESS: Final = "lookout_usefulness"
SEVERITY: Final = "lookout_severity"
EARNED: Final = "lookout_earned"
WEIGHT: Final = "lookout_weight"


class CaseWeights:
    """What each graded case of a run earned in the weighted score, and could earn, shared by its rows."""

    def __init__(self, report: RunReport, assessments: Iterable[Assessment], weights: Weights) -> None:
        asked = tuple(assessments)
        folded = one_per_case(asked)
        outage = any(reason.kind is ReasonKind.DEPLOY for reason in report.reasons)
        graded = graded_cases(folded, outage=outage)
        self._worst = {one.case_id: one for one in folded if one.case_id in graded}
        self._asked = Counter(one.case_id for one in asked)
        self._weights = weights

    def scores(self, case_id: str) -> Iterator[Score]:
        """Both, as shares of the heaviest weight; none of a case that does not count."""
        worst = self._worst.get(case_id)
        if worst is None:
            return
        heaviest = max(weight_of(severity, self._weights) for severity in Severity)
        weight, rows = weight_of(worst.severity, self._weights), self._asked[case_id]
        earned = weight if worst.outcome is CaseOutcome.CORRECT else Decimal(0)
        among = f", among {rows} askings, of which the worst counts" if rows > 1 else ""
        for key, points in ((EARNED, earned), (WEIGHT, weight)):
            comment = f"{points} of {weight}{among}" if key == EARNED else f"weight {weight}{among}"
            yield Score(key=key, value=float(points / heaviest / rows), comment=comment)


def rows_of(
    results: Iterable[CaseResult], examples: Mapping[str, str], weights: CaseWeights, redact: Redact
) -> Iterator[ExperimentRow]:
    """The rows of the cases that have an example; ``examples`` has its id by the case's."""
    for result in results:
        example_id = examples.get(result.case.id)
        if example_id is not None:
            yield _row(result, example_id, weights, redaction_of(result, redact))


def _row(result: CaseResult, example_id: str, weights: CaseWeights, safe: Redact) -> ExperimentRow:
    came, found = result.result, result.assessment
    answered = isinstance(came, Exchange)
    took_ms = came.timings.total_ms if isinstance(came, Exchange) else 0
    return ExperimentRow(
        example_id=example_id,
        case_id=result.case.id,
        repeat=came.repeat,
        inputs=_inputs(result, safe),
        outputs=_outputs(came, safe) if isinstance(came, Exchange) else None,
        error=None if answered else safe(f"{came.reason}: {came.detail}"),
        started_at=came.asked_at,
        ended_at=came.asked_at + timedelta(milliseconds=took_ms),
        scores=(*_scores(result), *weights.scores(result.case.id)),
        metadata=_metadata(found),
    )


def _inputs(result: CaseResult, safe: Redact) -> Json:
    task, turns = result.case.triage, [safe(turn) for turn in result.case.turns]
    if task is not None:
        return {"issue_url": turns[0], "issue_title": safe(task.issue.title)}
    if len(turns) == 1:
        return {"question": turns[0]}
    return {"messages": [{"role": "user", "content": turn} for turn in turns]}


def _outputs(came: Exchange, safe: Redact) -> Json:
    answer: Json = {"answer": safe(came.graded_text)}
    if came.earlier_answers:
        answer["earlier_answers"] = [safe(text) for text in came.earlier_answers]
    return answer


def _metadata(found: Assessment) -> Json:
    said: Json = {
        "outcome": found.outcome.value,
        "severity": found.severity.value,
        "type": found.type,
        "language": found.language,
        "failures": [kind.value for kind in found.failure_kinds],
    }
    return said if found.app_path is None else said | {"app_path": found.app_path}


def _scores(result: CaseResult) -> Iterator[Score]:
    """What was found of one asking; what could not be told has no value."""
    found = result.assessment
    match found.outcome:
        case CaseOutcome.CORRECT:
            yield Score(key=CORRECT, value=1.0)
            yield Score(key=SEVERITY, value=1.0, comment="nothing found")
        case CaseOutcome.FAILED:
            yield Score(key=CORRECT, value=0.0, comment=_format_failures(found))
            yield _severity(found)
        case CaseOutcome.NO_ANSWER if found.blame is Blame.APP:
            yield Score(key=CORRECT, value=0.0, comment="no answer")
            yield _severity(found)
        case CaseOutcome.NO_ANSWER | CaseOutcome.UNGRADED:
            yield Score(key=CORRECT, comment="could not tell")
    if found.factual_match is not Finding.UNGRADED:
        yield Score(key=FACTUAL, value=float(found.factual_match is Finding.YES))
    rating = rating_of(found)
    if rating is not None:
        yield Score(key=USEFULNESS, value=(rating - WORST) / (BEST - WORST), comment=f"{rating} of {BEST}")


def _severity(found: Assessment) -> Score:
    """1 is nothing found, 0 severity 3: as the scores of live traffic have it."""
    value = 1 - found.severity / Severity.PAGE
    return Score(key=SEVERITY, value=value, comment=f"severity {found.severity.value}")


def _format_failures(found: Assessment) -> str:
    """The kinds of failure alone: a reason may quote the reply."""
    return ", ".join(FAILURE_WORDS[kind] for kind in found.failure_kinds)


def in_parts(rows: Iterator[ExperimentRow], size: int) -> Iterator[Sequence[ExperimentRow]]:
    """Rows a few at a time: a long run is never held twice."""
    part = list[ExperimentRow]()
    for row in rows:
        part.append(row)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part
