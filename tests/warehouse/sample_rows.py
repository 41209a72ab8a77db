"""Records with which tests fill a warehouse.

They are valid and as small as possible, and they differ only in the fields that matter to the tests.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from monitors.records.base import Blame, Finding, Language, Severity
from monitors.records.cases import GoldCase, Pipeline, Provenance, Suite
from monitors.records.exchanges import Exchange, NoAnswer, NoAnswerReason, Timings
from monitors.records.grades import (
    Abstained,
    Aspect,
    Assessment,
    CaseOutcome,
    FailureKind,
    Judged,
    JudgeLineage,
)
from monitors.records.incidents import (
    Alert,
    AlertItem,
    DeliveryStatus,
    Incident,
    IncidentKind,
    IncidentState,
    NotifyReason,
    Observation,
    Receipt,
    Redacted,
)
from monitors.records.runs import Coverage, Latency, Metric, Ratio, RunReport, Scores, SeverityTally, Verdict
from monitors.records.targets import DeployEvent, Target
from warehouse.database.store import Store

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SUITE_SHA = hashlib.sha256(b"suite").hexdigest()


def exchange(
    run_id: str = "run-1", case_id: str = "case-1", *, repeat: int = 0, text: str = "Two years."
) -> Exchange:
    return Exchange(
        run_id=run_id,
        case_id=case_id,
        repeat=repeat,
        turns=("How long is the waiting period?",),
        visible_text=text,
        asked_at=NOON,
        timings=Timings(first_token_ms=200.0, total_ms=1500.0),
        app_path="primary",
    )


def no_answer(run_id: str = "run-1", case_id: str = "case-1") -> NoAnswer:
    return NoAnswer(
        run_id=run_id,
        case_id=case_id,
        turns=("How long is the waiting period?",),
        reason=NoAnswerReason.ANSWER_TIMEOUT,
        blame=Blame.APP,
        detail="nothing within 60 s",
        asked_at=NOON,
    )


def grades() -> tuple[Judged | Abstained, ...]:
    return (
        Judged(
            grader="quantities", version="1", aspect=Aspect.FACTUAL_MATCH, passed=True, reason="24 months is there"
        ),
        Judged(
            grader="judge",
            version="2",
            aspect=Aspect.USEFULNESS,
            passed=True,
            score=0.75,
            reason="clear",
            lineage=JudgeLineage(model="claude-haiku-5-5", prompt_sha256="ab" * 32, rubric_version="3"),
            cost_usd=Decimal("0.000125"),
        ),
        Abstained(grader="language", version="1", aspect=Aspect.LANGUAGE, reason="too short", blame=Blame.APP),
    )


def assessment(
    run_id: str = "run-1", case_id: str = "case-1", *, repeat: int = 0, failed: FailureKind | None = None
) -> Assessment:
    return Assessment(
        run_id=run_id,
        case_id=case_id,
        repeat=repeat,
        outcome=CaseOutcome.FAILED if failed else CaseOutcome.CORRECT,
        failure_kinds=(failed,) if failed else (),
        case_severity=Severity.MAJOR,
        severity=Severity.CRITICAL if failed else Severity.MAJOR,
        policy_row="pii_disclosure>=3" if failed else "case",
        blame=Blame.APP if failed else None,
        reason="it says so",
        factual_match=Finding.YES,
        expected_refusal=False,
        type="waiting_period",
        language=Language.ENGLISH,
        app_path="primary",
        grades=grades(),
    )


def run_report(run_id: str = "run-1", *, hours: float = 0, interrupted: bool = False) -> RunReport:
    """Return the report of a run with known scores: 481 of 512 flat, 744 of 904 weighted."""
    return RunReport(
        run_id=run_id,
        target=Target(name="helpdesk", url="http://127.0.0.1:7860"),
        suite_name="gold",
        suite_sha256=SUITE_SHA,
        commit="abc123",
        started_at=NOON + timedelta(hours=hours),
        finished_at=NOON + timedelta(hours=hours, minutes=5),
        verdict=Verdict.FAIL,
        reasons=(),
        scores=Scores(
            flat=Ratio(earned=Decimal(481), total=Decimal(512)),
            weighted=Ratio(earned=Decimal(744), total=Decimal(904)),
            tallies=(
                SeverityTally(severity=Severity.MINOR, weight=Decimal(1), cases=440, not_correct=20),
                SeverityTally(severity=Severity.MAJOR, weight=Decimal(4), cases=61, not_correct=5),
                SeverityTally(severity=Severity.CRITICAL, weight=Decimal(20), cases=11, not_correct=6),
            ),
            weights_version="1",
        ),
        metrics=(
            Metric(
                name="factual_accuracy", passed=480, total=512, low=0.91, high=0.96, target=0.95, met=Finding.NO
            ),
        ),
        coverage=Coverage(asked=512, graded=512, floor=0.9),
        latency=Latency(answered=512, p50_ms=1500, p95_ms=3000, objective_p50_ms=4000),
        cost_usd=Decimal("1.250000001"),
        interrupted=interrupted,
    )


def suite(count: int = 3) -> Suite:
    cases = tuple(
        GoldCase(
            id=f"case-{number}",
            turns=("How long is the waiting period?",),
            gold="Two years.",
            severity=Severity.MAJOR,
            language=Language.ENGLISH,
            type="waiting_period",
            provenance=Provenance(pipeline=Pipeline.TEMPLATE),
        )
        for number in range(count)
    )
    return Suite(name="gold", sha256=SUITE_SHA, cases=cases)


def deploy(commit: str = "abc123", *, by: str = "webhook") -> DeployEvent:
    return DeployEvent(target="helpdesk", commit=commit, occurred_at=NOON, reported_by=by)


def incident(name: str = "leak", *, state: IncidentState = IncidentState.OPEN, occurrences: int = 1) -> Incident:
    return Incident(
        fingerprint=hashlib.sha256(name.encode()).hexdigest(),
        kind=IncidentKind.CASE_FAILURE,
        target="helpdesk",
        state=state,
        severity=Severity.CRITICAL,
        title=Redacted(name),
        opened_at=NOON,
        last_seen_at=NOON,
        resolved_at=NOON if state is IncidentState.RESOLVED else None,
        occurrences=occurrences,
        last_run_id="run-1",
    )


def alert(alert_id: str = "alert-1", *, about: Incident | None = None) -> Alert:
    fault = about or incident()
    seen = Observation(
        fingerprint=fault.fingerprint,
        kind=fault.kind,
        target=fault.target,
        run_id="run-1",
        seen_at=NOON,
        severity=fault.severity,
        blame=Blame.APP,
        title=fault.title,
        reason=Redacted("an account number was shown"),
    )
    return Alert(
        id=alert_id,
        kind=fault.kind,
        target=fault.target,
        run_id="run-1",
        created_at=NOON,
        severity=fault.severity,
        reason=NotifyReason.FIRST_SEEN,
        items=(AlertItem(incident=fault, observation=seen, reason=NotifyReason.FIRST_SEEN),),
    )


def receipt(
    alert_id: str = "alert-1", status: DeliveryStatus = DeliveryStatus.SENT, *, seconds: float = 0
) -> Receipt:
    return Receipt(alert_id=alert_id, status=status, at=NOON + timedelta(seconds=seconds))


def list_unsent_alerts(store: Store) -> tuple[Alert, ...]:
    """Return the alerts without a final receipt (sent, printed, rejected), most severe first.

    Alerts that another process has leased are included.
    """
    table = store.query(
        "select record from alerts semi join (from unsent_alerts where state = 'waiting') using (id)"
        " order by severity desc, created_at, id"
    )
    return tuple(Alert.model_validate_json(str(row[0])) for row in table.rows)
