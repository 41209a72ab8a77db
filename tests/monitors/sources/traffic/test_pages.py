"""Test that past conversations are read from a page in a real browser, without configuration for common pages."""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import timedelta
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from monitors.address_guard import AddressGuard
from monitors.errors import ConfigError, SourceUnavailable
from monitors.probes.browser.page_reader import PageReader
from monitors.records.traffic import SourceWarningKind, Thumb
from monitors.sources.traffic.pages import PageTrafficSource, ScriptRunner
from monitors.sources.traffic.settings import PageTraffic
from tests.monitors.sources.traffic.read_source import NOON, read_all
from tests.servers.files import FileServer
from tests.servers.past_chats import PastChats

pytestmark = pytest.mark.browser


def source(url: str, **changes: Any) -> PageTrafficSource:
    def browser() -> AbstractAsyncContextManager[ScriptRunner]:
        return PageReader(AddressGuard([url]), deadline_s=60, browser_path=os.environ.get("CHROMIUM_PATH"))

    given = {"kind": "page", "url": url, "page_deadline_s": 60, **changes}
    return PageTrafficSource(PageTraffic.model_validate(given), browser)


def chat(number: int, **changes: Any) -> dict[str, Any]:
    at = [(NOON + timedelta(minutes=number, seconds=second)).isoformat() for second in range(3)]
    messages = [
        {"role": "bot", "text": "Hello! How can I help?", "time": at[0]},
        {"role": "user", "text": f"q{number} <script>alert(1)</script> & so\non", "time": at[1]},
        {"role": "bot", "text": f"a{number} [Source: Gold]", "time": at[2], "thumb": "down"},
    ]
    return {"id": f"c-{number}", "time": at[0], "messages": messages, **changes}


@pytest.mark.whole_only
@pytest.mark.parametrize("style", ["marked", "plain", "scripted"])
async def test_past_conversations_are_read_without_configuration(style: str) -> None:
    with PastChats([chat(number) for number in range(5)], style=style) as server:
        read = await read_all(source(f"{server.url}/chats"))
    assert (read.error, read.notices) == (None, [])
    assert read.ids == [f"c-{number}" for number in range(5)]
    first = read.conversations[0]
    assert first.completed_at == NOON + timedelta(seconds=2)
    (turn,) = first.turns
    assert turn.user_text == "q0 <script>alert(1)</script> & so\non"
    assert turn.reply_text == "a0 [Source: Gold]"
    assert turn.feedback is not None
    assert turn.feedback.thumb is Thumb.DOWN


async def test_files_outside_the_window_are_not_opened() -> None:
    chats = [chat(number, time=(NOON + timedelta(days=number)).isoformat()) for number in (-3, 0, 1)]
    with PastChats(chats) as server:
        read = await read_all(source(f"{server.url}/chats"), since=NOON, until=NOON + timedelta(days=1))
        assert server.asked == ["/chats", "/chats/c-0"]
    assert read.ids == ["c-0"]


async def test_a_page_that_does_not_open_is_reported_and_the_others_are_read() -> None:
    with (
        PastChats([chat(number) for number in range(5)]) as elsewhere,
        PastChats([chat(n) for n in range(5)]) as server,
    ):
        server.statuses["c-1"] = 500
        server.statuses["c-2"] = 403
        server.moved["c-3"] = f"{elsewhere.url}/chats/c-3"
        read = await read_all(source(f"{server.url}/chats"))
        assert read.ids == ["c-0", "c-4"]
        assert {notice.kind for notice in read.notices} == {SourceWarningKind.PAGE_UNREADABLE}
        assert [notice.place for notice in read.notices] == [f"{server.url}/chats/c-{n}" for n in (1, 2, 3)]
        details = [notice.detail for notice in read.notices]
    assert details[0] == "answered HTTP 500"
    assert "requires a login" in details[1]
    assert "Its configuration does not allow" in details[2]


