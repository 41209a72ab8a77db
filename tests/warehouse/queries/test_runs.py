"""Test that the baseline is the last accepted run that can be compared.

If no accepted run can be compared, the baseline is the last accepted run, so that the gate can state why it
compares nothing.
"""

from __future__ import annotations

import pytest

from monitors.errors import WarehouseDamaged
from monitors.records.grades import CaseOutcome, FailureKind, JudgeLineage
from monitors.records.runs import JudgeState, Judging, Verdict
from monitors.records.targets import Environment, PullRequest, Target
from tests.warehouse.sample_rows import SUITE_SHA, assessment, run_report
from tests.warehouse.temporary_stores import store_in
from warehouse.journal.rows import AssessmentRow, RunRow
from warehouse.queries.runs import find_baseline_run, find_failures_since_last_pass

HAIKU = JudgeLineage(model="claude-haiku-5-5", prompt_sha256="ab" * 32, rubric_version="1")
GPT = JudgeLineage(model="gpt-6", prompt_sha256="ab" * 32, rubric_version="1")
PRODUCTION = Target(name="helpdesk", url="http://127.0.0.1:7860", environment=Environment.PRODUCTION)


def judged_by(*lineages: JudgeLineage) -> Judging:
    return Judging(state=JudgeState.ON, lineages=lineages)


def store_with(folder, *runs):
    """Return a store with the given runs, one for each hour. Each item of ``runs`` is (id, changes)."""
    store = store_in(folder)
    for hours, (run_id, changes) in enumerate(runs):
        report = run_report(run_id, hours=hours).model_copy(update={"verdict": Verdict.PASS} | changes)
        rows = [AssessmentRow(row=assessment(run_id, "case-1")), RunRow(row=report)]
        store.journal.append(rows, run_id=run_id)
    store.load_pending(1)
    return store


def found(store, **changes):
    wanted = {"environment": Environment.STAGING, "suite_sha256": SUITE_SHA} | changes
    baseline = find_baseline_run(store, "helpdesk", **wanted)
    return baseline and baseline.report.run_id


def test_the_baseline_is_the_newest_finished_pass(tmp_path):
    store = store_with(
        tmp_path,
        ("oldest", {}),
        ("accepted", {}),
        ("failed", {"verdict": Verdict.FAIL}),
        ("open", {"verdict": Verdict.INCONCLUSIVE}),
        ("stopped", {"interrupted": True}),
    )
    assert found(store) == "accepted"
    assert found(store, except_run="accepted") == "oldest"


def test_runs_of_pull_requests_are_nobodys_baseline(tmp_path):
    pull = PullRequest(repository="owner/bot", number=7)
    store = store_with(tmp_path, ("base", {}), ("proposed", {"pull_request": pull}))
    assert found(store) == "base"


def test_with_the_base_branchs_commits_only_their_runs_count(tmp_path):
    store = store_with(tmp_path, ("on-base", {"commit": "aaa"}), ("elsewhere", {"commit": "bbb"}))
    assert found(store, commits={"aaa", "ccc"}) == "on-base"
    assert found(store, commits={"ccc"}) is None


@pytest.mark.parametrize("environment", Environment)
def test_another_environment_is_another_application(tmp_path, environment):
    store = store_with(tmp_path, ("staging", {}), ("production", {"target": PRODUCTION}))
    assert found(store, environment=environment) == environment.value


def test_an_older_run_over_the_same_suite_goes_before_a_newer_one_over_another(tmp_path):
    store = store_with(tmp_path, ("same", {}), ("other", {"suite_sha256": "1" * 64}))
    assert found(store) == "same"


def test_the_same_judge_goes_before_a_newer_run_of_another(tmp_path):
    store = store_with(tmp_path, ("haiku", {"judging": judged_by(HAIKU)}), ("gpt", {"judging": judged_by(GPT)}))
    assert found(store, lineages=[HAIKU]) == "haiku"
    assert found(store, lineages=[GPT]) == "gpt"
    assert found(store) == "gpt"


def test_a_run_that_needed_no_judge_compares_with_any(tmp_path):
    store = store_with(tmp_path, ("gpt", {"judging": judged_by(GPT)}), ("plain", {}))
    assert found(store, lineages=[HAIKU]) == "plain"


