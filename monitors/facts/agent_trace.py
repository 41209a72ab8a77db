"""Read the steps of an agent from a trace.

A trace contains the events of a job, LangSmith runs, LangGraph messages or LangGraph node updates. All formats are
converted to the same steps. Values that a trace lacks (arguments, time, tokens, agent) stay absent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, cast

from monitors.json_path import collect_values
from monitors.records.exchanges import Step, StepKind

Fields = Mapping[str, Any]

MAX_DETAIL_LENGTH: Final = 1000
"""The arguments of a step are stored up to this number of characters. Longer arguments are truncated."""
MIN_CUT_PREVIEW_LENGTH: Final = 60
"""A preview of a step's arguments counts as truncated if it has at least this many characters.

Services truncate their previews at a length of 60 characters or more.
"""
NO_AGENTS: Final = frozenset(
    {"supervisor", "human_input", "human", "tools", "start", "end", "__start__", "__end__", "__interrupt__"}
)
"""Names of graph nodes that only pass work on to an agent. A visit to such a node does not count as a handoff."""
HANDOFF: Final = "transfer_to_"
"""The prefix of LangGraph's handoff tools: ``transfer_to_billing`` hands the work to the agent ``billing``."""

_SPAWNED, _CALL, _RESULT, _DONE, _NODE = (
    "agent.spawned",
    "agent.tool_call",
    "agent.tool_result",
    "agent.done",
    "graph.node_complete",
)
STEP_EVENTS: Final = frozenset({_SPAWNED, _CALL, _RESULT, _DONE, _NODE})
"""Types of events that describe an agent's actions. Other events, such as those of streamed tokens, are ignored."""

_NAMES: Final = ("tool_name", "agent_name", "tool", "node", "name", "function.name")
_ARGUMENTS: Final = ("arguments", "args", "input", "inputs", "tool_input", "parameters", "function.arguments")
_PREVIEWS: Final = ("input_preview", "arguments_preview", "args_preview")
_DURATIONS_MS: Final = ("duration_ms", "elapsed_ms", "latency_ms")
_DURATIONS_S: Final = ("duration_s", "latency_seconds", "elapsed_s", "latency_s")
_STARTS: Final = ("start_time", "started_at", "started")
_ENDS: Final = ("end_time", "ended_at", "finished_at", "ended")
_TOKENS: Final = (
    *("total_tokens", "tokens", "usage.total_tokens", "usage_metadata.total_tokens", "token_usage.total_tokens"),
    *("response_metadata.token_usage.total_tokens", "kwargs.usage_metadata.total_tokens"),
)


class AgentPath(NamedTuple):
    """The steps of an agent in order, and the number of handoffs (``None`` if the trace shows no handoff)."""

    steps: tuple[Step, ...] = ()
    hops: int | None = None


def read_trace(items: Sequence[object]) -> AgentPath | None:
    """Return the steps of an agent from the items of a trace, or ``None`` for an unknown format."""
    records = [cast("Fields", item) for item in items if isinstance(item, dict)]
    if not records:
        return None
    if any("run_type" in item for item in records):
        return read_runs(records)
    if any(item.get("type") in STEP_EVENTS for item in records):
        return build_path_from_events([TimedEvent(item) for item in records])
    messages = [message for item in records if (message := _unwrap_message_or_none(item)) is not None]
    if any(_find_tool_calls_of_message(message) or "tool_call_id" in message for message in messages):
        return _build_path_from_messages(messages)
    if all(_is_node_update(item) for item in records):
        return _build_path_from_updates(records)
    return None


def build_step(fields: Fields, name: str | None = None) -> Step:
    """Build a step from its fields. If no field has a known name for arguments, ``detail`` contains all fields."""
    detail, cut = _read_arguments_and_truncation(fields)
    return Step(
        name=(name or _find_first_text(fields, _NAMES) or "step")[:200],
        detail=detail,
        cut=cut,
        duration_ms=_read_duration_ms(fields),
        tokens=_read_token_count(fields),
    )


# --- events ----------------------------------------------------------------------------------------------------


