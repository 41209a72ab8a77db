"""From what a page received to the rule that finds the answer in it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.probes.wire import read_payload
from monitors.probes.wire_candidates import Received, candidates, likeness, pattern_of

ANSWER = "The limit is ₹15,000 a year."
SENT = f"{ANSWER} [Source: P-7]"
TOKENS = [{"delta": {"text": word}} for word in ("The limit ", "is ₹15,000 ", "a year.", " [Source: P-7]")]
GROWING = [{"text": SENT[:length]} for length in (5, 12, len(SENT))]
CHAT = {"messages": [{"role": "user", "content": "How much?"}, {"role": "assistant", "content": SENT}]}

BODIES = [
    ("json", json.dumps({"reply": {"text": SENT}, "model": "primary"}), "reply.text", True),
    ("events of tokens", "".join(f"data: {json.dumps(one)}\n\n" for one in TOKENS), "delta.text", True),
    ("growing text", "\n".join(json.dumps(one) for one in GROWING), "text", False),
    ("the newest of many messages", json.dumps(CHAT), "messages.1.content", True),
    ("no json", SENT, "", True),
]


@pytest.mark.parametrize(("body", "path", "joins"), [row[1:] for row in BODIES], ids=[row[0] for row in BODIES])
def test_the_rule_finds_what_was_sent(body: str, path: str, joins: bool) -> None:
    (found,) = candidates([Received(url="http://x/api/chat?q=1", kind="response", texts=(body,))], ANSWER)
    assert (found.rule.text, found.rule.joins, found.more) == (path, joins, "[Source: P-7]")
    assert found.rule.matches("https://other/api/chat?q=2")
    payload = read_payload(found.rule, "u", body)
    assert payload is not None
    assert payload.text == SENT


def test_what_did_not_carry_the_answer_is_not_proposed() -> None:
    other = Received(url="http://x/me", kind="response", texts=(json.dumps({"name": "The limit"}),))
    assert candidates([other, other.model_copy(update={"texts": ("",)})], ANSWER) == ()


def test_the_likeliest_comes_first() -> None:
    exact = Received(url="http://x/exact", kind="response", texts=(json.dumps({"t": ANSWER}),))
    more = Received(url="http://x/more", kind="response", texts=(json.dumps({"t": SENT}),))
    assert [one.rule.url for one in candidates([more, exact], ANSWER)] == [r"/exact(\?|$)", r"/more(\?|$)"]


ADDRESSES = [
    ("http://h/api/chat?id=7", r"/api/chat(\?|$)"),
    ("https://h/c/1234/messages", r"/c/[^/]+/messages(\?|$)"),
    ("https://h/c/3f2a9c1e-77aa-4a0b-9d1e-000000000001", r"/c/[^/]+(\?|$)"),
    ("wss://h/queue/join", r"^wss?://[^/]+/queue/join(\?|$)"),
]


@pytest.mark.parametrize(("url", "pattern"), ADDRESSES)
def test_what_changes_in_an_address_is_left_open(url: str, pattern: str) -> None:
    assert pattern_of(url) == pattern


def test_a_source_in_the_middle_does_not_hide_the_answer() -> None:
    assert likeness("One [Source: A] two three four", "One two three four") > 0.6


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=8) | st.integers(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
        max_leaves=30,
    )
)
def test_no_document_is_too_strange(document: Any) -> None:
    received = Received(url="http://x/", kind="response", texts=(json.dumps(document),))
    for found in candidates([received], "an answer"):
        assert 0.6 <= found.likeness <= 1
