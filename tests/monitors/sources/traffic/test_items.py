"""Test that stored conversations in common formats are read without a mapping.

An item that cannot be read is reported, but its content is not quoted.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.records.traffic import Conversation, Feedback, SourceWarning, SourceWarningKind, Thumb
from monitors.sources.traffic.items import LocatedItem, Window, hash_id_if_unsafe, parse_conversations
from monitors.sources.traffic.settings import Fields

T = "2026-03-01T12:00:00Z"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALWAYS = Window(datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC))
ASKED, REPLIED = "What is the waiting period?", "24 months [Source: Gold, clause 4]"


def read(item: Any, **fields: Any) -> Conversation | SourceWarning:
    (found,) = parse_conversations([LocatedItem("log.jsonl:7", item)], Fields.model_validate(fields), ALWAYS)
    return found


def conversation(item: Any, **fields: Any) -> Conversation:
    found = read(item, **fields)
    assert isinstance(found, Conversation), found
    return found


def pairs(item: Any, **fields: Any) -> list[tuple[str, str]]:
    return [(turn.user_text, turn.reply_text) for turn in conversation(item, **fields).turns]


SHAPES: dict[str, Any] = {
    "question and answer": {"question": ASKED, "answer": REPLIED},
    "our own names": {"user_text": ASKED, "reply_text": REPLIED},
    "input and output": {"input": ASKED, "output": REPLIED},
    "OpenAI messages": {"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": ASKED}, {"role": "assistant", "content": REPLIED}]},
    "messages in parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": ASKED}]}, {"role": "assistant", "content": [{"type": "text", "text": REPLIED}]}]},
    "ShareGPT": {"conversations": [{"from": "human", "value": ASKED}, {"from": "gpt", "value": REPLIED}]},
    "a greeting first": {"messages": [{"role": "assistant", "content": "Hello!"}, {"role": "user", "content": ASKED}, {"role": "bot", "content": REPLIED}]},
    "Gradio's pairs": {"history": [[ASKED, REPLIED]]},
    "turns": {"turns": [{"user": ASKED, "bot": REPLIED}]},
    "author and parts": {"messages": [{"author": {"role": "user"}, "content": {"parts": [ASKED]}}, {"author": {"role": "assistant"}, "content": {"parts": [REPLIED]}}]},
    "LangChain": {"messages": [[{"id": ["langchain", "schema", "HumanMessage"], "kwargs": {"content": ASKED}}, {"id": ["langchain", "AIMessageChunk"], "kwargs": {"content": REPLIED}}]]},
    "a traced run": {"inputs": {"messages": [{"type": "human", "content": ASKED}]}, "outputs": {"output": {"content": REPLIED}}},
    "a traced question": {"inputs": {"question": ASKED}, "outputs": {"answer": REPLIED}},
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_common_shapes_need_no_mapping(shape: dict[str, Any]) -> None:

    assert pairs({"id": "c-1", "timestamp": T, **shape}) == [(ASKED, REPLIED)]


def test_messages_become_turns() -> None:
    said = [
        ("user", "a"),
        ("user", "b"),
        ("assistant", "c"),
        ("tool", "clause 4"),
        ("assistant", "d"),
        ("user", "e"),
    ]
    item = {"id": "c-1", "ts": T, "messages": [{"role": role, "content": text} for role, text in said]}
    turns = conversation(item).turns
    assert [(turn.user_text, turn.reply_text) for turn in turns] == [("a\n\nb", "c\n\nd"), ("e", "")]
    assert turns[0].context == ("clause 4",)


def test_parts_of_a_turn_come_from_its_messages_and_for_the_last_turn_from_the_item() -> None:
    item = {
        "id": "c-1",
        "ended_at": T,
        "model": "fallback",
        "version": 12,
        "user_id": "asha",
        "sources": [{"title": "Gold"}, "Silver", {"page": 4}],
        "feedback": "down",
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b?", "is_question": True, "thumb": "👍", "comment": "fine", "latency_ms": 12},
            {"role": "user", "content": "c"},
            {"role": "assistant", "content": "d", "latency_s": 1.5, "model": "primary"},
        ],
    }  # fmt: skip
    read_in = conversation(item)
    first, last = read_in.turns
    assert (read_in.app_version, read_in.user_key) == ("12", "asha")
    assert (first.is_question, first.latency_ms, first.app_path, first.citations) == (True, 12, "fallback", ())
    assert first.feedback == Feedback(thumb=Thumb.UP, comment="fine")
    assert (last.is_question, last.latency_ms, last.app_path) == (None, 1500, "primary")
    assert last.citations == ("Gold", "Silver")  # a page of nothing names no source
    assert last.feedback == Feedback(thumb=Thumb.DOWN)


TIMES: list[Any] = [
    T, "2026-03-01T17:30:00+05:30", "2026-03-01 12:00:00", 1772366400, 1772366400.0, 1772366400000, 1772366400000000,
    1772366400 * 10**9, "1772366400", Decimal(1772366400), NOON, NOON.replace(tzinfo=None),
]  # fmt: skip


@pytest.mark.parametrize("time", TIMES, ids=str)
def test_a_time_is_read_in_any_common_form(time: Any) -> None:
    assert conversation({"id": "c", "timestamp": time, "question": "q", "answer": "a"}).completed_at == NOON


NO_TIMES: list[Any] = [
    None,
    "",
    "soon",
    float("nan"),
    float("inf"),
    -1,
    0,
    True,
    [],
    {},
    10**400,
    "9" * 400,
    "NaN",
    "1e999",
]


@pytest.mark.parametrize("time", NO_TIMES, ids=lambda time: str(time)[:9])
def test_an_item_without_a_time_is_reported(time: Any) -> None:
    warning = read({"id": "c", "timestamp": time, "question": "q", "answer": "a"})
    assert isinstance(warning, SourceWarning)
    assert (warning.kind, warning.place) == (SourceWarningKind.ITEM_UNREADABLE, "log.jsonl:7")
    assert "completed_at, ended_at, end_time, …" in warning.detail


def test_an_unreadable_time_gives_way_to_the_next_one() -> None:
    assert conversation({"ended_at": "soon", "created_at": T, "question": "q", "answer": "a"}).completed_at == NOON


NOTHING: list[tuple[Any, str]] = [
    (None, "expected an object"),
    ([], "expected an object"),
    ({"ts": T}, "no user text"),
    ({"ts": T, "question": ASKED}, "no reply at reply_text"),
    (
        {"ts": T, "messages": [{"role": "user", "content": ASKED}, {"role": "Warehouse", "content": REPLIED}]},
        "no reply",
    ),
    ({"ts": T, "messages": [{"role": "user", "content": ASKED}, {"said": REPLIED, "content": ASKED}]}, "no reply"),
    ({"ts": T, "questions": [ASKED, ASKED, ASKED], "answers": [REPLIED]}, "3 questions and 1 answer"),
    ({"ts": T, "questions": [ASKED], "answers": [REPLIED, REPLIED]}, "1 question and 2 answers"),
    ({"ts": T, "messages": [{"role": "assistant", "content": "Hello!"}]}, "no user text"),
    ({"ts": T, "messages": [1, None, [], "x"]}, "no user text"),
]


@pytest.mark.parametrize(("item", "why"), NOTHING)
def test_an_item_that_is_not_a_conversation_is_reported_and_not_quoted(item: Any, why: str) -> None:
    warning = read(item)
    assert isinstance(warning, SourceWarning)
    assert why in warning.detail
    assert ASKED not in warning.detail


def test_an_id_is_the_sources_own_where_it_is_safe() -> None:
    assert hash_id_if_unsafe("run:12.a") == "run:12.a"
    assert hash_id_if_unsafe("0192f3c4-98d2-7145-a021-9823177450aa") == "0192f3c4-98d2-7145-a021-9823177450aa"


@pytest.mark.parametrize("origin", ["../etc/passwd", "a b", "x" * 300, "tara@mailbox.example", "ключ"])
def test_f85_an_id_that_is_not_safe_becomes_a_digest(origin: str) -> None:
    item = conversation({"id": origin, "ts": T, "question": "q", "answer": "a"})
    assert item.origin_id == origin
    assert item.id.startswith("h-")
    assert item.id == hash_id_if_unsafe(origin)


def test_turns_that_share_a_session_are_conversations_of_their_own() -> None:
    items = [{"session_id": "s-1", "ts": T, "question": text, "answer": "a"} for text in ("x", "y", "x")]
    ids = [conversation(item).id for item in items]
    assert ids[0] != ids[1]
    assert ids[0] == ids[2]
    assert conversation({"session_id": "s-1", "ts": T, "turns": [{"user": "x", "bot": "y"}]}).id == "s-1"


def test_paths_can_be_named() -> None:
    item = {"meta": {"nr": 7, "done": T}, "chat": {"q": ASKED, "a": REPLIED}, "stars": "up", "why": "kind"}
    fields = {
        "id": "meta.nr",
        "completed_at": ["meta.done"],
        "user_text": "chat.q",
        "reply_text": "chat.a",
        "thumb": "stars",
        "comment": "why",
    }
    read_in = conversation(item, **fields)
    assert (read_in.id, pairs(item, **fields)) == ("7", [(ASKED, REPLIED)])
    assert read_in.turns[0].feedback == Feedback(thumb=Thumb.UP, comment="kind")


@pytest.mark.parametrize("given_value", [5, 4.5, "5 stars", None, [], float("nan")])
def test_a_scale_is_no_thumb(given_value: Any) -> None:
    assert (
        conversation({"ts": T, "question": "q", "answer": "a", "feedback": given_value}).turns[0].feedback is None
    )


def test_only_the_window_is_read() -> None:
    items = [
        LocatedItem(str(hour), {"ts": (NOON + timedelta(hours=hour)).isoformat(), "question": "q", "answer": "a"})
        for hour in range(4)
    ]
    window = Window(NOON + timedelta(hours=1), NOON + timedelta(hours=3))
    hours = [
        one.completed_at.hour
        for one in parse_conversations(items, Fields(), window)
        if isinstance(one, Conversation)
    ]
    assert hours == [13, 14]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.sampled_from([T, "user", "\ud83d"]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(["id", "ts", "messages", "turns", "role", "content", "question", "answer", "feedback", "context",
                         "latency_ms", "citations", "user_id", "inputs", "outputs", "is_question", "thumb"]),
        inner, max_size=6,
    ),
    max_leaves=25,
)  # fmt: skip


@given(JSON)
def test_any_item_is_read_or_reported(item: Any) -> None:
    found = read(item)
    if isinstance(found, Conversation):
        assert type(found).model_validate_json(found.model_dump_json()) == found


@given(
    st.dictionaries(
        st.sampled_from(["id", "feedback", "context", "latency_ms", "citations", "user_id", "model"]), JSON
    )
)
def test_odd_parts_never_cost_the_conversation(parts: dict[str, Any]) -> None:
    assert pairs({**parts, "ts": T, "question": "q", "answer": "a"}) == [("q", "a")]


def test_a_question_that_met_an_error_is_unanswered_and_no_fault_of_the_log():
    assert pairs({"ts": T, "question": "q", "error": "429 Too Many Requests"}) == [("q", "")]
    assert isinstance(read({"ts": T, "question": "q"}), SourceWarning)


NO_ANSWER: dict[str, Any] = {
    "an empty text": {"question": ASKED, "answer": ""},
    "blank": {"question": ASKED, "answer": " "},
    "null": {"question": ASKED, "answer": None},
    "an empty output": {"inputs": {"question": ASKED}, "outputs": {"answer": ""}},
    "an error": {"question": ASKED, "error": "429 Too Many Requests"},
    "only the user's message": {"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": ASKED}]},
    "a message without text": {"messages": [{"role": "user", "content": ASKED}, {"role": "assistant", "content": ""}]},
    "an error in a pair": {"turns": [{"user": ASKED, "error": "429 Too Many Requests"}]},
    "a pair": {"turns": [{"user": ASKED, "bot": ""}]},
    "a pair of two": {"history": [[ASKED, None]]},
    "lists": {"questions": [ASKED], "answers": []},
    "lists with null": {"questions": [ASKED], "answers": [None]},
}  # fmt: skip


@pytest.mark.parametrize("shape", NO_ANSWER.values(), ids=NO_ANSWER)
def test_a_question_that_nothing_came_back_for_is_a_conversation_without_an_answer(shape: dict[str, Any]) -> None:
    ((asked, replied),) = pairs({"ts": T, **shape})
    assert (asked, replied.strip()) == (ASKED, "")


def test_lists_of_questions_and_answers_are_turns() -> None:
    asked, replied = ["a", "b", "c"], ["x", None, "z"]
    assert pairs({"ts": T, "questions": asked, "answers": replied}) == [("a", "x"), ("b", ""), ("c", "z")]
    mapped = {"ts": T, "log": {"q": asked, "a": ["x", "y"]}}
    assert pairs(mapped, user_text="log.q", reply_text="log.a") == [("a", "x"), ("b", "y"), ("c", "")]
    assert len({conversation({"ts": T, "questions": [one], "answers": ["x"]}).id for one in asked}) == 3


@pytest.mark.parametrize("name", ["request_id", "trace_id", "run_id"])
def test_rows_of_one_request_are_conversations_of_their_own(name: str) -> None:
    """Log rows with the same request id are separate conversations if their question or time differs.

    Rows with different request ids are also separate. A repeated row has the same conversation id.
    """
    row = {name: "r-1", "ts": T, "question": "x", "answer": "a"}
    rows = [row, row | {"question": "y"}, row | {"ts": "2026-03-01T12:00:01Z"}, row | {name: "r-2"}]
    ids = [conversation(one).id for one in rows]
    assert len(set(ids)) == 4
    assert conversation(dict(row)).id == ids[0]
    assert conversation(row, id=name).id == "r-1", "where it does tell them apart, it can be named"


def test_items_unusable_in_another_night_are_not_reported_again() -> None:
    """An item that cannot be used is reported only by the nightly run to which its position in the log belongs.

    The log covers five days. On one of them, it contains an invalid line and items without a usable reply.
    """
    broken = SourceWarning(kind=SourceWarningKind.LINE_UNREADABLE, place="log:3", detail="not JSON")
    days = [NOON + timedelta(days=number) for number in range(5)]
    good = [{"ts": day.isoformat(), "question": "q", "answer": "a"} for day in days]
    items = [LocatedItem("log", good[0]), LocatedItem("log", good[1]), broken, LocatedItem("log", good[1] | {"answer": 4}),
             LocatedItem("log", {"ts": days[1].isoformat(), "question": "q"}), LocatedItem("log", {"question": "when?"}),
             LocatedItem("log", good[2]), LocatedItem("log", good[3])]  # fmt: skip
    places = [
        [one.place for one in parse_conversations(items, Fields(), Window(day, day + timedelta(days=1)))
         if isinstance(one, SourceWarning)] for day in days
    ]  # fmt: skip
    assert places == [[], ["log:3", "log", "log"], [], [], []]


def test_an_undated_item_gets_the_next_date_or_is_reported() -> None:
    first = [LocatedItem("1", {"question": "?"}), LocatedItem("2", {"ts": T, "question": "q", "answer": "a"})]
    tonight, later = Window(NOON, NOON + timedelta(1)), Window(NOON + timedelta(1), NOON + timedelta(2))
    assert [type(one) for one in parse_conversations(first, Fields(), tonight)] == [SourceWarning, Conversation]
    assert list(parse_conversations(first, Fields(), later)) == []
    many = [LocatedItem(str(number), {}) for number in range(2_500)]
    assert len(list(parse_conversations(many, Fields(), later))) == 2_500