class TimedEvent(NamedTuple):
    """An event and, if known, its time in milliseconds since the beginning of the job."""

    fields: Fields
    at_ms: float | None = None


class _OpenStep(NamedTuple):
    """A step that has started but not ended: its index in the list of steps, and its start time."""

    place: int
    at_ms: float | None


class _EventReader:
    def __init__(self) -> None:
        self.steps: list[Step | None] = []
        self.reached: set[tuple[str, int]] = set()
        self._agents: dict[str, _OpenStep] = {}
        self._calls: dict[tuple[str, str], list[_OpenStep]] = {}
        self._unplaced: dict[str, list[int]] = {}

    def add_event(self, event: TimedEvent) -> None:
        fields = event.fields
        match fields.get("type"):
            case str(kind) if kind == _SPAWNED:
                self._open_agent_step(fields, event)
            case str(kind) if kind == _CALL:
                opened = self._open_step(build_step(fields).model_copy(update={"kind": StepKind.TOOL}), event)
                self._calls.setdefault(_build_call_key(fields), []).append(opened)
            case str(kind) if kind == _RESULT:
                waiting = self._calls.get(_build_call_key(fields))
                if waiting:
                    self._close_step(waiting.pop(0), event)
            case str(kind) if kind == _DONE and _find_agent_id_or_name(fields) in self._agents:
                self._close_step(self._agents.pop(_find_agent_id_or_name(fields)), event)
            case str(kind) if kind == _NODE:
                self._record_node_and_drop_repeats(fields)
            case _:
                return

    def _open_agent_step(self, fields: Fields, event: TimedEvent) -> None:
        name = _find_first_text(fields, _NAMES) or "agent"
        if name not in NO_AGENTS:
            self._agents[_find_agent_id_or_name(fields)] = self._open_step(
                Step(name=name, kind=StepKind.AGENT), event
            )
            self._unplaced.setdefault(name, []).append(len(self.steps) - 1)

    def _open_step(self, step: Step, event: TimedEvent) -> _OpenStep:
        self.steps.append(step.model_copy(update={"at_ms": event.at_ms}))
        return _OpenStep(len(self.steps) - 1, event.at_ms)

    def _close_step(self, opened: _OpenStep, event: TimedEvent) -> None:
        step = self.steps[opened.place]
        if step is None:
            return
        took_ms = _read_duration_ms(event.fields)
        if took_ms is None and opened.at_ms is not None and event.at_ms is not None:
            took_ms = max(0.0, event.at_ms - opened.at_ms)
        measured = {"duration_ms": took_ms, "tokens": _read_token_count(event.fields)}
        update = {name: value for name, value in measured.items() if value is not None}
        self.steps[opened.place] = step.model_copy(update=update)

    def _record_node_and_drop_repeats(self, fields: Fields) -> None:
        """Record a finished graph node. Drop the steps that announced this visit to the node again."""
        node, number = _find_first_text(fields, ("node",)) or "", fields.get("step")
        announced = self._unplaced.pop(node, [])
        if not isinstance(number, int) or isinstance(number, bool):
            return
        for place in announced[(0 if (node, number) in self.reached else 1) :]:
            self.steps[place] = None
        self.reached.add((node, number))


def build_path_from_events(events: Iterable[TimedEvent]) -> AgentPath:
    """Return the steps from the events of a job.

    Each visit to a node counts as a handoff. If the events name no nodes, each call of an agent counts.
    """
    reader = _EventReader()
    for event in events:
        reader.add_event(event)
    steps = tuple(step for step in reader.steps if step is not None)
    agents = sum(step.kind is StepKind.AGENT for step in steps)
    reached = sum(node not in NO_AGENTS for node, _ in reader.reached)
    return AgentPath(steps, reached or agents or None)


def _find_agent_id_or_name(fields: Fields) -> str:
    return _find_first_text(fields, ("agent_id", "agent", "node", "agent_name")) or ""


