"""The platforms that the contract tests use: for each, a local server and the client code under test."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from itertools import count, repeat
from typing import Any, ClassVar

from aiohttp import web

from monitors.platforms.langfuse.client import LangfuseKeys
from monitors.platforms.langfuse.platform import open_langfuse
from monitors.platforms.langfuse.settings import LangfuseSettings
from monitors.platforms.langsmith.project import open_langsmith
from monitors.platforms.platform import Platform
from monitors.platforms.settings import LangSmithSettings
from tests.servers.langfuse import PUBLIC, SECRET, LangfuseServer
from tests.servers.langsmith_experiments import LangSmithExperimentServer
from tests.servers.response_faults import Handler, fated

LANGSMITH_KEY = "lsv2_pt_hush_hush"

Sleep = Callable[[float], Awaitable[None]]


async def no_pause(_seconds: float) -> None:
    """Return at once and let other tasks run, so that a retry does not wait."""
    await asyncio.sleep(0)


class Killed(BaseException):
    """The simulated kill of the process. The tested code does not catch this exception."""


class Backend(ABC):
    """A platform and its local server, for tests that run on any platform.

    Enter the ``with`` block of the server before you use it.
    """

    name: ClassVar[str]
    secrets: ClassVar[tuple[str, ...]]
    server: Any

    @abstractmethod
    def connect(self, sleep: Sleep = no_pause) -> AbstractAsyncContextManager[Platform]:
        """Open the platform as a new process does."""

    @abstractmethod
    def suffer(self, fates: Iterator[str]) -> None:
        """Set the outcomes of the next requests. `LangfuseServer` describes the possible outcomes."""

    @abstractmethod
    def rows(self) -> int:
        """Return the number of experiment runs that the server stores."""

    @abstractmethod
    def scores(self) -> list[tuple[str, float | None, str]]:
        """Return all scores that the server stores, sorted by key, value and comment."""


class LangfuseBackend(Backend):
    """Langfuse with its public API."""

    name = "langfuse"
    secrets = (PUBLIC, SECRET)

    def __init__(self) -> None:
        self.server = LangfuseServer()
        self._seconds = count()

    def settings(self, **changes: Any) -> LangfuseSettings:
        given = {"project": "staging", "production_project": "live", "host": self.server.url}
        return LangfuseSettings.model_validate(given | {"trace_patience_s": 20} | changes)

    def connect(self, sleep: Sleep = no_pause, **changes: Any) -> AbstractAsyncContextManager[Platform]:
        return open_langfuse(self.settings(**changes), LangfuseKeys(PUBLIC, SECRET), self.now, sleep)

    def suffer(self, fates: Iterator[str]) -> None:
        self.server.fates = fates

    def rows(self) -> int:
        return len(self.server.spans)

    def scores(self) -> list[tuple[str, float | None, str]]:
        stored = self.server.scores.values()
        return sorted(
            (one["name"], one["value"] if one["dataType"] == "NUMERIC" else None, one["comment"] or "")
            for one in stored
        )

    def now(self) -> datetime:
        return datetime(2026, 11, 23, 9, tzinfo=UTC) + timedelta(seconds=next(self._seconds))


class FatedLangSmith(LangSmithExperimentServer):
    """A LangSmith server whose requests have the outcomes that the test plans."""

    def __init__(self) -> None:
        super().__init__(key=LANGSMITH_KEY)
        self.fates: Iterator[str] = repeat("ok")

    @property
    def _watched(self) -> Any:
        known = super()._watched

        @web.middleware
        async def watched(request: web.Request, handler: Handler) -> web.StreamResponse:
            async def answered(asked: web.Request) -> web.StreamResponse:
                return await known(asked, handler)

            return await fated(next(self.fates), request, answered, closing=self.closing, text=LANGSMITH_KEY)

        return watched


class LangSmithBackend(Backend):
    """LangSmith with its SDK."""

    name = "langsmith"
    secrets = (LANGSMITH_KEY,)

    def __init__(self) -> None:
        self.server = FatedLangSmith()

    def connect(self, sleep: Sleep = no_pause) -> AbstractAsyncContextManager[Platform]:
        settings = LangSmithSettings.model_validate({"project": "bot", "api_url": self.server.url})
        return open_langsmith(settings, LANGSMITH_KEY, sleep)

    def suffer(self, fates: Iterator[str]) -> None:
        self.server.fates = fates

    def rows(self) -> int:
        return len(self.server.runs)

    def scores(self) -> list[tuple[str, float | None, str]]:
        stored = self.server.feedback.values()
        return sorted((one["key"], one.get("score"), one.get("comment") or "") for one in stored)


BACKENDS: tuple[type[Backend], ...] = (LangfuseBackend, LangSmithBackend)
