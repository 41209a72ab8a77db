"""Learn the page's own lines from its pages: greetings, which may come late, and lines of every answer."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from monitors.errors import ProbeError
from monitors.probes.browser.inpage import call_in_page

if TYPE_CHECKING:
    from playwright.async_api import Frame

    from monitors.probes.browser.discover import Chat
    from monitors.probes.browser.pages import Pages

MIN_LINE_CHARACTERS = 20
"""Characters; a shorter line ("Yes.") may also be an answer."""
MAX_LINE_CHARACTERS = 500
MIN_WORD_CHARACTERS = 2
MAX_LINES = 100
MIN_PAGES = 2
"""A greeting must have been on this many pages before the question, and on at least half of all pages."""
LISTEN_S = 20.0
"""Seconds to watch a page without a question. Later lines count as answers."""
MAX_EXTRA_WAIT_S = 5.0
"""The longest wait until the loaded silent page is as old as the page that was asked."""
OPEN_TIMEOUT_S = 15.0
"""How much later the silent page may be loaded than the pages that are asked, on a busy machine."""
RENDER_TOLERANCE_S = 0.5
"""How much two pages of one target differ in the time when they render timed lines."""


MIN_ANSWERS = 2
"""A line is usual if it is the first or last line of this many answers, and of all other answers too."""
MAX_USUAL_CHARACTERS = 60
_ANSWERING = re.compile(
    r"\d|\b(yes|no|not|none|never|nothing|sorry|cannot|unable|true|false)\b|n['’]t\b|cover|includ|exclu|eligib|approv|"
    r"reject|den(y|ie)|allow|permit|valid|possib|availab|requir|हाँ|हां|नहीं|\b(ja|nein|nicht|kein)",
    re.IGNORECASE,
)
"""Words and figures that may be an answer, even if every question had the same one."""


class Greetings:
    """The lines on fresh pages of one target before any question, and those of a `SilentPage`."""

    def __init__(self, silent: SilentPage | None = None) -> None:
        self._pages = 0
        self._line_counts: Counter[str] = Counter()
        self._silent = silent
        self._edges: dict[str, frozenset[str]] = {}
        self._usual: set[str] = set()

    def note_answer(self, question: str, text: str) -> None:
        """Add the last line of the answer to a question, and the first if it is not a sentence."""
        lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
        if len(lines) > 1:
            heads = {lines[0]} if lines[0][-1] not in ".!?।" else set[str]()
            self._edges[question] = frozenset({lines[-1], *heads})

    def list_usual_lines(self) -> tuple[str, ...]:
        """Return the lines at the head or foot of every answer: a name, a model, a disclaimer."""
        if len(self._edges) < MIN_ANSWERS:
            return tuple(sorted(self._usual))
        first, *others = self._edges.values()
        shared = first.intersection(*others)
        self._usual |= {
            line for line in shared if len(line) <= MAX_USUAL_CHARACTERS and not _ANSWERING.search(line)
        }
        return tuple(sorted(self._usual))

    def note(self, lines: Iterable[str]) -> None:
        """Add the lines of one fresh page."""
        self._pages += 1
        self._line_counts.update(
            {line for line in lines if MIN_LINE_CHARACTERS <= len(line) <= MAX_LINE_CHARACTERS}
        )

    @property
    def are_known(self) -> bool:
        """Whether enough pages were read to know their greetings."""
        return self._pages >= MIN_PAGES

    def list_lines(self) -> tuple[str, ...]:
        """Return the lines that the page shows to every visitor, the most frequent first."""
        counts = self._line_counts.most_common(MAX_LINES)
        frequent_lines = tuple(line for line, pages in counts if pages >= MIN_PAGES and 2 * pages >= self._pages)
        return frequent_lines + (self._silent.late if self._silent is not None else ())

    async def read_silent_page(self, age_s: float) -> tuple[str, ...]:
        """Return the lines that the silent page had shown at a document age of ``age_s`` seconds."""
        return () if self._silent is None else await self._silent.list_lines_by_age(age_s)


class SilentPage:
    """A page of the target without a question, opened together with the first page that is asked.

    Its failures are ignored: then late greetings are unknown.
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._task: asyncio.Task[None] | None = None
        self._is_open = asyncio.Event()
        self._ended = asyncio.Event()
        self._chat: Chat | None = None
        self._first: tuple[str, ...] = ()
        self._lines: dict[str, None] = {}

    def begin(self) -> None:
        """Open the page; does nothing at the second call."""
        if self._task is None:
            self._task = asyncio.ensure_future(self._stand())

    def end(self) -> None:
        """Close the page early: a target with a configured answer selector needs no greetings."""
        self._ended.set()

    async def close(self) -> None:
        """Close the page if it is still open."""
        self.end()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=MAX_EXTRA_WAIT_S)
            self._task.cancel()

    @property
    def late(self) -> tuple[str, ...]:
        """Lines that were missing at first."""
        return tuple(line for line in self._lines if line not in self._first)[:MAX_LINES]

    async def list_lines_by_age(self, age_s: float) -> tuple[str, ...]:
        """Return all lines that the page showed until this age of its document, by the document's own clock.

        Ages are compared because load and discovery times differ between two pages on a busy machine.
        """
        if self._task is None:
            return ()
        await _wait_for_event(self._is_open, OPEN_TIMEOUT_S)
        own_s = await measure_document_age_s(self._chat.frame) if self._chat is not None else None
        if own_s is not None:
            await _wait_for_event(self._ended, min(MAX_EXTRA_WAIT_S, age_s + RENDER_TOLERANCE_S - own_s))
            await self._listen()
        first = tuple(line for line in self._first if MIN_LINE_CHARACTERS <= len(line) <= MAX_LINE_CHARACTERS)
        return (*first, *self.late)

    async def _stand(self) -> None:
        from playwright.async_api import Error  # already imported: a page is being asked

        try:
            async with self._pages.lend_tab() as tab:
                self._chat = await self._pages.open_chat_on(tab)
                await self._listen()
                self._first = tuple(self._lines)
                self._is_open.set()
                await _wait_for_event(self._ended, LISTEN_S)
                await self._listen()
                self._chat = None
        except (ProbeError, Error):
            return
        finally:
            self._chat = None
            self._is_open.set()
            self._ended.set()

    async def _listen(self) -> None:
        from playwright.async_api import Error  # already imported: a page is open

        if self._chat is None:
            return
        try:
            lines = await call_in_page(self._chat.frame, "says")
        except (ProbeError, Error):
            return
        self._lines |= dict.fromkeys(
            line for line in lines if MIN_WORD_CHARACTERS <= len(line) <= MAX_LINE_CHARACTERS
        )


async def measure_document_age_s(frame: Frame) -> float | None:
    """Return a document's age in seconds by its own clock; ``None`` if the page no longer responds."""
    from playwright.async_api import Error  # already imported: a page is open

    try:
        return await call_in_page(frame, "age") / 1000
    except (ProbeError, Error):
        return None


async def _wait_for_event(event: asyncio.Event, timeout_s: float) -> None:
    """Wait for the event or the timeout; a timeout is a normal result."""
    # a timeout is a normal result
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
