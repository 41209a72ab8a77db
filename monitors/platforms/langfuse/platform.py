"""Implement `Platform` for a Langfuse project."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import NamedTuple

from monitors.platforms.langfuse.client import LangfuseClient, LangfuseKeys, Sleep
from monitors.platforms.langfuse.datasets import LangfuseDatasets
from monitors.platforms.langfuse.experiments import LangfuseExperiments
from monitors.platforms.langfuse.settings import LangfuseSettings
from monitors.platforms.langfuse.traces import LangfuseTraces


class LangfusePlatform(NamedTuple):
    """An open Langfuse project."""

    name: str
    datasets: LangfuseDatasets
    experiments: LangfuseExperiments
    traces: LangfuseTraces


@asynccontextmanager
async def open_langfuse(
    settings: LangfuseSettings,
    keys: LangfuseKeys,
    now: Callable[[], datetime],
    sleep: Sleep = asyncio.sleep,
) -> AsyncGenerator[LangfusePlatform]:
    """Open the configured project. Raises `ConfigError` for keys of another project or of production."""
    async with LangfuseClient.connect(settings, keys, sleep) as client:
        yield LangfusePlatform(
            name=client.place,
            datasets=LangfuseDatasets(client),
            experiments=LangfuseExperiments(client, now, sleep),
            traces=LangfuseTraces(client, settings.trace_patience_s, sleep),
        )
