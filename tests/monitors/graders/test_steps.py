"""Tests of the comparison of an agent's path with the shortest path.

The length of the path is the number of hops if it is known, and otherwise the number of observed steps.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from monitors.goldset.lines import parse_case_object
from monitors.graders.base import TriageSettings
from monitors.graders.triage import StepsGrader
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Evidence, Step, StepKind
from monitors.records.grades import Abstained, FailureKind, Judged
from tests.builders import exchange


def case(**reference: Any) -> GoldCase:
    row = {"issue_title": "Orders hang", "severity": 2, "type": "triage", "reference": reference}
    made = parse_case_object(row)
    assert isinstance(made, GoldCase), made
    return made


def graded(evidence: Evidence, **reference: Any) -> Judged | Abstained:
    about = case(**(reference or {"shortest_path": 2}))
    return StepsGrader(TriageSettings()).grade(
        about, exchange(about, "a report").model_copy(update={"evidence": evidence})
    )


def calls(*queries: str, cut: bool = False) -> tuple[Step, ...]:
    """Return two steps for each query: a step of an agent, and a call of the search tool with this query."""
    return tuple(
        step
        for query in queries
        for step in (
            Step(name="investigator", kind=StepKind.AGENT),
            Step(name="search", kind=StepKind.TOOL, detail=json.dumps({"q": query}), cut=cut),
        )
    )


WAYS: list[tuple[Evidence, FailureKind | None, str, float]] = [
    (Evidence(steps=calls("a", "b"), hops=2), None, "2 hops, at most 4; 2 are enough", 1.0),
    (
        Evidence(steps=calls(*"aabba"), hops=5),
        FailureKind.INEFFICIENT,
        "5 hops, at most 4; 2 are enough; 3 of 10 steps repeat an earlier call",
        0.4,
    ),
    (Evidence(steps=calls("a", "a", cut=True), hops=2), None, "2 hops, at most 4; 2 are enough", 1.0),
    (Evidence(steps=calls("a", "a")), None, "4 steps, at most 4, 1 of them repeat an earlier one", 0.5),
    (
        Evidence(steps=calls(*"abc"), hops=6, steps_cut=True),
        FailureKind.INEFFICIENT,
        "6 hops, at most 4; 2 are enough",
        1 / 3,
    ),
]


@pytest.mark.parametrize(("evidence", "kind", "reason", "score"), WAYS)
def test_the_way_is_held_against_the_shortest(
    evidence: Evidence, kind: FailureKind | None, reason: str, score: float
) -> None:
    found = graded(evidence)
    assert isinstance(found, Judged)
    assert (found.failure_kind, found.reason, found.score) == (kind, reason, pytest.approx(score))


UNKNOWN = [
    (Evidence(), {"shortest_path": 2}, "Lookout did not receive the agent's steps"),
    (Evidence(steps=calls("a"), hops=1), {"severity": "high"}, "the maximum number of steps is unknown"),
    (Evidence(steps=calls("a"), hops=1, steps_cut=True), {"shortest_path": 2}, "Lookout did not receive all steps"),
]


@pytest.mark.parametrize(("evidence", "reference", "reason"), UNKNOWN)
def test_a_way_that_was_not_seen_is_not_graded(evidence: Evidence, reference: dict[str, Any], reason: str) -> None:
    found = graded(evidence, **reference)
    assert isinstance(found, Abstained)
    assert reason in found.reason
