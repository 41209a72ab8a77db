from __future__ import annotations

from decimal import Decimal

import pytest

from monitors.errors import QueryInvalid
from monitors.records.grades import Aspect, FailureKind
from tests.warehouse.sample_rows import (
    NOON,
    SUITE_SHA,
    assessment,
    deploy,
    exchange,
    no_answer,
    run_report,
    suite,
)
from tests.warehouse.temporary_stores import count, store_in
from warehouse.journal.rows import AssessmentRow, DeployRow, ResultRow, RunRow


def full_store(folder):
    store = store_in(folder)
    store.journal.append_suite(suite())
    store.journal.append([DeployRow(row=deploy())], run_id=None)
    for number in range(3):
        case = f"case-{number}"
        failed = FailureKind.PII_DISCLOSURE if number == 2 else None
        store.journal.append(
            [ResultRow(row=exchange(case_id=case)), AssessmentRow(row=assessment(case_id=case, failed=failed))],
            run_id="run-1",
        )
    store.journal.append([RunRow(row=run_report())], run_id="run-1")
    return store


def test_written_rows_can_be_read_back(tmp_path):
    store = full_store(tmp_path)
    report = store.load_pending(1)
    assert report.rows == {"results": 3, "assessments": 3, "runs": 1, "cases": 3, "deploys": 1}
    assert report.segments == 6
    assert report.damaged == ()
    assert count(store, "grades") == 9
    assert store.find_last_report("helpdesk", SUITE_SHA) == run_report()
    assert store.find_report("run-1") == run_report()
    outcomes = store.query("select outcome from assessments order by case_id")
    assert outcomes.rows == (("correct",), ("correct",), ("failed",))


def test_both_scores_read_to_the_third_decimal(tmp_path):
    store = full_store(tmp_path)
    store.load_pending(1)
    found = store.query(
        "select flat, weighted, weighted_earned, severity_3_not_correct, duration_s from run_summary"
    )
    assert found.rows == ((Decimal("0.939"), Decimal("0.823"), Decimal(744), 6, 300.0),)


def test_grades_keep_money_to_the_last_digit_and_say_when_nobody_judged(tmp_path):
    store = full_store(tmp_path)
    store.load_pending(1)
    found = store.query(
        "select grader, passed, score, judge_model, cost_usd, blame from grades where case_id = ? order by position",
        ["case-1"],
    )
    assert found.rows == (
        ("quantities", True, None, None, Decimal(0), None),
        ("judge", True, 0.75, "claude-haiku-5-5", Decimal("0.000125"), None),
        ("language", None, None, None, Decimal(0), "app"),
    )


@pytest.mark.parametrize(
    "view",
    [
        "run_summary",
        "score_trend",
        "failures_by_kind",
        "metric_targets",
        "path_winners",
        "latency",
        "cost",
        "coverage",
    ],
)
def test_every_view_about_runs_speaks_of_the_run(tmp_path, view):
    store = full_store(tmp_path)
    store.load_pending(1)
    found = store.query(f"select run_id, finished_at from {view}")
    assert found.rows
    assert {row[0] for row in found.rows} == {"run-1"}
    assert found.rows[0][1].utcoffset().total_seconds() == 0


def test_a_case_that_comes_out_differently_at_the_same_commit_is_flaky(tmp_path):
    store = store_in(tmp_path)
    for run_id, failed in (("run-1", None), ("run-2", FailureKind.WRONG_FACT)):
        rows = [
            AssessmentRow(row=assessment(run_id, "steady")),
            AssessmentRow(row=assessment(run_id, "flaky", failed=failed)),
            RunRow(row=run_report(run_id)),
        ]
        store.journal.append(rows, run_id=run_id)
    store.load_pending(1)
    found = store.query("select case_id, asked, correct, failed, commit from flaky_cases")
    assert found.rows == (("flaky", 2, 1, 1, "abc123"),)


