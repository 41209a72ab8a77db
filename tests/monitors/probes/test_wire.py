"""Test that the text the app sent is read from JSON, JSON lines and event streams, even if the page hides it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from monitors.errors import PageNotUnderstood
from monitors.probes.wire import WireRule, parse_documents, read_payload
from monitors.records.exchanges import Channel
from tests.monitors.probes.conftest import MakeDriver, shares_browser
from tests.zoo.server import reply

CHAT = {"choices": [{"message": {"content": "24 months"}}], "sources": [{"title": "P-100"}, {"title": "P-200"}]}

BODIES = [
    ("json", json.dumps({"t": "24 months"}), True, "24 months"),
    (
        "tokens in an event stream",
        'data: {"t": "24 "}\n\ndata: {"t": "months"}\n\ndata: [DONE]\n\n',
        True,
        "24 months",
    ),
    ("growing text", 'event: generating\ndata: {"t": "24"}\n\ndata: {"t": "24 months"}\n\n', False, "24 months"),
    ("data over two lines", 'data: {"t":\ndata: "24 months"}\n\n', True, "24 months"),
    ("windows line ends", 'data: {"t": "24 "}\r\n\r\ndata: {"t": "months"}\r\n\r\n', True, "24 months"),
    ("json lines", '{"t": "24 "}\n\nnot json\n{"t": "months"}\n', True, "24 months"),
]


@pytest.mark.parametrize(("body", "joins", "text"), [row[1:] for row in BODIES], ids=[row[0] for row in BODIES])
def test_a_body_gives_its_text(body: str, joins: bool, text: str) -> None:
    payload = read_payload(WireRule(url="/chat", text="t", joins=joins), "http://x/chat", body)
    assert payload is not None
    assert payload.text == text


def test_a_path_that_leads_nowhere_is_no_empty_answer() -> None:
    assert read_payload(WireRule(url="/chat", text="answer"), "http://x/chat", '{"t": "24 months"}') is None


@pytest.mark.whole_only
@given(st.text())
def test_no_body_is_too_strange(body: str) -> None:
    assert isinstance(parse_documents(body), list)
    read_payload(WireRule(url="x", text="a.0.*"), "x", body)


def test_deep_input_is_passed_over() -> None:
    assert parse_documents("[" * 100_000) == []


def test_a_bad_pattern_is_named() -> None:
    with pytest.raises(ValidationError, match="not a valid regular expression"):
        WireRule(url="(")


RULE = {
    "url": r"/chat$",
    "text": "reply.text",
    "citations": "sources.*.title",
    "app_path": "model",
    "latency_ms": "ms",
}


@shares_browser
async def test_shown_and_sent_text_are_both_stored(zoo: str, driver_for: MakeDriver) -> None:
    async with driver_for(f"{zoo}/clock.html", wire=RULE) as driver:
        answer = await driver.ask(("first", "second"))
    assert answer.visible_text == reply("second")
    assert answer.wire is not None
    assert answer.wire.text == reply("second")
    assert answer.wire.citations == ("P-100 §4",)
    assert (answer.wire.app_path, answer.app_path, answer.wire.app_latency_ms) == ("primary", "primary", 12)
    assert answer.graded_channel is Channel.WIRE


@shares_browser
async def test_a_rule_that_meets_nothing_is_our_fault_and_says_what_was_there(
    zoo: str, driver_for: MakeDriver
) -> None:
    async with driver_for(f"{zoo}/clock.html", wire={**RULE, "url": "/api/v2"}) as driver:
        with pytest.raises(PageNotUnderstood, match=r"/api/v2.*/chat"):
            await driver.ask(("first",))
