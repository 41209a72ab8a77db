"""Tests of the shares of right answers by language and by the app's path (such as the model that answered)."""

from __future__ import annotations

import pytest

from monitors.gate.assess import assess_case
from monitors.gate.metrics import MAX_PATHS
from monitors.gate.settings import GateSettings
from monitors.records.base import Language, Severity
from monitors.records.runs import CaseResult, ReasonKind, Verdict
from monitors.stats.intervals import compute_wilson_interval
from tests.builders import exchange, gold_case, grades
from tests.monitors.gate.runs import WRONG, asked, batch, reason, report


def by_path(name: str, path: str | None, *failures) -> CaseResult:
    case = gold_case(name)
    came = exchange(case, app_path=path)
    return CaseResult(case=case, result=came, assessment=assess_case(case, came, grades(*failures)))


def metrics_of(run_report):
    return {metric.name: metric for metric in run_report.metrics}


def test_accuracy_by_path_puts_the_winner_first():
    run_report = report(
        [
            *(by_path(f"f{n}", "fallback", *([WRONG] if n < 4 else [])) for n in range(10)),
            *(by_path(f"p{n}", "groq/llama-3.3") for n in range(30)),
            by_path("silent", None),
        ]
    )
    paths = [m for m in run_report.metrics if m.name.startswith("path_accuracy")]
    assert [(m.name, m.passed, m.total) for m in paths] == [
        ("path_accuracy:groq_llama-3_3", 30, 30),
        ("path_accuracy:fallback", 6, 10),
    ]


def test_an_app_that_names_a_path_for_every_answer_fills_no_report():
    run_report = report([by_path(f"c{n}", f"path {n} " + "x" * 300) for n in range(50)])
    assert sum(m.name.startswith("path_accuracy") for m in run_report.metrics) <= MAX_PATHS


def test_cases_that_share_a_policy_widen_the_interval():
    alone = [asked(gold_case(f"c{n}"), *([WRONG] if n < 10 else [])) for n in range(100)]
    shared = [
        asked(gold_case(f"c{n}", cluster=f"policy-{n // 10}"), *([WRONG] if n < 10 else [])) for n in range(100)
    ]
    plain, wide = (metrics_of(report(each))["factual_accuracy"] for each in (alone, shared))
    assert (plain.low, plain.high) == pytest.approx(compute_wilson_interval(90, 100))
    assert plain.clusters is None
    assert wide.clusters == 10
    assert wide.low < plain.low < plain.high < wide.high


def test_hindi_more_than_five_points_below_english_fails_and_names_its_cases(snapshot):
    english = batch(Severity.MINOR, 40, 0, name="en")
    hindi = batch(Severity.MINOR, 40, 3, name="hi", language=Language.HINDI)
    run_report = report([*english, *hindi], GateSettings(min_weighted_score=0))
    assert run_report.verdict is Verdict.FAIL
    said = reason(run_report, ReasonKind.METRIC_TARGET)
    metric = metrics_of(run_report)["factual_accuracy:hi"]
    assert (metric.passed, metric.total, metric.target) == (37, 40, 0.95)
    assert said.text == snapshot
    assert said.case_ids == ("hi-0", "hi-1", "hi-2")
