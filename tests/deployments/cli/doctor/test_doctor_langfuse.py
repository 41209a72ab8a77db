"""`lookout doctor` asks Langfuse whose keys it was given, and says it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from deployments.cli.doctor.services import DoctorContext, Health, langfuse
from monitors.config.file import parse_config
from tests.servers.langfuse import PUBLIC, SECRET, LangfuseServer

KEYS = {"LANGFUSE_PUBLIC_KEY": PUBLIC, "LANGFUSE_SECRET_KEY": SECRET}
ROWS: list[tuple[dict[str, Any] | None, dict[str, str], str, list[tuple[Health, str]]]] = [
    (None, {}, "ok", []),
    (
        {"project": "staging", "production_project": "live"},
        KEYS,
        "ok",
        [(Health.GOOD, "the keys belong to 'staging', apart from production's")],
    ),
    ({"project": "staging"}, KEYS, "ok", [(Health.DOUBTFUL, "production's project is not named")]),
    ({"project": "staging"}, {}, "ok", [(Health.BROKEN, "langfuse.public_key_env: the environment has no")]),
    (
        {"project": "eval", "production_project": "staging"},
        KEYS,
        "ok",
        [(Health.BROKEN, "those of production's project 'staging'")],
    ),
    ({"project": "staging"}, KEYS, "400", [(Health.BROKEN, "asking which project the keys belong to: HTTP 400")]),
]


@pytest.fixture
def server() -> Iterator[LangfuseServer]:
    with LangfuseServer() as started:
        yield started


@pytest.mark.parametrize(("table", "environment", "fate", "expected"), ROWS)
def test_the_keys_project_is_asked_for(
    server: LangfuseServer,
    table: dict[str, Any] | None,
    environment: dict[str, str],
    fate: str,
    expected: list[tuple[Health, str]],
) -> None:
    """What is wrong with keys and projects is known before a run, by their names."""
    server.fates = repeat(fate)
    values: dict[str, Any] = {"targets": {"bot": {"url": "https://staging.acme.example", "suite": "s"}}}
    if table is not None:
        values["langfuse"] = table | {"host": server.url}
    around = DoctorContext(Path("lookout.toml"), parse_config(values, "here"), environment, datetime.now(UTC))
    seen = langfuse(around)
    assert [one.health for one in seen] == [health for health, _text in expected]
    assert all(text in one.found for one, (_health, text) in zip(seen, expected, strict=True)), seen
    assert not [one for one in seen if "sk-lf" in one.found]
