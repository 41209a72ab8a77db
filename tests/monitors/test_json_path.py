"""Paths lead to what stands there in parsed JSON, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.json_path import values_at

CHAT = {"choices": [{"message": {"content": "24 months"}}], "sources": [{"title": "P-100"}, {"title": "P-200"}]}

PATHS = [
    ("choices.0.message.content", ["24 months"]),
    ("sources.*.title", ["P-100", "P-200"]),
    ("sources.-1.title", ["P-200"]),
    ("sources.7.title", []),
    ("choices.first", []),
    ("nowhere.at.all", []),
    ("", [CHAT]),
    ("sources." + "9" * 5_000, []),
]


@pytest.mark.parametrize(("path", "expected"), PATHS, ids=[path[:30] or "root" for path, _ in PATHS])
def test_a_path_leads_to_its_values(path: str, expected: list[Any]) -> None:
    assert values_at(CHAT, path) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab0.", max_size=2), inner, max_size=3),
    max_leaves=10,
)


@given(JSON, st.text("ab01-.*", max_size=12))
def test_any_path_into_any_document_is_taken(document: Any, path: str) -> None:
    assert isinstance(values_at(document, path), list)
