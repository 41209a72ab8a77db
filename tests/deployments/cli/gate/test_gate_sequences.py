"""Sequences of gates on one repository: each commit's status and comment are what its own newest run says."""

from __future__ import annotations

import pytest

from tests.soak.soak_gates import live_through


@pytest.mark.parametrize(
    "seed", [106, *(pytest.param(seed, marks=pytest.mark.whole_only) for seed in (20, 25, 115))]
)
def test_each_commit_has_its_own_verdict_whatever_happened_around_it(seed):
    """Heads, stopped and repeated runs, two targets, the merge queue, a fork; 300 of them run in ``make soak``."""
    assert live_through(seed)["gates finished"]
