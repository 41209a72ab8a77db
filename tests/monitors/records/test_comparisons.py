"""Test that a comparison lists the cases of highest severity first.

Reports without a comparison can still be read.
"""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from monitors.records.base import Severity
from monitors.records.comparisons import Comparison, RubricAverage, SeverityChange, format_rating_bound
from monitors.records.runs import ReasonKind, RunReport
from monitors.records.targets import Environment
from tests.builders import NOON
from tests.warehouse.sample_rows import run_report

ADDED_LATER = ("comparison", "rubric", "sights", "flaky", "balance", "pull_request", "parity")


def change(severity: Severity, *, failing: tuple[str, ...], fixed: tuple[str, ...] = ()) -> SeverityChange:
    return SeverityChange(severity=severity, shared=9, newly_failing=failing, newly_fixed=fixed)


def test_newly_failing_and_newly_fixed_cases_are_named_severest_first():
    comparison = Comparison(
        baseline_run_id="r0",
        baseline_target="demo",
        baseline_environment=Environment.STAGING,
        baseline_finished_at=NOON,
        severities=(
            change(Severity.MINOR, failing=("a",), fixed=("b",)),
            change(Severity.CRITICAL, failing=("c", "d"), fixed=("e",)),
        ),
    )
    assert comparison.newly_failing == ("c", "d", "a")
    assert comparison.newly_fixed == ("e", "b")


def test_a_report_of_before_there_were_comparisons_is_read():
    old = json.loads(run_report().model_dump_json())
    for name in ADDED_LATER:
        del old[name]
    for metric in old["metrics"]:
        del metric["clusters"]
    read = RunReport.model_validate_json(json.dumps(old))
    assert (read.comparison, read.rubric, read.balance, read.sights, read.flaky) == (None, None, None, (), ())


def test_reasons_stand_in_order_of_weight():
    assert [kind.value for kind in ReasonKind][:8] == [
        "veto", "weighted_score", "metric_target", "language", "rubric", "regression", "deploy", "disputed",
    ]  # fmt: skip


def test_an_average_of_an_older_run_has_no_lower_limit():
    rating = {"case_id": "a", "rating": 4.0}
    old = RubricAverage.model_validate({"mean": 4.0, "low": 3.5, "high": 4.5, "clusters": 9, "ratings": [rating]})
    assert format_rating_bound(old) == ""
    assert format_rating_bound(old.model_copy(update={"bound": 3.7}))


def test_an_average_that_is_not_an_object_is_refused():
    with pytest.raises(ValidationError, match="valid dictionary"):
        RubricAverage.model_validate([4.0])
