"""What a run is held against: the last accepted run of the base branch, never another pull request's, or one named."""

from __future__ import annotations

from datetime import timedelta

import pytest

from flows.baselines import Baselines, Wanted
from flows.kept_deploys import KeptDeploys
from flows.run_folder import START_FILE, RunStart
from monitors.errors import ConfigError
from monitors.records.deploys import PullRequest
from monitors.records.grades import CaseOutcome, JudgeLineage
from monitors.records.judging import JudgeState, Judging
from monitors.records.runs import CaseResult, Verdict
from monitors.reports.results_json import results_json
from tests.builders import case_result, gold_case
from tests.flows.deploys import kept
from tests.warehouse.places import store_in
from tests.warehouse.sample_rows import NOON, SUITE_SHA, assessment, run_report
from warehouse.rows import AssessmentRow, RunRow

PULL = PullRequest(repository="acme/helpdesk", number=12)
JUDGE = JudgeLineage(model="claude-haiku-5-5", prompt_sha256="ab" * 32, rubric_version="1")
OTHER_JUDGE = JUDGE.model_copy(update={"model": "gpt-9"})


class Past:
    """Earlier runs of one data folder, each an hour after the one before."""

    def __init__(self, folder):
        self.folder = folder
        self.runs = folder / "runs"
        self.store = store_in(folder)
        self.kept = KeptDeploys(folder)
        self.baselines = Baselines(self.store, self.runs, self.kept)
        self._hours = 0

    def ran(self, run_id, *, pull=None, journal=True, **changes):
        self._hours += 1
        at = NOON + timedelta(hours=self._hours)
        values = {"verdict": Verdict.PASS, "finished_at": at, "started_at": at} | changes
        report = run_report(run_id).model_copy(update=values)
        rows = [RunRow(row=report)]
        if journal:
            rows.append(AssessmentRow(row=assessment(run_id, "case-1")))
        self.store.journal.append(rows, run_id=run_id)
        self.store.load_pending(5)
        start = RunStart(
            run_id=run_id, target=report.target, suite_sha256=report.suite_sha256, commit=report.commit,
            started_at=at, pull_request=pull,
        )  # fmt: skip
        (self.runs / run_id).mkdir(parents=True)
        (self.runs / run_id / START_FILE).write_text(start.model_dump_json(), encoding="utf-8")
        return report

    def found(self, named="auto", *, lineages=(), suite=SUITE_SHA, run_id="now", target=None):
        target = target or run_report("x").target.name
        judging = Judging(state=JudgeState.ON, lineages=lineages) if lineages else None
        found = self.baselines.find(named, Wanted(run_id, target, suite, judging))
        return found.report.run_id if found else None


@pytest.fixture
def past(tmp_path):
    return Past(tmp_path)


def test_nothing_accepted_is_no_baseline(past):
    assert past.found() is None
    past.ran("failed", verdict=Verdict.FAIL)
    past.ran("open", verdict=Verdict.INCONCLUSIVE)
    past.ran("stopped", interrupted=True)
    assert past.found() is None


def test_it_is_the_last_accepted_run_and_never_this_one(past):
    for run_id in ("first", "second", "now"):
        past.ran(run_id)
    past.ran("failed", verdict=Verdict.FAIL)
    assert past.found() == "second"
    assert past.found(target="another") is None
    assert past.found("none") is None


def test_another_pull_request_s_run_is_no_base(past):
    """Neither as its run noted it, nor as a delivery told it."""
    past.ran("base")
    past.ran("of-a-pull-request", pull=PULL)
    past.kept.keep(kept("c0ffee", target=run_report("x").target.name, pull_request=PULL))
    past.ran("told-by-a-delivery", commit="c0ffee")
    assert past.found() == "base"


def test_the_same_suite_goes_before_a_newer_run_over_another(past):
    past.ran("same")
    past.ran("other", suite_sha256="1" * 64)
    assert past.found() == "same"
    assert past.found(suite="2" * 64) == "other", "what differs is told by the comparison"


def test_the_same_judge_goes_before_a_newer_run_of_another(past):
    past.ran("same", judging=Judging(state=JudgeState.ON, lineages=(JUDGE,)))
    past.ran("other", judging=Judging(state=JudgeState.ON, lineages=(OTHER_JUDGE,)))
    assert past.found(lineages=(JUDGE,)) == "same"
    assert past.found() == "other", "a run that needed no judge compares with any"


def test_what_each_case_came_to_is_there(past):
    past.ran("base")
    found = past.baselines.find("base", Wanted("now", "x", SUITE_SHA, None))
    assert [(one.case_id, one.outcome) for one in found.asked] == [("case-1", assessment("base", "case-1").outcome)]


def results(path, run_id="elsewhere"):
    report = run_report(run_id).model_copy(update={"verdict": Verdict.PASS})
    case = gold_case("case-1")
    one = case_result(case)
    one = CaseResult(
        case=case,
        result=one.result.model_copy(update={"run_id": run_id}),
        assessment=one.assessment.model_copy(update={"run_id": run_id}),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(results_json(report, [one])), encoding="utf-8")
    return path


def test_a_file_and_a_run_of_which_only_the_file_is_left_can_be_named(past, tmp_path):
    assert past.found(str(results(tmp_path / "artifact" / "results.json"))) == "elsewhere"
    results(past.runs / "kept" / "results.json", "kept")
    assert past.found("kept") == "kept"
    found = past.baselines.find("kept", Wanted("now", "x", SUITE_SHA, None))
    assert [one.outcome for one in found.asked] == [CaseOutcome.CORRECT]


@pytest.mark.parametrize("named", ["nowhere.json", "no-such-run", "../.."])
def test_what_is_not_there_is_told_before_anything_is_asked(past, named):
    with pytest.raises(ConfigError, match="accepted: auto, none"):
        past.baselines.check(named)
    past.baselines.check("auto")
    past.baselines.check("none")


def test_a_file_that_is_no_result_is_told(past, tmp_path):
    (tmp_path / "x.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"x\.json"):
        past.baselines.check(str(tmp_path / "x.json"))
