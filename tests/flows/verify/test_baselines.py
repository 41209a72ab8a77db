"""Test that a baseline run is found by its id or its file, or rejected before any question is asked."""

from __future__ import annotations

import pytest

from flows.verify.run_state import load_named_baseline
from monitors.errors import ConfigError
from monitors.records.grades import CaseOutcome
from monitors.records.runs import CaseResult
from monitors.reports.results_json import format_results_json
from tests.builders import case_result, gold_case
from tests.warehouse.sample_rows import run_report


def results(path, run_id):
    case = gold_case("case-1")
    one = case_result(case)
    one = CaseResult(
        case=case,
        result=one.result.model_copy(update={"run_id": run_id}),
        assessment=one.assessment.model_copy(update={"run_id": run_id}),
    )
    path.parent.mkdir(parents=True)
    path.write_text("".join(format_results_json(run_report(run_id), [one])), encoding="utf-8")
    return path


def test_a_file_and_a_run_can_be_named(tmp_path):
    runs = tmp_path / "runs"
    file = results(tmp_path / "artifact" / "results.json", "elsewhere")
    results(runs / "stored" / "results.json", "stored")
    for named, run_id in ((str(file), "elsewhere"), ("stored", "stored")):
        found = load_named_baseline(named, runs)
        assert found.report.run_id == run_id
        assert [(one.case_id, one.outcome) for one in found.asked] == [("case-1", CaseOutcome.CORRECT)]


def test_none_and_auto_name_no_run(tmp_path):
    assert load_named_baseline("none", tmp_path) is None
    assert load_named_baseline("auto", tmp_path) is None


@pytest.mark.parametrize("named", ["nowhere.json", "no-such-run", "../.."])
def test_a_missing_baseline_names_the_accepted_forms(tmp_path, named):
    with pytest.raises(ConfigError, match="accepted: auto"):
        load_named_baseline(named, tmp_path)


def test_a_file_that_is_not_a_result_is_rejected(tmp_path):
    (tmp_path / "x.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"x\.json"):
        load_named_baseline(str(tmp_path / "x.json"), tmp_path)
