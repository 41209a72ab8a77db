"""Test that log lines become entries, even with missing, additional, unusual or broken parts."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies
from pydantic_core import from_json

from monitors.records.logs import HallucinationEntry, QuarantinedLine, QuarantineReason
from monitors.sources.logs import entries
from monitors.sources.logs.entries import compute_line_id, is_whole_entry, parse_line
from monitors.sources.logs.settings import LogFields
from monitors.sources.logs.tail import LogLine


def line(raw: bytes, *, offset: int = 0) -> LogLine:
    return LogLine(generation=0, offset=offset, raw=raw, length=len(raw), sha256=hashlib.sha256(raw).hexdigest())


def read(raw: bytes) -> HallucinationEntry:
    entry = parse_line("bot", line(raw))
    assert isinstance(entry, HallucinationEntry)
    return entry


def test_all_fields_of_the_format_are_read():
    value = {
        "ts": "2026-03-01T10:20:30Z",
        "user_text": "Is cataract covered?",
        "blocked_reply": "Yes, up to ₹40,000.",
        "reasons": ["unsupported_number: 40,000"],
        "unsupported_claims": ["₹40,000"],
        "chunk_count": 6,
        "top_score": 0.5,
        "policy_ids": ["b", "a"],
    }
    reply = read(json.dumps(value).encode()).reply
    assert reply.ts == datetime(2026, 3, 1, 10, 20, 30, tzinfo=UTC)
    assert reply.model_dump(mode="json", exclude={"extra"}) == value
    assert reply.extra == {}


def test_missing_fields_are_absent_and_unknown_ones_stored():
    reply = read(b'{"user_text": "x", "session": {"id": 7}}').reply
    assert (reply.ts, reply.blocked_reply, reply.reasons, reply.top_score) == (None, None, (), None)
    assert reply.extra == {"session": {"id": 7}}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("chunk_count", "3"),
        ("chunk_count", -1),
        ("top_score", 3.5),
        ("reasons", [1]),
        ("user_text", {"text": "x"}),
        ("ts", "yesterday"),
        ("policy_ids", [None]),
    ],
)
def test_a_field_of_another_type_makes_no_entry_disappear(field, value):
    reply = read(json.dumps({"blocked_reply": "No.", field: value}).encode()).reply
    assert reply.blocked_reply == "No."
    assert reply.extra == {field: value}


OTHER_SHAPES = {
    "question, answer, reason": {"question": "Q?", "answer": "No.", "reason": "no_source", "timestamp": 1772360430},
    "our own, one reason as text": {"user_text": "Q?", "blocked_reply": "No.", "reasons": "no_source", "ts": 1772360430},
    "lists": {"questions": ["Q?"], "answers": ["No."], "reason": ["no_source"], "time": "2026-03-01T10:20:30"},
}  # fmt: skip


@pytest.mark.parametrize("value", OTHER_SHAPES.values(), ids=OTHER_SHAPES)
def test_common_shapes_need_no_mapping(value):
    reply = read(json.dumps(value).encode()).reply
    assert (reply.user_text, reply.blocked_reply, reply.reasons) == ("Q?", "No.", ("no_source",))
    assert (reply.ts, reply.extra) == (datetime(2026, 3, 1, 10, 20, 30, tzinfo=UTC), {})


def test_paths_can_be_configured_and_other_fields_are_stored():
    value = {"q": ["First?", "Second?"], "out": {"text": "No.", "model": "m"}, "flags": "no_source", "reason": "x"}
    fields = LogFields.model_validate({"user_text": "q", "blocked_reply": "out.text", "reasons": "flags"})
    entry = parse_line("bot", line(json.dumps(value).encode()), fields)
    assert isinstance(entry, HallucinationEntry)
    assert entry.reply.user_text == "First?\n\nSecond?"
    assert (entry.reply.blocked_reply, entry.reply.reasons) == ("No.", ("no_source",))
    assert entry.reply.extra == {"out": {"text": "No.", "model": "m"}, "reason": "x"}


def test_the_formats_own_field_name_wins_and_the_other_is_stored():
    reply = read(b'{"question": "b", "user_text": "a", "answer": null, "blocked_reply": "c"}').reply
    assert (reply.user_text, reply.blocked_reply, reply.extra) == ("a", "c", {"question": "b", "answer": None})


@pytest.mark.parametrize("written", ["NaN", "Infinity", "-Infinity"])
def test_a_score_that_is_not_a_number_is_stored_by_name(written):
    """A score such as NaN, which Python's JSON writer can produce, is read as ``None`` and can be stored."""
    entry = read(f'{{"user_text": "x", "top_score": {written}}}'.encode())
    assert entry.reply.top_score is None
    assert HallucinationEntry.model_validate_json(entry.model_dump_json()) == entry


