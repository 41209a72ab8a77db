"""Test a triage agent's reports from the answer to the gate: grades by rule, ratings, averages and comparison."""

from __future__ import annotations

import pytest

from monitors.goldset.lines import parse_case_object
from monitors.records.cases import GoldCase
from monitors.records.grades import Aspect, CaseOutcome, FailureKind, Judged
from monitors.records.runs import Verdict
from tests.flows.judged_run import JudgedRun, configured, judge_at, run_of, with_key
from tests.servers.anthropic import AnthropicServer

CAUSES = (
    "the export lock is never released when the writer raises",
    "the retry counter is set in the constructor and never set back",
    "the date parser reads the day before the month for every locale",
    "the connection pool hands out sockets that the peer has closed",
)


def issue(number: int) -> GoldCase:
    made = parse_case_object(
        {
            "issue_url": f"https://github.com/acme/jobs/issues/{number}",
            "issue_title": f"Something stops working, number {number}",
            "issue_body": "It worked last week. Nothing was deployed since.",
            "severity": 2,
            "reference": {
                "severity": "high",
                "root_cause": CAUSES[number % len(CAUSES)],
                "relevant_files": [f"jobs/part_{number}.py"],
            },
        }
    )
    assert isinstance(made, GoldCase), made
    return made


CASES = [issue(number) for number in range(8)]


def good(case: GoldCase) -> str:
    return f"{case.gold}\n\nRecommended fix: repair what the root cause names, and add a test."


def bad(case: GoldCase) -> str:
    """Build a bad report for ``case``: it names the right file, but has no other useful content."""
    (name,) = case.triage.reference.relevant_files if case.triage else ()
    return f"Root cause: users enjoy sunny weather, as {name} shows. Recommended fix: wait for rain and try again."


@pytest.fixture(autouse=True)
def key(monkeypatch):
    with_key(monkeypatch)


@pytest.fixture
def server():
    with AnthropicServer() as one:
        yield one


def ratings(run: JudgedRun) -> dict[str, int | None]:
    return {
        one.case.id: next(
            (g.rubric for g in one.assessment.grades if isinstance(g, Judged) and g.aspect is Aspect.USEFULNESS),
            None,
        )
        for one in run.results
    }


async def test_each_report_is_rated_beside_what_the_rules_say(tmp_path, server):
    request = configured(tmp_path, CASES, **judge_at(server))
    run = await run_of(request, [(case, bad(case) if case is CASES[0] else good(case)) for case in CASES])
    rated = ratings(run)
    assert rated.pop(CASES[0].id) in (1, 2)
    assert set(rated.values()) == {5}
    assert run.report.rubric is not None
    assert len(run.report.rubric.ratings) == len(CASES)
    material = "\n".join(asked.json["messages"][0]["content"][0]["text"] for asked in server.messages)
    assert "1 of 1 relevant" in material
    assert "Something stops working" in material


async def test_an_answer_that_is_not_a_report_costs_no_judge_call(tmp_path, server):
    request = configured(tmp_path, CASES, **judge_at(server))
    run = await run_of(request, [(CASES[0], "## Severity\nTBD")])
    assert FailureKind.FORMAT in run.of(CASES[0].id).failure_kinds
    assert not server.messages


async def test_a_judge_that_rates_everything_well_is_not_believed(tmp_path, server):
    server.judge.passes_all = True
    request = configured(tmp_path, CASES, **judge_at(server))
    run = await run_of(request, [(case, good(case)) for case in CASES])
    assert set(ratings(run).values()) == {None}
    assert run.report.rubric is None


async def test_without_a_judge_rules_decide_and_nothing_is_rated(tmp_path):
    run = await run_of(configured(tmp_path, CASES), [(case, good(case)) for case in CASES])
    assert {one.assessment.outcome for one in run.results} == {CaseOutcome.CORRECT}
    assert run.report.rubric is None


async def test_reports_that_are_rated_too_low_fail_the_gate(tmp_path, server):
    request = configured(tmp_path, CASES, **judge_at(server))
    run = await run_of(request, [(case, bad(case)) for case in CASES])
    assert run.report.verdict is Verdict.FAIL
    assert "average rating" in run.notes
