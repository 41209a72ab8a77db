"""Read the traces of a target's jobs in LangSmith, and check that they are in the right project."""

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
    """The ids of a trace and its project in a LangSmith web address. An id that the address lacks is ``None``."""

    trace_id: str | None = None
    project_id: str | None = None


_UUID: Final = r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"
_IN_PROJECT: Final = re.compile(rf"/projects/p/{_UUID}")
_TRACE: Final = re.compile(rf"(?:[?&](?:trace_id|peek)=|/(?:r|runs)/|^){_UUID}(?=$|[/?&#])")


def parse_trace_address(address: str) -> TraceAddress:
    """Parse the ids of a trace and its project from the trace's web address.

    ``address`` may also be only a trace id.
    """
    project, traces = _IN_PROJECT.search(address), _TRACE.findall(address)
    return TraceAddress(traces[-1].lower() if traces else None, project[1].lower() if project else None)


class LangSmithTraces:
    """The traces of the jobs of one target.

    ``production`` is the client for the production project, if it is on the same server. The production project
    must contain no trace of these jobs.
    """

    def __init__(
        self,
        client: LangSmithClient,
        production: LangSmithClient | None,
        patience: TracePatience,
    ) -> None:
        self._client, self._production, self._patience = client, production, patience
        self._production_id: str | None = None

    async def check_projects_differ(self) -> None:
        """Find the project of the target and the production project.

        Raises `ConfigError` if the two projects are the same, or if the project of the target does not exist. A
        production project that is not found is not an error, because the key should have no access to the
        production project.
        """
        project_id = await _require_existing_project_id(self._client.find_project_id())
        if self._production is None:
            return
        with suppress(SourceUnavailable):  # the key has no access to the production project
            self._production_id = await self._production.find_project_id()
        if self._production_id == project_id:
            raise ConfigError("langsmith.project must be the staging project, not langsmith.production_project")

    async def require_own_project(self, address: str) -> None:
        """Raise `ConfigError` if the trace of a job is not in the configured project.

        An address without a project is not checked.
        """
        trace = parse_trace_address(address)
        if trace.project_id is None:
            return
        project_id = await _require_existing_project_id(self._client.find_project_id())
        if trace.project_id == self._production_id:
            raise ConfigError(_WRONG_PROJECT.format("langsmith.production_project", address[:200]))
        if trace.project_id != project_id.lower():
            raise ConfigError(_WRONG_PROJECT.format("a project other than langsmith.project", address[:200]))

    async def read_runs(self, address: str) -> list[Any]:
        """Return the runs in the trace of a finished job.

        The list is empty if the trace stays incomplete, or if the address contains no trace id. Raises
        `ConfigError` if the trace is in the production project.
        """
        trace_id = parse_trace_address(address).trace_id
        if trace_id is None:
            return []
        runs, complete = await self._read_until_stable(trace_id)
        return runs if complete else []

    async def read(self, trace_id: str) -> Trace | None:
        """See `Traces.read`.

        A trace is incomplete if its root has not ended, or its runs still change, after the maximum wait.
        """
        runs, complete = await self._read_until_stable(trace_id)
        if not runs:
            return None
        url = await self._client.build_trace_url(trace_id)
        return Trace(id=trace_id, url=url, runs=tuple(runs), complete=complete)

    async def _read_until_stable(self, trace_id: str) -> tuple[list[Any], bool]:
        """Read the runs of a trace until two readings agree and the root has ended.

        Reading stops after the maximum wait. Return the runs, and whether the trace is complete.
        """
        remaining_s, previous = self._patience.patience_s, list[Any]()
        while True:
            runs = await self._query_runs_refusing_production(trace_id)
            # Runs arrive in parts: the trace is complete if its root has ended and two readings agree.
            if (
                any(run.get("is_root") and run.get("end_time") for run in runs)
                and _sort_runs_by_id(runs) == previous
            ):
                return runs, True
            if remaining_s <= 0:
                return runs, False
            # A trace arrives some seconds after its job.
            await self._patience.sleep(min(TRACE_POLL_S, remaining_s))
            remaining_s, previous = remaining_s - TRACE_POLL_S, _sort_runs_by_id(runs)

    async def _query_runs_refusing_production(self, trace_id: str) -> list[Any]:
        try:
            runs = await self._client.query_trace_runs(trace_id)
        except SourceUnavailable:
            return []
        if not runs and self._production is not None and self._production_id is not None:
            with suppress(SourceUnavailable):  # the key has no access to production, and cannot have written there
                if await self._production.query_trace_runs(trace_id):
                    raise ConfigError(_WRONG_PROJECT.format("langsmith.production_project", trace_id))
        return runs


_WRONG_PROJECT: Final = (
    "the trace of a job is in {0} ({1}). The application may be production, or use its settings. Lookout stopped "
    "the run. Set LANGSMITH_PROJECT of the application to the staging project"
)


def _sort_runs_by_id(runs: Sequence[Any]) -> list[Any]:
    """Return the runs sorted by id, so that two readings can be compared."""
    return sorted(runs, key=lambda run: str(run.get("id")))


async def _require_existing_project_id(project_id: Awaitable[str]) -> str:
    """Return the id of a project. Raises `ConfigError` if the project does not exist."""
    try:
        return await project_id
    except SourceUnavailable as error:
        raise ConfigError(f"[targets.NAME.langsmith]: {error}") from None


class TracePatience(NamedTuple):
    """The maximum time in seconds that Lookout waits for a trace, and the function with which it waits."""

    patience_s: float
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


def load_tracing_key(settings: LangSmithSettings, environment: Mapping[str, str]) -> str:
    """Return the key for traces and experiments from the environment.

    Raises `ConfigError`, which names the missing variable.
    """
    key = environment.get(settings.key_env)
    if not key:
        raise ConfigError(f"langsmith.key_env: the environment variable {settings.key_env} is missing or empty")
    return key


@asynccontextmanager
async def open_traces(
    settings: TracingSettings,
    environment: Mapping[str, str],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncGenerator[LangSmithTraces]:
    """Open the traces of a target. Raises `ConfigError` if the key or the project is missing."""
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
        await traces.check_projects_differ()
        yield traces