def _build_call_key(fields: Fields) -> tuple[str, str]:
    """Return the key that a call and its result share: the id of the call, or the agent and the tool."""
    call = _find_first_text(fields, ("call_id", "tool_call_id"))
    return ("", call) if call else (_find_agent_id_or_name(fields), _find_first_text(fields, _NAMES) or "")


# --- LangSmith runs --------------------------------------------------------------------------------------------


def read_runs(runs: Sequence[Fields]) -> AgentPath:
    """Read the tools, retrievers and graph nodes of a run tree as steps, ordered by start time."""
    timed = sorted(runs, key=lambda run: str(run.get("start_time") or ""))
    began = next((start for run in timed if (start := _read_time(run, _STARTS))), None)
    steps: list[Step] = []
    reached: set[tuple[str, str]] = set()
    for run in timed:
        kind, name = run.get("run_type"), str(run.get("name") or "step")
        if kind in ("tool", "retriever"):
            steps.append(_build_step_from_run(run, StepKind.TOOL, began))
        elif (
            kind == "chain"
            and (place := _find_step_number_if_node_run(run)) is not None
            and (name, place) not in reached
        ):
            reached.add((name, place))
            steps += (
                []
                if name in NO_AGENTS
                else [_build_step_from_run(run, StepKind.AGENT, began).model_copy(update={"detail": ""})]
            )
    agents = [name for name, _ in reached if name not in NO_AGENTS]
    return AgentPath(tuple(steps), len(agents) or _count_handoffs(steps))


def _find_step_number_if_node_run(run: Fields) -> str | None:
    """Return the step number if ``run`` is the run of a graph node itself.

    Return ``None`` for a run inside a node.
    """
    metadata = [value for path in ("metadata", "extra.metadata") for value in collect_values(run, path)]
    fields = {
        key: value
        for record in metadata
        if isinstance(record, dict)
        for key, value in cast("Fields", record).items()
    }
    if fields.get("langgraph_node") != run.get("name") or "langgraph_step" not in fields:
        return None
    return str(fields["langgraph_step"])


def _build_step_from_run(run: Fields, kind: StepKind, began: datetime | None) -> Step:
    step, start = build_step(run, str(run.get("name") or "step")), _read_time(run, _STARTS)
    after_ms = (start - began).total_seconds() * 1000 if start and began else None
    # LangSmith counts only the tokens of models. 0 for a tool means not counted.
    return step.model_copy(update={"kind": kind, "at_ms": after_ms, "tokens": step.tokens or None})


# --- LangGraph messages and node updates -------------------------------------------------------------------------


def _unwrap_message_or_none(item: Fields) -> Fields | None:
    """Return the fields of a message without LangChain's wrapper; ``None`` if ``item`` is not a message."""
    inner = next((item[key] for key in ("kwargs", "data") if isinstance(item.get(key), dict)), None)
    fields = {**item, **cast("Fields", inner)} if isinstance(inner, dict) else item
    return fields if "content" in fields or "tool_calls" in fields else None


def _find_tool_calls_of_message(message: Fields) -> list[Fields]:
    """Return the tool calls of a message, from its list of calls or from the parts of its content."""
    for key in ("tool_calls", "additional_kwargs.tool_calls"):
        for value in collect_values(message, key):
            listed = [cast("Fields", call) for call in _to_list_or_empty(value) if isinstance(call, dict)]
            if listed:
                return listed
    parts = [cast("Fields", call) for call in _to_list_or_empty(message.get("content")) if isinstance(call, dict)]
    return [part for part in parts if part.get("type") == "tool_use"]


def _build_path_from_messages(messages: Iterable[Fields]) -> AgentPath:
    steps: list[Step] = []
    for message in messages:
        calls = _find_tool_calls_of_message(message)
        # the tokens of a message with several calls cannot be divided among the calls
        tokens = _read_token_count(message) if len(calls) == 1 else None
        steps += [_build_step_from_call(call, tokens) for call in calls]
    return AgentPath(tuple(steps), _count_handoffs(steps))


