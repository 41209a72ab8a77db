"""Test the script that Lookout runs in a page. If the script fails, the error states the cause."""

from __future__ import annotations

import os

import pytest

from monitors.address_guard import AddressGuard
from monitors.errors import AccessDenied, BrowserLost, BrowserMissing, Unreachable
from monitors.probes.browser.page_reader import PageReader
from tests.servers.past_chats import PastChats

pytestmark = pytest.mark.browser
TITLE = "(given) => [document.title, given.word]"


def reader(*servers: PastChats, deadline_s: float = 60) -> PageReader:
    guard = AddressGuard([server.url for server in servers])
    return PageReader(guard, deadline_s=deadline_s, browser_path=os.environ.get("CHROMIUM_PATH"))


async def test_a_script_gives_what_it_returns_and_halves_of_characters_are_made_whole() -> None:
    with PastChats([]) as server:
        async with reader(server) as browser:
            assert await browser.evaluate(f"{server.url}/chats", TITLE, {"word": "x"}) == ["Past chats", "x"]
            assert await browser.evaluate(f"{server.url}/chats", "() => 'a\\ud83d'", None) == "a\ufffd"


async def test_f38_a_link_into_the_network_inside_is_not_followed() -> None:
    with PastChats([]) as inside, PastChats([]) as server:
        server.moved["c"] = f"{inside.url}/chats"
        async with reader(server) as browser:
            for address in (f"{inside.url}/chats", f"{server.url}/chats/c"):
                with pytest.raises(AccessDenied, match="Its configuration does not allow"):
                    await browser.evaluate(address, TITLE, {})


async def test_an_unreadable_page_is_reported_with_its_cause() -> None:
    with PastChats([]) as elsewhere, PastChats([]) as server:
        server.statuses |= {"a": 500, "b": 429}
        server.moved["c"] = f"{elsewhere.url}/chats"
        async with reader(server, elsewhere) as browser:
            with pytest.raises(Unreachable, match="answered HTTP 500"):
                await browser.evaluate(f"{server.url}/chats/a", TITLE, {})
            with pytest.raises(AccessDenied, match="HTTP 429"):
                await browser.evaluate(f"{server.url}/chats/b", TITLE, {})
            with pytest.raises(AccessDenied, match="another host"):
                await browser.evaluate(f"{server.url}/chats/c", TITLE, {})
            with pytest.raises(Unreachable, match=r"net::ERR_\w+"):
                await browser.evaluate("http://127.0.0.1:1/chats", TITLE, {})
            with pytest.raises(BrowserLost, match="no function of mine"):
                await browser.evaluate(
                    f"{server.url}/chats", "() => { throw new Error('no function of mine') }", {}
                )


async def test_f60_a_browser_that_was_killed_is_started_again() -> None:
    with PastChats([]) as server:
        async with reader(server) as browser:
            await browser.evaluate(f"{server.url}/chats", TITLE, {"word": "x"})
            await (await browser._chromium.start_if_needed()).close()
            assert await browser.evaluate(f"{server.url}/chats", TITLE, {"word": "y"}) == ["Past chats", "y"]


async def test_without_a_browser_it_says_so() -> None:
    async with PageReader(AddressGuard([]), deadline_s=1, browser_path="/no/such/chromium") as browser:
        with pytest.raises(BrowserMissing):
            await browser.evaluate("http://127.0.0.1:1/", TITLE, {})
