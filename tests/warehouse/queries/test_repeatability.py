"""Test which repeats of a question count.

Target, build, graders and wording of the case must be the same, and the session must not be void.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from monitors.errors import WarehouseDamaged
from monitors.records.cases import Suite
from monitors.records.snapshots import RunSnapshot
from monitors.records.targets import Environment
from tests.warehouse.sample_repeats import BY, GRADERS, SETTINGS, session
from tests.warehouse.sample_rows import NOON, SUITE_SHA, assessment, run_report, suite
from tests.warehouse.temporary_stores import store_in
from warehouse.database.check import check_database
from warehouse.database.rebuild import rebuild_database
from warehouse.journal.rows import AssessmentRow, CaseRow, RepeatabilityRow, RunRow, SuiteCase
from warehouse.queries.repeatability import (
    RepeatScope,
    find_newest_session,
    load_last_repeat_times,
    load_recorded_repeats,
)

SCOPE = RepeatScope("helpdesk", Environment.STAGING, SUITE_SHA, BY, NOON - timedelta(days=1))


def store_with(folder, *rows):
    """Return a warehouse in ``folder`` that contains the cases of the suite and the given rows."""
    store = store_in(folder)
    known: Suite = suite(3)
    cases = [CaseRow(row=SuiteCase(suite_sha256=SUITE_SHA, suite_name="gold", case=case)) for case in known.cases]
    store.journal.append([*cases, *rows], run_id=None)
    store.load_pending(1)
    return store


def run(run_id: str, *, hours: float, graders=GRADERS, **changes):
    """Return the rows of a run that took place ``hours`` hours after noon and asked one case."""
    snapshot = RunSnapshot(suite_sha256=SUITE_SHA, cases=3, graders=graders, settings=SETTINGS)
    report = run_report(run_id, hours=hours).model_copy(update={"snapshot": snapshot} | changes)
    return [AssessmentRow(row=assessment(run_id, "case-0")), RunRow(row=report)]


def test_a_session_is_loaded_once_and_its_pairs_come_back(tmp_path):
    """If a session is stored twice, its latest version and figures are used, also after a rebuild.

    The check finds no fault.
    """
    first = session()
    store = store_with(tmp_path, RepeatabilityRow(row=first))
    later = first.model_copy(update={"stopped": "the limit was reached"})
    store.journal.append([RepeatabilityRow(row=later)], run_id="session-1")
    store.load_pending(1)
    found = load_recorded_repeats(store, SCOPE)
    assert (found.of_sessions, found.of_runs, found.sessions, found.void_sessions) == (first.cases, (), 1, 0)
    assert find_newest_session(store, "helpdesk") == later
    assert find_newest_session(store, "helpdesk", except_run="session-1") is None
    assert load_last_repeat_times(store, "helpdesk") == {"case-0": NOON}
    rebuild_database(store, wait_s=5)
    assert load_recorded_repeats(store, SCOPE) == found
    assert check_database(store, wait_s=5).is_sound


def test_sessions_are_in_no_score_trend_or_list_of_runs(tmp_path):
    """The answers of a repeatability session are only in their own table and view.

    They are in no score, trend or list of runs.
    """
    store = store_with(tmp_path, RepeatabilityRow(row=session()))
    for view in ("runs", "assessments", "grades", "run_summary", "score_trend", "failures_by_kind", "flaky_cases"):
        assert store.query(f"select count(*) from {view}").rows == ((0,),), view
    columns = "case_id, severity, asked, correct, failed, came_out_differently"
    assert store.query(f"select {columns} from repeated_cases").rows == (("case-0", 2, 2, 1, 1, True),)


@pytest.mark.parametrize(
    "changes",
    [
        {"graded_by": "0" * 64},
        {"target": "other"},
        {"environment": Environment.PRODUCTION},
        {"hours": -48},
        {"case_id": "gone"},
        {"suite_sha256": "f" * 64},
    ],
)
def test_different_items_do_not_count(tmp_path, changes):
    """Repeats do not count if the graders, the target or the environment differ, or if the repeats are too old.

    Repeats of a case that changed or is no longer in the suite do not count either.
    """
    store = store_with(tmp_path, RepeatabilityRow(row=session(**changes)))
    assert load_recorded_repeats(store, SCOPE).of_sessions == ()


def test_pairs_across_a_deploy_are_void_and_counted_as_such(tmp_path):
    """If a deploy happened during a session, its pairs are not used, and the session is counted as void.

    The same case can then be repeated again at once.
    """
    store = store_with(tmp_path, RepeatabilityRow(row=session(void="a deploy came in between")))
    found = load_recorded_repeats(store, SCOPE)
    assert (found.of_sessions, found.sessions, found.void_sessions) == ((), 0, 1)
    assert load_last_repeat_times(store, "helpdesk") == {}


def test_runs_on_one_commit_are_repeats_for_free(tmp_path):
    """Two complete runs of one commit with the same graders give a pair for each case.

    A run with other graders, a run of another commit, and a stopped run give none.
    """
    rows = [
        *run("run-1", hours=1),
        *run("run-2", hours=2),
        *run("run-3", hours=3, graders={"quantities": "2"}),
        *run("run-4", hours=4, interrupted=True),
        *run("run-5", hours=5, commit="fff9999"),
        *run("run-6", hours=6, commit=None),
        *run("run-7", hours=7, snapshot=None),
    ]
    (found,) = load_recorded_repeats(store_with(tmp_path, *rows), SCOPE).of_runs
    assert ([ask.run_id for ask in found.asks], found.build, found.case_id) == (
        ["run-1", "run-2"],
        "abc123",
        "case-0",
    )


def test_a_session_of_another_form_is_named(tmp_path):
    """If the record of a session is unreadable, the error names the view that still contains its pairs."""
    store = store_with(tmp_path, RepeatabilityRow(row=session()))
    with store.database.open_for_writing(1) as connection:
        connection.execute("update repeatability_runs set record = json_merge_patch(record, '{\"sampled\": -1}')")
    with pytest.raises(WarehouseDamaged, match="repeated_cases"):
        find_newest_session(store, "helpdesk")