WRITTEN_OTHERWISE = {
    "camel case": {"userText": "Q?", "blockedReply": "No.", "reasons": ["no_source"], "createdAt": "2026-03-01 10:20:30 UTC"},
    "nested": {"event": "blocked", "payload": {"question": "Q?", "answer": "No.", "verdict": {"reason": "no_source"}}, "ts": 1772360430},
    "judged wrong": {"question": "Q?", "answer": "No.", "hallucinated": True, "why": "no_source", "time": 1772360430000},
    "dotted": {"guard.question": "Q?", "guard.blockedAnswer": "No.", "guard.reasons": ["no_source"], "@timestamp": "2026-03-01T10:20:30Z"},
    "messages": {"request": {"messages": [{"role": "user", "content": "Q?"}]}, "response": {"choices": [{"message": {"content": "No."}}]}, "reason": "no_source", "ts": 1772360430},
}  # fmt: skip


@pytest.mark.parametrize("value", WRITTEN_OTHERWISE.values(), ids=WRITTEN_OTHERWISE)
def test_entries_as_applications_write_them_are_read(value):
    reply = read(json.dumps(value).encode()).reply
    assert (reply.user_text, reply.blocked_reply, reply.reasons) == ("Q?", "No.", ("no_source",))
    assert reply.ts == datetime(2026, 3, 1, 10, 20, 30, tzinfo=UTC)


NO_ENTRIES = {
    "empty": {},
    "heartbeat": {"event": "heartbeat", "ts": 1772360430},
    "ping": {"type": "ping", "uptime_s": 12},
    "not hallucinated": {"question": "Q?", "answer": "No.", "hallucinated": False},
    "grounded": {"userText": "Q?", "answer": "No.", "verdict": {"isGrounded": True}},
    "let through": {"question": "Q?", "reply": "No.", "blocked": False},
}


@pytest.mark.parametrize("value", NO_ENTRIES.values(), ids=NO_ENTRIES)
def test_a_line_that_reports_no_wrong_reply_is_no_entry(value):
    assert parse_line("bot", line(json.dumps(value).encode())) is None


@pytest.mark.parametrize(
    ("raw", "found"),
    [(b"[1]", "array"), (b'"x"', "string"), (b"true", "boolean"), (b"null", "null"), (b"3.5", "number")],
)
def test_a_line_that_is_not_an_object_goes_aside_with_its_type(raw, found):
    aside = parse_line("bot", line(raw))
    assert isinstance(aside, QuarantinedLine)
    assert (aside.reason, aside.detail) == (
        QuarantineReason.NOT_AN_OBJECT,
        f"expected a JSON object, found {found}",
    )


def test_a_null_beside_an_invalid_field_counts_as_absent():
    reply = read(b'{"user_text": "x", "chunk_count": null, "top_score": "high"}').reply
    assert (reply.user_text, reply.chunk_count, reply.top_score) == ("x", None, None)
    assert reply.extra == {"top_score": "high"}


