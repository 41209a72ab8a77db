"""Test that LangSmith's SDK reads the traces of an agent's jobs.

The traces include late runs, and runs in the production project.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from monitors.errors import ConfigError
from monitors.facts.agent_trace import read_trace
from monitors.platforms.langsmith.traces import TraceAddress, open_traces, parse_trace_address
from monitors.platforms.settings import TracingSettings
from tests.servers.langsmith import PRODUCTION, PROJECT, LangSmithServer

KEY = "lsv2_pt_hush"
TRACE = "aaaaaaaa-2222-4333-8444-555555555555"
PAGE = "https://smith.langchain.com/o/acme/projects/p/{}/r/{}?poll=true"


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENDPOINT", "API_KEY", "WORKSPACE_ID", "PROFILE", "CONFIG_FILE"):
        monkeypatch.delenv(f"LANGSMITH_{name}", raising=False)


@pytest.fixture
def server() -> Iterator[LangSmithServer]:
    with LangSmithServer([], key=KEY) as started:
        started.trees[TRACE] = tree(PROJECT)
        yield started


def tree(project: uuid.UUID, tools: int = 2) -> list[dict[str, Any]]:
    """Return the runs of a trace: a root and ``tools`` calls of one tool."""
    common = {"project_id": str(project), "metadata": {}, "parent_run_ids": []}
    start, end = "2026-01-31T02:00:00+00:00", "2026-01-31T02:00:03+00:00"
    root = {
        "id": TRACE,
        "name": "agent",
        "run_type": "chain",
        "is_root": True,
        "start_time": start,
        "end_time": end,
    }
    call = {"name": "search", "run_type": "tool", "is_root": False, "start_time": start, "end_time": end}
    return [common | root] + [
        common | call | {"id": str(uuid.UUID(int=number + 1)), "inputs": {"q": number}, "total_tokens": 0}
        for number in range(tools)
    ]


def tracing(server: LangSmithServer, **changes: Any) -> TracingSettings:
    given = {"project": "bot", "api_url": server.url, "production_project": "agent-prod", "trace_patience_s": 20}
    return TracingSettings.model_validate(given | changes)


async def no_pause(_seconds: float) -> None:
    """Return at once, so that a retry does not wait."""


ADDRESSES = [
    (PAGE.format(PROJECT, TRACE), TraceAddress(TRACE, str(PROJECT))),
    (f"https://smith.langchain.com/o/acme/projects/p/{PROJECT}?peek={TRACE}", TraceAddress(TRACE, str(PROJECT))),
    (
        f"https://ls.acme.example/o/x/projects/p/{PROJECT}/r/1?trace_id={TRACE.upper()}",
        TraceAddress(TRACE, str(PROJECT)),
    ),
    (TRACE, TraceAddress(TRACE, None)),
    (f"https://smith.langchain.com/public/{TRACE}/r", TraceAddress(None, None)),
    ("", TraceAddress(None, None)),
]


@pytest.mark.parametrize(("written", "found"), ADDRESSES)
def test_an_address_says_which_trace_it_is(written: str, found: TraceAddress) -> None:
    assert parse_trace_address(written) == found


async def test_a_whole_trace_is_read_however_many_pages(server: LangSmithServer) -> None:
    server.trees[TRACE] = tree(PROJECT, tools=250)
    async with open_traces(tracing(server), {"LANGSMITH_API_KEY": KEY}, no_pause) as traces:
        runs = await traces.read_runs(PAGE.format(PROJECT, TRACE))
    path = read_trace(runs)
    assert path is not None
    assert (len(runs), len(path.steps)) == (251, 250)
    assert {(step.name, step.duration_ms, step.tokens) for step in path.steps} == {("search", 3000, None)}


async def test_a_trace_that_comes_late_is_waited_for_and_a_missing_one_is_none(server: LangSmithServer) -> None:
    server.late = 3
    async with open_traces(tracing(server), {"LANGSMITH_API_KEY": KEY}, no_pause) as traces:
        assert len(await traces.read_runs(TRACE)) == 3
        assert await traces.read_runs(str(uuid.UUID(int=7))) == []
        assert await traces.read_runs("no address") == []


PARTS = [
    ("last", [1, 2, 3], 3),
    ("last", [2, 2, 3], 3),
    ("last", [3], 3),
    ("first", [1, 2, 3], 3),
    ("first", [2, 1, 3], 3),
    ("first", [3, 1, 3], 3),
    ("last", [1] * 100, None),
    ("last", [2] * 100, None),
    ("first", [1, 2] * 50, None),
]


@pytest.mark.parametrize(("root", "portions", "counted"), PARTS)
async def test_a_trace_that_comes_in_parts_counts_only_when_two_readings_agree(
    server: LangSmithServer, root: str, portions: list[int], counted: int | None
) -> None:
    """A trace is complete only if it has its root and two readings agree.

    Otherwise it is returned as incomplete.
    """
    if root == "first":
        server.trees[TRACE].reverse()
    server.portions = list(portions)
    async with open_traces(tracing(server), {"LANGSMITH_API_KEY": KEY}, no_pause) as traces:
        assert len(await traces.read_runs(TRACE)) == (counted or 0)
        server.portions = list(portions)
        read = await traces.read(TRACE)
        assert await traces.read(str(uuid.UUID(int=7))) is None
    assert read is not None
    assert (read.complete, len(read.runs)) == (counted is not None, counted or portions[10])
    assert read.url.endswith(f"/projects/p/{PROJECT}/r/{TRACE}")


async def test_a_root_that_has_not_ended_is_not_complete(server: LangSmithServer) -> None:
    server.trees[TRACE][0] |= {"end_time": None}
    async with open_traces(tracing(server), {"LANGSMITH_API_KEY": KEY}, no_pause) as traces:
        read = await traces.read(TRACE)
    assert read is not None
    assert not read.complete


async def test_a_server_that_is_not_there_any_more_costs_the_steps_alone(server: LangSmithServer) -> None:
    async with open_traces(tracing(server), {"LANGSMITH_API_KEY": KEY}, no_pause) as traces:
        server.faults["/api/v2/runs/query"] = [500] * 1000
        assert await traces.read_runs(TRACE) == []


@pytest.mark.parametrize("seen", [True, False], ids=["the key sees production", "it does not"])
async def test_a_trace_in_production_is_found_by_its_address(server: LangSmithServer, *, seen: bool) -> None:
    if seen:
        server.projects["agent-prod"] = str(PRODUCTION)
    async with open_traces(tracing(server), {"LANGSMITH_API_KEY": KEY}, no_pause) as traces:
        await traces.require_own_project(PAGE.format(PROJECT, TRACE))
        await traces.require_own_project(TRACE)  # an id does not contain the project
        words = "in langsmith.production_project" if seen else "in a project other than langsmith.project"
        with pytest.raises(ConfigError, match=f"is {words}"):
            await traces.require_own_project(PAGE.format(PRODUCTION, TRACE))


async def test_a_trace_in_production_is_found_by_its_id(server: LangSmithServer) -> None:
    server.projects["agent-prod"] = str(PRODUCTION)
    server.trees[TRACE] = tree(PRODUCTION)
    async with open_traces(tracing(server), {"LANGSMITH_API_KEY": KEY}, no_pause) as traces:
        with pytest.raises(ConfigError, match=r"trace of a job is in langsmith\.production_project"):
            await traces.read_runs(TRACE)


REFUSED = [
    ({}, {}, "langsmith.key_env: the environment variable LANGSMITH_API_KEY is missing or empty"),
    (
        {},
        {"LANGSMITH_API_KEY": "wrong"},
        r"HTTP 401\. Check that the key in LANGSMITH_API_KEY \(langsmith.key_env\)",
    ),
    (
        {"project": "nowhere"},
        {"LANGSMITH_API_KEY": KEY},
        "'nowhere': finding the project: HTTP 404. The project or object does not exist",
    ),
]


@pytest.mark.parametrize(("changes", "environment", "words"), REFUSED)
async def test_unverifiable_input_is_refused(
    server: LangSmithServer, changes: dict[str, str], environment: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        async with open_traces(tracing(server, **changes), environment, no_pause):
            pass


async def test_two_names_of_one_project_are_refused(server: LangSmithServer) -> None:
    server.projects["agent-prod"] = str(PROJECT)
    with pytest.raises(ConfigError, match="must be the staging project"):
        async with open_traces(tracing(server), {"LANGSMITH_API_KEY": KEY}, no_pause):
            pass
