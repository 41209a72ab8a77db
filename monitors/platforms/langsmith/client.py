"""Read runs and traces of one LangSmith project, and write scores, with LangSmith's SDK (an optional extra).

The asynchronous client starts no thread and buffers nothing: when a call returns, its request has arrived. This
module itself repeats failed requests and limits each wait, because the SDK would wait as long as the Retry-After
header requests.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple, Self, TypeVar, cast

from monitors.errors import ConfigError, SourceUnavailable
from monitors.platforms.platform import Score
from monitors.records.base import Record
from monitors.retry import TryAgain, parse_retry_after_s, retry_with_pauses

Value = TypeVar("Value")

FEEDBACK: Final = uuid.UUID("5f0c2f9e-0d39-4f5b-9c86-1f6d3f0f6f57")
"""The UUID namespace of feedback ids.

The id of a feedback is computed from the run and the score key, so a repeated request replaces the feedback.
"""
MAX_PAUSE_S: Final = 60.0
"""Maximum pause before a retry in seconds. The server limits requests per minute, so a limit ends within a minute.
"""
_FINAL_STATUSES: Final = (400, 401, 403, 404, 422, 501)
"""HTTP statuses after which a request is not retried, because a retry would also fail."""
_REFUSED_STATUSES: Final = (401, 403)
_CONFLICT: Final = 409
_NOT_FOUND: Final = 404
_SELECTS: Final = ("ID", "TRACE_ID", "START_TIME", "END_TIME", "INPUTS", "OUTPUTS", "LATENCY_SECONDS", "METADATA",
                   "EXTRA", "TAGS", "FEEDBACK_STATS", "THREAD_ID", "STATUS")  # fmt: skip
_TREE_SELECTS: Final = ("ID", "NAME", "RUN_TYPE", "START_TIME", "END_TIME", "INPUTS", "OUTPUTS", "TOTAL_TOKENS",
                        "METADATA", "PARENT_RUN_IDS", "IS_ROOT", "PROJECT_ID")  # fmt: skip
TRACE_PAGE: Final = 100
MAX_RUNS: Final = 2_000
"""Maximum number of runs of one trace. A job with a few dozen steps has a few hundred runs."""


# Shares its fields with LangSmithTraffic because `[langsmith]` gives access too, with other settings.
class LangSmithAccess(Record):
    """A project and its access settings, without the key."""

    project: str | None
    """The project, or ``None`` for datasets and experiments, which belong to the whole workspace."""
    api_url: str
    key_env: str
    """The name of the environment variable that contains the key. Messages show this name."""
    workspace_id: str | None = None
    request_deadline_s: float
    attempts: int = 3
    """Maximum number of attempts for each request."""


class RootRuns(NamedTuple):
    """A query for root runs that started between ``earliest`` and ``latest``."""

    earliest: datetime
    latest: datetime
    page_size: int
    filter: str | None = None
    """A filter in LangSmith's query language, or ``None`` for all root runs."""


class _Project(NamedTuple):
    id: str
    workspace: str


