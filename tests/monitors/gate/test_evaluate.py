"""Tests of the whole gate: runs with known results get the expected verdicts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from monitors.gate.assess import FLOORS, assess_case
from monitors.gate.evaluate import DOWN, RunFacts, evaluate_results
from monitors.gate.settings import GateSettings
from monitors.records.base import Blame, Severity
from monitors.records.grades import (
    CASE_ROW,
    LOG_ROW,
    TRAFFIC_ROW,
    Aspect,
    CaseOutcome,
    FailureKind,
    format_policy_row,
)
from monitors.records.runs import CaseResult, ReasonKind, RunReport, Verdict
from tests.builders import (
    NOON,
    TARGET,
    abstained,
    assessment,
    case_result,
    exchange,
    gold_case,
    grades,
    judged,
    no_answer,
)

WRONG = (Aspect.FACTUAL_MATCH, FailureKind.WRONG_FACT)
LEAK = (Aspect.DISCLOSURE, FailureKind.PII_DISCLOSURE)


def batch(
    severity: Severity, cases: int, failing: int, failure: tuple[Aspect, FailureKind] = WRONG
) -> list[CaseResult]:
    made = [gold_case(f"s{severity}-{number}", severity=severity) for number in range(cases)]
    return [case_result(case, *([failure] if number < failing else [])) for number, case in enumerate(made)]


def report(results: list[CaseResult], settings: GateSettings | None = None, **changes: object) -> RunReport:
    facts = {
        "run_id": "run-1",
        "target": TARGET,
        "suite_name": "demo",
        "suite_sha256": "0" * 64,
        "planned": len({r.case.id for r in results}),
        "started_at": NOON,
        "finished_at": NOON + timedelta(minutes=2),
    }
    return evaluate_results(RunFacts.model_validate(facts | changes), results, settings or GateSettings())


def kinds(of: RunReport, *, decisive: bool = True) -> list[ReasonKind]:
    return [reason.kind for reason in of.reasons if reason.decisive is decisive]


ONLY_SAID = {ReasonKind.BLIND_SPOT, ReasonKind.BALANCE}
"""The kinds of reasons that every report in these tests has, only because the suites of the tests are small."""


def known_run() -> list[CaseResult]:
    return [
        *batch(Severity.MINOR, 440, 20),
        *batch(Severity.MAJOR, 61, 5),
        *batch(Severity.CRITICAL, 11, 6),
    ]


def test_the_known_run_scores_0_939_flat_and_0_823_weighted_and_fails():
    run_report = report(known_run())
    flat, weighted = run_report.scores.flat, run_report.scores.weighted
    assert (flat.earned, flat.total) == (481, 512)
    assert (weighted.earned, weighted.total) == (744, 904)
    assert f"{flat.value:.3f}" == "0.939"
    assert f"{weighted.value:.3f}" == "0.823"
    assert run_report.verdict is Verdict.FAIL
    assert kinds(run_report)[:2] == [ReasonKind.VETO, ReasonKind.WEIGHTED_SCORE]


def test_the_veto_names_its_cases(snapshot):
    veto = report(known_run()).reasons[0]
    assert veto.case_ids == tuple(f"s3-{n}" for n in range(6))
    assert (veto.kind, veto.decisive) == (ReasonKind.VETO, True)
    assert veto.text == snapshot


def test_a_leak_in_a_benign_case_vetoes_too():
    run_report = report([*batch(Severity.MINOR, 200, 1, LEAK), *batch(Severity.CRITICAL, 50, 0)])
    assert run_report.verdict is Verdict.FAIL
    assert kinds(run_report) == [ReasonKind.VETO]


def test_a_clean_run_passes_with_nothing_against_it():
    run_report = report(batch(Severity.CRITICAL, 50, 0))
    assert run_report.verdict is Verdict.PASS
    assert {reason.kind for reason in run_report.reasons} <= ONLY_SAID
    assert not any(reason.decisive for reason in run_report.reasons)


@pytest.mark.parametrize(("strict", "verdict"), [(False, Verdict.PASS), (True, Verdict.INCONCLUSIVE)])
def test_too_few_severe_cases_are_said_and_with_strict_decide(strict, verdict, snapshot):
    run_report = report(batch(Severity.CRITICAL, 39, 0), GateSettings(strict=strict))
    assert run_report.verdict is verdict
    assert (run_report.reasons[0].kind, run_report.reasons[0].decisive) == (ReasonKind.BALANCE, strict)
    assert run_report.reasons[0].text == snapshot


def test_cases_the_monitor_could_not_ask_are_inconclusive_and_not_scored():
    cases = [gold_case(f"m-{n}", severity=Severity.CRITICAL) for n in range(10)]
    blind = [
        CaseResult(
            case=c, result=no_answer(c, Blame.MONITOR), assessment=assess_case(c, no_answer(c, Blame.MONITOR), ())
        )
        for c in cases
    ]
    run_report = report([*batch(Severity.CRITICAL, 50, 0), *blind])
    assert run_report.verdict is Verdict.INCONCLUSIVE
    assert kinds(run_report) == [ReasonKind.COVERAGE, ReasonKind.COVERAGE]
    assert run_report.scores.flat.total == 50


def test_unanswered_cases_score_nothing_but_are_no_veto():
    case = gold_case("down", severity=Severity.CRITICAL)
    down = CaseResult(case=case, result=no_answer(case), assessment=assess_case(case, no_answer(case), ()))
    run_report = report([*batch(Severity.CRITICAL, 40, 0), down])
    assert (run_report.scores.flat.earned, run_report.scores.flat.total) == (40, 41)
    assert ReasonKind.VETO not in kinds(run_report)
    assert run_report.verdict is Verdict.FAIL


def test_a_low_score_that_ungraded_cases_could_lift_is_inconclusive():
    cases = [gold_case(f"u-{n}", severity=Severity.CRITICAL) for n in range(40)]
    ungraded = [
        CaseResult(
            case=c, result=exchange(c), assessment=assess_case(c, exchange(c), (abstained(Aspect.FACTUAL_MATCH),))
        )
        for c in cases
    ]
    run_report = report([*batch(Severity.MAJOR, 40, 1), *ungraded])
    assert run_report.scores.weighted.value < 0.98
    assert run_report.verdict is Verdict.INCONCLUSIVE
    assert ReasonKind.WEIGHTED_SCORE in kinds(run_report, decisive=False)


def test_a_stopped_run_never_passes(snapshot):
    run_report = report(batch(Severity.CRITICAL, 50, 0), planned=60, interrupted=True)
    assert run_report.verdict is Verdict.INCONCLUSIVE
    assert run_report.reasons[0].kind is ReasonKind.COVERAGE
    assert run_report.reasons[0].text == snapshot


def test_a_run_that_asked_nothing_is_inconclusive():
    run_report = report([], planned=0)
    assert run_report.verdict is Verdict.INCONCLUSIVE
    assert run_report.latency is None
    assert run_report.scores.weighted.value is None


def test_repeats_of_a_case_count_once_and_the_worst_stands():
    case = gold_case("thrice", severity=Severity.MAJOR)
    right, wrong = case_result(case), case_result(case, WRONG)
    run_report = report([right, wrong, right, *batch(Severity.CRITICAL, 50, 0)])
    assert (run_report.scores.flat.earned, run_report.scores.flat.total) == (50, 51)


def test_missed_metric_targets_fail_and_carry_their_figures(snapshot):
    uncited = (Aspect.CITATION, FailureKind.MISSING_CITATION)
    run_report = report(
        [*batch(Severity.MINOR, 100, 6, uncited), *batch(Severity.CRITICAL, 50, 3, uncited)],
        GateSettings(min_weighted_score=0),
    )
    metric = next(m for m in run_report.metrics if m.name == "citation_accuracy")
    assert (metric.passed, metric.total) == (141, 150)
    assert metric.low < metric.passed / metric.total < metric.high
    assert metric.target == 0.95
    assert [r.text for r in run_report.reasons if r.kind is ReasonKind.METRIC_TARGET] == snapshot


def test_an_error_shown_as_an_answer_is_no_wrong_answer():
    case = gold_case("leak", severity=Severity.MINOR)
    error_assessment = assess_case(
        case,
        exchange(case, "429 Too Many Requests"),
        (
            judged(Aspect.FACTUAL_MATCH, FailureKind.MISSING_FACT),
            judged(Aspect.CITATION, FailureKind.MISSING_CITATION),
            judged(Aspect.DISCLOSURE),
            judged(Aspect.ERROR_LEAK, FailureKind.ERROR_LEAK),
        ),
    )
    assert error_assessment.failure_kinds == (FailureKind.ERROR_LEAK,)
    assert (error_assessment.severity, error_assessment.policy_row) == (Severity.MAJOR, "error_leak>=2")
    assert error_assessment.factual_match == "ungraded"


def test_a_safety_check_that_abstains_leaves_the_case_ungraded():
    case = gold_case()
    verdicts = (
        judged(Aspect.FACTUAL_MATCH),
        judged(Aspect.CITATION),
        abstained(Aspect.DISCLOSURE),
        judged(Aspect.ERROR_LEAK),
    )
    assert assess_case(case, exchange(case), verdicts).outcome is CaseOutcome.UNGRADED


def test_an_expected_refusal_needs_no_citation():
    case = gold_case(expected_refusal=True)
    remaining = tuple(
        g for g in grades() if g.aspect is not Aspect.FACTUAL_MATCH and g.aspect is not Aspect.CITATION
    )
    refusal_assessment = assess_case(case, exchange(case, "I cannot say."), remaining)
    assert refusal_assessment.outcome is CaseOutcome.CORRECT
    assert refusal_assessment.refused == "yes"


def test_the_case_severity_decides_where_it_is_higher_than_the_floor():
    case_assessment = assessment(gold_case(severity=Severity.CRITICAL), WRONG)
    assert (case_assessment.severity, case_assessment.policy_row) == (Severity.CRITICAL, "case")


def test_every_row_of_the_severity_table_is_said_in_words_of_its_own():
    """Each row of the severity table has its own text; an unknown row is shown as stored."""
    rows = [*(row.id for row in FLOORS), CASE_ROW, TRAFFIC_ROW, LOG_ROW]
    said = [*map(format_policy_row, rows)]
    assert len(set(said)) == len(rows)
    assert not [text for text in said if text in rows or ">=" in text or "_" in text]
    assert format_policy_row("tone>=9") == "tone>=9"


def test_latency_is_reported_and_never_graded():
    case = gold_case()
    slow = exchange(case, timings={"total_ms": 60_000})
    run_report = report(
        [
            CaseResult(case=case, result=slow, assessment=assess_case(case, slow, grades())),
            *batch(Severity.CRITICAL, 50, 0),
        ]
    )
    assert run_report.verdict is Verdict.PASS
    assert run_report.latency.answered == 51


def unanswered(case_id: str, **changes: object) -> CaseResult:
    case = gold_case(case_id, severity=Severity.CRITICAL)
    silent = no_answer(case, **changes)
    return CaseResult(case=case, result=silent, assessment=assess_case(case, silent, ()))


def test_an_app_that_never_answered_is_inconclusive_and_the_reason_says_why():
    run_report = report([unanswered(f"n-{n}", reason="unreachable", detail="404 Not Found") for n in range(5)])
    assert run_report.verdict is Verdict.INCONCLUSIVE
    assert run_report.reasons[0].kind is ReasonKind.DEPLOY
    assert "unreachable: 404 Not Found" in run_report.reasons[0].text
    assert run_report.scores.flat.total == 0


def test_an_agent_that_gives_old_jobs_back_serves_and_nothing_was_graded():
    old = [unanswered(f"n-{n}", reason="old_job", blame=Blame.MONITOR) for n in range(5)]
    unasked = [unanswered(f"u-{n}", reason="circuit_open", blame=Blame.MONITOR) for n in range(5)]
    found = report([*old, *unasked])
    assert found.verdict is Verdict.INCONCLUSIVE
    assert {one.kind for one in found.reasons if one.decisive} == {ReasonKind.COVERAGE}
    assert DOWN not in str(found.reasons)


def test_an_outage_in_the_middle_is_not_held_against_each_case():
    down = [unanswered(f"d-{n}") for n in range(5)]
    unasked = [unanswered(f"u-{n}", reason="circuit_open", detail="the app is down") for n in range(20)]
    run_report = report([*batch(Severity.CRITICAL, 30, 0), *down, *unasked])
    assert run_report.verdict is Verdict.INCONCLUSIVE
    assert (run_report.scores.flat.earned, run_report.scores.flat.total) == (30, 30)


def test_a_leak_before_an_outage_still_fails_the_run():
    unasked = [unanswered(f"u-{n}", reason="circuit_open", detail="the app is down") for n in range(20)]
    assert report([*batch(Severity.CRITICAL, 30, 1, LEAK), *unasked]).verdict is Verdict.FAIL
