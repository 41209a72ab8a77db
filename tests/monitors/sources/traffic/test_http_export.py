"""Test that traffic is read from an export with any kind of pagination, even if its server misbehaves."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from pydantic import ValidationError
from syrupy.assertion import SnapshotAssertion

from monitors.errors import ConfigError, SourceUnavailable
from monitors.records.traffic import SourceWarningKind
from monitors.request_headers import build_request_headers
from monitors.sources.traffic.http_export import HttpTrafficSource
from monitors.sources.traffic.settings import HttpTraffic
from tests.monitors.sources.traffic.read_source import NOON, Read, read_all, stored
from tests.servers.export import Answer, ExportServer, body, cut_off, document, status

SECRET = "hush-hush"
ITEMS = [stored(number) for number in range(8)]
IDS = [item["id"] for item in ITEMS]


class Pauses:
    """A sleep that returns at once and records its durations."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def source(
    url: str, *, token: str | None = None, pauses: Pauses | None = None, **changes: Any
) -> HttpTrafficSource:
    settings = HttpTraffic.model_validate({"kind": "http", "url": url, **changes})
    variable = settings.token_env or "T"
    held = {} if token is None else {variable: token}
    bearer = build_request_headers({}, held, key="traffic.headers", token_variable=variable)
    return HttpTrafficSource(settings, headers=bearer, sleep=pauses or Pauses())


WAYS: list[tuple[str, dict[str, Any]]] = [
    ("numbered", {"page_parameter": "page"}),
    ("clamped", {"page_parameter": "page"}),
    ("cursor", {}),
    ("links", {}),
    ("headers", {}),
]


@pytest.mark.parametrize(("way", "settings"), WAYS, ids=[way for way, _ in WAYS])
async def test_every_page_is_read_once(way: str, settings: dict[str, Any]) -> None:
    with ExportServer(ITEMS) as server:
        read = await read_all(source(f"{server.url}/{way}?tenant=7", **settings))
    assert (read.ids, read.notices, read.error) == (IDS, [], None)
    assert len(server.asked) <= 4


async def test_an_empty_export_is_read() -> None:
    with ExportServer([]) as server:
        read = await read_all(source(f"{server.url}/cursor"))
    assert (read.ids, read.error) == ([], None)


@pytest.mark.parametrize(
    ("form", "since", "until"),
    [
        ("iso", "2026-03-01T12:00:01Z", "2026-03-01T12:00:03Z"),
        ("epoch-s", "1772366401", "1772366403"),
        ("epoch-ms", "1772366401000", "1772366403000"),
    ],
)
async def test_the_window_is_requested_and_enforced(form: str, since: str, until: str) -> None:
    settings = {"since_parameter": "from", "until_parameter": "to", "time_format": form, "size_parameter": "limit"}
    with ExportServer(ITEMS) as server:
        read = await read_all(
            source(f"{server.url}/links?tenant=7", **settings),
            NOON + timedelta(seconds=1),
            NOON + timedelta(seconds=3),
        )
        assert server.asked[0].replace("%3A", ":") == f"/links?tenant=7&from={since}&to={until}&limit=100"
    assert read.ids == ["c-1", "c-2"]


async def test_a_bad_item_is_reported_by_its_place_and_the_rest_is_read() -> None:
    with ExportServer([*ITEMS[:4], {"question": "my PIN is 4471"}, *ITEMS[4:]]) as server:
        read = await read_all(source(f"{server.url}/links"))
    assert read.ids == IDS
    ((place, detail),) = read.problems
    assert place == "page 2, item 2"
    assert "4471" not in detail


ONLY_PAGES: list[tuple[Any, bool]] = [
    ({"data": ITEMS}, False),
    ({"data": [*ITEMS, {}, {}]}, True),
    ([*ITEMS, {}, {}], True),
    ({"data": [*ITEMS, {}, {}], "next": None}, False),
    ({"data": [*ITEMS, {}, {}], "has_more": False}, False),
    ({"data": ITEMS, "has_more": True}, True),
    ({"data": ITEMS, "total": 8}, False),
    ({"data": ITEMS, "total": 9}, True),
    ({"data": [*ITEMS, {}, {}], "total": 10}, False),
]


