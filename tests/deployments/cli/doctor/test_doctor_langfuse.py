"""Tests that `lookout doctor` asks Langfuse to which project the keys belong."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from deployments.cli.doctor.services import DoctorContext, Health, check_langfuse
from monitors.config.file import parse_config
from tests.servers.langfuse import PUBLIC, SECRET, LangfuseServer
from tests.stable_text import replace_volatile

KEYS = {"LANGFUSE_PUBLIC_KEY": PUBLIC, "LANGFUSE_SECRET_KEY": SECRET}
ROWS: list[tuple[dict[str, Any] | None, dict[str, str], str, list[Health]]] = [
    (None, {}, "ok", []),
    ({"project": "staging", "production_project": "live"}, KEYS, "ok", [Health.GOOD]),
    ({"project": "staging"}, KEYS, "ok", [Health.DOUBTFUL]),
    ({"project": "staging"}, {}, "ok", [Health.BROKEN]),
    ({"project": "eval", "production_project": "staging"}, KEYS, "ok", [Health.BROKEN]),
    ({"project": "staging"}, KEYS, "400", [Health.BROKEN]),
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
    expected: list[Health],
    *,
    snapshot: SnapshotAssertion,
) -> None:
    """The doctor reports wrong keys and wrong projects by name, before any run."""
    server.fates = repeat(fate)
    values: dict[str, Any] = {"targets": {"bot": {"url": "https://staging.acme.example", "suite": "s"}}}
    if table is not None:
        values["langfuse"] = table | {"host": server.url}
    around = DoctorContext(Path("lookout.toml"), parse_config(values, "here"), environment, datetime.now(UTC))
    checks = check_langfuse(around)
    assert [check.health for check in checks] == expected
    assert not [check for check in checks if "sk-lf" in check.found]
    assert [replace_volatile(check.found) for check in checks] == snapshot
