"""One project of LangSmith by its SDK, an optional extra: root runs and run trees out, scores back.

The asynchronous client starts no thread. We repeat requests ourselves, so that every wait has a bound: the SDK's
own repetition honours any Retry-After.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple, Self, TypeVar, cast

from monitors.errors import ConfigError, SourceUnavailable
from monitors.platforms.platform import Score
from monitors.records.base import Record
from monitors.retry import TryAgain, retried

Value = TypeVar("Value")

FEEDBACK: Final = uuid.UUID("5f0c2f9e-0d39-4f5b-9c86-1f6d3f0f6f57")
"""The namespace of feedback ids: run and key give the id, so that a retry writes the same feedback again."""
MOST_PAUSE_S: Final = 8.0
_REFUSED: Final = (401, 403)
_CONFLICT: Final = 409
_MISSING: Final = 404
_SELECTS: Final = ("ID", "TRACE_ID", "START_TIME", "END_TIME", "INPUTS", "OUTPUTS", "LATENCY_SECONDS", "METADATA",
                   "EXTRA", "TAGS", "FEEDBACK_STATS", "THREAD_ID", "STATUS")  # fmt: skip
_TREE_SELECTS: Final = ("ID", "NAME", "RUN_TYPE", "START_TIME", "END_TIME", "INPUTS", "OUTPUTS", "TOTAL_TOKENS", "METADATA",
                        "PARENT_RUN_IDS", "IS_ROOT", "PROJECT_ID")  # fmt: skip
TRACE_PAGE: Final = 100
MOST_RUNS: Final = 2_000
"""Of one trace: a job of a few dozen steps has some hundreds."""


class LangSmithAccess(Record):
    """One project, and how it is reached. The key itself is never in it."""

    project: str
    api_url: str
    key_env: str
    """The environment variable with the key, for messages."""
    workspace_id: str | None = None
    request_deadline_s: float
    attempts: int = 3
    """Tries for each request."""


class RootRuns(NamedTuple):
    """Which root runs are asked for: those that began from ``earliest`` to ``latest``."""

    earliest: datetime
    latest: datetime
    page_size: int
    filter: str | None = None
    """In LangSmith's language."""


