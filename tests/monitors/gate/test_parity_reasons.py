"""Tests of the gap between languages.

A run fails if Hindi is further behind English than is allowed. For other languages, the gap is only reported.
"""

from __future__ import annotations

import pytest

from monitors.gate.settings import GateSettings
from monitors.records.base import Language, Severity
from monitors.records.runs import ReasonKind, Verdict
from tests.builders import gold_case
from tests.monitors.gate.runs import WRONG, asked, batch, report, times

GATE = GateSettings(min_weighted_score=0, targets={"factual_accuracy": 0})
OTHERS = batch(Severity.CRITICAL, 50, 0)


def language_pairs(count: int, behind: int, language: Language = Language.HINDI):
    """Return the results of ``count`` pairs of an English question and its translation.

    The first ``behind`` pairs fail only in ``language``.
    """
    return [
        asked(
            gold_case(f"{each.value}-{n}", language=each, pair=f"pair-{n}"),
            *([WRONG] if n < behind and each is language else []),
        )
        for n in range(count)
        for each in (Language.ENGLISH, language)
    ]


def missed(run_report):
    """Return the reasons about missed targets. The gate of these tests has only a target for the language gap."""
    return [one for one in run_report.reasons if one.kind is ReasonKind.METRIC_TARGET]


def test_hindi_behind_by_more_than_five_points_fails_with_the_cases_that_make_the_gap(snapshot):
    run_report = report([*OTHERS, *language_pairs(20, 2)], GATE)
    (one,) = missed(run_report)
    assert (one.kind, one.decisive) == (ReasonKind.METRIC_TARGET, True)
    assert (run_report.parity[0].gap, run_report.parity[0].other_only, run_report.parity[0].english_only) == (
        pytest.approx(0.1),
        0,
        2,
    )
    assert one.text == snapshot
    assert one.case_ids == ("hi-0", "hi-1")
    assert run_report.verdict is Verdict.FAIL


def test_five_points_behind_are_allowed():
    run_report = report([*OTHERS, *language_pairs(20, 1)], GATE)
    assert missed(run_report) == []
    assert run_report.parity[0].gap == pytest.approx(0.05)


def test_another_language_behind_is_said_and_decides_nothing():
    run_report = report([*OTHERS, *language_pairs(20, 4, Language.HINGLISH)], GATE)
    assert [one.decisive for one in missed(run_report)] == [False]
    assert run_report.verdict is Verdict.PASS


def test_with_pairs_enough_the_unpaired_share_of_hindi_has_no_target():
    run_report = report(
        [*OTHERS, *language_pairs(30, 0), *batch(Severity.MINOR, 30, 9, name="x", language=Language.HINDI)], GATE
    )
    hindi = next(one for one in run_report.metrics if one.name == "factual_accuracy:hi")
    assert hindi.target is None
    assert run_report.verdict is Verdict.PASS


def test_a_gap_that_rests_on_one_flaky_case_does_not_fail():
    flaky = gold_case("hi-x", language=Language.HINDI, pair="pair-x")
    partner = asked(gold_case("en-x", pair="pair-x"))
    run_report = report([*OTHERS, *language_pairs(20, 1), partner, *times(flaky, 2, 1)], GATE)
    (one,) = missed(run_report)
    assert (one.decisive, "hi-x" in one.case_ids) == (False, True)
    assert run_report.verdict is Verdict.PASS
