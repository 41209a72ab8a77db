"""Test that a JSON path gives the value at that path in parsed JSON, and no other value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.json_path import collect_items, collect_sources, collect_values, join_text_parts

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
    assert collect_values(CHAT, path) == expected


NAMED = [
    ([], ()),
    (None, ()),
    ([None, "", " ", False], ()),
    (["null", "N/A", "[]", "-"], ()),
    ({"title": ""}, ()),
    ({"score": 0.4, "cited": True}, ()),
    ([{}], ()),
    ("customs", ("customs",)),
    ([["customs"], ["tariff"]], ("customs", "tariff")),
    ([7], ("7",)),
    ({"title": "Customs", "url": "https://a.example"}, ("Customs (https://a.example)",)),
    ({"title": "https://a.example", "url": "https://a.example"}, ("https://a.example",)),
    ({"type": "url_citation", "url_citation": {"url": "https://a.example"}}, ("https://a.example",)),
    ({"content": "Goods pay duty.", "score": 1}, ("Goods pay duty.",)),
    ({"clause": "4.2", "policy": "Gold"}, ('{"clause": "4.2", "policy": "Gold"}',)),
    ({"1": {"title": "Customs"}, "2": {"title": "Tariff"}}, ("Customs", "Tariff")),
]


@pytest.mark.parametrize(("said", "named"), NAMED, ids=[str(said) for said, _ in NAMED])
def test_a_named_source_is_read_and_an_unnamed_one_is_not(said: Any, named: tuple[str, ...]) -> None:
    assert collect_sources({"sources": said}, "sources") == named


PARTS = [
    ("24 months", "24 months"),
    ([], ""),
    ([{"type": "text", "text": "24 "}, {"type": "text", "text": "months"}, {"type": "image"}], "24 months"),
    ({"cause": "a race"}, '{"cause": "a race"}'),
]


@pytest.mark.parametrize(("said", "text"), PARTS, ids=[str(said) for said, _ in PARTS])
def test_a_text_in_parts_is_one_text(said: Any, text: str) -> None:
    assert join_text_parts(said) == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab0.", max_size=2), inner, max_size=3),
    max_leaves=10,
)


@given(JSON, st.text("ab01-.*", max_size=12))
def test_any_path_into_any_document_is_taken(document: Any, path: str) -> None:
    assert isinstance(collect_values(document, path), list)


@given(st.lists(JSON, max_size=4))
def test_a_list_and_all_of_its_items_are_the_same(items: list[Any]) -> None:
    """The paths ``sources`` and ``sources.*`` give the same items and sources. An item is never a list or null."""
    document = {"sources": items}
    assert collect_items(document, "sources") == collect_items(document, "sources.*")
    assert collect_sources(document, "sources") == collect_sources(document, "sources.*")
    assert not any(item is None or isinstance(item, list) for item in collect_items(document, "sources"))
    assert all(name.strip() for name in collect_sources(document, "sources"))
