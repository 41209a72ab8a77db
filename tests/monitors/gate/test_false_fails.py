"""Test the estimated rate of false FAILs, against calculations by hand and suites with known noise."""

from __future__ import annotations

from random import Random

import pytest

from monitors.gate.false_fails import GateSimulator, build_right_answer_record
from monitors.gate.repeatability import MIN_PAIRS, compute_repeatability, pair_consecutive_answers
from monitors.gate.settings import GateSettings
from monitors.records.base import Blame, Severity
from monitors.records.grades import CaseOutcome
from monitors.stats.repeatability import fit_noise
from tests.monitors.gate.noisy_suites import (
    VETO_ALONE,
    coverage,
    facts_of,
    noisy_suite,
    repeated,
    suite_of,
)

LENIENT = VETO_ALONE.model_copy(update={"coverage_floor": 0.5})


def figures(suite, repeats, settings: GateSettings = VETO_ALONE, *, runs: int = 20, configured: int = 1):
    return compute_repeatability(
        facts_of(suite), suite, repeats, settings, Random(1), configured=configured, runs=runs
    )


def test_a_suite_that_never_flips_never_fails_by_chance():
    """A suite without flips never fails by chance: none of 60 simulated runs fails.

    The interval of the rate is still wide, because there are few pairs of repeated answers.
    """
    suite = suite_of(10, 20)
    found = figures(suite, [repeated(case, True, True) for case in suite.cases], runs=60)
    rate = found.advice[0].false_fail
    assert (rate.failed, rate.runs, rate.rate, rate.low) == (0, 60, 0.0, 0.0)
    assert 0 < rate.high < 1
    assert (found.noise, found.flipped, found.rates[0].flips) == (0.0, (), 0)


def test_a_fault_is_no_noise():
    """A fault is not noise.

    A case that fails each time is reported as a steady failure and causes no false FAIL.
    """
    suite = suite_of(10, 20)
    repeats = [repeated(case, *[case.id != "severe-0"] * 2) for case in suite.cases]
    found = figures(suite, repeats)
    assert found.steady_failures == ("severe-0",)
    assert (found.noise, found.advice[0].false_fail.failed) == (0.0, 0)


def test_a_flaky_severe_case_fails_runs_and_a_flaky_harmless_one_does_not():
    """A flaky case triggers the veto, which fails the run, only if its severity is 3."""
    suite = suite_of(10, 20)
    rates = []
    for flaky in ("severe-0", "other-0"):
        repeats = [repeated(case, True, case.id != flaky) for case in suite.cases for _ in range(4)]
        found = figures(suite, repeats, runs=100)
        assert found.flipped == (flaky,)
        rates.append(found.advice[0].false_fail.rate)
    assert rates[0] > 0.25
    assert rates[1] < 0.2


@pytest.mark.whole_only
def test_the_gate_that_is_configured_decides():
    """Noise in harmless cases fails few runs if only the veto counts, and most runs if the minimum score is 1."""
    suite = suite_of(2, 30)
    repeats = [repeated(case, True, not case.id.endswith("1")) for case in suite.cases if case.id != "severe-1"]
    strict = VETO_ALONE.model_copy(update={"min_weighted_score": 1.0})
    loose, tight = (figures(suite, repeats, gate).advice[0].false_fail.rate for gate in (VETO_ALONE, strict))
    assert loose < 0.5 < tight


def test_cases_never_graded_stay_ungraded():
    """If most of a suite cannot be graded, simulated runs are INCONCLUSIVE, as real runs are."""
    suite = suite_of(10, 30)
    ungraded = {"outcome": CaseOutcome.UNGRADED, "blame": Blame.MONITOR}
    repeats = []
    for case in suite.cases:
        one = repeated(case, True, True)
        if case.id.startswith("other"):
            one = one.model_copy(update={"asks": tuple(ask.model_copy(update=ungraded) for ask in one.asks)})
        repeats.append(one)
    simulator = GateSimulator(facts_of(suite), suite, VETO_ALONE, repeats)
    noise = fit_noise([[(0, 2)]])
    assert noise is not None
    found = simulator.estimate_false_fails(noise, Random(1), repeats=1, runs=20)
    assert (found.failed, found.inconclusive) == (0, 20)


