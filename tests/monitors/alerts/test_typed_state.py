"""Test that incidents, alerts and observations change only through their own methods, which are type-checked."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.conftest import ROOT

FOLDERS = ("monitors/alerts", "flows/alerting")
OF_OTHER_RECORDS = {"monitors/alerts/slack/client.py": 3}
"""The number of untyped updates that a file may have: updates of a Slack message or settings, not stored state."""


def untyped_updates(source: str) -> Iterator[int]:
    """Yield the line numbers where a record is changed with a dictionary or created without validation."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        is_update = name == "model_copy" and any(keyword.arg == "update" for keyword in node.keywords)
        dumped = (keyword.value for keyword in node.keywords if keyword.arg is None)
        is_dump = any(
            isinstance(value, ast.Call) and ast.unparse(value.func).endswith(".model_dump") for value in dumped
        )
        if is_update or is_dump or name == "model_construct":
            yield node.lineno


def test_untyped_updates_are_found():
    assert list(
        untyped_updates("a.model_copy(update={})\nA.model_construct(b=1)\nA(**a.model_dump())\na.model_copy()")
    ) == [1, 2, 3]


def test_alerting_changes_no_record_by_a_dictionary():
    counts = {
        str(path.relative_to(ROOT)): len(lines)
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (lines := list(untyped_updates(path.read_text(encoding="utf-8"))))
    }
    assert counts == OF_OTHER_RECORDS
