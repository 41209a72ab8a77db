"""Properties of the gate: the order of results does not matter, and a correct answer never lowers a result."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitors.gate.settings import GateSettings
from monitors.records.base import Severity
from monitors.records.runs import Verdict
from tests.builders import gold_case
from tests.monitors.gate.runs import LEAK, WRONG, asked, baseline, report
from tests.tiers import scale_examples

WORSE_LAST = (Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.FAIL)
ACCEPTED = GateSettings(min_weighted_score=0, targets={"factual_accuracy": 0, "citation_accuracy": 0})
STRICT = GateSettings(min_weighted_score=0.8, targets={"factual_accuracy": 0.7}, fail_on_regression=True)

CASES = st.lists(
    st.tuples(
        st.sampled_from(Severity),
        st.sampled_from([(), (WRONG,), (LEAK,)]),
        st.booleans(),
        st.sampled_from([None, "policy-a", "policy-b"]),
    ),
    min_size=1,
    max_size=30,
)


def run_and_baseline(cases_in_numbers):
    """Return the results of a run and its baseline.

    A case is given as a tuple: its severity, its failures in the run, whether it was right in the baseline, and its
    policy.
    """
    cases = [
        gold_case(f"c-{n}", severity=severity, cluster=policy)
        for n, (severity, _, _, policy) in enumerate(cases_in_numbers)
    ]
    now = [asked(case, *failures) for case, (_, failures, _, _) in zip(cases, cases_in_numbers, strict=True)]
    mild = (Severity.MINOR, Severity.MAJOR)
    before = [
        asked(case, *([] if right or case.severity not in mild else [WRONG]))
        for case, (_, _, right, _) in zip(cases, cases_in_numbers, strict=True)
    ]
    return now, baseline(before, ACCEPTED)


@settings(max_examples=scale_examples(40), deadline=None)
@given(CASES, st.randoms())
def test_the_order_of_results_means_nothing(cases_in_numbers, random):
    now, before = run_and_baseline(cases_in_numbers)
    mixed = list(now)
    random.shuffle(mixed)
    one, other = report(now, STRICT, before), report(mixed, STRICT, before)
    assert one.verdict is other.verdict
    assert (one.scores, one.sights, one.balance) == (other.scores, other.sights, other.balance)
    assert [reason.text for reason in one.reasons] == [reason.text for reason in other.reasons]
    assert (one.comparison.p_value, one.comparison.direction) == (
        other.comparison.p_value,
        other.comparison.direction,
    )
    for metric, other_metric in zip(one.metrics, other.metrics, strict=True):
        assert (metric.passed, metric.low, metric.high) == (
            other_metric.passed,
            pytest.approx(other_metric.low),
            pytest.approx(other_metric.high),
        )


@settings(max_examples=scale_examples(60), deadline=None)
@given(CASES, st.integers(0, 29))
def test_one_more_right_answer_never_makes_a_verdict_worse(cases_in_numbers, place):
    now, before = run_and_baseline(cases_in_numbers)
    corrected = list(now)
    corrected[place % len(now)] = asked(now[place % len(now)].case)
    worse, better = report(now, STRICT, before), report(corrected, STRICT, before)
    assert WORSE_LAST.index(better.verdict) <= WORSE_LAST.index(worse.verdict)
    assert better.scores.weighted.value >= worse.scores.weighted.value