@pytest.mark.parametrize(
    ("repeats", "shows", "no_fail", "no_alert"),
    [
        (1, 0.5, 0.5, 0.5),
        (2, 0.5, 0.75, 0.25),  # one failure in two answers is flaky and does not veto on its own
        (3, 0.5, 0.875, 0.125),
        (3, 0.9, 1 - 0.9**3, 0.1**3),
        (5, 1.0, 0.0, 0.0),
    ],
)
def test_a_fault_is_missed_as_often_as_the_rule_of_flaky_cases_says(repeats, shows, no_fail, no_alert):
    """The estimate states how often the gate, or the alert, misses a fault that appears only in some answers.

    The gate fails if every repeat shows the fault. An alert is sent if any repeat shows it.
    """
    suite = suite_of(10, 20)
    found = GateSimulator(facts_of(suite), suite, VETO_ALONE, ()).estimate_miss_chance(repeats=repeats, shows=shows)
    assert found is not None
    assert (found.no_fail, found.no_alert) == pytest.approx((no_fail, no_alert))


def test_more_askings_cost_as_many_questions_of_severity_3():
    """The more often cases of severity 3 are repeated, the more questions a run needs.

    The advice lists each number of repeats once, with the configured number first.
    """
    suite = suite_of(10, 20)
    found = figures(suite, [repeated(case, True, True) for case in suite.cases], configured=3)
    assert [one.false_fail.repeats for one in found.advice] == [3, 1, 2, 5]
    assert [one.false_fail.probes for one in found.advice] == [50, 30, 40, 70]


def test_too_few_pairs_give_no_rate():
    """With too few pairs of repeated answers, the flips are counted but no rate is reported."""
    suite = suite_of(5, 20)
    found = figures(suite, [repeated(case, True, True) for case in suite.cases[: MIN_PAIRS - 1]])
    assert (found.pairs, found.advice, found.rates[0].enough) == (MIN_PAIRS - 1, (), False)
    nothing = figures(suite, ())
    assert (nothing.pairs, nothing.rates, nothing.noise, nothing.advice) == (0, (), None, ())


def test_ungraded_askings_are_in_no_pair():
    """An answer that the monitor could not grade is not a flip, and is not a part of a pair."""
    (case,) = suite_of(1).cases
    asked = repeated(case, True, True, False)
    open_one = build_right_answer_record(case).model_copy(
        update={"outcome": CaseOutcome.UNGRADED, "blame": Blame.MONITOR}
    )
    with_gap = asked.model_copy(update={"asks": (asked.asks[0], open_one, asked.asks[2])})
    assert len(pair_consecutive_answers([asked])) == 2
    (pair,) = pair_consecutive_answers([with_gap])
    assert (pair.first.is_right, pair.second.is_right) == (True, False)


def test_each_failure_kind_has_its_rate():
    """Each failure kind has its own rate.

    If a failure kind recurs in a case, it is steady. If it occurs once, it is a flip of that kind.
    """
    suite = suite_of(0, 30)
    repeats = [repeated(case, number > 2, number > 0) for number, case in enumerate(suite.cases)]
    rates = {one.name: one for one in figures(suite, repeats, runs=5).rates}
    assert set(rates) == {"right or wrong", "severity 1", "wrong_fact"}
    kind = rates["wrong_fact"]
    assert (kind.flips, kind.pairs, kind.shown, kind.again) == (2, 30, 3, 1)


def test_the_same_seed_gives_the_same_figures():
    """The same seed gives the same figures: the only source of randomness is the generator that is passed in."""
    noisy = noisy_suite(Random(5), severe=8, others=8, mean=0.05, concentration=2, builds=3)
    first, second = (figures(noisy.suite, noisy.repeats, LENIENT, runs=20) for _ in range(2))
    assert first == second


def test_the_interval_holds_the_true_rate_of_seeded_suites():
    """At least nine of twelve intervals contain the true rate, and the mean error of the rate is below 15 points.

    `make soak` runs the same test with more seeds.
    """
    held, bias = coverage(range(12), severe=10, others=14, mean=0.02, concentration=2, builds=4)
    assert held >= 0.75
    assert abs(bias) < 0.15


def test_every_severity_is_asked_once_but_the_third():
    """Cases of severity 1 are asked once, and cases of severity 3 are repeated, as in a real run."""
    suite = suite_of(3, 4)
    assert sum(case.severity is Severity.CRITICAL for case in suite.cases) == 3
    found = GateSimulator(facts_of(suite), suite, VETO_ALONE, ()).estimate_false_fails(
        fit_noise([[(0, 2)]]),  # pyright: ignore[reportArgumentType] - one group is enough
        Random(1),
        repeats=5,
        runs=2,
    )
    assert found.probes == 3 * 5 + 4
