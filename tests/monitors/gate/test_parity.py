"""Tests of parity between languages.

Only paired and graded questions count, and a verdict needs enough pairs.
"""

from __future__ import annotations

import pytest

from monitors.gate.compare import compute_language_gaps
from monitors.records.base import Finding, Language
from monitors.records.grades import Assessment
from tests.builders import assessment, gold_case

ENGLISH, HINDI, HINGLISH = Language.ENGLISH, Language.HINDI, Language.HINGLISH


def assessed(pair: str | None, language: Language, finding: Finding, repeat: int = 0) -> Assessment:
    found = assessment(gold_case(f"{pair or 'alone'}-{language}", language=language, pair=pair))
    return found.model_copy(update={"factual_match": finding, "repeat": repeat})


def pairs(count: int, english: Finding, other: Finding, language: Language = HINDI, start: int = 0):
    return [
        one
        for number in range(start, start + count)
        for one in (assessed(f"p{number}", ENGLISH, english), assessed(f"p{number}", language, other))
    ]


def test_the_gap_is_counted_over_pairs_and_what_stands_alone_is_not():
    run = pairs(17, Finding.YES, Finding.YES) + pairs(3, Finding.YES, Finding.NO, start=17)
    run += [assessed(None, HINDI, Finding.NO)] * 5 + [assessed("single", HINDI, Finding.NO)]
    (gap,) = compute_language_gaps(run, max_gap=0.05)
    assert (gap.language, gap.pairs, gap.both, gap.english_only) == (HINDI, 20, 17, 3)
    assert gap.gap == pytest.approx(0.15)
    assert gap.low < 0.05 < gap.gap < gap.high
    assert gap.met is Finding.NO


def test_five_points_of_twenty_are_not_missed_but_twenty_pairs_cannot_prove_five_points():
    run = pairs(19, Finding.YES, Finding.YES) + pairs(1, Finding.YES, Finding.NO, start=19)
    assert compute_language_gaps(run, max_gap=0.05)[0].met is Finding.UNGRADED


@pytest.mark.parametrize(("count", "met"), [(10, Finding.UNGRADED), (60, Finding.UNGRADED), (200, Finding.YES)])
def test_a_gap_of_nothing_is_within_five_points_only_when_its_whole_interval_is(count, met):
    (gap,) = compute_language_gaps(pairs(count, Finding.YES, Finding.YES), max_gap=0.05)
    assert (gap.gap, gap.met) == (0.0, met)
    assert (gap.high <= 0.05) is (met is Finding.YES)


def test_each_language_has_its_own_gap():
    run = pairs(12, Finding.YES, Finding.YES) + pairs(12, Finding.YES, Finding.NO, HINGLISH)
    hindi, hinglish = compute_language_gaps(run, max_gap=0.05)
    assert (hindi.language, hindi.met, hindi.gap) == (HINDI, Finding.UNGRADED, 0.0)
    assert (hinglish.language, hinglish.met, hinglish.gap) == (HINGLISH, Finding.NO, 1.0)


def test_ungraded_pairs_are_left_out_and_reported():
    run = pairs(10, Finding.YES, Finding.YES) + pairs(4, Finding.UNGRADED, Finding.NO, start=10)
    (gap,) = compute_language_gaps(run, max_gap=0.05)
    assert (gap.pairs, gap.left_out, gap.gap) == (10, 4, 0.0)


@pytest.mark.parametrize("most_gap", [None, 0.05])
def test_too_few_pairs_or_no_target_give_no_verdict(most_gap):
    few = pairs(9 if most_gap else 20, Finding.YES, Finding.NO)
    assert compute_language_gaps(few, max_gap=most_gap)[0].met is Finding.UNGRADED


def test_a_case_asked_again_is_right_only_when_it_was_right_each_time():
    run = [*pairs(1, Finding.YES, Finding.YES), assessed("p0", HINDI, Finding.NO, repeat=1)]
    assert compute_language_gaps(run)[0].english_only == 1
    run = [*pairs(1, Finding.YES, Finding.YES), assessed("p0", HINDI, Finding.UNGRADED, repeat=1)]
    assert compute_language_gaps(run)[0].left_out == 1


def test_without_pairs_there_is_nothing_to_say():
    assert compute_language_gaps([assessed(None, ENGLISH, Finding.YES), assessed(None, HINDI, Finding.NO)]) == ()
    assert compute_language_gaps([]) == ()