def test_when_none_compares_the_newest_is_given_so_that_the_gate_can_say_what_differs(tmp_path):
    store = store_with(tmp_path, ("older", {"suite_sha256": "2" * 64}), ("newer", {"suite_sha256": "1" * 64}))
    assert found(store) == "newer"


def test_without_an_accepted_run_there_is_none(tmp_path):
    assert found(store_with(tmp_path, ("failed", {"verdict": Verdict.FAIL}))) is None
    assert found(store_in(tmp_path)) is None


def test_a_baseline_has_the_result_of_each_repeat(tmp_path):
    store = store_with(tmp_path, ("base", {}))
    rows = [
        AssessmentRow(row=assessment("base", "case-2")),
        AssessmentRow(row=assessment("base", "case-2", repeat=1, failed=FailureKind.WRONG_FACT)),
    ]
    store.journal.append(rows, run_id="base")
    store.load_pending(1)
    baseline = find_baseline_run(store, "helpdesk", Environment.STAGING, SUITE_SHA)
    assert [(one.case_id, one.repeat, one.outcome) for one in baseline.asked] == [
        ("case-1", 0, CaseOutcome.CORRECT),
        ("case-2", 0, CaseOutcome.CORRECT),
        ("case-2", 1, CaseOutcome.FAILED),
    ]


def test_a_report_of_another_form_is_damage_and_said_so(tmp_path):
    store = store_with(tmp_path, ("base", {}))
    with store.database.open_for_writing(1) as connection:
        connection.execute("update runs set report = '{\"run_id\": 3}'")
    with pytest.raises(WarehouseDamaged, match="cannot read a stored report"):
        find_baseline_run(store, "helpdesk", Environment.STAGING, SUITE_SHA)


FAILED = FailureKind.WRONG_FACT


def test_cases_failing_since_the_last_pass_were_right_in_it(tmp_path):
    """For the newest failed run, the failed cases that were right in the last PASS are found.

    They are sorted by severity, highest first.
    """
    store = store_in(tmp_path)
    runs = [
        ("passed", Verdict.PASS, "aaa", {"case-1": None, "case-2": None, "case-3": FAILED}),
        ("of-a-pull", Verdict.PASS, "ppp", {"case-1": FAILED}),
        ("failed", Verdict.FAIL, "bbb", {"case-1": FAILED, "case-2": None, "case-3": FAILED, "case-4": FAILED}),
        ("later", Verdict.INCONCLUSIVE, "ccc", {"case-2": FAILED}),
    ]
    for hours, (run_id, verdict, commit, cases) in enumerate(runs):
        pull = PullRequest(repository="owner/bot", number=7) if run_id == "of-a-pull" else None
        changes = {"verdict": verdict, "commit": commit, "pull_request": pull}
        rows = [AssessmentRow(row=assessment(run_id, case, failed=kind)) for case, kind in cases.items()]
        report = run_report(run_id, hours=hours).model_copy(update=changes)
        store.journal.append([*rows, RunRow(row=report)], run_id=run_id)
    store.load_pending(1)
    since = find_failures_since_last_pass(store, "helpdesk")
    assert since is not None
    assert (since.run_id, since.commit, since.passed_run_id, since.passed_commit) == (
        "failed",
        "bbb",
        "passed",
        "aaa",
    )
    assert since.cases == (("case-1", ("wrong_fact",)),)
    assert find_failures_since_last_pass(store, "another") is None


def test_without_a_pass_before_it_all_that_failed_counts(tmp_path):
    """If a target never passed, every failed case of its newest failed run is returned."""
    store = store_in(tmp_path)
    report = run_report("failed").model_copy(update={"verdict": Verdict.FAIL})
    cases = [assessment("failed", f"case-{n}", failed=FAILED if n else None) for n in range(3)]
    store.journal.append([*(AssessmentRow(row=case) for case in cases), RunRow(row=report)], run_id="failed")
    store.load_pending(1)
    since = find_failures_since_last_pass(store, "helpdesk")
    assert since is not None
    assert since.passed_run_id is None
    assert [case for case, _ in since.cases] == ["case-1", "case-2"]
