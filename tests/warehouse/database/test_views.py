"""Test the views with rows that reveal a wrong join.

The rows contain two runs with the same cases, repeats, and a run without a report.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

import pytest

from monitors.records.base import Blame, Severity
from monitors.records.exchanges import Origin, Timings
from monitors.records.grades import Aspect, Assessment, CaseOutcome, FailureKind, Judged
from monitors.records.incidents import DeliveryStatus, IncidentState
from monitors.records.runs import RunReport
from tests.warehouse.decisions import OutboxDecision, decide
from tests.warehouse.sample_rows import alert, assessment, exchange, grades, incident, receipt, run_report
from tests.warehouse.temporary_stores import SteppingClock, store_in
from warehouse.database.store import Store
from warehouse.journal.rows import AssessmentRow, JournalRow, ResultRow, RunRow
from warehouse.queries.outbox import record_receipt

A, B, GONE = "run-a", "run-b", "run-without-report"
"""The ids of two runs of the same suite and commit, an hour apart, and of a third run.

The third run was killed before its report.
"""


def unanswered(run_id: str, case_id: str, blame: Blame) -> Assessment:
    return assessment(run_id, case_id).model_copy(
        update={"outcome": CaseOutcome.NO_ANSWER, "blame": blame, "grades": ()}
    )


def ungraded(run_id: str, case_id: str) -> Assessment:
    return assessment(run_id, case_id).model_copy(
        update={"outcome": CaseOutcome.UNGRADED, "blame": Blame.PROVIDER, "grades": ()}
    )


def by_fallback(one: Assessment) -> Assessment:
    return one.model_copy(update={"app_path": "fallback"})


def twice_wrong(run_id: str, case_id: str) -> Assessment:
    """Return the assessment of one answer with two faults."""
    kinds = (FailureKind.PII_DISCLOSURE, FailureKind.WRONG_FACT)
    return assessment(run_id, case_id, failed=kinds[0]).model_copy(update={"failure_kinds": kinds})


def answered(run_id: str, case_id: str, total_ms: float, *, repeat: int = 0) -> ResultRow:
    timings = Timings(first_token_ms=total_ms / 10, total_ms=total_ms)
    return ResultRow(row=exchange(run_id, case_id, repeat=repeat).model_copy(update={"timings": timings}))


def assessments_of(run_id: str) -> Sequence[Assessment]:
    """Return the assessments of five cases of a run.

    ``steady`` was asked twice, ``vague`` is ungraded, and the application did not answer ``silent``. In run A,
    ``leaks`` has two faults. In other runs, ``ours`` has no answer because of a fault of the monitor.
    """
    return (
        assessment(run_id, "steady"),
        assessment(run_id, "steady", repeat=1),
        by_fallback(twice_wrong(run_id, "leaks") if run_id == A else assessment(run_id, "leaks")),
        assessment(run_id, "ours") if run_id == A else unanswered(run_id, "ours", Blame.MONITOR),
        ungraded(run_id, "vague"),
        unanswered(run_id, "silent", Blame.APP),
    )


def report(run_id: str, *, hours: float, earned: int) -> RunReport:
    usual = run_report(run_id, hours=hours)
    weighted = usual.scores.weighted.model_copy(update={"earned": Decimal(earned)})
    return usual.model_copy(update={"scores": usual.scores.model_copy(update={"weighted": weighted})})


@pytest.fixture
def store(tmp_path) -> Store:
    store = store_in(tmp_path)
    for run_id in (A, B, GONE):
        rows: list[JournalRow] = [AssessmentRow(row=each) for each in assessments_of(run_id)]
        rows += [answered(run_id, "steady", 1000.0), answered(run_id, "steady", 3000.0, repeat=1)]
        rows += [answered(run_id, "leaks", 2000.0)]
        store.journal.append(rows, run_id=run_id)
    store.journal.append([RunRow(row=report(A, hours=0, earned=744))], run_id=A)
    store.journal.append([RunRow(row=report(B, hours=1, earned=834))], run_id=B)
    store.load_pending(1)
    return store


def test_a_run_has_one_line_whatever_hangs_on_it(store):
    found = store.query(
        "select run_id, weighted, severity_3_not_correct, severity_2_not_correct, cost_usd from run_summary"
    ).rows
    cost = Decimal("1.250000001")
    assert found == ((B, Decimal("0.923"), 6, 5, cost), (A, Decimal("0.823"), 6, 5, cost))


def test_the_trend_compares_with_the_run_before_of_the_same_suite(store):
    other = report("other-suite", hours=0.5, earned=1).model_copy(update={"suite_sha256": "0" * 64})
    cut = run_report("cut", hours=0.7, interrupted=True)
    store.journal.append([RunRow(row=other), RunRow(row=cut)], run_id=None)
    store.load_pending(1)
    found = store.query("select run_id, weighted_change, flat_change from score_trend order by finished_at").rows
    assert found == ((A, None, None), ("other-suite", None, None), (B, Decimal("0.100"), Decimal("0.000")))


def test_an_answer_with_two_faults_counts_in_both_and_in_its_own_run_only(store):
    found = store.query("select run_id, failure_kind, severity, cases from failures_by_kind order by all").rows
    assert found == ((A, "pii_disclosure", 3, 1), (A, "wrong_fact", 3, 1))


def test_coverage_tells_wrong_silent_and_unclear_apart(store):
    columns = (
        "run_id, cases, correct, failed, no_answer_app, no_answer_other, ungraded, graded_share, coverage_floor"
    )
    found = {row[0]: row[1:] for row in store.query(f"select {columns} from coverage").rows}
    assert found == {
        A: (6, 3, 1, 1, 0, 1, 0.8333, 0.9),
        B: (6, 3, 0, 1, 1, 1, 0.6667, 0.9),
        GONE: (6, 3, 0, 1, 1, 1, 0.6667, None),
    }


def test_the_path_that_answered_gets_its_own_cases(store):
    found = store.query(
        "select app_path, cases, correct, failed, accuracy from path_winners where run_id = ? order by app_path",
        [A],
    )
    assert found.rows == (("fallback", 1, 0, 1, 0.0), ("primary", 5, 3, 0, 1.0))


def test_latency_is_of_the_run_s_own_answers(store):
    traffic = exchange(A, "item-1").model_copy(
        update={"origin": Origin.TRAFFIC, "timings": Timings(first_token_ms=1, total_ms=90_000)}
    )
    store.journal.append([ResultRow(row=traffic)], run_id=A)
    store.load_pending(1)
    found = store.query(
        "select answered, first_token_p50_ms, p50_ms, slowest_ms, objective_p50_ms from latency where run_id = ?",
        [A],
    )
    assert found.rows == ((3, 200.0, 2000.0, 3000.0, 4000.0),)


def test_money_is_added_once_per_grade(store):
    """The cost of judging is counted once for each grade of a judge. A grade costs $0.000125."""
    rows = store.query("select run_id, grader, judge_model, grades, cost_usd, usd_per_1000 from cost").rows
    judge, thousand = ("judge", "claude-haiku-5-5"), Decimal("0.1250")
    assert {row[0]: row[1:] for row in rows} == {
        A: (*judge, 4, Decimal("0.000500000"), thousand),
        B: (*judge, 3, Decimal("0.000375000"), thousand),
        GONE: (*judge, 3, Decimal("0.000375000"), thousand),
    }


def test_metrics_stand_beside_their_targets_newest_first(store):
    found = store.query("select run_id, metric, value, wanted, met from metric_targets").rows
    assert found == tuple((run, "factual_accuracy", 0.9375, 0.95, "no") for run in (B, A))


def test_only_what_the_app_did_differently_is_flaky(store):
    """A case is flaky only if one of the app's answers was right and another one wrong.

    The case ``ours`` has one answer and one fault of the monitor, so it is not flaky. The case ``steady`` was asked
    four times with the same result.
    """
    found = store.query("select case_id, asked, correct, failed, no_answer, last_run_id from flaky_cases").rows
    assert found == (("leaks", 2, 1, 1, 0, B),)


def judged(run_id: str, case_id: str, *, plain: tuple[bool, ...], judge: bool) -> AssessmentRow:
    """Return the assessment of an answer, with the verdicts of several rule-based graders and of a judge."""
    wrong = FailureKind.WRONG_FACT
    plain_grades = tuple(
        Judged(
            grader=f"plain-{number}",
            version="1",
            aspect=Aspect.FACTUAL_MATCH,
            passed=passed,
            failure_kind=None if passed else wrong,
            reason="",
        )
        for number, passed in enumerate(plain)
    )
    by_judge = next(each for each in grades() if isinstance(each, Judged) and each.lineage).model_copy(
        update={"aspect": Aspect.FACTUAL_MATCH, "passed": judge, "failure_kind": None if judge else wrong}
    )
    return AssessmentRow(row=assessment(run_id, case_id).model_copy(update={"grades": (*plain_grades, by_judge)}))


def test_two_plain_graders_beside_a_judge_are_one_comparison(store):
    rows = [
        judged("run-j", "both", plain=(True, True), judge=True),
        judged("run-j", "mild", plain=(True, False), judge=True),
        judged("run-j", "strict", plain=(True, True), judge=False),
        judged("run-j", "alone", plain=(), judge=True),
    ]
    store.journal.append(rows, run_id="run-j")
    store.load_pending(1)
    columns = "both_graded, agreed, agreement, judge_too_mild, judge_too_strict"
    found = store.query(f"select {columns} from judge_agreement where run_id = 'run-j'").rows
    assert found == ((3, 1, 0.3333, 1, 1),)


def test_an_incident_stands_as_it_was_last_decided(store):
    clock = SteppingClock()
    for name, states in {
        "open": [IncidentState.OPEN] * 3,
        "over": [IncidentState.OPEN, IncidentState.RESOLVED],
        "again": [IncidentState.OPEN, IncidentState.RESOLVED, IncidentState.OPEN],
    }.items():
        for number, state in enumerate(states, start=1):
            changed = incident(name, state=state, occurrences=number)
            seen = changed.model_copy(update={"last_seen_at": clock() - timedelta(days=number)})
            seen = seen.model_copy(update={"resolved_at": clock() if seen.resolved_at else None})
            decide(store, store.journal, "helpdesk", lambda _, new=seen: OutboxDecision(incidents=(new,)), wait_s=1)
    found = store.query("select title, occurrences from open_incidents order by title").rows
    assert found == (("again", 3), ("open", 3))
    assert store.query("select count(*) from incidents").rows == ((3,),)


def test_a_message_waits_until_one_try_has_settled_it(store):
    for name in ("never", "failed", "sent", "rejected"):
        message = alert(name, about=incident(name))
        decide(store, store.journal, "helpdesk", lambda _, new=message: OutboxDecision(alerts=(new,)), wait_s=1)
    tries = [
        ("failed", DeliveryStatus.FAILED, 0),
        ("failed", DeliveryStatus.FAILED, 1),
        ("sent", DeliveryStatus.FAILED, 0),
        ("sent", DeliveryStatus.SENT, 1),
        ("rejected", DeliveryStatus.REJECTED, 0),
    ]
    for name, status, seconds in tries:
        record_receipt(store, store.journal, receipt(name, status, seconds=seconds), wait_s=1)
    rows = store.query("select id, state, tries, severity from unsent_alerts order by id").rows
    assert rows == (
        ("failed", "waiting", 2, Severity.CRITICAL),
        ("never", "waiting", 0, Severity.CRITICAL),
        ("rejected", "refused", 1, Severity.CRITICAL),
    )
