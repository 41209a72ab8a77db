"""Sequences of gates on one repository: the status and comment of a commit show the newest run of this commit."""

from __future__ import annotations

import pytest

from tests.soak.soak_gates import live_through


@pytest.mark.parametrize(
    "seed", [106, *(pytest.param(seed, marks=pytest.mark.whole_only) for seed in (20, 25, 115))]
)
def test_each_commit_has_its_own_verdict_whatever_happened_around_it(seed):
    """Each commit has its own verdict after any sequence of events.

    The events are new heads, stopped and repeated runs, two targets, the merge queue and a fork. ``make soak`` runs
    300 sequences.
    """
    assert live_through(seed)["gates finished"]