@pytest.mark.parametrize(("page", "is_reported"), ONLY_PAGES)
async def test_an_only_page_that_may_not_be_all_is_reported(page: Any, is_reported: bool) -> None:
    with ExportServer([]) as server:
        server.answers["one"] = document(page)
        read = await read_all(source(f"{server.url}/other/one"))
    assert (read.ids, read.error) == (IDS, None)
    doubts = [one for one in read.notices if one.kind is SourceWarningKind.PAGES_MAY_FOLLOW]
    assert len(doubts) == is_reported


async def test_a_full_page_whose_links_name_no_next_page_is_the_last() -> None:
    first = '</other/one?page=1>; rel="first"'
    with ExportServer([]) as server:
        server.answers["one"] = lambda _request: web.json_response(
            {"data": [*ITEMS, {}, {}]}, headers={"Link": first}
        )
        read = await read_all(source(f"{server.url}/other/one"))
    assert read.ids == IDS
    assert SourceWarningKind.PAGES_MAY_FOLLOW not in {notice.kind for notice in read.notices}


def message(seconds: float, role: str, text: str, session: str = "s-1") -> dict[str, Any]:
    """Return an item that contains one message, sent ``seconds`` seconds after noon."""
    at = (NOON + timedelta(seconds=seconds)).isoformat()
    return {"session_id": session, "ts": at, "role": role, "content": text}


async def test_messages_of_a_session_become_one_conversation_after_the_last_page() -> None:
    rows = [
        message(0, "user", "x"),
        message(1, "assistant", "a"),
        message(2, "user", "y"),
        message(3, "assistant", "b"),
    ]
    with ExportServer(rows) as server:
        read = await read_all(source(f"{server.url}/cursor"))
    (conversation,) = read.conversations
    assert [(turn.user_text, turn.reply_text) for turn in conversation.turns] == [("x", "a"), ("y", "b")]


async def test_messages_before_the_window_belong_to_a_conversation_that_ends_in_it() -> None:
    """A conversation that ended before the window is not yielded: an earlier nightly run read it."""
    rows = [
        *(message(-90_000 + second, "user", "x", "long ago") for second in range(2)),
        message(-1, "user", "x", "ended before"),
        message(-1, "user", "x"),
        message(1, "assistant", "a"),
    ]
    with ExportServer(rows) as server:
        read = await read_all(source(f"{server.url}/cursor"), NOON, NOON + timedelta(seconds=10))
    (conversation,) = read.conversations
    assert conversation.origin_id == "s-1"
    assert [(turn.user_text, turn.reply_text) for turn in conversation.turns] == [("x", "a")]


async def test_a_message_without_a_session_is_reported_if_it_lies_in_the_window() -> None:
    rows = [message(-1, "user", "x"), message(1, "user", "x")]
    for row in rows:
        del row["session_id"]
    with ExportServer(rows) as server:
        read = await read_all(source(f"{server.url}/cursor"), NOON, NOON + timedelta(seconds=10))
    ((place, detail),) = read.problems
    assert (read.ids, place) == ([], "page 1, item 2")
    assert "conversation id" in detail


@pytest.mark.parametrize("code", [404, 410, 418])
async def test_a_missing_export_is_reported_at_once(code: int) -> None:
    pauses = Pauses()
    with ExportServer([]) as server:
        server.answers["one"] = status(code)
        read = await read_all(source(f"{server.url}/other/one", pauses=pauses))
    assert f"HTTP {code}" in read.error_text
    assert (len(server.asked), pauses.seconds) == (1, [])


async def test_a_page_of_the_size_that_was_asked_for_is_full() -> None:
    for size, is_reported in ((8, True), (9, False)):
        with ExportServer([]) as server:
            server.answers["one"] = document({"data": ITEMS})
            read = await read_all(source(f"{server.url}/other/one", size_parameter="limit", size=size))
        assert len(read.notices) == is_reported


