"""Test the job driver with a realistic triage service.

The service has unnamed events, a GraphQL report, rate limits and resumed jobs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from monitors.errors import AccessDenied, AppErrorShown, OldJob, PageNotUnderstood
from monitors.facts.triage_report import read_report
from monitors.probes.choose import build_driver
from monitors.probes.driver import ChatDriver
from monitors.probes.job.report import build_report_request, require_no_graphql_errors
from monitors.probes.job.watch import AgentJob
from monitors.probes.settings import JobSettings, ProbeSettings
from monitors.records.base import Blame
from monitors.records.triage import IssueSeverity
from monitors.request_headers import build_request_headers
from tests.monitors.probes.scripted import Ticking
from tests.servers.triage_agent import MAX_ACTIVE, TriageAgent

ISSUE = "https://github.com/acme/jobs/issues/{}"
REPORT = {
    "severity": "high",
    "recommended_fix": "Release the lock in a finally block, and add a test that raises.",
    "relevant_files": ["jobs/lock.py"],
}
QUERY = '{"query": "query { job(jobId: \\"{job}\\") {severity recommendedFix relevantFiles} }"}'
JOB = {
    "request": '{"issue_url": "{question}"}',
    "id": "job_id",
    "events_url": "{start}/{job}/stream",
    "report_url": "/graphql",
    "report_request": QUERY,
    "text": "data.job",
    "poll_s": 0.001,
    "poll_most_s": 0.002,
    "stumbles": 3,
    "busy_patience_s": 5,
}


@pytest.fixture
def agent() -> Iterator[TriageAgent]:
    """Yield a new triage service for each test."""
    with TriageAgent({ISSUE.format(n): REPORT for n in range(30)}, graphql_only=True) as server:
        yield server


def asking(agent: TriageAgent, folder: Path, **job: Any) -> AbstractAsyncContextManager[ChatDriver]:
    """Return a driver that is built from the configuration."""
    settings = ProbeSettings.model_validate({"driver": "job", "job": JOB | job})
    headers = build_request_headers({}, {"KEY": "a-key"}, key="probe.headers", token_variable="KEY")
    return build_driver(f"{agent.url}/jobs", settings, run_folder=folder, clock=Ticking(), headers=headers)


BY_VARIABLES = (
    '{"query": "query R($id: ID!) { job(jobId: $id) {severity relevantFiles} }", "variables": {"id": "{job}"}}'
)


@pytest.mark.parametrize("request_", [QUERY, BY_VARIABLES], ids=["in the query", "as a variable"])
async def test_a_report_comes_by_graphql(agent: TriageAgent, tmp_path: Path, request_: str) -> None:
    async with asking(agent, tmp_path, report_request=request_) as driver:
        answer = await driver.ask((ISSUE.format(1),))
    report = read_report(answer.visible_text)
    assert (report.severity, report.files) == (IssueSeverity.HIGH, ("jobs/lock.py",))
    assert (report.recommended_fix is None) == (request_ is BY_VARIABLES)
    assert {headers.get("Authorization") for headers in agent.asked.headers} == {"Bearer a-key"}
    assert "GET /jobs/" not in " ".join(agent.asked.paths).replace("/stream", "")[:10], (
        "its events said it was done"
    )


async def test_an_event_that_says_done_ends_the_job_without_a_poll(agent: TriageAgent, tmp_path: Path) -> None:
    async with asking(agent, tmp_path) as driver:
        await driver.ask((ISSUE.format(1),))
    (job,) = agent.jobs.values()
    assert (job.polls, job.streams) == (0, 1)


@pytest.mark.parametrize("status", [200, 400])
async def test_a_query_that_is_refused_is_named(agent: TriageAgent, tmp_path: Path, status: int) -> None:
    agent.query_refused_with = status
    asked = QUERY.replace("severity", "urgency")
    async with asking(agent, tmp_path, report_request=asked) as driver:
        with pytest.raises(PageNotUnderstood, match=r"report_request: Cannot query field 'urgency'") as raised:
            await driver.ask((ISSUE.format(1),))
    assert raised.value.blame is Blame.MONITOR
    assert len(agent.asked.queries) == 1, "the same query would be refused again"


async def test_an_error_inside_the_app_is_tried_again(agent: TriageAgent, tmp_path: Path) -> None:
    agent.resolver_errors = 2
    async with asking(agent, tmp_path) as driver:
        assert read_report((await driver.ask((ISSUE.format(1),))).visible_text).files == ("jobs/lock.py",)
    agent.resolver_errors = 99
    async with asking(agent, tmp_path) as driver:
        with pytest.raises(AppErrorShown, match="worker restarting") as raised:
            await driver.ask((ISSUE.format(2),))
        with pytest.raises(AppErrorShown, match="worker restarting"):  # and not OldJob: the app is at fault
            await driver.ask((ISSUE.format(2),))
    assert raised.value.blame is Blame.APP


def test_an_id_cannot_end_the_string_it_stands_in() -> None:
    job = AgentJob(JobSettings.model_validate(JOB), "http://app/jobs", job_id='x") { secret } #')
    query = '{ job(jobId: "%s") {severity} }'
    request = build_report_request(json.dumps({"query": query % "{job}", "id": "{job}"}), job)
    assert request == {"query": query % job.job_id.replace('"', '\\"'), "id": job.job_id}


def test_graphql_says_that_a_key_is_missing() -> None:
    said = '{"data": null, "errors": [{"message": "log in", "extensions": {"code": "UNAUTHENTICATED"}}]}'
    with pytest.raises(AccessDenied, match="log in"):
        require_no_graphql_errors(said)
    for plain in ('{"data": {"job": {}}, "errors": []}', '{"errors": "none"}', "# Report", "[1]"):
        assert require_no_graphql_errors(plain) == plain


async def test_a_service_that_is_busy_is_waited_for(agent: TriageAgent, tmp_path: Path) -> None:
    agent.busy = 5
    async with asking(agent, tmp_path) as driver:
        assert read_report((await driver.ask((ISSUE.format(1),))).visible_text).files
    agent.busy = 10_000
    async with asking(agent, tmp_path, busy_patience_s=0.05) as driver:
        with pytest.raises(AccessDenied, match="HTTP 429"):
            await driver.ask((ISSUE.format(2),))


async def test_more_than_ten_active_jobs_are_refused(agent: TriageAgent, tmp_path: Path) -> None:
    agent.breaks = set(agent.reports)
    for number in range(MAX_ACTIVE):
        async with asking(agent, tmp_path, events_url=None, deadline_s=0.001) as driver:
            with pytest.raises(Exception, match="did not finish"):
                await driver.ask((ISSUE.format(number),))
    async with asking(agent, tmp_path, busy_patience_s=0.01) as driver:
        with pytest.raises(AccessDenied, match="HTTP 429"):
            await driver.ask((ISSUE.format(20),))


async def test_the_same_issue_again_measures_nothing_new(agent: TriageAgent, tmp_path: Path) -> None:
    async with asking(agent, tmp_path / "one") as driver:
        await driver.ask((ISSUE.format(1),), name="c.r0.t0")
        with pytest.raises(OldJob, match="an earlier question started") as raised:
            await driver.ask((ISSUE.format(1),), name="c.r1.t0")
    assert (raised.value.blame, raised.value.retryable) == (Blame.MONITOR, False)
    async with asking(agent, tmp_path / "two", created_at="nowhere") as driver:
        with pytest.raises(OldJob, match="an earlier question started"):  # the notes of the earlier run know it
            await driver.ask((ISSUE.format(1),), name="c.r0.t0")


async def test_a_job_that_is_older_than_its_start_is_found_by_its_time(agent: TriageAgent, tmp_path: Path) -> None:
    async with asking(agent, tmp_path / "one" / "run", events_url=None) as driver:
        await driver.ask((ISSUE.format(1),))
    agent.age(hours=20)
    for job in agent.jobs.values():
        job.done, job.polls = False, 0
    async with asking(agent, tmp_path / "other" / "run", events_url=None) as driver:
        with pytest.raises(OldJob, match=r"It returned a job of \d{4}-"):
            await driver.ask((ISSUE.format(1),))


REFUSED = [
    ({"report_request": QUERY}, "`report_url` together with `report_request`"),
    ({"report_request": "{", "report_url": "/graphql"}, "not JSON"),
    ({"report_request": '{"query": "{ jobs { id } }"}', "report_url": "/graphql"}, "all jobs get the same"),
]


@pytest.mark.parametrize(("keys", "words"), REFUSED)
def test_a_request_that_can_fetch_no_report_is_refused(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        JobSettings.model_validate(keys)


EVENTS: list[dict[str, object]] = [
    {"type": "agent.spawned", "agent_id": "1", "agent_name": "investigator", "node": "investigator"},
    *({"type": "agent.token", "agent_id": "1", "token": word} for word in ("The", "lock")),
    {"type": "agent.tool_call", "agent_id": "1", "tool_name": "search", "input_preview": "{'q': 'lock'}"},
    {"type": "agent.tool_result", "agent_id": "1", "tool_name": "search", "result_summary": "jobs/lock.py"},
    {"type": "agent.done", "agent_id": "1", "node": "investigator"},
    {"type": "graph.node_complete", "node": "investigator", "step": 2},
]


@pytest.mark.parametrize("breaks", [False, True], ids=["whole", "broken off"])
async def test_the_events_say_what_the_agent_did(agent: TriageAgent, tmp_path: Path, *, breaks: bool) -> None:
    agent.events = {ISSUE.format(1): EVENTS}
    agent.breaks = {ISSUE.format(1)} if breaks else set()
    async with asking(agent, tmp_path) as driver:
        evidence = (await driver.ask((ISSUE.format(1),))).evidence
    assert [step.name for step in evidence.steps] == ["investigator", "search"]
    assert evidence.steps[1].detail == "{'q': 'lock'}"
    assert all(step.duration_ms is not None for step in evidence.steps)
    assert (evidence.hops, evidence.steps_cut) == (1, breaks)


async def test_messages_in_the_report_are_the_steps(agent: TriageAgent, tmp_path: Path) -> None:
    call = {"name": "read", "args": {"path": "jobs/lock.py"}}
    agent.graphql_only = False
    agent.reports = {ISSUE.format(1): REPORT | {"messages": [{"type": "ai", "content": "", "tool_calls": [call]}]}}
    job = {"events_url": None, "report_url": None, "report_request": None, "text": "report"}
    async with asking(agent, tmp_path, **job, steps="report.messages") as driver:
        evidence = (await driver.ask((ISSUE.format(1),))).evidence
    assert [(step.name, step.detail) for step in evidence.steps] == [("read", '{"path": "jobs/lock.py"}')]
