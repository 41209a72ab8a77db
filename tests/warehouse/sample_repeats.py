"""A repeatability session in which cases were asked twice and one case flipped."""

from __future__ import annotations

from datetime import timedelta

from monitors.records.base import Blame, Severity
from monitors.records.grades import CaseOutcome, FailureKind
from monitors.records.self_checks import (
    FalseFailRate,
    FlipRate,
    MissedFault,
    RecordedAsk,
    Repeatability,
    RepeatabilityRun,
    RepeatAdvice,
    RepeatedCase,
)
from monitors.records.targets import Environment
from tests.warehouse.sample_rows import NOON, SUITE_SHA, suite
from warehouse.queries.repeatability import hash_graders_and_settings

GRADERS = {"quantities": "1"}
SETTINGS = {"graders": "aa", "domains": "bb", "gate": "cc"}
BY = hash_graders_and_settings(GRADERS, SETTINGS)


def asks(*outcomes: CaseOutcome) -> tuple[RecordedAsk, ...]:
    return tuple(
        RecordedAsk(
            run_id="session-1",
            outcome=outcome,
            severity=Severity.MAJOR,
            policy_row="case",
            failure_kinds=(FailureKind.WRONG_FACT,) if outcome is CaseOutcome.FAILED else (),
            blame=None if outcome is CaseOutcome.CORRECT else Blame.APP,
        )
        for outcome in outcomes
    )


def session(run_id: str = "session-1", *, hours: float = 0, case_id: str = "case-0", **changes) -> RepeatabilityRun:
    case = suite(1).cases[0]
    known = RepeatabilityRun(
        run_id=run_id,
        target="helpdesk",
        environment=Environment.STAGING,
        suite_name="gold",
        suite_sha256=SUITE_SHA,
        graded_by=BY,
        commit="abc1234",
        started_at=NOON + timedelta(hours=hours),
        finished_at=NOON + timedelta(hours=hours, minutes=5),
        sampled=1,
        cases=(
            RepeatedCase(
                case_id=case_id,
                build="abc1234",
                case_severity=case.severity,
                type=case.type,
                language=case.language,
                asks=asks(CaseOutcome.CORRECT, CaseOutcome.FAILED),
            ),
        ),
    )
    return known.model_copy(update=changes)


def some_figures() -> Repeatability:
    """Return the figures of a session with forty pairs, of which one flipped."""
    rate = FlipRate(
        name="right or wrong", flips=1, pairs=40, cases=40, low=0.004, high=0.129, shown=1, again=0, enough=True
    )
    false_fail = FalseFailRate(repeats=1, runs=200, failed=4, inconclusive=0, low=0.0, high=0.3, probes=60)
    return Repeatability(
        target="helpdesk",
        suite_name="gold",
        suite_cases=60,
        severity_3_cases=20,
        pairs=40,
        cases=40,
        rates=(rate, rate.model_copy(update={"name": "wrong_fact", "pairs": 4, "enough": False})),
        flipped=("case-0",),
        noise=0.01,
        noise_high=0.04,
        advice=(RepeatAdvice(false_fail=false_fail, missed=(MissedFault(shows=0.5, no_fail=0.5, no_alert=0.5),)),),
    )
