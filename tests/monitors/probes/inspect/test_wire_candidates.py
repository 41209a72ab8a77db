"""Test that Lookout finds a rule that reads the answer from the messages that a page received."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.probes.inspect.findings import (
    NetworkMessage,
    build_url_pattern,
    compute_answer_share_in_text,
    find_common_candidates,
    find_wire_candidates,
)
from monitors.probes.wire import read_payload

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
    (found,) = find_wire_candidates(
        [NetworkMessage(url="http://x/api/chat?q=1", kind="response", texts=(body,))], ANSWER
    )
    assert (found.rule.text, found.rule.joins, found.more) == (path, joins, "[Source: P-7]")
    assert found.rule.matches("https://other/api/chat?q=2")
    payload = read_payload(found.rule, "u", body)
    assert payload is not None
    assert payload.text == SENT


def test_requests_without_the_answer_are_not_proposed() -> None:
    other = NetworkMessage(url="http://x/me", kind="response", texts=(json.dumps({"name": "The limit"}),))
    assert find_wire_candidates([other, other.model_copy(update={"texts": ("",)})], ANSWER) == ()


def received(name: str, document: Any) -> NetworkMessage:
    return NetworkMessage(url=f"http://x/{name}", kind="response", texts=(json.dumps(document),))


def test_candidates_with_hidden_sources_come_first_then_the_likeliest() -> None:
    exact, more = received("exact", {"t": ANSWER}), received("more", {"t": SENT})
    longer = received("longer", {"t": f"{ANSWER} Tell me when you want to hear more about this."})
    found = [one.rule.url for one in find_wire_candidates([longer, exact, more], ANSWER)]
    assert found == [r"/more(\?|$)", r"/exact(\?|$)", r"/longer(\?|$)"]


LONG = [
    "Existing illness is covered after 36 months [Source: Gold, clause 4.2].",
    "Room rent is paid up to ₹5,000 a day [Source: Gold, table 2].",
    "For accidents there is no waiting period at all [Source: Gold, clause 4.5].",
]
SHOWN = (
    "Existing illness is covered after 36 months 1. Room rent is paid up to ₹5,000 a day 2. For accidents there is "
    "no waiting period at all 3. Cited policies 1 Gold plan 2 Gold plan, tables 3 Gold plan"
)


def test_an_answer_is_found_by_its_sentences_though_neither_text_stands_in_the_other() -> None:
    """An answer is found in a received message by its sentences, even if neither text contains the other.

    In this test, the page shows a number in place of each source, and adds cards after the text. The message lists
    its sources separately.
    """
    whole = {
        "reply": {"text": " ".join(LONG)},
        "sources": [{"score": 0.91, "title": "Gold, clause 4.2"}, {"score": 0.7, "title": "Gold, table 2"}],
        "model": "primary",
    }
    (found,) = find_wire_candidates([received("api/ask", whole), received("me", {"name": "Gold"})], SHOWN)
    assert (found.rule.text, found.rule.citations, found.rule.app_path) == ("reply.text", "sources.*", "model")
    assert found.sources == ("Gold, clause 4.2", "Gold, table 2")
    assert found.hides
    assert "[Source: Gold, table 2]" in found.more


def test_sources_much_longer_than_the_answer_do_not_hide_it() -> None:
    notes = " ".join(f"[Source: The Gold plan's general conditions of insurance, clause {n}]" for n in range(6))
    (found,) = find_wire_candidates(
        [received("api", {"t": f"Room rent is paid up to ₹5,000 a day. {notes}"})], LONG[1][:36]
    )
    assert found.hides


def test_another_answer_is_not_the_same_for_a_few_words() -> None:
    other = received("old", {"t": "Existing dental work is not paid for; ask us about accidents abroad."})
    assert find_wire_candidates([other], SHOWN) == ()


def test_the_place_of_sources_comes_from_any_answer_that_has_one() -> None:
    """The path of the sources is taken from any answer that has sources.

    In a greeting, the list of sources is empty or missing.
    """
    hello, cited = "Hello there, ask me about your policy.", LONG[0]
    first = find_wire_candidates([received("ask", {"text": hello, "model": "primary"})], hello)
    second = find_wire_candidates(
        [received("ask", {"text": cited, "docs": [], "sources": [{"title": "P-1"}]})], cited[:44]
    )
    (found,) = find_common_candidates([first, second])
    assert (found.rule.citations, found.rule.app_path, found.hides) == ("sources.*", "model", True)
    assert find_common_candidates([first, ()]) == ()


ADDRESSES = [
    ("http://h/api/chat?id=7", r"/api/chat(\?|$)"),
    ("https://h/c/1234/messages", r"/c/[^/]+/messages(\?|$)"),
    ("https://h/c/3f2a9c1e-77aa-4a0b-9d1e-000000000001", r"/c/[^/]+(\?|$)"),
    ("wss://h/queue/join", r"^wss?://[^/]+/queue/join(\?|$)"),
]


@pytest.mark.parametrize(("url", "pattern"), ADDRESSES)
def test_variable_parts_of_an_address_become_wildcards(url: str, pattern: str) -> None:
    assert build_url_pattern(url) == pattern


def test_a_source_in_the_middle_does_not_hide_the_answer() -> None:
    answer = "One two three four"
    assert compute_answer_share_in_text(answer.replace("One", "One [Source: A]"), answer) > 0.6


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=8) | st.integers(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
        max_leaves=30,
    )
)
def test_no_document_is_too_strange(document: Any) -> None:
    for found in find_wire_candidates([received("", document)], "an answer"):
        assert 0.6 <= found.likeness <= 1
