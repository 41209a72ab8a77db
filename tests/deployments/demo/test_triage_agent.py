"""The demo's triage agent finds the cause of each issue, and each fault is triggered by one issue only."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from deployments.demo.agent.faults import FaultyAgent, HealthyAgent, PlantedFault, find_fault_triggered_by_issue
from deployments.demo.agent.triage import (
    DEFECTS,
    ISSUES,
    CodeSearch,
    IssueText,
    Report,
    TriageAgent,
    load_issues,
    load_repository,
)
from deployments.demo.configuration import find_free_port
from monitors.goldset.load import load_suite

FILES = load_repository()
ROOT = Path(__file__).parents[3]


def worked(issue: IssueText, faults: HealthyAgent | None = None) -> tuple[list[str], Report]:
    """Return the tools that the agent uses for an issue, and the report that it writes."""
    actions = TriageAgent(FILES, faults).work(issue)
    used: list[str] = []
    while True:
        try:
            used.append(next(actions).tool)
        except StopIteration as finished:
            return used, finished.value


def test_the_suite_knows_the_repository():
    for case in load_suite(ISSUES).cases:
        assert case.triage is not None
        assert case.triage.issue.repository_files == tuple(FILES)
        assert set(case.triage.reference.relevant_files) <= set(FILES)


def test_each_defect_stands_in_one_file():
    for defect in DEFECTS:
        assert sum(defect.pattern.search(text) is not None for text in FILES.values()) == 1, defect.cause


def test_a_healthy_agent_finds_the_file_of_every_issue_within_its_steps():
    for case in load_suite(ISSUES).cases:
        assert case.triage is not None
        issue = load_issues()[case.turns[0]]
        used, report = worked(issue)
        assert report.relevant_files == case.triage.reference.relevant_files
        assert len([tool for tool in used if tool != "ask_user"]) <= (case.triage.reference.max_steps or 0)


def test_each_fault_is_set_off_by_one_issue():
    set_off = [find_fault_triggered_by_issue(issue.text) for issue in load_issues().values()]
    assert sorted(fault for fault in set_off if fault) == sorted(PlantedFault)
    for issue, fault in zip(load_issues().values(), set_off, strict=True):
        assert (worked(issue) == worked(issue, FaultyAgent())) is (fault is None), issue.url


def test_the_search_is_one_over_words():
    search = CodeSearch({"a/lock.py": "release the lock", "b/mail.py": "send a mail", "c.py": ""})
    assert search.rank_files("mail not sent") == ("b/mail.py",)
    assert search.rank_files("nothing of this") == ()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    port = find_free_port("127.0.0.1", 0)
    log = (tmp_path_factory.mktemp("agent") / "log").open("w")
    command = [
        sys.executable,
        "-m",
        "deployments.demo.agent.service",
        "--port",
        str(port),
        "--faults",
        "--pause-s",
        "0.01",
    ]
    transport = httpx.HTTPTransport(retries=100)
    with log, subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log) as process:
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, transport=transport) as client:
                yield client
        finally:
            process.terminate()


def issue_url(fault: PlantedFault) -> str:
    return next(issue.url for issue in load_issues().values() if find_fault_triggered_by_issue(issue.text) is fault)


def heard(service: httpx.Client, job: str, until: str) -> list[dict[str, object]]:
    """Return the events of a job up to the first event of the type ``until``."""
    events: list[dict[str, object]] = []
    with service.stream("GET", f"/jobs/{job}/stream") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        for line in response.iter_lines():
            if line.startswith("data: "):
                events.append(json.loads(line.removeprefix("data: ")))
                if events[-1]["type"] == until:
                    return events
    raise AssertionError(f"no {until} in {events}")


def test_a_job_runs_streams_and_ends_with_a_report(service: httpx.Client):
    started = service.post("/jobs", json={"issue_url": issue_url(PlantedFault.SEARCHES_TWICE)})
    assert (started.status_code, started.json()["status"]) == (202, "queued")
    job = started.json()["job_id"]
    calls = [one["call"] for one in heard(service, job, "job.done") if one["type"] == "agent.tool_call"]
    assert [call["name"] for call in calls if isinstance(call, dict)] == [
        *("read_issue", "search_code", "read_file", "search_code", "read_file")
    ]
    state = service.get(f"/jobs/{job}").json()
    assert (state["status"], state["awaiting_human"], "report" in state) == ("done", False, False)
    assert service.get(f"/jobs/{job}/report").json()["relevant_files"] == ["sync/worker.py"]
    assert service.post(f"/jobs/{job}/answer", json={"answer": "-"}).status_code == 409


def test_a_job_that_asks_waits_for_its_answer_and_can_be_stopped(service: httpx.Client):
    for end in ("answer", "kill"):
        job = service.post("/jobs", json={"issue_url": issue_url(PlantedFault.NEEDLESS_QUESTION)}).json()["job_id"]
        assert str(heard(service, job, "human_input")[-1]["question"]).endswith(" berths do you run?")
        assert service.get(f"/jobs/{job}").json()["awaiting_human"] is True
        assert service.get(f"/jobs/{job}/report").status_code == 404
        if end == "answer":
            assert service.post(f"/jobs/{job}/answer", json={"answer": "3.2.0"}).status_code == 200
            heard(service, job, "job.done")
        else:
            assert service.delete(f"/jobs/{job}").json()["status"] == "killed"
            heard(service, job, "job.killed")


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("https://example.com/1", 422),
        ("https://github.com/example-harbour/berths/issues/999", 404),
        (7, 422),
    ],
)
def test_an_issue_that_the_agent_does_not_have_is_refused(service: httpx.Client, url: object, status: int):
    assert service.post("/jobs", json={"issue_url": url}).status_code == status
    assert service.get("/jobs/nobody").status_code == 404