def test_judge_and_plain_graders_are_compared_where_both_graded(tmp_path):
    store = store_in(tmp_path)
    base = assessment()
    judge = base.grades[1].model_copy(update={"aspect": Aspect.FACTUAL_MATCH})
    mild = base.model_copy(
        update={
            "case_id": "mild",
            "grades": (
                base.grades[0].model_copy(update={"passed": False, "failure_kind": FailureKind.WRONG_FACT}),
                judge,
            ),
        }
    )
    agreed = base.model_copy(update={"grades": (base.grades[0], judge)})
    store.journal.append([AssessmentRow(row=agreed), AssessmentRow(row=mild)], run_id="run-1")
    store.load_pending(1)
    found = store.query(
        "select both_graded, agreed, agreement, judge_too_mild, judge_too_strict from judge_agreement"
    )
    assert found.rows == ((2, 1, 0.5, 1, 0),)


def test_views_on_an_empty_warehouse_are_empty_not_wrong(tmp_path):
    store = store_in(tmp_path)
    for view in ("run_summary", "score_trend", "open_incidents", "coverage", "unsent_alerts"):
        assert store.query(f"select * from {view}").rows == ()
    assert store.find_last_report("helpdesk", SUITE_SHA) is None


def test_a_resumed_run_replaces_what_it_asked_again(tmp_path):
    """If a resumed run asks an unanswered case again, only the new answer counts."""
    store = store_in(tmp_path)
    journal = store.journal
    journal.append([ResultRow(row=no_answer()), RunRow(row=run_report(interrupted=True))], run_id="run-1")
    store.load_pending(1)
    journal.append(
        [ResultRow(row=exchange()), AssessmentRow(row=assessment()), RunRow(row=run_report(hours=1))],
        run_id="run-1",
    )
    store.load_pending(1)
    rows = store.query("select outcome, visible_text from results").rows
    assert rows == (("exchange", "Two years."),)
    rows = store.query("select interrupted, finished_at from runs").rows
    assert rows == ((False, run_report(hours=1).finished_at),)
    assert count(store, "metrics") == 1


def test_an_assessment_made_again_replaces_its_grades(tmp_path):
    store = store_in(tmp_path)
    for _ in range(2):
        store.journal.append([AssessmentRow(row=assessment())], run_id="run-1")
        store.load_pending(1)
    assert count(store, "assessments") == 1
    assert count(store, "grades") == 3


def test_the_baseline_is_the_newest_finished_run_of_the_same_cases(tmp_path):
    store = store_in(tmp_path)
    for run_id, hours, interrupted in (("old", 0, False), ("new", 2, False), ("cut", 3, True)):
        store.journal.append([RunRow(row=run_report(run_id, hours=hours, interrupted=interrupted))], run_id=run_id)
    store.load_pending(1)
    last = store.find_last_report("helpdesk", SUITE_SHA)
    assert last is not None
    assert last.run_id == "new"
    before = store.find_last_report("helpdesk", SUITE_SHA, except_run="new")
    assert before is not None
    assert before.run_id == "old"
    assert store.find_last_report("helpdesk", "0" * 64) is None
    assert store.find_last_report("other", SUITE_SHA) is None


def test_f86_sql_in_a_field_is_a_value(tmp_path):
    store = store_in(tmp_path)
    hostile = "'; drop table results; --"
    store.journal.append([ResultRow(row=exchange(text=hostile))], run_id="run-1")
    store.load_pending(1)
    rows = store.query("select visible_text from results where visible_text = ?", [hostile]).rows
    assert rows == ((hostile,),)


@pytest.mark.parametrize(
    "sql", ["selec 1", "select nothing from results", "drop table results", "copy results to 'out.csv'", "select ?"]
)
def test_a_query_that_cannot_be_run_says_so_and_harms_nothing(tmp_path, sql):
    store = full_store(tmp_path)
    store.load_pending(1)
    with pytest.raises(QueryInvalid):
        store.query_for_user(sql)
    assert count(store, "results") == 3
    assert not (tmp_path / "out.csv").exists()


def test_times_come_back_in_utc(tmp_path):
    store = full_store(tmp_path)
    store.load_pending(1)
    found = store.query("select occurred_at, occurred_at::varchar from deploys")
    assert found.rows == ((NOON, "2026-03-01 12:00:00+00"),)
