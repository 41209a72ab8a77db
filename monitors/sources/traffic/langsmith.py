"""LangSmith by its SDK, an optional extra: root runs and run trees out, scores back. The SDK's only home.

Each root run of a project is a conversation; scores go back to it as feedback. The tree of runs below one says what
an agent did. The asynchronous client starts no thread. We
repeat requests ourselves, so that every wait has a bound: the SDK's own repetition honours any Retry-After.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple, Self, TypeVar, cast

from monitors.errors import ConfigError, SourceUnavailable
from monitors.records.traffic import Conversation, SourceWarning
from monitors.retry import TryAgain, retried
from monitors.sources.settings import TracingSettings
from monitors.sources.traffic.items import LocatedItem, Window, conversations_of
from monitors.sources.traffic.settings import LangSmithTraffic
from monitors.sources.traffic.source import Score

Value = TypeVar("Value")

FEEDBACK: Final = uuid.UUID("5f0c2f9e-0d39-4f5b-9c86-1f6d3f0f6f57")
"""The namespace of feedback ids: run and key give the id, so that a retry writes the same feedback again."""
MOST_PAUSE_S: Final = 8.0
_REFUSED: Final = (401, 403)
_CONFLICT: Final = 409
_MISSING: Final = 404
_SELECTS: Final = ("ID", "TRACE_ID", "START_TIME", "END_TIME", "INPUTS", "OUTPUTS", "LATENCY_SECONDS", "METADATA",
                   "EXTRA", "TAGS", "FEEDBACK_STATS", "THREAD_ID", "STATUS")  # fmt: skip
_TREE_SELECTS: Final = ("ID", "NAME", "RUN_TYPE", "START_TIME", "END_TIME", "INPUTS", "TOTAL_TOKENS", "METADATA",
                        "PARENT_RUN_IDS", "IS_ROOT", "PROJECT_ID")  # fmt: skip
TRACE_PAGE: Final = 100
MOST_RUNS: Final = 2_000
"""Of one trace: a job of a few dozen steps has some hundreds."""
TRACE_POLL_S: Final = 2.0


class LangSmithClient:
    """One project of a LangSmith server. Every failure is a `SourceUnavailable` that names no key."""

    def __init__(
        self,
        client: Any,
        settings: LangSmithTraffic,
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

    @classmethod
    @asynccontextmanager
    async def opened(
        cls,
        settings: LangSmithTraffic,
        key: str,
        sleep: Callable[[float], Awaitable[None]],
        key_name: str = "traffic.key_env",
    ) -> AsyncGenerator[Self]:
        """A client while its ``with`` block lasts; `ConfigError` without the extra."""
        client = _sdk().AsyncClient(retry_config={"max_retries": 1}, **_access(settings, key))
        try:
            yield cls(client, settings, key, sleep, key_name)
        finally:
            await client._langsmith_api.close()  # noqa: SLF001 - aclose() leaves the connections of runs.query open
            await client.aclose()

    async def page(self, earliest: datetime, latest: datetime, cursor: str | None) -> tuple[list[Any], str | None]:
        """Root runs that began from ``earliest`` to ``latest``, as plain JSON, and the next page's cursor."""
        project = await self.project_id()
        given = {"filter": self._settings.filter, "cursor": cursor}

        async def ask() -> Any:
            await self._client.info()  # else a task of the SDK asks for it, and nobody waits for that
            return await self._client.runs.query(
                project_ids=[project],
                is_root=True,
                min_start_time=earliest,
                max_start_time=latest,
                page_size=self._settings.page_size,
                selects=list(_SELECTS),
                **{name: value for name, value in given.items() if value is not None},
            )

        page: Any = await self._tried(ask, "asking for runs")
        found = cast("list[Any]", page.items or [])
        return [run.model_dump(mode="json", warnings=False) for run in found], page.next_cursor or None

    async def trace(self, trace_id: str) -> list[Any]:
        """All runs of a trace in this project, as plain JSON; none while it is not there."""
        project = await self.project_id()
        runs, cursor = list[Any](), None
        while len(runs) < MOST_RUNS:
            page = await self._tried(partial(self._trace_page, project, trace_id, cursor), "asking for a trace")
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

        await self._tried(create_or_update, f"giving {score.key} back")

    def _update(self, feedback_id: uuid.UUID, score: Score) -> None:
        """Update by the plain client: the asynchronous one cannot. Without tracing it has no thread."""
        client = _sdk().Client(auto_batch_tracing=False, **_access(self._settings, self._key))
        try:
            client.update_feedback(feedback_id, score=score.value, comment=score.comment or None)
        finally:
            client.close(timeout=0)

    async def project_id(self) -> str:
        """The project's id; `SourceUnavailable` where there is none of that name, or the key does not see it."""
        if self._project is None:
            found = await self._tried(
                lambda: self._client.read_project(project_name=self._settings.project), "finding the project"
            )
            self._project = str(found.id)
        return self._project

    async def _tried(self, ask: Callable[[], Awaitable[Value]], doing: str) -> Value:
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


