"""Test the sample of cases that are asked twice: it prefers severe cases, and includes all cases over time."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from flows.repeatability.sample import sample_cases
from monitors.records.base import Language, Severity
from tests.builders import NOON, gold_case


def cases_of(counts):
    """Return as many cases of each severity as ``counts`` states, with three types and two languages."""
    return tuple(
        gold_case(
            f"s{severity.value}-{number}",
            severity=severity,
            type=f"type-{number % 3}",
            language=Language.HINDI if number % 5 == 0 else Language.ENGLISH,
        )
        for severity, count in zip(Severity, counts, strict=True)
        for number in range(count)
    )


COUNTS = st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))


@given(COUNTS, st.integers(0, 70), st.integers(0, 99))
def test_the_sample_has_the_requested_number_of_distinct_cases(counts, count, seed):
    """The sample has the requested number of different cases, or all cases if there are fewer."""
    cases = cases_of(counts)
    found = sample_cases(cases, count, {}, Random(seed))
    assert len({case.id for case in found}) == len(found) == min(count, len(cases))


@given(st.integers(0, 99))
def test_over_the_nights_every_case_has_its_turn_and_the_severe_ones_more_often(seed):
    """Within twelve nights, every case is sampled, and severe cases are sampled more often."""
    cases, random = cases_of((36, 36, 36)), Random(seed)
    asked: Counter[str] = Counter()
    last = {}
    for night in range(12):
        for case in sample_cases(cases, 24, last, random):
            asked[case.id] += 1
            last[case.id] = NOON + timedelta(days=night)
    assert set(asked) == {case.id for case in cases}
    by_severity = Counter(dict.fromkeys(Severity, 0))
    for case in cases:
        by_severity[case.severity] += asked[case.id]
    assert by_severity[Severity.CRITICAL] > by_severity[Severity.MAJOR] > by_severity[Severity.MINOR]


def test_every_type_and_language_of_a_severity_is_in_one_night():
    """A sample of six cases contains all six combinations of type and language of its severity."""
    found = sample_cases(cases_of((0, 0, 30)), 6, {}, Random(3))
    assert len({(case.type, case.language) for case in found}) == 6