class LangSmithClient:
    """A client for one project of a LangSmith server.

    Errors are raised as `SourceUnavailable` and contain no key.
    """

    def __init__(
        self,
        client: Any,
        settings: LangSmithAccess,
        key: str,
        sleep: Callable[[float], Awaitable[None]],
        key_name: str = "traffic.key_env",
    ) -> None:
        self._client = client
        self._settings = settings
        self._key = key
        self._sleep = sleep
        self._key_name = key_name
        self._project: _Project | None = None
        self._sync_client: Any = None

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        settings: LangSmithAccess,
        key: str,
        sleep: Callable[[float], Awaitable[None]],
        key_name: str = "traffic.key_env",
    ) -> AsyncGenerator[Self]:
        """Open a client for the ``with`` block. Raises `ConfigError` if the SDK is not installed."""

        def build() -> Any:
            return _import_sdk().AsyncClient(
                retry_config={"max_retries": 1}, **_build_client_arguments(settings, key)
            )

        client = await asyncio.to_thread(build)  # the import takes a second
        generated = client._langsmith_api  # noqa: SLF001 - runs.query uses this client, which ignores retry_config
        generated.max_retries = 0
        langsmith = cls(client, settings, key, sleep, key_name)
        try:
            yield langsmith
        finally:
            langsmith.close_sync_client()
            await generated.close()  # client.aclose() leaves these connections open
            await client.aclose()

    @property
    def name(self) -> str:
        """Return the name of the project or server for messages, without secrets."""
        project = self._settings.project
        return f"LangSmith at {self._settings.api_url}" if project is None else f"LangSmith project {project!r}"

    @property
    def sdk(self) -> Any:
        """Return the SDK's asynchronous client, for calls inside `call_with_retries`."""
        return self._client

    @property
    def web_url(self) -> str:
        """Return the web address of the server's pages, without a final slash."""
        return str(self._client._host_url).rstrip("/")  # noqa: SLF001 - the SDK has no public attribute for it

    async def query_root_runs(self, window: RootRuns, cursor: str | None) -> tuple[list[Any], str | None]:
        """Return the page of root runs at ``cursor`` as plain JSON, and the cursor of the next page."""
        project = await self.find_project_id()
        parameters = {"filter": window.filter, "cursor": cursor}

        async def query() -> Any:
            await self._client.info()  # otherwise the SDK requests it in a task that nobody awaits
            return await self._client.runs.query(
                project_ids=[project],
                is_root=True,
                min_start_time=window.earliest,
                max_start_time=window.latest,
                page_size=window.page_size,
                selects=list(_SELECTS),
                **{name: value for name, value in parameters.items() if value is not None},
            )

        page: Any = await self.call_with_retries(query, "asking for runs")
        runs = cast("list[Any]", page.items or [])
        return [run.model_dump(mode="json", warnings=False) for run in runs], page.next_cursor or None

    async def query_trace_runs(self, trace_id: str) -> list[Any]:
        """Return all runs of a trace in this project as plain JSON.

        The list is empty as long as the trace does not exist.
        """
        project = await self.find_project_id()
        runs, cursor = list[Any](), None
        while len(runs) < MAX_RUNS:
            page = await self.call_with_retries(
                partial(self._query_trace_page, project, trace_id, cursor), "asking for a trace"
            )
            page_runs = cast("list[Any]", page.items or [])
            runs += [run.model_dump(mode="json", warnings=False) for run in page_runs]
            cursor = page.next_cursor or None
            if cursor is None:
                break
        return runs

    async def _query_trace_page(self, project: str, trace_id: str, cursor: str | None) -> Any:
        await self._client.info()  # as in `query_root_runs`
        parameters: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        selects = list(_TREE_SELECTS)
        return await self._client.runs.query(
            project_ids=[project], trace_id=trace_id, page_size=TRACE_PAGE, selects=selects, **parameters
        )

    async def store_score(self, run_id: str, score: Score, project_id: str | None = None) -> None:
        """Store a score for a run. A later score with the same key replaces an earlier score.

        ``project_id`` is the project of the run. By default, it is the project of this client.
        """
        project = project_id or await self.find_project_id()
        feedback_id = uuid.uuid5(FEEDBACK, f"{run_id}/{score.key}")

        async def create_feedback() -> None:
            await self._client.create_feedback(
                run_id=run_id,
                key=score.key,
                score=score.value,
                comment=score.comment or None,
                feedback_id=feedback_id,
                session_id=project,
                # otherwise each score is billed, and users' texts are stored for 400 days
                extend_trace_retention=False,
                stop_after_attempt=1,
            )

        async def update_feedback() -> None:
            changed = {"score": score.value, "comment": score.comment or None}
            await self.call_sync_client_in_thread(lambda sdk: sdk.update_feedback(feedback_id, **changed))

        async def create_or_update_feedback() -> None:
            try:
                await create_feedback()
            except Exception as error:  # the SDK's errors have no common type, only the status tells them apart
                if find_http_status(error) != _CONFLICT:
                    raise
                await update_feedback()

        await self.call_with_retries(create_or_update_feedback, f"storing the score {score.key}")

    async def call_sync_client_in_thread(self, call: Callable[[Any], Value]) -> Value:
        """Call the SDK's synchronous client in a thread, for functions that the asynchronous client lacks."""
        return await asyncio.to_thread(call, self._get_or_create_sync_client())

    def _get_or_create_sync_client(self) -> Any:
        """Return the synchronous client.

        Its tracing is off, so that the client starts no thread and buffers nothing.
        """
        if self._sync_client is None:
            sdk = _import_sdk()
            once = sdk.utils.LangSmithRetry(total=0)
            # The SDK would log errors with the first and last characters of the key.
            logging.getLogger("langsmith.client").setLevel(logging.CRITICAL)
            access = _build_client_arguments(self._settings, self._key)
            self._sync_client = sdk.Client(auto_batch_tracing=False, retry_config=once, **access)
        return self._sync_client

    def close_sync_client(self) -> None:
        """Close the synchronous client, if it was used."""
        if self._sync_client is not None:
            self._sync_client.close(timeout=0)

    async def find_project_id(self) -> str:
        """Return the project's id. Raises the errors of `build_trace_url`."""
        return (await self._find_project()).id

    async def build_trace_url(self, trace_id: str) -> str:
        """Return the web address of a trace of this project.

        Raises `SourceUnavailable` if no project has the configured name or the key has no access to the project.
        Raises `ConfigError` if no project is configured.
        """
        project = await self._find_project()
        return f"{self.web_url}/o/{project.workspace}/projects/p/{project.id}/r/{trace_id}"

    async def _find_project(self) -> _Project:
        if self._settings.project is None:
            raise ConfigError("langsmith.project is missing. Set it to the project with the traces")
        if self._project is None:
            project = await self.call_with_retries(
                lambda: self._client.read_project(project_name=self._settings.project), "finding the project"
            )
            self._project = _Project(str(project.id), str(project.tenant_id))
        return self._project

    async def call_with_retries(self, call: Callable[[], Awaitable[Value]], doing: str) -> Value:
        """Return the result of ``call``. After a temporary failure, ``call`` is repeated.

        ``doing`` describes the call in error messages. Raises `SourceUnavailable`.
        """

        async def try_once() -> Value:
            try:
                async with asyncio.timeout(self._settings.request_deadline_s):
                    return await call()
            except Exception as error:  # noqa: BLE001 - the SDK's errors have no common type, and may contain keys
                raise self._build_request_error(error, doing) from None

        tries = self._settings.attempts
        return await retry_with_pauses(
            try_once, tries=tries, first_pause_s=1.0, max_pause_s=MAX_PAUSE_S, sleep=self._sleep
        )

    def _build_request_error(self, error: Exception, doing: str) -> SourceUnavailable | TryAgain:
        """Return the error of a failed request, or `TryAgain` if a retry after an acceptable pause may succeed."""
        problem, wait_s = self._build_unavailable_error(error, doing), _read_retry_after_s(error)
        if find_http_status(error) in _FINAL_STATUSES:
            return problem
        if wait_s is not None and wait_s > MAX_PAUSE_S:
            return SourceUnavailable(f"{problem}. The server requests a wait of {wait_s:.0f} s")
        return TryAgain(problem, wait_s)

    def _build_unavailable_error(self, error: Exception, doing: str) -> SourceUnavailable:
        place, status = f"{self.name}: {doing}", find_http_status(error)
        if status in _REFUSED_STATUSES:
            return SourceUnavailable(
                f"{place}: HTTP {status}. Check that the key in {self._settings.key_env} ({self._key_name}) is "
                "valid and may read this project"
            )
        if status == _NOT_FOUND:
            return SourceUnavailable(
                f"{place}: HTTP 404. The project or object does not exist, or the key has no access to it"
            )
        if isinstance(error, TimeoutError):
            return SourceUnavailable(f"{place}: no answer within {self._settings.request_deadline_s:g} s")
        return SourceUnavailable(f"{place}: {f'HTTP {status}' if status else type(error).__name__}")