@pytest.mark.parametrize(
    "value",
    [{"level": "info", "msg": "guard loaded"}, {"question": "", "answer": " "}, {"reasons": ["no_source"]}, {"ts": 1772360430}],
    ids=",".join,
)  # fmt: skip
def test_an_object_without_a_text_goes_aside_with_its_keys(value):
    aside = parse_line("bot", line(json.dumps(value).encode()))
    assert isinstance(aside, QuarantinedLine)
    assert aside.reason is QuarantineReason.NO_TEXT
    assert ", ".join(value) in aside.detail


@pytest.mark.parametrize(
    ("written", "at"),
    [
        ("2026-03-01T10:20:30+05:30", datetime(2026, 3, 1, 4, 50, 30, tzinfo=UTC)),
        ("2026-03-01T10:20:30", datetime(2026, 3, 1, 10, 20, 30, tzinfo=UTC)),
        (1772360430, datetime(2026, 3, 1, 10, 20, 30, tzinfo=UTC)),
    ],
    ids=["zone", "no zone is UTC", "epoch seconds"],
)
def test_times_are_utc(written, at):
    assert read(json.dumps({"ts": written, "user_text": "x"}).encode()).reply.ts == at


def test_a_long_line_goes_aside_by_its_length_alone():
    cut = line(b'{"user_text": "x')._replace(length=9_000_000)
    aside = parse_line("bot", cut)
    assert isinstance(aside, QuarantinedLine)
    assert (aside.reason, aside.length) == (QuarantineReason.TOO_LONG, 9_000_000)


def test_quarantine_does_not_quote_the_line():
    aside = parse_line("bot", line(b'{"user_text": "my PAN is ABCPE1234F'))
    assert isinstance(aside, QuarantinedLine)
    assert "ABCPE1234F" not in aside.model_dump_json()


@given(strategies.binary(max_size=200))
def test_any_bytes_are_an_entry_a_line_aside_or_blank(raw):
    found = parse_line("bot", line(raw))
    assert (
        found is not None
        or raw.startswith(b"{")
        or not raw.strip(b" \t\r\n\0").removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n\0")
    )
    if found is not None:
        assert type(found).model_validate_json(found.model_dump_json()) == found


JSON = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.floats() | strategies.integers(-(2**70), 2**70)
    | strategies.text(strategies.characters(codec="utf-8")),
    lambda inner: strategies.lists(inner, max_size=3)
    | strategies.dictionaries(strategies.text(strategies.characters(codec="utf-8")), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
KNOWN = strategies.sampled_from(["ts", "user_text", "reasons", "chunk_count", "top_score", "policy_ids", "x"])


@given(strategies.dictionaries(KNOWN, JSON, max_size=5))
def test_any_object_with_a_text_is_an_entry_and_survives_storage(value):
    raw = json.dumps(value | {"blocked_reply": "No."}).encode()
    entry = read(raw)
    assert HallucinationEntry.model_validate_json(entry.model_dump_json()) == entry
    assert is_whole_entry(raw)


ALIASES = strategies.sampled_from(["ts", "time", "user_text", "question", "reasons", "reason", "top_score", "x"])


@given(strategies.dictionaries(ALIASES, JSON, max_size=6))
def test_an_entry_in_the_usual_form_is_read_as_any_other(value):
    """The fast path for entries in the usual form gives the same reply as the search through all field names."""
    raw = json.dumps(value)
    usual, searched = (
        way(from_json(raw), LogFields()) for way in (entries._build_reply, entries._build_reply_field_by_field)
    )
    assert usual == searched


@given(strategies.dictionaries(KNOWN, JSON, max_size=3), strategies.integers(1, 40))
def test_a_part_of_an_object_is_never_whole(value, cut):
    raw = json.dumps(value).encode()
    assert not is_whole_entry(raw[: max(0, len(raw) - cut)])


def test_the_id_tells_places_and_texts_apart():
    first, elsewhere = line(b"{}"), line(b"{}", offset=3)
    assert compute_line_id(first) != compute_line_id(elsewhere)
    assert compute_line_id(first) != compute_line_id(line(b"{ }"))
    assert compute_line_id(first) == compute_line_id(line(b"{}"))
