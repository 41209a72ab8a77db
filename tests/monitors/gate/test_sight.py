"""What a run could have seen, by severity."""

from __future__ import annotations

import pytest

from monitors.gate.settings import GateSettings
from monitors.gate.suite_power import format_drop, format_limit
from monitors.records.base import Severity
from monitors.records.runs import ReasonKind
from monitors.stats.paired import smallest_drop
from tests.monitors.gate.runs import baseline, batch, report


def sight_of(told, severity):
    return next(sight for sight in told.sights if sight.severity is severity)


def test_a_suite_large_enough_has_no_blind_spot():
    told = report([*batch(Severity.PAGE, 200, 0), *batch(Severity.ANNOYING, 200, 0)])
    assert not [r for r in told.reasons if r.kind is ReasonKind.BLIND_SPOT]


def test_every_blind_severity_is_named_severest_first():
    told = report([*batch(Severity.ANNOYING, 20, 0), *batch(Severity.PAGE, 40, 0)])
    said = [r.text for r in told.reasons if r.kind is ReasonKind.BLIND_SPOT]
    assert len(said) == 2
    assert said[0] == (
        "cases written as severity 3: all 40 were correct, and up to 7.2 % may still fail (3/40); a drop of 5 % "
        "matters, and a comparison of 40 cases does not detect a drop below 19.0 %"
    )
    assert said[1].startswith("cases written as severity 1: all 20 were correct")


def test_what_matters_is_a_setting():
    coarse = GateSettings(regressions={"severity_3": 0.5, "severity_1": 0.5, "severity_2": 0.5})
    told = report([*batch(Severity.ANNOYING, 20, 0), *batch(Severity.PAGE, 40, 0)], coarse)
    assert not [r for r in told.reasons if r.kind is ReasonKind.BLIND_SPOT]


def test_with_a_baseline_only_shared_cases_are_pairs():
    cases = batch(Severity.ANNOYING, 60, 0)
    gate = GateSettings(min_weighted_score=0)
    seen = sight_of(report(cases, gate, baseline(cases[:30], gate)), Severity.ANNOYING)
    assert (seen.cases, seen.pairs, seen.smallest_drop) == (60, 30, smallest_drop(30))


@pytest.mark.parametrize(
    ("cases", "lost", "words"),
    [
        (100, 0, "all 100 were correct, and up to 3.0 % may still fail (3/100)"),
        (
            100,
            2,
            "2 of 100 were not correct, and up to 6.2 % may still fail",
        ),  # Clopper and Pearson, one-sided: 6.16 %
    ],
)
def test_failures_seen_still_allow_more(cases, lost, words):
    seen = sight_of(report(batch(Severity.ANNOYING, cases, lost)), Severity.ANNOYING)
    assert format_limit(seen) == words


def test_nothing_told_is_said_so():
    seen = sight_of(report(batch(Severity.ANNOYING, 5, 0)), Severity.ANNOYING)
    nothing = seen.model_copy(update={"cases": 0, "pairs": 0, "smallest_drop": None})
    assert format_limit(nothing) == "none was graded"
    assert format_drop(nothing) == "any drop"
