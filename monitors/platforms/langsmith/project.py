"""Implement `Platform` for LangSmith: one workspace, accessed with one key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from monitors.platforms.langsmith.client import LangSmithClient
from monitors.platforms.langsmith.datasets import LangSmithDatasets
from monitors.platforms.langsmith.experiments import LangSmithExperiments
from monitors.platforms.langsmith.traces import LangSmithTraces, TracePatience
from monitors.platforms.settings import LangSmithSettings


class LangSmithPlatform:
    """An open LangSmith workspace.

    The datasets and experiments are those of the whole workspace, and the traces are those of the configured
    project.
    """

    def __init__(self, client: LangSmithClient, patience: TracePatience) -> None:
        self.name = client.name
        self.datasets = LangSmithDatasets(client)
        self.experiments = LangSmithExperiments(client)
        self.traces = LangSmithTraces(client, None, patience)


@asynccontextmanager
async def open_langsmith(
    settings: LangSmithSettings, key: str, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> AsyncGenerator[LangSmithPlatform]:
    """Open LangSmith. Raises `ConfigError` if the package of LangSmith is not installed."""
    opening = LangSmithClient.connect(settings.build_access(settings.project), key, sleep, "langsmith.key_env")
    async with opening as client:
        yield LangSmithPlatform(client, TracePatience(settings.request_deadline_s, sleep))
