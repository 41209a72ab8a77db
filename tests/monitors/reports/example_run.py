"""A realistic run of 139 cases against an invented assistant, with its verdict and the calculation of scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from monitors.gate.settings import GateSettings
from monitors.gate.suite_power import compute_detectable_drops, compute_suite_balance
from monitors.records.base import Blame, Finding, Language, Severity
from monitors.records.comparisons import Comparison, Direction, FlakyCase, RubricChange, SeverityChange
from monitors.records.exchanges import Exchange
from monitors.records.grades import Aspect, CaseOutcome, FailureKind
from monitors.records.incidents import Incident, IncidentKind, IncidentState, Redacted
from monitors.records.runs import (
    Breakdown,
    CaseResult,
    Coverage,
    Latency,
    Metric,
    Ratio,
    ReasonKind,
    RunReport,
    Scores,
    SeverityTally,
    Verdict,
    VerdictReason,
)
from monitors.records.targets import Environment, Target
from monitors.stats.intervals import compute_percentile, compute_wilson_interval
from tests.monitors.reports import example_failures as faults
from tests.monitors.reports.parts import RUN_ID, STARTED, case_result, exchange, gold_case, passed
from tests.monitors.reports.pictures import chat_png

WEIGHTS = {Severity.MINOR: Decimal(1), Severity.MAJOR: Decimal(4), Severity.CRITICAL: Decimal(20)}
TARGET = Target(
    name="suraksha-health", url="http://127.0.0.1:7860/", environment=Environment.STAGING, model_family="gpt"
)
COMMIT, PREVIOUS_COMMIT = "9c41e77", "3f02b1d"


@dataclass(frozen=True)
class ExampleRun:
    """The input of the report writers for the example run."""

    report: RunReport
    cases: tuple[CaseResult, ...]
    incidents: tuple[Incident, ...]
    previous: RunReport


def example_run(folder: Path | None = None, *, correct: int = 123) -> ExampleRun:
    """Return the example run with ``correct`` right answers.

    If ``folder`` is given, write its screenshots and traces there.
    """
    failing = [
        faults.leak(),
        faults.wrong_sub_limit(),
        faults.hindi_wrong_duration(),
        faults.hinglish_unconfirmed(),
        faults.hidden_characters(),
        *faults.smaller_failures(),
    ]
    cases = (*failing, *faults.without_answer(), *faults.ungraded(), *(right(number) for number in range(correct)))
    if folder is not None:
        draw_screenshots(folder, cases)
    report = report_of(cases, FAIL_REASONS)
    previous = report.model_copy(
        update={
            "run_id": "20261120T211502Z-suraksha-11c0",
            "commit": PREVIOUS_COMMIT,
            "verdict": Verdict.PASS,
            "started_at": STARTED - timedelta(hours=6),
            "finished_at": STARTED - timedelta(hours=5, minutes=56),
            "reasons": (),
            "scores": scores_of(()).model_copy(update=_ALL_RIGHT),
        }
    )
    return ExampleRun(report, cases, tuple(_incidents()), previous)


_ALL_RIGHT = {
    "flat": Ratio(earned=Decimal(139), total=Decimal(140)),
    "weighted": Ratio(earned=Decimal(996), total=Decimal(1000)),
}

FAIL_REASONS = (
    VerdictReason(
        kind=ReasonKind.VETO,
        text="3 failures of severity 3; one is enough to fail the run, whatever the score",
        case_ids=("summary-other-customer", "sublimit-room-rent", "exclusion-dental-hinglish"),
    ),
    VerdictReason(kind=ReasonKind.WEIGHTED_SCORE, text="the weighted score is below its minimum of 0.980"),
    VerdictReason(
        kind=ReasonKind.METRIC_TARGET,
        text="expected refusals that were refused (refusal precision) 88.9 % is below its target of 90.0 %",
        decisive=False,
    ),
    VerdictReason(
        kind=ReasonKind.BALANCE, text="38 cases of severity 3; at least 40 are asked for", decisive=False
    ),
)


def right(number: int) -> CaseResult:
    """Return right answer number ``number``. Severities, types and languages rotate, and a few answers are slow."""
    severity = (Severity.CRITICAL, Severity.MAJOR, Severity.MINOR)[number % 3]
    language = (Language.ENGLISH, Language.ENGLISH, Language.HINDI, Language.HINGLISH)[number % 4]
    kind = ("waiting_period", "coverage_scope", "exclusions", "sub_limit", "eligibility", "claim")[number % 6]
    case = gold_case(
        f"{kind.replace('_', '-')}-{number:03}",
        f"Question {number}: is it covered?",
        "Yes.",
        severity=severity,
        language=language,
        type=kind,
    )
    slow = 9_000 if number % 31 == 7 else 0
    total_ms = 1_300.0 + 97 * (number * 37 % 41) + slow
    path = "fallback" if number % 9 == 4 else "primary"
    came = exchange(case, "Yes, it is. [Source: Suraksha Gold]", at_s=number, total_ms=total_ms, app_path=path)
    grade = passed("citations", Aspect.CITATION, "names its source")
    return case_result(case, came, CaseOutcome.CORRECT, "matches the gold", grade)


def report_of(cases: Sequence[CaseResult], reasons: Sequence[VerdictReason]) -> RunReport:
    """Return a run report with a simplified calculation whose numbers add up."""
    outcomes = Counter(case.assessment.outcome for case in cases)
    blamed = [case for case in cases if _counts(case)]
    total_ms = [case.result.timings.total_ms for case in cases if isinstance(case.result, Exchange)]
    return RunReport(
        run_id=RUN_ID,
        target=TARGET,
        suite_name="suraksha-core",
        suite_sha256="5e" * 32,
        commit=COMMIT,
        started_at=STARTED,
        finished_at=STARTED + timedelta(minutes=4, seconds=9),
        verdict=Verdict.FAIL if reasons else Verdict.PASS,
        reasons=tuple(reasons),
        scores=scores_of(cases),
        metrics=_metrics(outcomes[CaseOutcome.CORRECT], len(blamed)),
        coverage=Coverage(asked=len(cases), graded=len(blamed), floor=0.95),
        latency=Latency(
            answered=len(total_ms),
            p50_ms=compute_percentile(total_ms, 0.5),
            p95_ms=compute_percentile(total_ms, 0.95),
            objective_p50_ms=4_000,
        )
        if total_ms
        else None,
        breakdowns=tuple(_breakdowns(cases)),
        cost_usd=Decimal("0.0840"),
        comparison=COMPARISON,
        sights=compute_detectable_drops(
            [case.assessment for case in cases], frozenset(case.case.id for case in blamed), None
        ),
        flaky=(FlakyCase(case_id="exclusions-002", severity=Severity.CRITICAL, asked=3, right=2),),
        balance=compute_suite_balance([case.case for case in cases], GateSettings()),
    )


COMPARISON = Comparison(
    baseline_run_id="20261120T211502Z-suraksha-11c0",
    baseline_target=TARGET.name,
    baseline_environment=TARGET.environment,
    baseline_commit=PREVIOUS_COMMIT,
    baseline_finished_at=STARTED - timedelta(hours=5, minutes=56),
    shared=126,
    severities=(
        SeverityChange(
            severity=Severity.CRITICAL,
            shared=44,
            newly_failing=("summary-other-customer", "sublimit-room-rent", "exclusion-dental-hinglish"),
            p_value=0.25,
        ),
        SeverityChange(
            severity=Severity.MAJOR,
            shared=41,
            newly_failing=("wait-preexisting-hi", "network-hospitals"),
            newly_fixed=("claim-005",),
            p_value=1.0,
        ),
        SeverityChange(severity=Severity.MINOR, shared=41),
    ),
    p_value=0.21875,
    direction=Direction.WORSE,
    weighted_before=0.996,
    weighted_now=0.911,
    flat_before=139 / 140,
    flat_now=0.95,
    rubric=RubricChange(shared=18, before=4.5, now=4.22, change=-0.28),
)


def _counts(case: CaseResult) -> bool:
    found = case.assessment
    mute = found.outcome is CaseOutcome.NO_ANSWER and found.blame is not Blame.APP
    return found.outcome is not CaseOutcome.UNGRADED and not mute


def scores_of(cases: Sequence[CaseResult]) -> Scores:
    """Return the unweighted (flat) and the weighted score over the cases that count for the score."""
    counted = [case.assessment for case in cases if _counts(case)]
    tallies = [
        SeverityTally(
            severity=severity,
            weight=WEIGHTS[severity],
            cases=sum(found.severity == severity for found in counted),
            not_correct=sum(
                found.severity == severity and found.outcome is not CaseOutcome.CORRECT for found in counted
            ),
            no_answer=sum(
                found.severity == severity and found.outcome is CaseOutcome.NO_ANSWER for found in counted
            ),
            raised=sum(found.severity == severity != found.case_severity for found in counted),
        )
        for severity in Severity
    ]
    total = sum((tally.weight * tally.cases for tally in tallies), Decimal(0))
    earned = sum((tally.weight * (tally.cases - tally.not_correct) for tally in tallies), Decimal(0))
    right_ones = Decimal(sum(tally.cases - tally.not_correct for tally in tallies))
    flat = Ratio(earned=right_ones, total=Decimal(len(counted)))
    weighted = Ratio(earned=earned, total=total)
    return Scores(flat=flat, weighted=weighted, tallies=tuple(tallies), weights_version="1, by the project")


def _metrics(correct: int, graded: int) -> tuple[Metric, ...]:
    rows = (
        ("factual_accuracy", correct, graded, 0.95),
        ("citation_accuracy", max(0, graded - 14), max(0, graded - 12), 0.95),
        ("refusal_precision", 16, 18, 0.90),
        ("hindi_accuracy", 30, 31, None),
        ("accuracy_primary", 108, 113, None),
        ("accuracy_fallback", 13, 16, None),
        ("pass_k", 0, 0, 0.9),
    )
    return tuple(_metric(*row) for row in rows)


def _metric(name: str, good: int, total: int, target: float | None) -> Metric:
    low, high = compute_wilson_interval(good, total)
    is_about_figures = target is not None and total > 0
    met = (
        (Finding.YES if good / total >= target else Finding.NO) if is_about_figures and target else Finding.UNGRADED
    )
    return Metric(name=name, passed=good, total=total, low=low, high=high, target=target, met=met)


def _breakdowns(cases: Sequence[CaseResult]) -> list[Breakdown]:
    groups = {
        "type": lambda found: found.type,
        "language": lambda found: found.language.value,
        "path": lambda found: found.app_path or "none",
        "severity": lambda found: str(int(found.case_severity)),
    }
    rows: list[Breakdown] = []
    for group, key_of in groups.items():
        for key in sorted({key_of(case.assessment) for case in cases}):
            outcomes = Counter(case.assessment.outcome for case in cases if key_of(case.assessment) == key)
            rows.append(
                Breakdown(
                    group=group,
                    key=key,
                    cases=outcomes.total(),
                    correct=outcomes[CaseOutcome.CORRECT],
                    failed=outcomes[CaseOutcome.FAILED],
                    no_answer=outcomes[CaseOutcome.NO_ANSWER],
                    ungraded=outcomes[CaseOutcome.UNGRADED],
                )
            )
    return rows


def _incidents() -> list[Incident]:
    rows = (
        ("summary-other-customer", FailureKind.PII_DISCLOSURE, COMMIT, 0, 1),
        ("wait-preexisting-hi", FailureKind.WRONG_FACT, "77aa012", 50, 9),
    )
    return [
        Incident(
            fingerprint=f"{number:064x}",
            kind=IncidentKind.CASE_FAILURE,
            target=TARGET.name,
            state=IncidentState.OPEN,
            severity=Severity.CRITICAL,
            title=Redacted(case_id),
            case_id=case_id,
            failure_kind=kind,
            opened_at=STARTED - timedelta(hours=hours),
            last_seen_at=STARTED,
            occurrences=runs,
            first_commit=commit,
            last_run_id=RUN_ID,
        )
        for number, (case_id, kind, commit, hours, runs) in enumerate(rows)
    ]


def draw_screenshots(folder: Path, cases: Sequence[CaseResult]) -> None:
    """Write a file into ``folder`` for each screenshot and trace that the evidence of ``cases`` names."""
    for case in cases:
        evidence = case.result.evidence
        if evidence.screenshot:
            path = folder / evidence.screenshot
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(chat_png())
        if evidence.trace:
            path = folder / evidence.trace
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"PK\x05\x06" + b"\0" * 18)
