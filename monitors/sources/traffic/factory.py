"""Build a traffic source from its settings. The caller provides the environment and the browser."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import assert_never

from monitors.request_headers import RequestHeaders, build_request_headers
from monitors.sources.traffic.files import FileTrafficSource, ParquetReader
from monitors.sources.traffic.http_export import HttpTrafficSource
from monitors.sources.traffic.langsmith import LangSmithTrafficSource
from monitors.sources.traffic.pages import PageTrafficSource, ScriptRunner
from monitors.sources.traffic.settings import (
    FileTraffic,
    HttpTraffic,
    LangSmithTraffic,
    PageTraffic,
    TrafficSettings,
)
from monitors.sources.traffic.source import TrafficSource


def build_traffic_source(
    settings: TrafficSettings,
    environment: Mapping[str, str],
    open_browser: Callable[[PageTraffic], AbstractAsyncContextManager[ScriptRunner]],
    parquet: ParquetReader,
) -> TrafficSource:
    """Return the source that the settings describe; `ConfigError` names a missing environment variable.

    ``open_browser`` is called for ``kind = "page"`` only, once for each reading; ``parquet`` for each
    file of that format.
    """
    match settings:
        case FileTraffic():
            return FileTrafficSource(settings, parquet, headers=_build_headers(settings, environment))
        case HttpTraffic():
            return HttpTrafficSource(settings, headers=_build_headers(settings, environment))
        case LangSmithTraffic():
            return LangSmithTrafficSource(settings, key=environment.get(settings.key_env))
        case PageTraffic():
            return PageTrafficSource(settings, lambda: open_browser(settings))
        case _:
            assert_never(settings)


def _build_headers(settings: FileTraffic | HttpTraffic, environment: Mapping[str, str]) -> RequestHeaders:
    return build_request_headers(
        settings.headers if isinstance(settings, HttpTraffic) else {},
        environment,
        key="traffic.headers",
        token_variable=settings.token_env,
        bearer_key="traffic.token_env",
    )
