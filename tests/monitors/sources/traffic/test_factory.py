"""Test that traffic settings are chosen by their kind, contain no secret, and create the source they describe."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from monitors.errors import ConfigError
from monitors.sources.traffic.factory import build_traffic_source
from monitors.sources.traffic.pages import ScriptRunner
from monitors.sources.traffic.settings import (
    Fields,
    FileTraffic,
    HttpTraffic,
    LangSmithTraffic,
    PageSelectors,
    PageTraffic,
    TrafficSettings,
)
from warehouse.database.parquet import iterate_parquet_batches

SETTINGS: TypeAdapter[Any] = TypeAdapter(TrafficSettings)
MODELS: list[type[BaseModel]] = [FileTraffic, HttpTraffic, LangSmithTraffic, PageTraffic, PageSelectors, Fields]

KINDS: list[tuple[dict[str, Any], str]] = [
    ({"kind": "file", "at": "logs/*.jsonl"}, "logs/*.jsonl"),
    (
        {"kind": "http", "url": "https://bot.example/export?key=hush", "token_env": "TOKEN"},
        "https://bot.example/export",
    ),
    ({"kind": "langsmith", "project": "bot", "key_env": "TOKEN"}, "LangSmith project 'bot'"),
    ({"kind": "page", "url": "https://bot.example/chats?key=hush"}, "https://bot.example/chats"),
]


def no_browser(_settings: PageTraffic) -> AbstractAsyncContextManager[ScriptRunner]:
    raise AssertionError("nobody reads a page here")


@pytest.mark.parametrize(("given", "name"), KINDS, ids=[given["kind"] for given, _ in KINDS])
def test_each_kind_becomes_its_source_and_its_name_holds_no_secret(given: dict[str, Any], name: str) -> None:
    assert (
        build_traffic_source(
            SETTINGS.validate_python(given), {"TOKEN": "hush"}, no_browser, iterate_parquet_batches
        ).name
        == name
    )


@pytest.mark.parametrize("environment", [{}, {"TOKEN": ""}])
@pytest.mark.parametrize(
    "given",
    [
        {"kind": "file", "at": "https://x.example/a.jsonl", "token_env": "TOKEN"},
        {"kind": "http", "url": "https://x.example", "token_env": "TOKEN"},
        {"kind": "langsmith", "project": "bot", "key_env": "TOKEN"},
    ],
    ids=lambda given: given.get("kind", ""),
)
def test_a_secret_that_is_not_there_is_a_config_error(given: dict[str, Any], environment: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"traffic\.(token|key)_env: .*TOKEN"):
        build_traffic_source(SETTINGS.validate_python(given), environment, no_browser, iterate_parquet_batches)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_setting_is_described_closed_and_frozen(model: type[BaseModel]) -> None:
    undescribed = [name for name, field in model.model_fields.items() if not field.description and name != "kind"]
    assert undescribed == []
    assert (model.model_config.get("frozen"), model.model_config.get("extra")) == (True, "forbid")


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "ftp"},
        {"kind": "file", "at": []},
        {"kind": "http", "url": "https://x.example", "token": "hush"},
        {"kind": "http", "url": "ftp://x.example"},
        {"kind": "langsmith", "project": "bot", "key_env": "lsv2-hush"},
    ],
)
def test_oversized_input_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SETTINGS.validate_python(given)