class LangSmithClient:
    """One project of a LangSmith server. Every failure is a `SourceUnavailable` that names no key."""

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
        self._project: str | None = None
        self._plain: Any = None

    @classmethod
    @asynccontextmanager
    async def opened(
        cls,
        settings: LangSmithAccess,
        key: str,
        sleep: Callable[[float], Awaitable[None]],
        key_name: str = "traffic.key_env",
    ) -> AsyncGenerator[Self]:
        """A client while its ``with`` block lasts; `ConfigError` without the extra."""
        client = _sdk().AsyncClient(retry_config={"max_retries": 1}, **_access(settings, key))
        made = cls(client, settings, key, sleep, key_name)
        try:
            yield made
        finally:
            made.close_plain()
            await client._langsmith_api.close()  # noqa: SLF001 - aclose() leaves the connections of runs.query open
            await client.aclose()

    @property
    def sdk(self) -> Any:
        """The SDK's asynchronous client, for calls inside `tried`."""
        return self._client

    @property
    def plain(self) -> Any:
        """The SDK's plain client, for what the asynchronous one cannot; it blocks, and without tracing has no thread."""
        if self._plain is None:
            plain, access = _sdk().Client, _access(self._settings, self._key)
            never = _sdk().utils.LangSmithRetry(0)  # else urllib3 asks again by itself
            self._plain = plain(auto_batch_tracing=False, retry_config=never, **access)
        return self._plain

    def close_plain(self) -> None:
        """Close the plain client, if it was used."""
        if self._plain is not None:
            self._plain.close(timeout=0)

    async def page(self, window: RootRuns, cursor: str | None) -> tuple[list[Any], str | None]:
        """The next root runs, as plain JSON, and the cursor of the page after them."""
        project = await self.project_id()
        given = {"filter": window.filter, "cursor": cursor}

        async def ask() -> Any:
            await self._client.info()  # else a task of the SDK asks for it, and nobody waits for that
            return await self._client.runs.query(
                project_ids=[project],
                is_root=True,
                min_start_time=window.earliest,
                max_start_time=window.latest,
                page_size=window.page_size,
                selects=list(_SELECTS),
                **{name: value for name, value in given.items() if value is not None},
            )

        page: Any = await self.tried(ask, "asking for runs")
        found = cast("list[Any]", page.items or [])
        return [run.model_dump(mode="json", warnings=False) for run in found], page.next_cursor or None

    async def trace(self, trace_id: str) -> list[Any]:
        """All runs of a trace in this project, as plain JSON; none while it is not there."""
        project = await self.project_id()
        runs, cursor = list[Any](), None
        while len(runs) < MOST_RUNS:
            page = await self.tried(partial(self._trace_page, project, trace_id, cursor), "asking for a trace")
            found = cast("list[Any]", page.items or [])
            runs += [run.model_dump(mode="json", warnings=False) for run in found]
            cursor = page.next_cursor or None
            if cursor is None:
                break
        return runs

    async def _trace_page(self, project: str, trace_id: str, cursor: str | None) -> Any:
        await self._client.info()  # as above
        given: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
        selects = list(_TREE_SELECTS)
        return await self._client.runs.query(
            project_ids=[project], trace_id=trace_id, page_size=TRACE_PAGE, selects=selects, **given
        )

    async def give_feedback(self, run_id: str, score: Score) -> None:
        """Store a score beside a run, once: the same again changes nothing, another value replaces it."""
        project, feedback_id = await self.project_id(), uuid.uuid5(FEEDBACK, f"{run_id}/{score.key}")

        async def create() -> None:
            await self._client.create_feedback(
                run_id=run_id,
                key=score.key,
                score=score.value,
                comment=score.comment or None,
                feedback_id=feedback_id,
                session_id=project,
                stop_after_attempt=1,
            )

        async def update() -> None:
            await asyncio.to_thread(self._update, feedback_id, score)

        async def create_or_update() -> None:
            try:
                await create()
            except Exception as error:
                if status_of(error) != _CONFLICT:
                    raise
                await update()

        await self.tried(create_or_update, f"giving {score.key} back")

    def _update(self, feedback_id: uuid.UUID, score: Score) -> None:
        self.plain.update_feedback(feedback_id, score=score.value, comment=score.comment or None)

    async def project_id(self) -> str:
        """The project's id; `SourceUnavailable` where there is none of that name, or the key does not see it."""
        if self._project is None:
            found = await self.tried(
                lambda: self._client.read_project(project_name=self._settings.project), "finding the project"
            )
            self._project = str(found.id)
        return self._project

    async def tried(self, ask: Callable[[], Awaitable[Value]], doing: str) -> Value:
        """What ``ask`` returns, asked again after trouble that may pass; `SourceUnavailable` says what failed."""

        async def once() -> Value:
            try:
                async with asyncio.timeout(self._settings.request_deadline_s):
                    return await ask()
            except Exception as error:  # noqa: BLE001 - the SDK raises of three families, and they quote keys
                problem = self._unavailable(error, doing)
                final = status_of(error) in (400, *_REFUSED, _MISSING, 422)
                raise (problem if final else TryAgain(problem)) from None

        tries = self._settings.attempts
        return await retried(once, tries=tries, first_pause_s=1.0, most_pause_s=MOST_PAUSE_S, sleep=self._sleep)

    def _unavailable(self, error: Exception, doing: str) -> SourceUnavailable:
        where, status = f"LangSmith project {self._settings.project!r}: {doing}", status_of(error)
        if status in _REFUSED:
            return SourceUnavailable(
                f"{where}: HTTP {status}; is the key in {self._settings.key_env} ({self._key_name}) still "
                "valid, and may it read this project?"
            )
        if status == _MISSING:
            return SourceUnavailable(f"{where}: there is none of that name, or the key does not see it")
        if isinstance(error, TimeoutError):
            return SourceUnavailable(f"{where}: no answer within {self._settings.request_deadline_s:g} s")
        return SourceUnavailable(f"{where}: {f'HTTP {status}' if status else type(error).__name__}")


def status_of(error: BaseException) -> int | None:
    """The HTTP status behind an error of the SDK, however it is wrapped."""
    for one in (error, error.__cause__, error.__context__):
        response = getattr(one, "response", None)
        status = getattr(response, "status_code", None)
        if isinstance(status, int):
            return status
    named = {"LangSmithNotFoundError": 404, "LangSmithConflictError": 409, "LangSmithAuthError": 401}
    return named.get(type(error).__name__)


def _access(settings: LangSmithAccess, key: str) -> dict[str, Any]:
    return {
        "api_url": settings.api_url,
        "api_key": key,
        "timeout_ms": int(settings.request_deadline_s * 1000),
        "workspace_id": settings.workspace_id,
        "disable_prompt_cache": True,
    }


def _sdk() -> Any:
    try:
        import langsmith  # an optional extra; 1 s
    except ImportError:
        raise ConfigError(
            "LangSmith needs the extra of that name: pip install 'lookout-monitor[langsmith]'"
        ) from None
    return cast("Any", langsmith)