def _find_response(error: BaseException) -> Any:
    """Return the HTTP response in an SDK error, or in an error that the SDK error wraps.

    Return ``None`` if there is no response.
    """
    for cause in (error, error.__cause__, error.__context__):
        response = getattr(cause, "response", None)
        if isinstance(getattr(response, "status_code", None), int):
            return response
    return None


def _read_retry_after_s(error: BaseException) -> float | None:
    """Return the Retry-After header of the response in seconds, or ``None`` if there is no such header."""
    response = _find_response(error)
    return None if response is None else parse_retry_after_s({k.lower(): v for k, v in response.headers.items()})


def find_http_status(error: BaseException) -> int | None:
    """Return the HTTP status of an SDK error or of an error that the SDK error wraps.

    Return ``None`` if there is no status.
    """
    response = _find_response(error)
    if response is not None:
        return int(response.status_code)
    statuses = {"LangSmithNotFoundError": 404, "LangSmithConflictError": 409, "LangSmithAuthError": 401}
    return statuses.get(type(error).__name__)


def _build_client_arguments(settings: LangSmithAccess, key: str) -> dict[str, Any]:
    return {
        "api_url": settings.api_url,
        "api_key": key,
        "timeout_ms": int(settings.request_deadline_s * 1000),
        "workspace_id": settings.workspace_id,
        "disable_prompt_cache": True,
    }


def _import_sdk() -> Any:
    try:
        import langsmith  # an optional extra; 1 s
    except ImportError:
        raise ConfigError(
            "LangSmith needs the extra `langsmith`: pip install 'lookout-monitor[langsmith]'"
        ) from None
    return cast("Any", langsmith)