def feedback_of(scores: Sequence[Score]) -> tuple[Score, ...]:
    """The last score of each key."""
    return tuple({score.key: score for score in scores}.values())


def _access(settings: LangSmithTraffic, key: str) -> dict[str, Any]:
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


class LangSmithTrafficSource:
    """A `TrafficSource` and `ScoreKeeper` over a LangSmith project. ``key`` is the API key."""

    def __init__(
        self,
        settings: LangSmithTraffic,
        *,
        key: str | None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if not key:
            raise ConfigError(f"traffic.key_env: the environment has no {settings.key_env}, or it is empty")
        self._settings = settings
        self._key = key
        self._sleep = sleep
        self.name = f"LangSmith project {settings.project!r}"

    async def read(self, since: datetime, until: datetime) -> AsyncGenerator[Conversation | SourceWarning]:
        """See `TrafficSource.read`. A run counts when it ended, and for its last turn alone."""
        window, cursor, seen = Window(since, until), None, set[str]()
        earliest = since - timedelta(seconds=self._settings.longest_run_s)
        async with LangSmithClient.opened(self._settings, self._key, self._sleep) as client:
            while True:
                runs, cursor = await client.page(earliest, until, cursor)
                for one in conversations_of(self._placed(runs), self._settings.fields, window):
                    yield one if isinstance(one, SourceWarning) else _last_turn(one)
                if cursor is None:
                    return
                if cursor in seen:
                    raise SourceUnavailable(f"{self.name}: its pages go round in a circle")
                seen.add(cursor)

    async def write_back(self, conversation: Conversation, scores: Sequence[Score]) -> None:
        """See `ScoreKeeper.write_back`."""
        async with LangSmithClient.opened(self._settings, self._key, self._sleep) as client:
            for score in feedback_of(scores):
                await client.give_feedback(conversation.origin_id, score)

    def _placed(self, runs: Sequence[Any]) -> Iterator[LocatedItem]:
        """The ended runs, with the users' feedback where the fields ask for it. Others come another night."""
        for run in runs:
            if run.get("end_time"):
                thumb = self._thumb(run.get("feedback_stats"))
                yield LocatedItem(f"run {run.get('id')}", run | ({"feedback": thumb} if thumb else {}))

    def _thumb(self, stats: Any) -> dict[str, Any]:
        known = cast("dict[str, Any]", stats) if isinstance(stats, dict) else {}
        for key in self._settings.feedback_keys:
            thumbs = cast("dict[str, Any]", known.get(key) or {})
            average = thumbs.get("avg")
            if isinstance(average, int | float) and thumbs.get("n"):
                comments = cast("list[Any]", thumbs.get("comments") or [])
                return {"thumb": average > 0, "comment": comments[0] if comments else ""}
        return {}


class TraceAddress(NamedTuple):
    """Where a trace is, as far as an address of LangSmith's pages says it."""

    trace_id: str | None = None
    project_id: str | None = None


_UUID: Final = r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})"
_IN_PROJECT: Final = re.compile(rf"/projects/p/{_UUID}")
_TRACE: Final = re.compile(rf"(?:[?&](?:trace_id|peek)=|/(?:r|runs)/|^){_UUID}(?=$|[/?&#])")


