"""Suites with known noise and simulated repeats. They test the estimate of how often a verdict is a false FAIL."""

from __future__ import annotations

from math import prod
from random import Random
from typing import NamedTuple

from monitors.gate.evaluate import RunFacts
from monitors.gate.false_fails import (
    GateSimulator,
    build_right_answer_record,
    build_wrong_answer_record,
    count_failures_per_case_build,
)
from monitors.gate.settings import GateSettings, Targets
from monitors.records.base import Language, Severity
from monitors.records.cases import GoldCase, Suite
from monitors.records.self_checks import RepeatedCase
from monitors.stats.repeatability import fit_noise
from tests.builders import NOON, TARGET, gold_case

VETO_ALONE = GateSettings(
    min_weighted_score=0,
    targets=Targets(factual_accuracy=0, citation_accuracy=0, refusal_precision=0, language_gap=1),
)
"""Settings of a gate whose only criterion is the veto. Its rate of false FAILs can be calculated by hand."""


def suite_of(severe: int, others: int = 0) -> Suite:
    """Return a suite of ``severe`` cases of severity 3 and ``others`` cases of severity 1."""
    cases = [gold_case(f"severe-{number}", severity=Severity.CRITICAL) for number in range(severe)]
    cases += [gold_case(f"other-{number}", type=f"type-{number % 3}") for number in range(others)]
    return Suite(name="noisy", sha256="0" * 64, cases=tuple(cases))


def facts_of(suite: Suite) -> RunFacts:
    """Return the input of the gate for a simulated run."""
    return RunFacts(
        run_id="simulated",
        target=TARGET,
        suite_name=suite.name,
        suite_sha256=suite.sha256,
        planned=len(suite.cases),
        started_at=NOON,
        finished_at=NOON,
    )


def repeated(case: GoldCase, *right: bool, build: str = "a" * 40, run_id: str = "session-1") -> RepeatedCase:
    """Return the repeated answers to ``case``. Each value in ``right`` says whether one answer is correct."""
    asks = (build_right_answer_record(case) if one else build_wrong_answer_record(case) for one in right)
    return RepeatedCase(
        case_id=case.id,
        build=build,
        case_severity=case.severity,
        type=case.type,
        language=Language.ENGLISH,
        asks=tuple(ask.model_copy(update={"run_id": run_id}) for ask in asks),
    )


class NoisySuite(NamedTuple):
    """A suite with the true noise of each case (how often it fails by chance), and its recorded repeats."""

    suite: Suite
    noise: tuple[float, ...]
    repeats: tuple[RepeatedCase, ...]

    @property
    def true_rate(self) -> float:
        """Return the true rate of runs that fail by the veto if each case is asked once.

        The veto fails a run if any severity-3 case fails.
        """
        severe = (
            noise
            for case, noise in zip(self.suite.cases, self.noise, strict=True)
            if case.severity is Severity.CRITICAL
        )
        return 1 - prod(1 - noise for noise in severe)


def noisy_suite(
    random: Random, *, severe: int, others: int, mean: float, concentration: float, builds: int
) -> NoisySuite:
    """Return a suite whose cases have random noise around ``mean``.

    Each case is asked twice on each of the ``builds`` builds.
    """
    suite = suite_of(severe, others)
    first, second = 2 * mean * concentration, (1 - 2 * mean) * concentration
    noise = tuple(random.betavariate(first, second) / 2 if mean else 0.0 for _ in suite.cases)
    repeats = tuple(
        repeated(case, *(random.random() >= one for _ in range(2)), build=f"{build:040d}")
        for build in range(builds)
        for case, one in zip(suite.cases, noise, strict=True)
    )
    return NoisySuite(suite, noise, repeats)


def fitted(noisy: NoisySuite):
    """Return the estimate of the noise from the recorded repeats of ``noisy``."""
    found = fit_noise(count_failures_per_case_build(noisy.repeats).values())
    assert found is not None
    return found


def coverage(seeds: range, **suite) -> tuple[float, float]:
    """Return how well the estimated rate matches the true rate over one suite for each seed.

    The result is the share of intervals that contain the true rate, and the mean error of the estimated rate.
    """
    held, errors = 0, []
    for seed in seeds:
        random = Random(seed)
        noisy = noisy_suite(random, **suite)
        simulator = GateSimulator(facts_of(noisy.suite), noisy.suite, VETO_ALONE, noisy.repeats)
        found = simulator.estimate_false_fails(fitted(noisy), random, repeats=1, runs=100)
        held += found.low <= noisy.true_rate <= found.high
        errors.append(found.rate - noisy.true_rate)
    return held / len(seeds), sum(errors) / len(seeds)
