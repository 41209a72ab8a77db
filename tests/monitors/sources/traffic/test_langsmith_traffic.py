"""Test LangSmith as a traffic source, with its SDK and a local server.

Runs are read, scores are written once, and no thread continues afterwards.
"""

from __future__ import annotations

import sys
import threading
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError
from syrupy.assertion import SnapshotAssertion

from monitors.errors import ConfigError, SourceUnavailable
from monitors.platforms.platform import Score
from monitors.records.traffic import Feedback, Thumb
from monitors.sources.traffic.langsmith import LangSmithTrafficSource
from monitors.sources.traffic.settings import LangSmithTraffic
from tests.monitors.sources.traffic.read_source import NOON, read_all
from tests.servers.langsmith import LangSmithServer

KEY = "lsv2_pt_hush"


def run(number: int, **changes: Any) -> dict[str, Any]:
    """Return a LangSmith root run that took one second."""
    start = NOON + timedelta(seconds=number)
    return {
        "id": str(uuid.UUID(int=number + 1)),
        "start_time": start.isoformat(),
        "end_time": (start + timedelta(seconds=1)).isoformat(),
        "latency_seconds": 1.0,
        "inputs": {"question": f"q{number}"},
        "outputs": {"answer": f"a{number}", "sources": ["Gold"]},
        "metadata": {"app_version": "4f2c", "model": "fallback", "user_id": "asha"},
        **changes,
    }


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENDPOINT", "API_KEY", "WORKSPACE_ID", "PROFILE", "CONFIG_FILE"):
        monkeypatch.delenv(f"LANGSMITH_{name}", raising=False)


@pytest.fixture
def server() -> Iterator[LangSmithServer]:
    with LangSmithServer([run(number) for number in range(7)], key=KEY) as started:
        yield started


async def no_pause(_seconds: float) -> None:
    """Return at once, so that a retry does not wait."""


def source(server: LangSmithServer, *, key: str = KEY, **changes: Any) -> LangSmithTrafficSource:
    given = {"kind": "langsmith", "project": "bot", "api_url": server.url, "page_size": 3, **changes}
    return LangSmithTrafficSource(LangSmithTraffic.model_validate(given), key=key, sleep=no_pause)


async def test_every_root_run_is_read_page_by_page(server: LangSmithServer) -> None:
    read = await read_all(source(server, filter='has(tags, "production")'))
    assert read.error is None
    assert read.ids == [one["id"] for one in server.runs]
    assert [query.get("cursor") for query in server.queries] == [None, "3", "6"]
    assert {query["filter"] for query in server.queries} == {'has(tags, "production")'}
    first = read.conversations[0]
    assert (first.app_version, first.user_key, first.completed_at) == ("4f2c", "asha", NOON + timedelta(seconds=1))
    (turn,) = first.turns
    assert (turn.user_text, turn.reply_text, turn.citations) == ("q0", "a0", ("Gold",))
    assert (turn.app_path, turn.latency_ms, turn.feedback) == ("fallback", 1000, None)


async def test_a_run_counts_when_it_ended(server: LangSmithServer) -> None:
    """A run belongs to the window in which it ended, even if it began long before.

    A run that has not ended is skipped.
    """
    server.runs = [
        run(1, start_time=(NOON - timedelta(minutes=50)).isoformat()),
        run(2, end_time=None),
        run(3, end_time=(NOON + timedelta(hours=30)).isoformat()),
    ]
    read = await read_all(source(server), since=NOON)
    assert (read.ids, read.notices) == ([str(uuid.UUID(int=2))], [])


async def test_a_chat_run_counts_for_its_last_turn(server: LangSmithServer) -> None:
    said = [("human", "a"), ("ai", "b"), ("human", "c")]
    messages = [{"type": role, "content": text} for role, text in said]
    server.runs = [run(1, inputs={"messages": messages}, outputs={"output": {"content": "d"}})]
    (only,) = (await read_all(source(server))).conversations
    assert [(turn.user_text, turn.reply_text) for turn in only.turns] == [("c", "d")]


STATS = [
    ({"user_score": {"n": 1, "avg": 1.0, "comments": ["good"]}}, Feedback(thumb=Thumb.UP, comment="good")),
    ({"user_score": {"n": 2, "avg": 0.0}}, Feedback(thumb=Thumb.DOWN)),
    ({"other": {"n": 2, "avg": 0.0}}, None),
    ({"user_score": {"n": 0, "avg": None}}, None),
]


@pytest.mark.parametrize(("stats", "feedback"), STATS)
async def test_the_users_feedback_is_read(server: LangSmithServer, stats: Any, feedback: Feedback | None) -> None:
    server.runs = [run(1, feedback_stats=stats)]
    assert (await read_all(source(server))).conversations[0].turns[0].feedback == feedback


async def test_a_run_without_a_reply_is_reported_by_its_id(server: LangSmithServer) -> None:
    server.runs = [run(1), run(2, outputs=None, inputs={"question": "my PIN is 4471"}), run(3)]
    read = await read_all(source(server))
    assert len(read.ids) == 2
    ((place, detail),) = read.problems
    assert place == f"run {server.runs[1]['id']}"
    assert "4471" not in detail