def trace_address(written: str) -> TraceAddress:
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
        mine = await _configured(self._client.project_id())
        if self._production is None:
            return
        with suppress(SourceUnavailable):
            self._production_id = await self._production.project_id()
        if self._production_id == mine:
            raise ConfigError("langsmith.project and langsmith.production_project lead to one project")

    async def check(self, address: str) -> None:
        """`ConfigError` where a job's trace lies in production's project, or in another than the configured one."""
        place = trace_address(address)
        if place.project_id is None:
            return
        mine = await _configured(self._client.project_id())
        if place.project_id == self._production_id:
            raise ConfigError(_LANDED.format("langsmith.production_project", address[:200]))
        if place.project_id != mine.lower():
            raise ConfigError(_LANDED.format("a project that is not langsmith.project", address[:200]))

    async def runs(self, address: str) -> list[Any]:
        """The runs of a finished job's trace, as plain JSON; none where it is not there within the patience.

        `ConfigError` where it is found in production's project.
        """
        trace_id = trace_address(address).trace_id
        if trace_id is None:
            return []
        left_s = self._patience.patience_s
        while True:
            runs = await self._found(trace_id)
            if _is_whole(runs) or left_s <= 0:
                return runs
            await self._patience.sleep(min(TRACE_POLL_S, left_s))
            left_s -= TRACE_POLL_S

    async def _found(self, trace_id: str) -> list[Any]:
        try:
            runs = await self._client.trace(trace_id)
        except SourceUnavailable:
            return []
        if not runs and self._production is not None and self._production_id is not None:
            with suppress(SourceUnavailable):
                if await self._production.trace(trace_id):
                    raise ConfigError(_LANDED.format("langsmith.production_project", trace_id))
        return runs


_LANDED: Final = (
    "a job's trace lies in {0} ({1}): the application that is asked traces there, so it is production, or set up "
    "like it. The run was stopped; point the application's LANGSMITH_PROJECT at staging's project"
)


def _is_whole(runs: Sequence[Any]) -> bool:
    """Whether a trace has its root, and that has ended: runs are sent in parts."""
    return any(run.get("is_root") and run.get("end_time") for run in runs)


async def _configured(asking: Awaitable[str]) -> str:
    """A project that must be there: without it nobody can say where a trace lies."""
    try:
        return await asking
    except SourceUnavailable as error:
        raise ConfigError(f"[targets.NAME.langsmith]: {error}") from None


class TracePatience(NamedTuple):
    """How long a trace is waited for, and how."""

    patience_s: float
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


def tracing_key(settings: TracingSettings, environment: Mapping[str, str]) -> str:
    """The key that reads a target's traces; `ConfigError` names the variable that should hold it."""
    key = environment.get(settings.key_env)
    if not key:
        raise ConfigError(f"langsmith.key_env: the environment has no {settings.key_env}, or it is empty")
    return key


@asynccontextmanager
async def opened_traces(
    settings: TracingSettings,
    environment: Mapping[str, str],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncGenerator[LangSmithTraces]:
    """The traces of a target while its ``with`` block lasts. `ConfigError` without a key or the project."""
    key = tracing_key(settings, environment)
    elsewhere = settings.production_api_url not in (None, settings.api_url)
    named = None if elsewhere else settings.production_project
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(
                LangSmithClient.opened(settings.access(project), key, sleep, "langsmith.key_env")
            )
            for project in (settings.project, named)
            if project is not None
        ]
        patience = TracePatience(settings.trace_patience_s, sleep)
        traces = LangSmithTraces(clients[0], clients[1] if named is not None else None, patience)
        await traces.prepare()
        yield traces


def _last_turn(conversation: Conversation) -> Conversation:
    return conversation.model_copy(update={"turns": conversation.turns[-1:]})
