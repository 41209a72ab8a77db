"""Listens for the response that carries the answer (V3)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from monitors.errors import PageNotUnderstood
from monitors.probes.inpage import clean
from monitors.probes.wire import WireRule, documents_in, read_documents, read_payload
from monitors.records.exchanges import Channel, WirePayload

if TYPE_CHECKING:
    from playwright.async_api import Page, Response, WebSocket

BODY_DEADLINE_S = 10.0
SEEN_AT_MOST = 8


class WireTap:
    """What a page received from the addresses that the rule names."""

    def __init__(self, page: Page, rule: WireRule) -> None:
        self._rule = rule
        self._page = page
        self._responses: list[Response] = []
        self._frames: dict[str, list[str]] = {}
        self._others: list[str] = []
        page.on("response", self._responded)
        page.on("websocket", self._socket_opened)

    def begin(self) -> None:
        """Forgets what came before the turn that is now asked."""
        self._responses.clear()
        self._frames.clear()
        self._others.clear()

    async def payload(self) -> WirePayload | None:
        """The last answer that came over the wire; `PageNotUnderstood` when it is to be graded and none came."""
        for response in reversed(self._responses):
            found = await self._from_response(response)
            if found is not None:
                return found
        for url, frames in self._frames.items():
            documents = [document for frame in frames for document in documents_in(frame)]
            found = read_documents(self._rule, url, documents)
            if found is not None:
                return found
        if self._rule.graded is Channel.WIRE:
            raise PageNotUnderstood(
                f"probe.wire.url = {self._rule.url!r} with text path {self._rule.text!r} met no answer; "
                f"responses were: {', '.join(self._others[-SEEN_AT_MOST:]) or 'none'}"
            )
        return None

    async def _from_response(self, response: Response) -> WirePayload | None:
        from playwright.async_api import Error  # loaded already: there is a page

        try:
            body = await asyncio.wait_for(response.body(), BODY_DEADLINE_S)
        except (Error, TimeoutError):
            return None
        return read_payload(self._rule, clean(response.url), clean(body.decode("utf-8", "replace")))

    def _responded(self, response: Response) -> None:
        self._others.append(response.url)
        del self._others[:-SEEN_AT_MOST]
        if self._rule.matches(response.url):
            self._responses.append(response)

    def _socket_opened(self, socket: WebSocket) -> None:
        if not self._rule.matches(socket.url):
            self._others.append(socket.url)
            return

        def received(payload: str | bytes) -> None:
            if isinstance(payload, str):
                self._frames.setdefault(socket.url, []).append(clean(payload))

        socket.on("framereceived", received)
