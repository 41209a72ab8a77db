"""Sequences of gates on one repository: each commit's status and comment are what its own newest run says."""

from __future__ import annotations

import pytest

from tests.soak.soak_gates import live_through


@pytest.mark.parametrize(
    "seed", [20, pytest.param(21, marks=pytest.mark.whole_only), pytest.param(22, marks=pytest.mark.whole_only)]
)
def test_each_commit_has_its_own_verdict_whatever_happened_around_it(seed):
    """Heads, stopped and repeated runs, two targets, the merge queue, a fork; 300 of them run in ``make soak``."""
    assert live_through(seed)["gates finished"]
