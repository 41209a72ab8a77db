"""Test that drift is detected with its start and direction.

The rate of false alarms stays below alpha, however long a stream is followed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitors.records.estimates import DriftCount, DriftState, GradedStratum
from monitors.stats.drift import ALPHA, compute_log_evidence, start_drift_test, summarise_drift, update_drift_test
from monitors.stats.stratified import compute_counts_for_sequential_test
from tests.monitors import drift_streams
from tests.tiers import scale_examples

FIRST = datetime(2026, 1, 1, 2, 0, tzinfo=UTC)
JUDGE = "judge-1"
PRIMES = Path(__file__).parents[4] / "shared" / "data" / "drift" / "primes.jsonl"


def night(number: int, failures: float, graded: float) -> DriftCount:
    return DriftCount(due_at=FIRST + timedelta(days=number), failures=failures, graded=graded)


def followed(counts: Iterable[tuple[float, float]], **settings) -> Sequence[DriftState]:
    """Return the state of the drift test after each night in ``counts``."""
    states: list[DriftState] = []
    for number, (failures, graded) in enumerate(counts):
        states.append(
            update_drift_test(states[-1] if states else None, night(number, failures, graded), JUDGE, **settings)
        )
    return states


counts = st.lists(
    st.integers(0, 40).flatmap(lambda graded: st.tuples(st.integers(0, graded).map(float), st.just(float(graded)))),
    min_size=2,
    max_size=25,
)


@settings(max_examples=scale_examples(60), deadline=None)
@given(counts, st.integers(1, 30))
def test_the_evidence_is_that_of_a_second_implementation(stream, window):
    """The evidence for drift after each night equals the evidence that a second implementation computes.

    Nights without graded answers are skipped, and nights before the window are summed.
    """
    graded_nights = [each for each in stream if each[1]]
    states = [state for state, each in zip(followed(stream, window_runs=window), stream, strict=True) if each[1]]
    if len(graded_nights) < 2:
        return
    failures, sizes = (np.array([[each[column] for each in graded_nights]]) for column in (0, 1))
    expected = drift_streams.log_evidence(failures, sizes, window)[0]
    assert [compute_log_evidence(state) for state in states[1:]] == pytest.approx(list(expected), abs=1e-8)


@pytest.mark.parametrize(("rate", "graded"), [(0.01, 50), (0.003, 200), (0.1, 10), (0.5, 25)])
def test_of_streams_without_drift_at_most_alpha_raise_an_alarm(rate, graded):
    """Of 300 streams without drift, at most the share alpha has a false alarm within 80 nights.

    The soak test of drift follows thousands of streams for a year.
    """
    chance = np.random.default_rng(7)
    failures = chance.binomial(graded, rate, (300, 80)).astype(float)
    raised = drift_streams.alarms(failures, np.full(failures.shape, float(graded)), ALPHA)
    assert (raised >= 0).mean() <= ALPHA


def stratified_night(chance: random.Random, rates: dict[int, float]) -> tuple[float, float]:
    """Return the weighted counts of a night with ten conversations from each stratum.

    ``rates`` maps the size of a stratum to its failure rate.
    """
    return compute_counts_for_sequential_test(
        [
            GradedStratum(
                stratum=f"s{size}", conversations=size, sampled=10, graded=10, failures=sum(chance.random() < rate for _ in range(10))
            )
            for size, rate in rates.items()
        ]
    )  # fmt: skip


def test_weighted_nights_keep_the_error_rate():
    """With weighted nights, the share of false alarms stays within alpha.

    This holds whether failures are frequent in small strata or in large strata.
    """
    chance = random.Random(3)
    for rates in ({1_900: 0.005, 60: 0.3, 40: 0.6}, {1_900: 0.08, 60: 0.0, 40: 0.05}):
        rows = [[stratified_night(chance, rates) for _ in range(60)] for _ in range(200)]
        failures, graded = (np.array([[each[column] for each in row] for row in rows]) for column in (0, 1))
        assert (drift_streams.alarms(failures, graded, ALPHA) >= 0).mean() <= ALPHA


@pytest.mark.parametrize(
    ("before", "after", "graded", "within"), [(0.05, 0.2, 50, 15), (0.15, 0.5, 25, 15), (0.3, 0.05, 50, 15)]
)
def test_a_planted_change_is_detected_with_its_night_and_direction(before, after, graded, within):
    """In ten random streams, a planted change is detected within ``within`` nights.

    The date that is given for the change is at most four days off.
    """
    chance = np.random.default_rng(11)
    for _ in range(10):
        stream = [
            (float(chance.binomial(graded, before if number < 30 else after)), float(graded))
            for number in range(30 + within)
        ]
        state = followed(stream)[-1]
        reading = summarise_drift(state)
        assert reading.drifted
        assert state.alarm is not None
        assert abs(state.alarm.since - (FIRST + timedelta(days=30))) <= timedelta(days=4)
        assert reading.is_worse == (after > before)
        assert reading.before_low <= reading.before <= reading.before_high
        assert reading.text.startswith("worse since" if after > before else "better since")


def test_the_alarm_stays_and_the_evidence_never_falls():
    states = followed([(0, 50)] * 20 + [(15, 50)] * 6 + [(0, 50)] * 30)
    alarms = [state.alarm for state in states]
    first = next(number for number, alarm in enumerate(alarms) if alarm)
    assert set(alarms[first:]) == {alarms[first]}
    evidence = [state.log_evidence for state in states]
    assert evidence == sorted(evidence)


def test_a_state_is_resumed_from_what_was_stored():
    stream = [(1, 30)] * 10 + [(12, 30)] * 5
    straight = followed(stream)[-1]
    stored = followed(stream[:7])[-1].model_dump_json()
    state = DriftState.model_validate_json(stored)
    for number, (failures, graded) in enumerate(stream[7:], start=7):
        state = update_drift_test(state, night(number, failures, graded), JUDGE)
    assert state == straight


def test_a_night_counts_once_and_an_ungraded_one_not_at_all():
    state = followed([(1, 30), (2, 30)])[-1]
    assert update_drift_test(state, night(1, 9, 30), JUDGE) == state
    assert update_drift_test(state, night(0, 9, 30), JUDGE) == state
    assert update_drift_test(state, night(2, 0, 0), JUDGE) == state


def test_f50_another_judge_restarts_the_test_and_says_so():
    state = followed([(0, 50)] * 20 + [(20, 50)] * 3)[-1]
    assert state.alarm is not None
    other = update_drift_test(state, night(23, 5, 50), "judge-2")
    assert other.alarm is None
    assert [each.failures for each in other.nightly_runs] == [5]
    assert "the judge changed" in summarise_drift(other).text
    assert summarise_drift(other).drifted is False


def test_the_memory_of_past_items_does_not_grow():
    state = followed([(1, 20)] * 100, window_runs=14)[-1]
    assert len(state.nightly_runs) == 14
    assert (state.older_runs, state.older_failures, state.older_graded) == (86, 86, 86 * 20)


def test_nothing_seen_is_no_drift():
    reading = summarise_drift(start_drift_test(JUDGE))
    assert (reading.drifted, reading.e_value, reading.since) == (False, 1.0, None)
    assert (reading.before_low, reading.before_high) == (0.0, 1.0)


OWN_ANSWERS = {"old": [n % 20 < 17 for n in range(400)], "new": [n % 2 == 0 for n in range(400)]}
"""Synthetic answers of two versions of a model: 85 % of the first and 50 % of the second are right."""


def published() -> dict[str, list[bool]]:
    rows = [json.loads(line) for line in PRIMES.read_text(encoding="utf-8").splitlines()]
    return {
        name: [row["correct"] for row in rows if row["model"] == model]
        for name, model in (("old", "gpt-4-0314"), ("new", "gpt-4-0613"))
    }


def in_nights(answers: Sequence[bool], size: int = 25) -> list[tuple[float, float]]:
    parts = [answers[at : at + size] for at in range(0, len(answers) - size + 1, size)]
    return [(float(sum(not right for right in part)), float(size)) for part in parts]


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(OWN_ANSWERS, id="own rows"),
        pytest.param(None, id="a real regression", marks=pytest.mark.skipif(not PRIMES.exists(), reason="no labelled data")),
    ],
)  # fmt: skip
def test_a_new_model_version_is_detected_and_two_parts_of_one_are_not(answers):
    """A change to a new model version is detected in 20 random orders of the answers.

    If all answers are from one version, at most the share alpha of 60 random orders has a false alarm. A night has
    25 answers.
    """
    answers = answers or published()
    chance = random.Random(5)
    for _ in range(20):
        old, new = (in_nights(chance.sample(each, len(each))) for each in (answers["old"], answers["new"]))
        state = next(state for state in followed([*old, *new[:8]]) if state.alarm)
        assert state.alarm is not None
        assert abs(state.alarm.since - (FIRST + timedelta(days=len(old)))) <= timedelta(days=2)
        assert summarise_drift(state).is_worse
    alone = [
        followed(in_nights(chance.sample(answers[name], len(answers[name]))))[-1] for name in ("old", "new") * 30
    ]
    assert sum(state.alarm is not None for state in alone) <= ALPHA * len(alone)
