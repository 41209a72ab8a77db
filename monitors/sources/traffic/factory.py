"""Build the conversation source that the settings describe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import assert_never

from monitors.address_guard import AddressGuard
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
    *,
    allowed_origins: Sequence[str] = (),
    private_network: bool = False,
) -> TrafficSource:
    """Return the configured source. Raises `ConfigError`, which names a missing environment variable.

    ``open_browser`` is called only for ``kind = "page"``, once each time the source is read. ``parquet`` reads
    Parquet files. ``allowed_origins`` and ``private_network`` are settings of the target that allow internal
    addresses for files and exports.
    """

    def build_guard(*addresses: str) -> AddressGuard:
        web = (address for address in addresses if address.startswith(("http://", "https://")))
        return AddressGuard([*web, *allowed_origins], private_network=private_network)

    match settings:
        case FileTraffic():
            headers = _build_headers(settings, environment)
            return FileTrafficSource(settings, parquet, headers=headers, guard=build_guard(*settings.at))
        case HttpTraffic():
            headers = _build_headers(settings, environment)
            return HttpTrafficSource(settings, headers=headers, guard=build_guard(settings.url))
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
