"""``lookout demo --agent`` end to end: each planted fault is detected in its case, and nothing else is reported."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from syrupy.assertion import SnapshotAssertion

from monitors.records.exchanges import Exchange
from monitors.records.grades import Aspect, CaseOutcome, FailureKind, Judged
from monitors.records.runs import CaseResult, RunReport, Verdict
from monitors.reports.results_json import read_results
from tests.servers.anthropic import KEY, AnthropicServer

pytestmark = pytest.mark.prefect

Lookout = Callable[..., CompletedProcess[str]]
FAULTS = {
    "berths-2": {FailureKind.INEFFICIENT},
    "berths-4": {FailureKind.POOR_TRIAGE},
    "berths-7": {FailureKind.POOR_TRIAGE},
    "berths-10": {FailureKind.FORMAT, FailureKind.POOR_TRIAGE},
    "berths-11": {FailureKind.INEFFICIENT},
}
"""The failures that rules detect, by case.

Only a judge can detect the fault of the case berths-1: the report has the right file but a wrong cause.
"""
WRONG_CAUSE = "berths-1"


def results(folder: Path) -> tuple[RunReport, dict[str, CaseResult]]:
    """Return the results of the only run in the demo's own folder."""
    (path,) = (folder / ".lookout-demo" / "agent" / "runs").glob("*/results.json")
    report, cases = read_results(path)
    return report, {one.case.id: one for one in cases}


def failed(cases: dict[str, CaseResult]) -> dict[str, set[FailureKind]]:
    """Return the failure kinds of each failed case, by case id."""
    return {name: set(one.assessment.failure_kinds) for name, one in cases.items() if one.assessment.failure_kinds}


def summary_of(output: str) -> str:
    """Return the last part of the demo's output: the planted faults that were detected."""
    heading = re.search(r"^\d of \d ", output, re.MULTILINE)
    assert heading, output
    return output[heading.start() :]


def ratings(cases: dict[str, CaseResult]) -> dict[str, int]:
    """Return the judge's ratings, keyed by case id."""
    given = ((name, grade) for name, one in cases.items() for grade in one.assessment.grades)
    return {
        name: grade.rubric
        for name, grade in given
        if isinstance(grade, Judged) and grade.aspect is Aspect.USEFULNESS and grade.rubric is not None
    }


@pytest.mark.whole_only
def test_without_a_judge_rules_catch_five_faults_and_the_sixth_needs_one(
    lookout: Lookout, tmp_path: Path, snapshot: SnapshotAssertion
):
    done = lookout("demo", "--agent", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    report, cases = results(tmp_path)
    assert (report.verdict, report.rubric) == (Verdict.FAIL, None)
    assert failed(cases) == FAULTS
    assert {one.assessment.outcome for name, one in cases.items() if name not in FAULTS} == {CaseOutcome.CORRECT}
    assert summary_of(done.stderr) == snapshot
    assert report.questions is not None
    assert (report.questions.asked, report.questions.useful, report.questions.needless) == (2, 1, 1)
    asked = cases["berths-9"].result
    assert isinstance(asked, Exchange)
    assert [(one.answer, one.scripted) for one in asked.evidence.questions] == [("3.1.4", True)]


@pytest.mark.whole_only
def test_with_a_judge_the_wrong_cause_is_caught_too_and_nothing_else(
    lookout: Lookout, tmp_path: Path, snapshot: SnapshotAssertion
):
    with AnthropicServer() as judge:
        done = lookout("demo", "--agent", "--judge", "--judge-url", judge.url, cwd=tmp_path, ANTHROPIC_API_KEY=KEY)
    assert done.returncode == 1, done.stderr
    _, cases = results(tmp_path)
    assert failed(cases) == FAULTS
    rated = ratings(cases)
    assert {name for name, rating in rated.items() if rating <= 2} == {WRONG_CAUSE, "berths-7"}
    assert {rating for name, rating in rated.items() if name not in {*FAULTS, WRONG_CAUSE}} == {5}
    assert summary_of(done.stderr) == snapshot


@pytest.mark.whole_only
def test_a_healthy_agent_passes_and_is_rated_four_or_better(lookout: Lookout, tmp_path: Path):
    with AnthropicServer() as judge:
        done = lookout(
            *("demo", "--agent", "--no-faults", "--judge", "--judge-url", judge.url),
            cwd=tmp_path,
            ANTHROPIC_API_KEY=KEY,
        )
    assert done.returncode == 0, done.stderr + done.stdout
    report, cases = results(tmp_path)
    assert report.verdict is Verdict.PASS
    assert failed(cases) == {}
    assert report.rubric is not None
    assert report.rubric.mean >= 4.0
    assert len(ratings(cases)) == len(cases) == 12
    assert "There are no failures." in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--judge"], "--judge needs --agent"),
        (["--agent", "--judge-url", "http://127.0.0.1:9"], "needs --judge"),
    ],
)
def test_options_that_do_not_go_together_are_named(lookout: Lookout, tmp_path: Path, options: list[str], said: str):
    ended = lookout("demo", *options, cwd=tmp_path)
    assert ended.returncode not in (0, 1)
    assert said in ended.stderr
