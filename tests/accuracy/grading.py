"""Functions that grade labelled rows, and count how often the verdicts agree with the labels.

Each row is graded with a case and an exchange, as the panel of a run would grade it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from monitors.domains.pack import INSURANCE, load_domain
from monitors.graders.base import GraderSettings
from monitors.graders.factual import FactualGrader
from monitors.records.base import Language, Severity
from monitors.records.cases import GoldCase, Pipeline, Provenance
from monitors.records.exchanges import Exchange, Timings
from monitors.records.grades import Abstained, Judged
from tests.accuracy.figure import Verdicts

_GRADER = FactualGrader(GraderSettings(), load_domain((INSURANCE,)))
_SOMETIME = datetime(2026, 1, 1, tzinfo=UTC)


def grade(question: str, gold: Sequence[str], answer: str, *, language: str = "en") -> Judged | Abstained:
    """Return the factual grader's verdict on ``answer``. An answer that matches any text of ``gold`` is correct."""
    case = GoldCase(
        id="row",
        turns=(question,),
        gold=gold[0],
        alternatives=tuple(text for text in gold[1:] if text),
        severity=Severity.MAJOR,
        language=Language(language),
        type="labelled",
        provenance=Provenance(pipeline=Pipeline.IMPORTED),
    )
    exchange = Exchange(
        run_id="accuracy",
        case_id="row",
        turns=(question,),
        visible_text=answer,
        asked_at=_SOMETIME,
        timings=Timings(total_ms=0),
    )
    return _GRADER.grade(case, exchange)


def verdict_name(verdict: Judged | Abstained, correct: bool) -> str:
    """Return the name of the field of `Verdicts` that counts a verdict.

    ``correct`` is the label: whether the answer is right.
    """
    if isinstance(verdict, Abstained):
        return "abstained"
    if verdict.passed:
        return "right_pass" if correct else "false_pass"
    return "false_fail" if correct else "right_fail"


def count_verdicts(names: Sequence[str]) -> Verdicts:
    """Count how often each field name in ``names`` occurs, and return the counts as `Verdicts`."""
    return Verdicts(**{name: names.count(name) for name in set(names)})