async def test_scores_are_written_back_once_however_often(server: LangSmithServer) -> None:
    keeper = source(server)
    conversation = (await read_all(keeper)).conversations[0]
    scores = [Score(key="lookout_factual", value=0.25, comment="wrong"), Score(key="lookout_cited", value=1)]
    for _ in range(3):
        await keeper.write_back(conversation, scores)
    written_scores = sorted((one["key"], one["score"], one.get("comment")) for one in server.feedback.values())
    assert written_scores == [("lookout_cited", 1, None), ("lookout_factual", 0.25, "wrong")]
    assert {one["run_id"] for one in server.feedback.values()} == {conversation.origin_id}
    await keeper.write_back(conversation, [Score(key="lookout_factual", value=0.75)])
    assert sorted((one["key"], one["score"]) for one in server.feedback.values())[1] == ("lookout_factual", 0.75)


async def test_no_score_prolongs_how_long_a_trace_is_stored(server: LangSmithServer) -> None:
    """A score that Lookout writes does not extend the retention of its trace.

    By default, LangSmith would store and bill a trace with feedback for 400 days, including what its user wrote.
    """
    keeper = source(server)
    conversation = (await read_all(keeper)).conversations[0]
    for value in (0.0, 1.0):
        await keeper.write_back(conversation, [Score(key="lookout_factual", value=value)])
    assert (server.extended, [one["score"] for one in server.feedback.values()]) == ([], [1])
    assert [set(one) for one in server.updates] == [{"score", "comment"}]


async def test_f05_a_score_whose_reply_was_lost_is_there_once(server: LangSmithServer) -> None:
    keeper = source(server)
    conversation = (await read_all(keeper)).conversations[0]
    server.lost_replies = 1
    await keeper.write_back(conversation, [Score(key="lookout_factual", value=1)])
    assert [one["score"] for one in server.feedback.values()] == [1]


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_failing_server_is_asked_again(server: LangSmithServer, status: int) -> None:
    server.faults = {"/sessions": [status], "/api/v2/runs/query": [status], "/feedback": [status]}
    keeper = source(server)
    read = await read_all(keeper)
    assert (len(read.ids), read.error) == (7, None)
    await keeper.write_back(read.conversations[0], [Score(key="lookout_factual", value=1)])
    assert len(server.feedback) == 1


async def test_a_permanently_failing_server_is_reported(
    server: LangSmithServer, snapshot: SnapshotAssertion
) -> None:
    server.faults = {"/sessions": [500] * 9}
    read = await read_all(source(server))
    assert isinstance(read.error, SourceUnavailable)
    assert read.error_text == snapshot


async def test_a_wrong_key_is_reported_and_not_shown(server: LangSmithServer, snapshot: SnapshotAssertion) -> None:
    read = await read_all(source(server, key="lsv2_pt_expired"))
    assert "expired" not in str(read.error)
    assert read.error_text == snapshot


async def test_a_project_that_is_not_there_is_reported(
    server: LangSmithServer, snapshot: SnapshotAssertion
) -> None:
    assert (await read_all(source(server, project="other"))).error_text == snapshot


async def test_a_check_queries_one_run(server: LangSmithServer) -> None:
    await source(server).check_readable(NOON)
    (query,) = server.queries
    assert query["page_size"] == 1
    server.faults = {"/sessions": [500] * 9}
    with pytest.raises(SourceUnavailable):
        await source(server).check_readable(NOON)


async def test_a_server_that_hangs_is_reported(server: LangSmithServer) -> None:
    server.hanging = True
    read = await read_all(source(server, request_deadline_s=0.2, attempts=2))
    assert isinstance(read.error, SourceUnavailable)


async def test_a_server_that_is_not_there_is_reported() -> None:
    with LangSmithServer([], key=KEY) as gone:
        pass
    read = await read_all(source(gone, attempts=1))
    assert isinstance(read.error, SourceUnavailable)
    assert KEY not in str(read.error)


@pytest.mark.parametrize(("size", "accepted"), [(100, True), (101, False)])
def test_pages_that_langsmith_refuses_are_refused_when_the_configuration_is_read(
    *, size: int, accepted: bool
) -> None:
    given = {"kind": "langsmith", "project": "bot", "page_size": size}
    if accepted:
        assert LangSmithTraffic.model_validate(given).page_size == size
        return
    with pytest.raises(ValidationError, match="less than or equal to 100"):
        LangSmithTraffic.model_validate(given)


async def test_pages_that_go_round_are_reported(server: LangSmithServer, snapshot: SnapshotAssertion) -> None:
    server.circle = True
    assert (await read_all(source(server))).error_text == snapshot


async def test_no_thread_is_left(server: LangSmithServer) -> None:
    before = {thread.ident for thread in threading.enumerate()}
    keeper = source(server)
    conversation = (await read_all(keeper)).conversations[0]
    for value in (0.0, 1.0):
        await keeper.write_back(conversation, [Score(key="lookout_factual", value=value)])
    left = [one.name for one in threading.enumerate() if one.ident not in before]
    assert all(name.startswith("asyncio_") for name in left), left  # the event loop's own pool


def test_without_a_key_it_says_which_is_missing(server: LangSmithServer) -> None:
    with pytest.raises(ConfigError, match="the environment variable LANGSMITH_API_KEY is missing or empty"):
        source(server, key="")


async def test_without_the_extra_it_says_how_to_get_it(
    server: LangSmithServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "langsmith", None)
    assert "lookout-monitor[langsmith]" in str((await read_all(source(server))).error)
