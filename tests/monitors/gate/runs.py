"""Runs for the tests of the gate: cases by severity, some of them failed, graded with or without a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from monitors.gate.assess import assess_case
from monitors.gate.compare import build_baseline
from monitors.gate.evaluate import RunFacts, evaluate_results
from monitors.gate.settings import GateSettings
from monitors.records.base import Severity
from monitors.records.cases import GoldCase
from monitors.records.grades import Aspect, FailureKind
from monitors.records.runs import Baseline, CaseResult, ReasonKind, RunReport, VerdictReason
from tests.builders import NOON, TARGET, exchange, gold_case, grades, judged

WRONG = (Aspect.FACTUAL_MATCH, FailureKind.WRONG_FACT)
LEAK = (Aspect.DISCLOSURE, FailureKind.PII_DISCLOSURE)
SUITE_SHA = "0" * 64


def asked(case: GoldCase, *failures: tuple[Aspect, FailureKind], repeat: int = 0, rubric: int = 0) -> CaseResult:
    """Return one result of ``case``. It is correct unless ``failures`` are given.

    With ``rubric``, the result is a report that a judge rated with this number.
    """
    given = grades(*failures)
    if rubric:
        given = (*given, judged(Aspect.USEFULNESS, grader="judge", rubric=rubric))
    came = exchange(case, repeat=repeat)
    return CaseResult(case=case, result=came, assessment=assess_case(case, came, given))


def batch(severity: Severity, cases: int, failing: int, **changes: Any) -> list[CaseResult]:
    """Return one result for each of ``cases`` new cases of one severity. The first ``failing`` results are wrong.

    ``changes`` replace fields of the gold cases.
    """
    name = changes.pop("name", f"s{severity.value}")
    made = [gold_case(f"{name}-{number}", severity=severity, **changes) for number in range(cases)]
    return [asked(case, *([WRONG] if number < failing else [])) for number, case in enumerate(made)]


def times(case: GoldCase, right: int, wrong: int, failure: tuple[Aspect, FailureKind] = WRONG) -> list[CaseResult]:
    """Return the results of ``case`` when it is asked ``right + wrong`` times."""
    failures = [()] * right + [(failure,)] * wrong
    return [asked(case, *failed, repeat=repeat) for repeat, failed in enumerate(failures)]


def report(
    results: Sequence[CaseResult],
    settings: GateSettings | None = None,
    baseline: Baseline | None = None,
    **changes: Any,
) -> RunReport:
    """Return the run report that the gate builds from ``results``."""
    facts = {
        "run_id": "run-1",
        "target": TARGET,
        "suite_name": "demo",
        "suite_sha256": SUITE_SHA,
        "planned": len({r.case.id for r in results}),
        "started_at": NOON,
        "finished_at": NOON + timedelta(minutes=2),
    }
    weighed = RunFacts.model_validate(facts | changes)
    return evaluate_results(weighed, results, settings or GateSettings(), baseline=baseline)


def baseline(results: Sequence[CaseResult], settings: GateSettings | None = None, **changes: Any) -> Baseline:
    """Return a baseline of ``results``, from the run ``run-0``."""
    weighed = report(results, settings, **({"run_id": "run-0", "commit": "abc123"} | changes))
    return build_baseline(weighed, results)


def reason(of: RunReport, kind: ReasonKind) -> VerdictReason | None:
    """Return the first reason of this kind in the report, or ``None`` if there is none."""
    return next((one for one in of.reasons if one.kind is kind), None)