async def test_a_conversation_without_a_time_or_a_reply_is_reported(snapshot: SnapshotAssertion) -> None:
    untimed = [{"role": "user", "text": "q"}, {"role": "bot", "text": "a"}]
    with PastChats([chat(1, time=None, messages=untimed), chat(2)]) as server:
        read = await read_all(source(f"{server.url}/chats"))
    assert read.ids == ["c-2"]
    assert [notice.kind for notice in read.notices] == [SourceWarningKind.ITEM_UNREADABLE]
    assert read.problems[0][1] == snapshot


async def test_the_lists_time_stands_in_where_messages_have_none() -> None:
    untimed = [{"role": "user", "text": "q"}, {"role": "bot", "text": "a"}]
    with PastChats([chat(1, messages=untimed)]) as server:
        (only,) = (await read_all(source(f"{server.url}/chats"))).conversations
    assert only.completed_at == NOON + timedelta(minutes=1)


async def test_selectors_can_be_pinned() -> None:
    pinned = {
        "link": "li a",
        "next_page": "main > a",
        "user_message": ".from-user",
        "reply": ".from-bot",
        "text": ".message-text",
        "time": "time",
    }
    with PastChats([chat(number) for number in range(4)], style="plain") as server:
        read = await read_all(source(f"{server.url}/chats", selectors=pinned))
    assert read.ids == [f"c-{number}" for number in range(4)]


async def test_a_list_without_conversations_says_what_to_do() -> None:
    with PastChats([]) as server:
        read = await read_all(source(f"{server.url}/chats", page_deadline_s=0.5))
    assert isinstance(read.error, SourceUnavailable)
    assert "traffic.selectors.link" in str(read.error)


@pytest.mark.parametrize(
    ("status", "why"), [(404, "answered HTTP 404"), (401, "requires a login or a higher quota")]
)
async def test_a_list_that_does_not_open_is_reported(status: int, why: str) -> None:
    with PastChats([]) as server:
        server.statuses["list"] = status
        read = await read_all(source(f"{server.url}/chats?key=hush"))
    assert isinstance(read.error, SourceUnavailable)
    assert why in str(read.error)
    assert "hush" not in str(read.error)


@pytest.mark.whole_only
async def test_a_list_ends_where_it_goes_round_and_tells_of_pages_it_did_not_read() -> None:
    with PastChats([chat(number) for number in range(7)]) as server:
        limited = await read_all(source(f"{server.url}/chats", most_pages=1))
        server.next_page = f"{server.url}/chats"
        round_again = await read_all(source(f"{server.url}/chats"))
        server.next_page = "http://127.0.0.1:1/chats"
        away = await read_all(source(f"{server.url}/chats"))
    assert isinstance(limited.error, ConfigError)
    assert len(limited.ids) == len(round_again.ids) == len(away.ids) == 3
    assert round_again.error is None
    assert "not on the host" in str(away.error)


def build_source_without_browser(url: str) -> PageTrafficSource:
    def open_browser() -> AbstractAsyncContextManager[ScriptRunner]:
        raise AssertionError("a check starts no browser")

    return PageTrafficSource(PageTraffic.model_validate({"kind": "page", "url": url}), open_browser)


@pytest.mark.parametrize(("status", "is_readable"), [(200, True), (403, True), (404, False), (503, False)])
async def test_a_check_requests_the_page_without_a_browser(status: int, is_readable: bool) -> None:
    with FileServer({"chats": b"<html>"}) as server:
        server.statuses = {} if status == 200 else {"chats": status}
        with (
            nullcontext()
            if is_readable
            else pytest.raises(SourceUnavailable, match=f"chats: answered HTTP {status}")
        ):
            await build_source_without_browser(f"{server.url}/chats?key=hush").check_readable(NOON)
        assert server.asked == ["GET chats"]


async def test_a_check_reports_a_page_whose_server_is_not_there() -> None:
    with FileServer({}) as server:
        url = server.url
    with pytest.raises(SourceUnavailable, match="ConnectError"):
        await build_source_without_browser(url).check_readable(NOON)
