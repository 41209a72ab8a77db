"""Test that a comparison lists the cases of highest severity first.

Reports without a comparison can still be read.
"""

from __future__ import annotations

import json

from monitors.records.base import Severity
from monitors.records.comparisons import Comparison, SeverityChange
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
