"""Test that text which the page omits is read from the network messages, by any transport, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from monitors.errors import CaptureUnsure, PageNotUnderstood
from monitors.records.exchanges import Channel
from tests.monitors.probes.conftest import ONE_BROWSER, MakeDriver
from tests.servers.wire_api import Wired, sent, shown

pytestmark = ONE_BROWSER

TOKENS = {"text": "token", "citations": "sources.*", "app_path": "model", "latency_ms": "ms"}
RULES = {
    "json": {**TOKENS, "url": "/api/json$", "text": "reply.text"},
    "stream": {**TOKENS, "url": "/api/stream"},
    "named": {**TOKENS, "url": r"/api/named\?"},
    "standing": {**TOKENS, "url": "/events"},
    "socket": {**TOKENS, "url": "^wss?://.*/ws"},
    "open": {**TOKENS, "url": "^wss?://.*/ws"},
    "binary": {**TOKENS, "url": "^wss?://.*/ws"},
    "framed": {**TOKENS, "url": "^wss?://.*/ws"},
}


@pytest.fixture(scope="module")
def wired() -> Iterator[str]:
    """Yield the address of pages that show less than the app sent."""
    with Wired() as server:
        yield server.url


@pytest.mark.whole_only
@pytest.mark.parametrize("way", RULES)
@pytest.mark.a_slice(2)
async def test_the_sent_text_is_stored_beside_the_shown_text(wired: str, driver_for: MakeDriver, way: str) -> None:
    """The text that the app sent for the last turn is stored beside the text that the page shows.

    Text that the app sent for earlier turns on the same socket is not included.
    """
    async with driver_for(f"{wired}/{way}", wire=RULES[way], patience_s=2) as driver:
        answer = await driver.ask(("first", "and the second?"))
    assert (answer.earlier, answer.visible_text) == ((shown("first"),), shown("and the second?"))
    assert answer.wire is not None
    assert answer.wire.text == sent("and the second?")
    assert answer.wire.citations == ("P-7 §15",)
    assert (answer.wire.app_path, answer.wire.app_latency_ms) == ("fallback", 321)
    assert answer.graded_channel is Channel.WIRE


async def test_a_body_without_paths_is_the_text(wired: str, driver_for: MakeDriver) -> None:
    rule = {"url": "/api/text", "graded": "visible"}
    async with driver_for(f"{wired}/text", wire=rule) as driver:
        answer = await driver.ask(("first",))
    assert answer.wire is not None
    assert (answer.wire.text, answer.visible_text) == (sent("first"), shown("first"))
    assert answer.graded_channel is Channel.VISIBLE


@pytest.mark.whole_only
async def test_a_socket_that_stayed_open_over_questions_is_still_heard(wired: str, driver_for: MakeDriver) -> None:
    async with driver_for(f"{wired}/open", wire=RULES["open"], patience_s=2, isolation="new-chat") as driver:
        answers = [await driver.ask((question,)) for question in ("one", "and two")]
    assert [answer.wire.text for answer in answers if answer.wire] == [sent("one"), sent("and two")]


@pytest.mark.whole_only
async def test_a_socket_that_brought_no_answer_is_named(wired: str, driver_for: MakeDriver) -> None:
    rule = {"url": "/ws", "text": "answer"}
    async with driver_for(f"{wired}/open", wire=rule, patience_s=2) as driver:
        with pytest.raises(
            PageNotUnderstood, match=r"probe\.wire\.text = 'answer'\. ws://.* messages\. The first message is: .\""
        ):
            await driver.ask(("first",))


async def test_a_page_that_shows_another_answer_than_it_was_sent_is_never_graded(
    zoo: str, driver_for: MakeDriver
) -> None:
    """If a page shows another answer than the app sent, neither text is graded."""
    rule = {"url": "/chat$", "text": "reply.text"}
    async with driver_for(f"{zoo}/stale.html", wire=rule) as driver:
        assert (await driver.ask(("what of eyes?",))).graded_channel is Channel.WIRE
        with pytest.raises(CaptureUnsure, match="answer to another question"):
            await driver.ask(("what of ears?", "what of teeth?"))
