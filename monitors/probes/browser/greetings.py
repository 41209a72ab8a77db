"""Greetings: what a page says to every visitor, learnt where nothing was asked. They may come late."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from monitors.errors import ProbeError
from monitors.probes.browser.inpage import call

if TYPE_CHECKING:
    from playwright.async_api import Frame

    from monitors.probes.browser.discover import Chat
    from monitors.probes.browser.pages import Pages

SHORTEST = 20
"""Characters; a shorter line ("Yes.") may well be an answer too."""
LONGEST = 500
WORD = 2
LINES_AT_MOST = 100
PAGES = 2
"""So many pages must have said a line before they were asked, and at least half of all."""
SILENT_S = 20.0
"""How long to listen to a page without a question; what comes later counts as an answer to one."""
SLOWER_S = 5.0
"""Once it stands, the silent page is waited for no longer than this to be as old as the page that was asked."""
STANDS_S = 15.0
"""The silent page is loaded beside those that are asked, and may stand so much later on a busy machine."""
RENDERED_S = 0.5
"""Two pages of one target differ by so much in when they render what they say by a timer."""


class Greetings:
    """The lines that stood on fresh pages of one target before anything was asked, and those of a `SilentPage`."""

    def __init__(self, silent: SilentPage | None = None) -> None:
        self._pages = 0
        self._said: Counter[str] = Counter()
        self._silent = silent

    def note(self, lines: Iterable[str]) -> None:
        """Takes what one fresh page said."""
        self._pages += 1
        self._said.update({line for line in lines if SHORTEST <= len(line) <= LONGEST})

    @property
    def known(self) -> bool:
        """Whether enough pages were seen to know what they say."""
        return self._pages >= PAGES

    def lines(self) -> tuple[str, ...]:
        """The lines that the page says to everybody, the most frequent first."""
        said = self._said.most_common(LINES_AT_MOST)
        often = tuple(line for line, pages in said if pages >= PAGES and 2 * pages >= self._pages)
        return often + (self._silent.late if self._silent is not None else ())

    async def uninvited(self, age_s: float) -> tuple[str, ...]:
        """What a page that was asked nothing has said by that age of its document, in seconds."""
        return () if self._silent is None else await self._silent.said_by(age_s)


class SilentPage:
    """One page of the target on which nothing is asked, opened together with the first that is asked.

    Its failures do not matter: then nothing is known of late greetings.
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._task: asyncio.Task[None] | None = None
        self._stands = asyncio.Event()
        self._ended = asyncio.Event()
        self._chat: Chat | None = None
        self._first: tuple[str, ...] = ()
        self._lines: dict[str, None] = {}

    def begin(self) -> None:
        """Opens it, once."""
        if self._task is None:
            self._task = asyncio.ensure_future(self._stand())

    def end(self) -> None:
        """It need not stand any longer: a target that names its answers needs no greeting recognized."""
        self._ended.set()

    async def close(self) -> None:
        """Ends it where it still stands."""
        self.end()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=SLOWER_S)
            self._task.cancel()

    @property
    def late(self) -> tuple[str, ...]:
        """What it said that did not stand there at first."""
        return tuple(line for line in self._lines if line not in self._first)[:LINES_AT_MOST]

    async def said_by(self, age_s: float) -> tuple[str, ...]:
        """All that it has said once its document is of that age, by the clock that its timers go by.

        How long a page takes to load and its chat to be found differs between two pages on a busy machine.
        """
        if self._task is None:
            return ()
        await _within(self._stands, STANDS_S)
        own_s = await document_age_s(self._chat.frame) if self._chat is not None else None
        if own_s is not None:
            await _within(self._ended, min(SLOWER_S, age_s + RENDERED_S - own_s))
            await self._listen()
        first = tuple(line for line in self._first if SHORTEST <= len(line) <= LONGEST)
        return (*first, *self.late)

    async def _stand(self) -> None:
        from playwright.async_api import Error  # loaded already: a page is being asked

        try:
            async with self._pages.tab() as tab:
                self._chat = await self._pages.chat_on(tab)
                await self._listen()
                self._first = tuple(self._lines)
                self._stands.set()
                await _within(self._ended, SILENT_S)
                await self._listen()
                self._chat = None
        except (ProbeError, Error):
            return
        finally:
            self._chat = None
            self._stands.set()
            self._ended.set()

    async def _listen(self) -> None:
        from playwright.async_api import Error  # loaded already: there is a page

        if self._chat is None:
            return
        try:
            said = await call(self._chat.frame, "says")
        except (ProbeError, Error):
            return
        self._lines |= dict.fromkeys(line for line in said if WORD <= len(line) <= LONGEST)


async def document_age_s(frame: Frame) -> float | None:
    """How long a document has stood, in seconds by its own clock; ``None`` where it cannot be asked any more."""
    from playwright.async_api import Error  # loaded already: there is a page

    try:
        return await call(frame, "age") / 1000
    except (ProbeError, Error):
        return None


async def _within(happens: asyncio.Event, timeout_s: float) -> None:
    """Waits until it happens, or the time is over."""
    # The end of the time is a result, as the docstring says.
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await happens.wait()