def _build_step_from_call(call: Fields, tokens: int | None) -> Step:
    name = _find_first_text(call, _NAMES) or "step"
    kind = StepKind.AGENT if name.startswith(HANDOFF) else StepKind.TOOL
    return build_step(call, name).model_copy(update={"kind": kind, "tokens": tokens})


def _count_handoffs(steps: Iterable[Step]) -> int | None:
    """Count the handoffs to other agents; ``None`` if there are none."""
    to = (step.name.removeprefix(HANDOFF) for step in steps if step.name.startswith(HANDOFF))
    return sum(name not in NO_AGENTS for name in to) or None


def _is_node_update(item: Fields) -> bool:
    """Return whether a value is a LangGraph node update: a single key (the node) with the node's changes."""
    return len(item) == 1 and all(isinstance(value, dict) or value is None for value in item.values())


def _build_path_from_updates(updates: Sequence[Fields]) -> AgentPath:
    steps: list[Step] = []
    for node, change in ((node, change) for update in updates for node, change in update.items()):
        if node not in NO_AGENTS:
            steps.append(Step(name=node, kind=StepKind.AGENT))
        values = collect_values(change, "messages") if isinstance(change, dict) else []
        listed = [
            cast("Fields", message_fields)
            for value in values
            for message_fields in _to_list_or_empty(value)
            if isinstance(message_fields, dict)
        ]
        messages = map(_unwrap_message_or_none, listed)
        steps += _build_path_from_messages(message for message in messages if message is not None).steps
    return AgentPath(tuple(steps), sum(step.kind is StepKind.AGENT for step in steps) or None)


# --- parts of a step -------------------------------------------------------------------------------------------


def _read_arguments_and_truncation(fields: Fields) -> tuple[str, bool]:
    """Return the arguments of a step as text, and whether this text is truncated."""
    given = _find_first(fields, _ARGUMENTS, lambda value: value not in (None, ""))
    preview = _find_first(fields, _PREVIEWS, lambda value: isinstance(value, str))
    if given is None and preview is not None:
        cut = len(preview) >= MIN_CUT_PREVIEW_LENGTH or preview.endswith(("...", "…"))
        return preview[:MAX_DETAIL_LENGTH], cut
    text = _convert_to_text_or_json(fields if given is None else given)
    return text[:MAX_DETAIL_LENGTH], len(text) > MAX_DETAIL_LENGTH


def _read_duration_ms(fields: Fields) -> float | None:
    said_ms, said_s = (
        _find_first(fields, names, _is_non_negative_number) for names in (_DURATIONS_MS, _DURATIONS_S)
    )
    if said_ms is not None or said_s is not None:
        return float(said_ms if said_ms is not None else said_s * 1000)
    start, end = _read_time(fields, _STARTS), _read_time(fields, _ENDS)
    return max(0.0, (end - start).total_seconds() * 1000) if start and end else None


def _read_token_count(fields: Fields) -> int | None:
    total = _find_first(fields, _TOKENS, _is_non_negative_number)
    if total is not None:
        return int(total)
    pairs = (
        [_find_first(fields, (f"{place}{side}_tokens",), _is_non_negative_number) for side in sides]
        for place in ("", "usage.", "usage_metadata.")
        for sides in (("input", "output"), ("prompt", "completion"))
    )
    # input or output tokens alone are not a total
    return next((int(sum(pair)) for pair in pairs if None not in pair), None)


def _read_time(fields: Fields, names: Sequence[str]) -> datetime | None:
    text = _find_first(fields, names, lambda value: isinstance(value, str))
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def _find_first(fields: Fields, paths: Sequence[str], fits: Callable[[Any], bool]) -> Any:
    values: Iterator[Any] = (value for path in paths for value in collect_values(fields, path) if fits(value))
    return next(values, None)


def _find_first_text(fields: Fields, paths: Sequence[str]) -> str | None:
    text = _find_first(fields, paths, lambda value: isinstance(value, str) and bool(value.strip()))
    return None if text is None else str(text).strip()


def _is_non_negative_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15  # noqa: PLR2004 - a larger amount is an error


def _to_list_or_empty(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _convert_to_text_or_json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
