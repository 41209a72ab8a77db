"""Test the comparison of a run with an earlier run in the warehouse, and which runs are not comparable."""

from __future__ import annotations

import pytest

from flows.clock import utc_now
from flows.runtime.run import build_run_context
from flows.verify.run_state import LiveRun, find_baseline
from monitors.gate.assess import assess_case
from monitors.gate.evaluate import evaluate_results
from monitors.graders.panel import grade_exchange
from monitors.records.base import Severity
from monitors.records.runs import RunReport, Verdict
from monitors.records.targets import PullRequest
from tests.builders import exchange, gold_case
from tests.flows.judged_run import configured
from warehouse.journal.rows import RunRow

CASES = [gold_case(f"case-{n}", severity=Severity.MAJOR) for n in range(60)]
RIGHT = "24 months [Source: Gold, clause 1]"
WRONG = "36 months [Source: Gold, clause 1]"


def recorded_run(folder, *, wrong: int = 0, cases=CASES, commit: str, pull: PullRequest | None = None) -> RunReport:
    """Grade, evaluate and store a run in which the answers to the first ``wrong`` cases are wrong."""
    request = configured(folder, cases).model_copy(update={"commit": commit, "pull_request": pull})
    run = LiveRun(build_run_context(request))
    wired = run.context
    with wired.run_folder as begun:
        for number, case in enumerate(cases):
            came = exchange(case, WRONG if number < wrong else RIGHT, run_id=wired.run_id)
            run.save(case, came, assess_case(case, came, grade_exchange(wired.panel, case, came)))
        baseline = find_baseline(run)
        facts = run.build_facts(utc_now())
        report = evaluate_results(facts, run.results, wired.config.gate, baseline=baseline, suite=wired.suite.cases)
        wired.journal.append((RunRow(row=report),), run_id=wired.run_id)
        wired.store.load_pending(30)
        begun.mark_finished()
    return report


def test_the_second_run_is_held_against_the_first_and_names_what_broke(tmp_path):
    first = recorded_run(tmp_path, commit="aaa")
    assert (first.verdict, first.comparison) == (Verdict.PASS, None)
    second = recorded_run(tmp_path, wrong=7, commit="bbb")
    comparison = second.comparison
    assert (comparison.baseline_run_id, comparison.baseline_commit, comparison.shared) == (first.run_id, "aaa", 60)
    assert comparison.newly_failing == tuple(f"case-{n}" for n in range(7))
    assert comparison.p_value < 0.05
    assert second.verdict is Verdict.FAIL


@pytest.mark.whole_only
def test_a_failed_run_and_one_of_a_pull_request_are_nobodys_baseline(tmp_path):
    first = recorded_run(tmp_path, commit="aaa")
    recorded_run(tmp_path, wrong=20, commit="bbb")
    pull = recorded_run(tmp_path, commit="ccc", pull=PullRequest(repository="owner/bot", number=7))
    assert pull.verdict is Verdict.PASS
    assert recorded_run(tmp_path, commit="ddd").comparison.baseline_run_id == first.run_id


def test_another_suite_is_not_compared_and_says_so(tmp_path):
    recorded_run(tmp_path, commit="aaa")
    comparison = recorded_run(tmp_path, cases=CASES[:50], commit="bbb").comparison
    assert len(comparison.refused) == 1
    assert comparison.refused[0].startswith("the suite changed from ")
    assert comparison.shared == 0
