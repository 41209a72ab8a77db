"""`lookout doctor` requires a separate key and project for evaluations in LangSmith.

The check sends no request.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from deployments.cli.doctor.services import DoctorContext, Health, check_tracing
from monitors.config.file import parse_config

BOT: dict[str, Any] = {"url": "https://staging.acme.example", "suite": "s"}
SEPARATE = {"project": "bot", "production_project": "bot-prod", "production_key_env": "PROD_KEY"}
KEYS = {"LANGSMITH_API_KEY": "lsv2_staging_hush", "PROD_KEY": "lsv2_prod_hush"}


def found(
    target: dict[str, Any], common: dict[str, Any] | None, environment: dict[str, str]
) -> list[tuple[str, str]]:
    """Return the health and the text of each check for the given settings and environment."""
    values = {"targets": {"bot": BOT | target}} | ({} if common is None else {"langsmith": common})
    around = DoctorContext(Path("lookout.toml"), parse_config(values, "here"), environment, datetime.now(UTC))
    checks = check_tracing(around)
    assert all(one.to_do for one in checks if one.health is not Health.GOOD)
    return [(one.health.word, f"{one.name}: {one.found}") for one in checks]


WRITES = {"experiments": "langsmith:gold"}
ROWS: list[tuple[dict[str, Any], dict[str, Any] | None, dict[str, str], list[str]]] = [
    ({}, None, {}, []),
    ({}, SEPARATE, KEYS, ["ok"]),
    ({}, SEPARATE, {"LANGSMITH_API_KEY": "x"}, ["ok"]),
    ({}, SEPARATE, {}, ["broken"]),
    ({}, {"project": "bot"}, KEYS, ["check"]),
    (WRITES, None, KEYS, ["check"]),
    ({}, {"project": "bot", "production_project": "bot-prod"}, KEYS, ["check"]),
    (WRITES, SEPARATE, KEYS | {"PROD_KEY": KEYS["LANGSMITH_API_KEY"]}, ["broken", "broken"]),
    ({"langsmith": {"key_env": "OWN_KEY"}}, SEPARATE, KEYS, ["ok", "broken"]),
]


@pytest.mark.parametrize(("target", "common", "environment", "expected"), ROWS)
def test_keys_and_projects_are_asked_for_apart(
    target: dict[str, Any],
    common: dict[str, Any] | None,
    environment: dict[str, str],
    expected: list[str],
    snapshot: SnapshotAssertion,
) -> None:
    checks = found(target, common, environment)
    assert [health for health, _ in checks] == expected
    assert "hush" not in str(checks)
    assert [text for _, text in checks] == snapshot