SERVER_FAULTS: list[tuple[str, Answer, list[float]]] = [
    ("429 with seconds", status(429, **{"Retry-After": "7"}), [7]),
    ("429 for an hour", status(429, **{"Retry-After": "3600"}), [30]),
    ("429 without a word", status(429), [1]),
    ("503 until a time", status(503, Date="Sun, 01 Mar 2026 12:00:00 GMT", **{"Retry-After": "Sun, 01 Mar 2026 12:00:09 GMT"}), [9]),
    ("500", status(500), [1]),
    ("a proxy's page", body("<html>one moment</html>", "text/html"), [1]),
    ("half a page", body('{"results": [{"id"'), [1]),
    ("a broken connection", cut_off, [1]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "pauses"), [row[1:] for row in SERVER_FAULTS], ids=[row[0] for row in SERVER_FAULTS]
)
async def test_a_page_that_does_not_come_is_asked_for_again(fault: Answer, pauses: list[float]) -> None:
    waited = Pauses()
    with ExportServer(ITEMS) as server:
        server.faults.append(fault)
        read = await read_all(source(f"{server.url}/links", pauses=waited, retry_most_s=30))
    assert (read.ids, read.error) == (IDS, None)
    assert waited.seconds == pauses


async def test_a_failing_server_is_reported_with_what_was_read_before(
    snapshot: SnapshotAssertion,
) -> None:
    waited = Pauses()
    with ExportServer(ITEMS) as server:
        server.faults += [document({"results": ITEMS[:2], "next": "/links?p=1"}), *[status(502)] * 9]
        read = await read_all(source(f"{server.url}/links?key={SECRET}", pauses=waited, attempts=4))
    assert read.ids == ["c-0", "c-1"]
    assert isinstance(read.error, SourceUnavailable)
    assert read.error_text == snapshot
    assert waited.seconds == [1, 2, 4]


async def test_a_slow_server_is_reported(snapshot: SnapshotAssertion) -> None:
    with ExportServer(ITEMS) as server:
        read = await read_all(source(f"{server.url}/slow", attempts=2, request_deadline_s=0.1))
    assert isinstance(read.error, SourceUnavailable)
    assert read.error_text == snapshot


async def test_a_server_that_is_not_there_is_reported() -> None:
    with ExportServer([]) as server:
        gone = server.url
    read = await read_all(source(gone, attempts=1))
    assert isinstance(read.error, SourceUnavailable)
    assert "cannot be reached (ConnectError)" in str(read.error)


async def test_a_login_page_is_reported_as_such(snapshot: SnapshotAssertion) -> None:
    with ExportServer([]) as server:
        server.answers["x"] = body("<!doctype html><p>Sign in</p>", "text/html")
        read = await read_all(source(f"{server.url}/other/x", attempts=2))
    assert isinstance(read.error, SourceUnavailable)
    assert read.error_text == snapshot


@pytest.mark.parametrize("code", [401, 403])
async def test_an_expired_token_is_reported_at_once_and_not_shown(code: int, snapshot: SnapshotAssertion) -> None:
    with ExportServer([]) as server:
        server.answers["x"] = status(code)
        read = await read_all(source(f"{server.url}/other/x?k={SECRET}", token=SECRET, token_env="BOT_TOKEN"))
        assert len(server.asked) == 1
    assert all(part in str(read.error) for part in (str(code), "BOT_TOKEN"))
    assert SECRET not in str(read.error)
    assert read.error_text == snapshot


async def test_a_check_requests_one_page_of_the_last_hour() -> None:
    settings: dict[str, Any] = {"since_parameter": "from", "until_parameter": "to", "time_format": "epoch-s"}
    with ExportServer(ITEMS) as server:
        await source(f"{server.url}/links", **settings).check_readable(NOON)
        assert server.asked == [f"/links?from={NOON.timestamp() - 3600:.0f}&to={NOON.timestamp():.0f}"]


@pytest.mark.parametrize("answer", [status(403), document({"error": "moved"}), body("<html>", "text/html")])
async def test_a_check_reports_an_export_that_cannot_be_read(answer: Answer) -> None:
    with ExportServer([]) as server:
        server.answers["x"] = answer
        with pytest.raises(SourceUnavailable):
            await source(f"{server.url}/other/x", attempts=1).check_readable(NOON)


async def test_the_token_is_sent() -> None:
    with ExportServer(ITEMS, token=SECRET) as server:
        assert (await read_all(source(f"{server.url}/links", token=SECRET, token_env="BOT_TOKEN"))).ids == IDS


async def elsewhere(answer: Any) -> tuple[Read, ExportServer]:
    """Read a source whose response links to another host. Return the result and the server of that host.

    The other host must receive no request.
    """
    with ExportServer(ITEMS) as other, ExportServer([]) as server:
        server.answers["x"] = answer(other.url)
        return await read_all(source(f"{server.url}/other/x", token=SECRET, token_env="T")), other


