"""The reports' ratings: an average below 4.0 fails, and so does a drop above 0.3."""

from __future__ import annotations

import pytest

from monitors.gate.settings import GateSettings
from monitors.records.runs import ReasonKind, Verdict
from tests.builders import gold_case
from tests.monitors.gate.runs import asked, baseline, reason, report

LAX = GateSettings(min_rubric=1)


def rated(*ratings: int):
    return [asked(gold_case(f"t-{n}"), rubric=rating) for n, rating in enumerate(ratings)]


def test_no_rated_report_has_no_average_and_decides_nothing():
    told = report(rated(0, 0))
    assert told.rubric is None
    assert reason(told, ReasonKind.RUBRIC) is None


def test_an_average_below_4_fails_with_the_low_ones_named_lowest_first():
    told = report(rated(5, 5, 3, 2, 4))
    said = reason(told, ReasonKind.RUBRIC)
    assert said.text == "average rating 3.80 of 5 reports is below 4 of 5"
    assert (said.case_ids, said.decisive) == (("t-3", "t-2"), True)
    assert told.verdict is Verdict.FAIL
    assert told.rubric.low < told.rubric.mean < told.rubric.high


def test_an_average_of_exactly_4_passes():
    assert report(rated(5, 5, 3, 3, 4)).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("now", "verdict"),
    [
        ((5, 5, 5, 5, 5, 5, 5, 4, 4, 4), Verdict.PASS),  # a drop of exactly 0.3
        ((5, 5, 5, 5, 5, 5, 4, 4, 4, 4), Verdict.FAIL),  # 0.4
    ],
)
def test_a_drop_above_0_3_on_shared_reports_fails(now, verdict):
    told = report(rated(*now), baseline=baseline(rated(*[5] * 10)))
    assert told.verdict is verdict
    assert told.comparison.rubric.before == 5
    assert told.comparison.rubric.change == pytest.approx(sum(now) / 10 - 5)


def test_the_drop_is_over_the_reports_that_both_runs_rated():
    before = baseline(rated(5, 5, 0, 0))
    told = report(rated(5, 5, 1, 1), LAX, before)
    assert (told.comparison.rubric.shared, told.comparison.rubric.change) == (2, 0)
    assert told.verdict is Verdict.PASS


def test_a_case_rated_several_times_counts_once_with_its_average():
    case = gold_case("t")
    told = report([asked(case, rubric=5), asked(case, rubric=3, repeat=1), *rated(4)], LAX)
    assert (len(told.rubric.ratings), told.rubric.mean) == (2, 4)


def test_the_reason_shows_the_interval():
    told = report(rated(3, 4, 5, 4), LAX, baseline(rated(5, 5, 5, 5)))
    said = reason(told, ReasonKind.RUBRIC)
    assert said.text.startswith("average rating 5.00 to 4.00 on 4 shared reports: -1.00 [")
    assert said.text.endswith("; a drop above 0.3 fails")
    assert said.case_ids == ("t-0", "t-1", "t-3")
