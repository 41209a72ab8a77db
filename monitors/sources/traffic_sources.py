"""Settings to a live source of traffic. The environment and the browser are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import assert_never

from monitors.errors import ConfigError
from monitors.sources.file_traffic import FileTrafficSource
from monitors.sources.http_traffic import HttpTrafficSource
from monitors.sources.langsmith_traffic import LangSmithTrafficSource
from monitors.sources.page_traffic import PageTrafficSource, ScriptRunner
from monitors.sources.traffic import TrafficSource
from monitors.sources.traffic_settings import (
    FileTraffic,
    HttpTraffic,
    LangSmithTraffic,
    PageTraffic,
    TrafficSettings,
)


def traffic_source(
    settings: TrafficSettings,
    environment: Mapping[str, str],
    open_browser: Callable[[PageTraffic], AbstractAsyncContextManager[ScriptRunner]],
) -> TrafficSource:
    """The source that the settings describe; `ConfigError` names the environment variable that it lacks.

    ``open_browser`` is called for ``kind = "page"`` alone, once for each reading.
    """
    match settings:
        case FileTraffic():
            return FileTrafficSource(settings, token=_secret(settings.token_env, environment))
        case HttpTraffic():
            return HttpTrafficSource(settings, token=_secret(settings.token_env, environment))
        case LangSmithTraffic():
            return LangSmithTrafficSource(settings, key=environment.get(settings.key_env))
        case PageTraffic():
            return PageTrafficSource(settings, lambda: open_browser(settings))
        case _:
            assert_never(settings)


def _secret(name: str | None, environment: Mapping[str, str]) -> str | None:
    if name is None:
        return None
    secret = environment.get(name)
    if not secret:
        raise ConfigError(f"traffic.token_env: the environment has no {name}, or it is empty")
    return secret