def _link(there: str) -> Answer:
    return document({"items": ITEMS[:1], "next": f"{there}/links"})


def _redirect(there: str) -> Answer:
    return status(302, Location=f"{there}/links")


@pytest.mark.parametrize("answer", [_link, _redirect], ids=["link", "redirect"])
async def test_f38_nothing_is_asked_of_another_host(answer: Any, snapshot: SnapshotAssertion) -> None:
    read, other = await elsewhere(answer)
    assert isinstance(read.error, SourceUnavailable)
    assert read.error_text == snapshot
    assert other.asked == []


async def test_a_redirect_on_the_same_host_is_followed_with_the_token() -> None:
    with ExportServer(ITEMS, token=SECRET) as server:
        server.answers["x"] = status(307, Location="/links?p=1")
        read = await read_all(source(f"{server.url}/other/x", token=SECRET, token_env="T"))
    assert read.ids == IDS[3:]


async def test_redirects_without_end_are_reported(snapshot: SnapshotAssertion) -> None:
    with ExportServer([]) as server:
        server.answers["x"] = status(302, Location="/other/x")
        read = await read_all(source(f"{server.url}/other/x"))
    assert isinstance(read.error, SourceUnavailable)
    assert read.error_text == snapshot


async def test_pages_that_go_round_are_reported(snapshot: SnapshotAssertion) -> None:
    with ExportServer([]) as server:
        server.answers["x"] = document({"items": ITEMS[:1], "next": "/other/y"})
        server.answers["y"] = document({"items": ITEMS[1:2], "next": "/other/x"})
        read = await read_all(source(f"{server.url}/other/x"))
    assert read.ids == ["c-0", "c-1"]
    assert read.error_text == snapshot


async def test_a_cursor_that_stays_at_the_end_is_the_end() -> None:
    with ExportServer([]) as server:
        server.answers["x"] = lambda request: document(
            {"items": [] if "cursor" in request.query else ITEMS[:1], "next_cursor": 9}
        )(request)
        read = await read_all(source(f"{server.url}/other/x"))
    assert (read.ids, read.error) == (["c-0"], None)


async def test_a_page_that_says_that_there_is_no_more_is_the_last() -> None:
    with ExportServer([]) as server:
        server.answers["x"] = document({"items": ITEMS[:1], "next_cursor": "c9", "has_more": False})
        assert (await read_all(source(f"{server.url}/other/x"))).ids == ["c-0"]
        assert len(server.asked) == 1


async def test_more_pages_than_allowed_are_a_config_error_behind_what_was_read() -> None:
    with ExportServer(ITEMS) as server:
        read = await read_all(source(f"{server.url}/links", most_pages=2))
    assert read.ids == IDS[:6]
    assert isinstance(read.error, ConfigError)
    assert "traffic.most_pages = 2" in str(read.error)


async def test_a_page_that_is_too_large_is_not_held(snapshot: SnapshotAssertion) -> None:
    with ExportServer([]) as server:
        server.answers["x"] = body(b"[" + b" " * 5_000_000 + b"]")
        read = await read_all(source(f"{server.url}/other/x", page_most_mb=1))
    assert isinstance(read.error, SourceUnavailable)
    assert read.error_text == snapshot


async def test_a_page_without_items_names_what_it_has_but_no_data(snapshot: SnapshotAssertion) -> None:
    with ExportServer([]) as server:
        server.answers["x"] = document({"rows_of": 1, "tara@mailbox.example": 2})
        read = await read_all(source(f"{server.url}/other/x"))
    assert "rows_of" in str(read.error)
    assert "tara" not in str(read.error)
    assert read.error_text == snapshot


async def test_bad_utf_8_and_nan_cost_no_more_than_themselves() -> None:
    raw = json.dumps([stored(1, latency_ms=float("nan")), stored(2)]).encode().replace(b"q2", b"q\xff2")
    with ExportServer([]) as server:
        server.answers["x"] = body(raw)
        read = await read_all(source(f"{server.url}/other/x"))
    assert [one.turns[0].user_text for one in read.conversations] == ["q1", "q\ufffd2"]


def test_an_address_with_a_password_is_refused() -> None:
    with pytest.raises(ValidationError, match="without user name and password"):
        source("https://me:hush@host/x")
