"""The traces of a target's jobs in LangSmith: which project they lie in, and what the agent did."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final, NamedTuple

from monitors.errors import ConfigError, SourceUnavailable
from monitors.platforms.langsmith.client import LangSmithClient
from monitors.platforms.platform import Trace
from monitors.platforms.settings import LangSmithSettings, TracingSettings

TRACE_POLL_S: Final = 2.0


class TraceAddress(NamedTuple):
    """Where a trace is, as far as an address of LangSmith's pages says it."""

    trace_id: str | None = None
    project_id: str | None = None


_UUID: Final = r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"
_IN_PROJECT: Final = re.compile(rf"/projects/p/{_UUID}")
_TRACE: Final = re.compile(rf"(?:[?&](?:trace_id|peek)=|/(?:r|runs)/|^){_UUID}(?=$|[/?&#])")


def parse_trace_address(written: str) -> TraceAddress:
    """What an address says of a trace: its id and its project's. A bare id is one too."""
    project, traces = _IN_PROJECT.search(written), _TRACE.findall(written)
    return TraceAddress(traces[-1].lower() if traces else None, project[1].lower() if project else None)


class LangSmithTraces:
    """The traces of one target's jobs: which project they lie in, and what the agent did. Use as a context manager.

    ``production`` is the project in which none may lie, where the same LangSmith has it.
    """

    def __init__(
        self,
        client: LangSmithClient,
        production: LangSmithClient | None,
        patience: TracePatience,
    ) -> None:
        self._client, self._production, self._patience = client, production, patience
        self._production_id: str | None = None

    async def prepare(self) -> None:
        """Find the project, and production's. `ConfigError` where the two are one, or the first is not there.

        Production's is not there for a key that does not see it, as it should be.
        """
        project_id = await _require_project(self._client.find_project_id())
        if self._production is None:
            return
        # The key may not see production's project, as the docstring says.
        with suppress(SourceUnavailable):
            self._production_id = await self._production.find_project_id()
        if self._production_id == project_id:
            raise ConfigError("langsmith.project and langsmith.production_project lead to one project")

    async def check_project(self, address: str) -> None:
        """`ConfigError` where a job's trace lies in production's project, or in another than the configured one."""
        trace = parse_trace_address(address)
        if trace.project_id is None:
            return
        project_id = await _require_project(self._client.find_project_id())
        if trace.project_id == self._production_id:
            raise ConfigError(_LANDED.format("langsmith.production_project", address[:200]))
        if trace.project_id != project_id.lower():
            raise ConfigError(_LANDED.format("a project that is not langsmith.project", address[:200]))

    async def read_runs(self, address: str) -> list[Any]:
        """The runs of a finished job's trace, as plain JSON; none where it is not complete within the patience.

        `ConfigError` where it is found in production's project.
        """
        trace_id = parse_trace_address(address).trace_id
        if trace_id is None:
            return []
        runs, complete = await self._read_until_stable(trace_id)
        return runs if complete else []

    async def read(self, trace_id: str) -> Trace | None:
        """See `Traces.read`. What is there after the patience, without a root that ended, is not complete."""
        runs, complete = await self._read_until_stable(trace_id)
        if not runs:
            return None
        url = await self._client.build_trace_url(trace_id)
        return Trace(id=trace_id, url=url, runs=tuple(runs), complete=complete)

    async def _read_until_stable(self, trace_id: str) -> tuple[list[Any], bool]:
        """A trace's runs, and whether two readings agreed on them: runs arrive in parts and in no order."""
        remaining_s, previous = self._patience.patience_s, list[Any]()
        while True:
            runs = await self._query_runs(trace_id)
            if _is_complete(runs) and _sort_runs(runs) == previous:
                return runs, True
            if remaining_s <= 0:
                return runs, False
            # A trace arrives some seconds after its job.
            await self._patience.sleep(min(TRACE_POLL_S, remaining_s))
            remaining_s, previous = remaining_s - TRACE_POLL_S, _sort_runs(runs)

    async def _query_runs(self, trace_id: str) -> list[Any]:
        try:
            runs = await self._client.query_trace(trace_id)
        except SourceUnavailable:
            return []
        if not runs and self._production is not None and self._production_id is not None:
            # As above: a key that cannot see production cannot have written there.
            with suppress(SourceUnavailable):
                if await self._production.query_trace(trace_id):
                    raise ConfigError(_LANDED.format("langsmith.production_project", trace_id))
        return runs


_LANDED: Final = (
    "a job's trace lies in {0} ({1}): the application that is asked traces there, so it is production, or set up "
    "like it. The run was stopped; point the application's LANGSMITH_PROJECT at staging's project"
)


def _sort_runs(runs: Sequence[Any]) -> list[Any]:
    """Runs as two readings can be compared, whatever page they came on."""
    return sorted(runs, key=lambda run: str(run.get("id")))


def _is_complete(runs: Sequence[Any]) -> bool:
    """Whether a trace has its root, and that has ended: runs are sent in parts."""
    return any(run.get("is_root") and run.get("end_time") for run in runs)


async def _require_project(project_id: Awaitable[str]) -> str:
    """A project that must be there: without it nobody can say where a trace lies."""
    try:
        return await project_id
    except SourceUnavailable as error:
        raise ConfigError(f"[targets.NAME.langsmith]: {error}") from None


class TracePatience(NamedTuple):
    """How long a trace is waited for, and how."""

    patience_s: float
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


def load_tracing_key(settings: LangSmithSettings, environment: Mapping[str, str]) -> str:
    """The key that reads traces and writes experiments; `ConfigError` names the variable that should hold it."""
    key = environment.get(settings.key_env)
    if not key:
        raise ConfigError(f"langsmith.key_env: the environment has no {settings.key_env}, or it is empty")
    return key


@asynccontextmanager
async def open_traces(
    settings: TracingSettings,
    environment: Mapping[str, str],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncGenerator[LangSmithTraces]:
    """The traces of a target while its ``with`` block lasts. `ConfigError` without a key or the project."""
    key = load_tracing_key(settings, environment)
    is_elsewhere = settings.production_api_url not in (None, settings.api_url)
    production_project = None if is_elsewhere else settings.production_project
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                LangSmithClient.connect(settings.build_access(project), key, sleep, "langsmith.key_env")
            )
            for project in (settings.project, production_project)
            if project is not None
        ]
        patience = TracePatience(settings.trace_patience_s, sleep)
        traces = LangSmithTraces(clients[0], clients[1] if production_project is not None else None, patience)
        await traces.prepare()
        yield traces
