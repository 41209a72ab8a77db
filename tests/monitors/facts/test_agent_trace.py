"""Tests of the trace formats. Every format gives the same steps of an agent.

A value that a trace does not contain stays absent.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from monitors.facts.agent_trace import AgentPath, TimedEvent, build_path_from_events, build_step, read_trace
from monitors.facts.tool_calls import collect_calls_with_known_arguments, find_repeated_call_indexes
from monitors.records.exchanges import Step, StepKind


def spawned(node: str, agent: str) -> dict[str, Any]:
    return {"type": "agent.spawned", "agent_id": agent, "agent_name": node, "node": node}


def called(agent: str, tool: str, preview: str) -> dict[str, Any]:
    return {"type": "agent.tool_call", "agent_id": agent, "tool_name": tool, "input_preview": preview}


def result(agent: str, tool: str) -> dict[str, Any]:
    return {"type": "agent.tool_result", "agent_id": agent, "tool_name": tool, "result_summary": "…"}


def node(name: str, step: int | None) -> dict[str, Any]:
    return {"type": "graph.node_complete", "node": name, "step": step}


EVENTS = [
    node("supervisor", 1),
    spawned("investigator", "a1"),
    {"type": "agent.token", "agent_id": "a1", "token": "The"},
    called("a1", "search", "{'query': 'lock'}"),
    result("a1", "search"),
    called("a1", "search", "{'query': 'lock'}"),
    result("a1", "search"),
    {"type": "agent.done", "agent_id": "a1", "node": "investigator"},
    node("investigator", 2),
    node("supervisor", 3),
    spawned("writer", "a2"),
    {"type": "agent.done", "agent_id": "a2", "node": "writer", "usage": {"total_tokens": 120}},
    node("writer", 4),
    {"type": "job.done"},
]


def as_seen(events: list[dict[str, Any]]) -> list[TimedEvent]:
    return [TimedEvent(event, 100.0 * number) for number, event in enumerate(events)]


def test_the_events_of_a_job_are_its_steps_with_their_times() -> None:
    path = build_path_from_events(as_seen(EVENTS))
    assert [(step.name, step.kind, step.at_ms, step.duration_ms, step.tokens) for step in path.steps] == [
        ("investigator", StepKind.AGENT, 100, 600, None),
        ("search", StepKind.TOOL, 300, 100, None),
        ("search", StepKind.TOOL, 500, 100, None),
        ("writer", StepKind.AGENT, 1000, 100, 120),
    ]
    assert path.hops == 2
    assert find_repeated_call_indexes(collect_calls_with_known_arguments(path.steps)) == (1,)


def test_work_inside_a_node_is_not_another_hop() -> None:
    """If an agent reports several events inside one node or at its end, they do not count as more hops."""
    inside = [spawned("critic", "1"), spawned("critic", "2"), node("critic", 2), node("critic", 2)]
    again = [spawned("critic", "3"), node("critic", 4)]
    path = build_path_from_events(as_seen([*inside, *again]))
    assert ([step.name for step in path.steps], path.hops) == (["critic", "critic"], 2)


def test_events_without_nodes_count_their_agents_and_without_those_nothing() -> None:
    assert build_path_from_events(as_seen([spawned("critic", "1"), spawned("supervisor", "2")])).hops == 1
    assert build_path_from_events(as_seen([called("a", "grep", "x")])).hops is None
    assert build_path_from_events([]) == AgentPath()


def test_a_cut_preview_does_not_tell_two_calls_apart() -> None:
    long = "{'query': 'the lock of the export that is never released when"
    path = build_path_from_events(as_seen([called("a", "search", long), called("a", "search", long)]))
    assert [step.cut for step in path.steps] == [True, True]
    assert find_repeated_call_indexes(collect_calls_with_known_arguments(path.steps)) == ()


def lang_run(name: str, kind: str, start: int, seconds: float, **more: Any) -> dict[str, Any]:
    began, ended = f"2026-01-31T02:00:{start:02}+00:00", f"2026-01-31T02:00:{start + seconds:06.3f}+00:00"
    return {"id": f"{name}{start}", "name": name, "run_type": kind, "start_time": began, "end_time": ended} | more


def in_graph(name: str, step: int) -> dict[str, Any]:
    return {"metadata": {"langgraph_node": name, "langgraph_step": step}}


RUNS = [
    lang_run("LangGraph", "chain", 0, 30, total_tokens=900),
    lang_run("writer", "chain", 20, 9, total_tokens=500, **in_graph("writer", 4)),
    lang_run("supervisor", "chain", 1, 2, total_tokens=80, **in_graph("supervisor", 1)),
    lang_run("investigator", "chain", 4, 10, total_tokens=320, **in_graph("investigator", 2)),
    lang_run("RunnableSequence", "chain", 4, 9, **in_graph("investigator", 2)),
    lang_run("ChatOpenAI", "llm", 5, 3, total_tokens=320, **in_graph("investigator", 2)),
    lang_run("search", "tool", 8, 1.5, inputs={"query": "lock"}, total_tokens=0, **in_graph("investigator", 2)),
    lang_run("search", "tool", 11, 1.5, inputs={"query": "lock"}, **in_graph("investigator", 2)),
]


def test_a_run_tree_gives_nodes_and_tools_with_time_and_tokens() -> None:
    path = read_trace(RUNS)
    assert path is not None
    assert [(step.name, step.at_ms, step.duration_ms, step.tokens) for step in path.steps] == [
        ("investigator", 4000, 10_000, 320),
        ("search", 8000, 1500, None),
        ("search", 11_000, 1500, None),
        ("writer", 20_000, 9000, 500),
    ]
    assert path.hops == 2
    assert json.loads(path.steps[1].detail) == {"query": "lock"}
    assert find_repeated_call_indexes(collect_calls_with_known_arguments(path.steps)) == (1,)


CALL = {"name": "read", "args": {"path": "jobs/lock.py"}, "id": "1"}
MESSAGES: list[list[dict[str, Any]]] = [
    [
        {"type": "human", "content": "why?"},
        {"type": "ai", "content": "", "tool_calls": [CALL], "usage_metadata": {"total_tokens": 44}},
        {"type": "tool", "content": "…", "tool_call_id": "1"},
        {"type": "ai", "content": "", "tool_calls": [CALL, CALL], "usage_metadata": {"total_tokens": 50}},
    ],
    [
        {"role": "assistant", "content": None, "tool_calls": [openai], "usage": {"total_tokens": 44}}
        for openai in [{"id": "1", "function": {"name": "read", "arguments": '{"path": "jobs/lock.py"}'}}]
    ],
    [{"role": "assistant", "content": [{"type": "tool_use", "name": "read", "input": {"path": "jobs/lock.py"}}]}],
    [{"lc": 1, "type": "constructor", "kwargs": {"content": "", "tool_calls": [CALL]}}],
    [{"investigator": {"messages": [{"type": "ai", "content": "", "tool_calls": [CALL]}]}}, {"supervisor": None}],
]


@pytest.mark.parametrize("items", MESSAGES, ids=["LangChain", "OpenAI", "Anthropic", "serialised", "node updates"])
def test_calls_in_messages_are_steps(items: list[dict[str, Any]]) -> None:
    path = read_trace(items)
    assert path is not None
    call = next(step for step in path.steps if step.kind is StepKind.TOOL)
    assert (call.name, json.loads(call.detail)) == ("read", {"path": "jobs/lock.py"})
    assert (call.at_ms, call.duration_ms) == (None, None)


def test_tokens_of_one_message_with_two_calls_are_nobodys() -> None:
    path = read_trace(MESSAGES[0])
    assert path is not None
    assert [step.tokens for step in path.steps] == [44, None, None]
    assert find_repeated_call_indexes(collect_calls_with_known_arguments(path.steps)) == (1, 2)
    assert path.hops is None


def test_a_handover_is_a_hop() -> None:
    to = [
        {"role": "assistant", "tool_calls": [{"name": f"transfer_to_{name}", "args": {}}]}
        for name in ("critic", "supervisor")
    ]
    assert (read_trace(to) or AgentPath()).hops == 1
    updates = [{"supervisor": {"next": "critic"}}, {"critic": {"findings": []}}, {"critic": None}]
    path = read_trace(updates)
    assert path is not None
    assert ([step.name for step in path.steps], path.hops) == (["critic", "critic"], 2)


@pytest.mark.parametrize(
    "items", [[], ["search"], [{"name": "search"}], [{"role": "user", "content": "hi"}], [1, None], [{}]]
)
def test_an_unknown_trace_format_gives_no_trace(items: list[object]) -> None:
    assert read_trace(items) is None or read_trace(items) == AgentPath()


STEPS: list[tuple[dict[str, Any], Step]] = [
    ({"name": "grep", "args": {"q": 1}}, Step(name="grep", detail='{"q": 1}')),
    ({"tool": "grep", "input": "x", "duration_s": 1.5}, Step(name="grep", detail="x", duration_ms=1500)),
    (
        {"name": "g", "arguments": "{}", "started_at": "2026-01-01T00:00:00", "ended_at": "2026-01-01T00:00:02"},
        Step(name="g", detail="{}", duration_ms=2000),
    ),
    (
        {"name": "g", "input": "x", "usage": {"input_tokens": 3, "output_tokens": 4}},
        Step(name="g", detail="x", tokens=7),
    ),
    ({"name": "g", "input": "x", "usage": {"input_tokens": 3}}, Step(name="g", detail="x")),
    ({"name": "search"}, Step(name="search", detail='{"name": "search"}')),
    ({"name": "g", "input": "y" * 1001}, Step(name="g", detail="y" * 1000, cut=True)),
]


@pytest.mark.parametrize(("fields", "step"), STEPS)
def test_a_step_says_what_is_known_of_it(fields: dict[str, Any], step: Step) -> None:
    assert build_step(fields) == step
