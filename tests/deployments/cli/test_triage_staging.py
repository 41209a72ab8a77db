"""The commands of an owner whose triage service may be asked only in staging, and has its traces in LangSmith."""

from __future__ import annotations

import html
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests import fork_server
from tests.deployments.cli.test_triage import ISSUES, URL, report
from tests.in_process import run_in_process
from tests.servers.langsmith import PRODUCTION, PROJECT, LangSmithServer
from tests.servers.triage_agent import TriageAgent

KEY = "lsv2_pt_hush"
PAGE = "https://smith.langchain.com/o/acme/projects/p/{}/r/{}"
CONFIG = """
data_folder = "data"
[targets.agent]
url = "{url}/jobs"
suite = "issues.jsonl"
[targets.agent.langsmith]
project = "{project}"
api_url = "{langsmith}"
production_project = "agent-prod"
production_key_env = "PRODUCTION_KEY"
trace_patience_s = 5
[targets.agent.probe]
driver = "job"
attempts = 1
outage_patience_s = 0
[targets.agent.probe.job]
request = '{{"issue_url": "{{question}}"}}'
id = "job_id"
events_url = "{{start}}/{{job}}/stream"
report_url = "/graphql"
report_request = '{{"query": "{{ job(jobId: \\"{{job}}\\") {{severity rootCause recommendedFix relevantFiles}} }}"}}'
text = "data.job"
poll_s = 0.1
[gate]
min_severity_3_cases = 0
"""


def a_trace(trace_id: str, calls: list[str], project: uuid.UUID = PROJECT) -> list[dict[str, Any]]:
    """Build the trace of a graph whose supervisor calls one agent for each of ``calls``.

    Each agent calls one tool.
    """
    times = {"start_time": "2026-01-31T02:00:00+00:00", "end_time": "2026-01-31T02:00:03+00:00"}
    common = times | {"project_id": str(project), "is_root": False, "parent_run_ids": [trace_id]}
    runs = [common | {"id": trace_id, "name": "LangGraph", "run_type": "chain", "is_root": True, "metadata": {}}]
    for step, query in enumerate(calls):
        node = {"metadata": {"langgraph_node": "investigator", "langgraph_step": 2 * step}}
        runs.append(common | node | {"id": str(uuid.uuid4()), "name": "investigator", "run_type": "chain"})
        call = {"name": "search", "run_type": "tool", "inputs": {"query": query}, "total_tokens": 0}
        runs.append(common | node | call | {"id": str(uuid.uuid4())})
    return runs


class Service:
    """The agent, the LangSmith server with its traces, and the configuration for both."""

    def __init__(self, folder: Path, agent: TriageAgent, langsmith: LangSmithServer) -> None:
        self.folder, self.agent, self.langsmith = folder, agent, langsmith
        lines = [json.dumps(issue | {"severity": 2, "provenance": {"pipeline": "manual"}}) for issue in ISSUES]
        (folder / "issues.jsonl").write_text("\n".join(lines), encoding="utf-8")
        self.configure()

    def configure(self, project: str = "bot") -> None:
        text = CONFIG.format(url=self.agent.url, langsmith=self.langsmith.url, project=project)
        (self.folder / "lookout.toml").write_text(text, encoding="utf-8")

    def results(self) -> dict[str, Any]:
        (found,) = (self.folder / "data" / "runs").glob("*/results.json")
        cases = json.loads(found.read_text(encoding="utf-8"))["cases"]
        return {one["case"]["id"].rpartition(":")[2]: one for one in cases}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    reports = {URL.format(number): report(number) for number in range(4)}
    with TriageAgent(reports, graphql_only=True) as agent, LangSmithServer([], key=KEY) as langsmith:
        langsmith.projects["agent-prod"] = str(PRODUCTION)
        yield Service(tmp_path, agent, langsmith)


@pytest.mark.whole_only
@pytest.mark.prefect
def test_steps_come_out_of_the_trace(
    service: Service, tmp_path: Path, lookout: Any, snapshot: SnapshotAssertion
) -> None:
    traces = {number: str(uuid.uuid4()) for number in range(4)}
    service.agent.langsmith_urls = {URL.format(n): PAGE.format(PROJECT, trace) for n, trace in traces.items()}
    service.langsmith.trees = {traces[n]: a_trace(traces[n], ["lock"] * 2) for n in range(3)}
    service.langsmith.trees[traces[3]] = a_trace(traces[3], ["lock", "dates", "lock", "lock", "retry"])
    done = lookout("verify", "agent", "--json", cwd=tmp_path, LANGSMITH_API_KEY=KEY)
    assert done.returncode == 1, done.stdout + done.stderr
    results = service.results()
    assert {name: one["assessment"]["failure_kinds"] for name, one in results.items()} == {
        "0": [],
        "1": [],
        "2": [],
        "3": ["inefficient"],
    }
    evidence = results["3"]["result"]["evidence"]
    assert evidence["hops"] == 5
    assert [step["name"] for step in evidence["steps"]] == ["investigator", "search"] * 5
    page = next((tmp_path / "data" / "runs").glob("*/report.html")).read_text(encoding="utf-8")
    (grade,) = [one for one in results["3"]["assessment"]["grades"] if one.get("failure_kind") == "inefficient"]
    assert html.escape(grade["reason"]) in page
    assert grade["reason"] == snapshot


@pytest.mark.prefect
@pytest.mark.whole_only
def test_a_trace_in_production_stops_the_run_at_its_first_job(
    service: Service, tmp_path: Path, lookout: Any
) -> None:
    service.agent.langsmith_urls = {one["issue_url"]: PAGE.format(PRODUCTION, uuid.uuid4()) for one in ISSUES}
    done = lookout("verify", "agent", cwd=tmp_path, LANGSMITH_API_KEY=KEY)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "langsmith.production_project" in done.stderr
    assert len(service.agent.started) == 1


def test_production_s_project_or_key_is_refused_before_the_first_request(service: Service, tmp_path: Path) -> None:
    def verify(**variables: str) -> Any:
        return run_in_process("verify", "agent", cwd=tmp_path, env=fork_server.bare(**variables))

    done = verify(LANGSMITH_API_KEY=KEY, PRODUCTION_KEY=KEY)
    assert (done.returncode, "same value as PRODUCTION_KEY" in done.stderr) == (2, True), done.stderr
    service.configure(project="agent-prod")
    done = verify(LANGSMITH_API_KEY=KEY)
    assert (done.returncode, "Lookout does not start it" in done.stderr) == (2, True), done.stderr
    service.configure()
    done = verify()
    assert (done.returncode, "LANGSMITH_API_KEY is missing" in done.stderr) == (2, True), done.stderr
    assert service.agent.asked.paths == []
    assert service.langsmith.queries == []
    assert KEY not in done.stdout + done.stderr
