"""Listens for what carries the answer (V3): a response, an event stream, a web socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from monitors.errors import BrowserLost, PageNotUnderstood
from monitors.probes.inpage import call, clean
from monitors.probes.wire import WireRule, documents_in, read_documents, read_payload
from monitors.records.exchanges import Channel, WirePayload

if TYPE_CHECKING:
    from playwright.async_api import Page, Response

BODY_DEADLINE_S = 10.0
SEEN_AT_MOST = 8
BEGINNING = 200


class WireTap:
    """What a page received from the addresses that the rule names.

    Responses are heard of from the browser. Sockets and event streams are heard inside the page: one that was
    opened long before the question, and stays open after the answer, has no response that could be read.
    """

    def __init__(self, page: Page, rule: WireRule) -> None:
        self._rule = rule
        self._page = page
        self._responses: list[Response] = []
        self._others: list[str] = []
        page.on("response", self._responded)

    async def begin(self) -> None:
        """Forgets what came before the turn that is now asked, and hears what is pushed from now on."""
        self._responses.clear()
        self._others.clear()
        for frame in self._page.frames:
            await passed_over(call(frame, "hear"))

    async def payload(self) -> WirePayload | None:
        """The last answer that came over the wire; `PageNotUnderstood` when it is to be graded and none came."""
        self._page.remove_listener("response", self._responded)
        for response in reversed(self._responses):
            found = await self._from_response(response)
            if found is not None:
                return found
        pushed = await pushes(self._page)
        for url in reversed(pushed):
            found = self._from_pushes(url, pushed[url])
            if found is not None:
                return found
        if self._rule.graded is Channel.WIRE:
            raise PageNotUnderstood(
                f"probe.wire.url = {self._rule.url!r} with text path {self._rule.text!r} met no answer; "
                f"{self._what_came(pushed)}"
            )
        return None

    async def _from_response(self, response: Response) -> WirePayload | None:
        body = await body_of(response)
        return None if body is None else read_payload(self._rule, clean(response.url), body)

    def _from_pushes(self, url: str, texts: list[str]) -> WirePayload | None:
        if not self._rule.matches(url):
            return None
        if not self._rule.text:
            return WirePayload(url=url, text="".join(texts))
        return read_documents(self._rule, url, [one for text in texts for one in documents_in(text)])

    def _what_came(self, pushed: dict[str, list[str]]) -> str:
        """For a person: what the rule might have meant."""
        matched = [url for url in pushed if self._rule.matches(url)]
        if matched:
            first = pushed[matched[-1]][0][:BEGINNING]
            return f"{matched[-1]} pushed {len(pushed[matched[-1]])} messages, the first: {first}"
        came = [*self._others, *pushed]
        return f"responses were: {', '.join(came[-SEEN_AT_MOST:]) or 'none'}"

    def _responded(self, response: Response) -> None:
        self._others.append(response.url)
        del self._others[:-SEEN_AT_MOST]
        if self._rule.matches(response.url):
            self._responses.append(response)


async def body_of(response: Response) -> str | None:
    """The text of a response; ``None`` when the browser has it no more, or it does not end."""
    from playwright.async_api import Error  # loaded already: there is a page

    try:
        body = await asyncio.wait_for(response.body(), BODY_DEADLINE_S)
    except (Error, TimeoutError):
        return None
    return clean(body.decode("utf-8", "replace"))


async def passed_over(work: Awaitable[Any]) -> Any:
    """What a call into a frame gives; ``None`` from one that went away or hangs: the others may know."""
    from playwright.async_api import Error  # loaded already: there is a page

    try:
        return await work
    except (Error, BrowserLost):
        return None


async def pushes(page: Page) -> dict[str, list[str]]:
    """What sockets and event streams brought since they were heard, by address, in order."""
    heard: dict[str, list[str]] = {}
    for frame in page.frames:
        for url, text in await passed_over(call(frame, "told")) or ():
            heard.setdefault(url, []).append(text)
    return heard
