"""Find lines that are not part of an answer: a page's greeting, and lines that all answers have in common."""

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
"""Minimum length of a greeting. A shorter line, such as "Yes.", may be an answer."""
MAX_LINE_CHARACTERS = 500
MIN_WORD_CHARACTERS = 2
MAX_LINES = 100
MIN_PAGES = 2
"""Minimum number of pages that must show a line before their first question.

A line counts as a greeting only if this number of pages, and at least half of all pages, show it.
"""
LISTEN_S = 20.0
"""The unasked page (see `UnaskedPage`) is watched for at most this many seconds.

A greeting that appears later is not recognised.
"""
MAX_EXTRA_WAIT_S = 5.0
"""Maximum number of seconds to wait until the unasked page is old enough (see `UnaskedPage`).

The wait ends when the unasked page has been open as long as the page with the question.
"""
OPEN_TIMEOUT_S = 15.0
"""Maximum number of seconds to wait until the unasked page has loaded (see `UnaskedPage`).

Loading takes longer on a busy machine.
"""
RENDER_TOLERANCE_S = 0.5
"""Tolerance in seconds when the ages of two pages are compared.

Two pages of one target may show a delayed line at slightly different times.
"""


MIN_ANSWERS = 2
"""A first or last line that all answers share counts as part of the page only with this many answers or more.

With fewer answers, this line may be the answer itself.
"""
MAX_USUAL_CHARACTERS = 60
_ANSWERING = re.compile(
    r"\d|\b(yes|no|not|none|never|nothing|sorry|cannot|unable|true|false)\b|n['’]t\b|cover|includ|exclu|eligib|approv|"
    r"reject|den(y|ie)|allow|permit|valid|possib|availab|requir|हाँ|हां|नहीं|\b(ja|nein|nicht|kein)",
    re.IGNORECASE,
)
"""A pattern for words and digits that may be an answer.

A line with such a word or digit is always treated as a part of the answer, even if all answers contain this line.
"""


class Greetings:
    """The greetings of one target: lines that its pages show without a question."""

    def __init__(self, unasked: UnaskedPage | None = None) -> None:
        self._pages = 0
        self._line_counts: Counter[str] = Counter()
        self._unasked = unasked
        self._edges: dict[str, frozenset[str]] = {}
        self._usual: set[str] = set()

    def add_answer(self, question: str, text: str) -> None:
        """Store the last line of the answer ``text``. Also store its first line, if that line is not a sentence."""
        lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
        if len(lines) > 1:
            heads = {lines[0]} if lines[0][-1] not in ".!?।" else set[str]()
            self._edges[question] = frozenset({lines[-1], *heads})

    def list_lines_common_to_answers(self) -> tuple[str, ...]:
        """Return the first or last lines that all answers share, such as a name, a model or a disclaimer."""
        if len(self._edges) < MIN_ANSWERS:
            return tuple(sorted(self._usual))
        first, *others = self._edges.values()
        shared = first.intersection(*others)
        self._usual |= {
            line for line in shared if len(line) <= MAX_USUAL_CHARACTERS and not _ANSWERING.search(line)
        }
        return tuple(sorted(self._usual))

    def count_lines_of_fresh_page(self, lines: Iterable[str]) -> None:
        """Record ``lines``, the lines that one newly opened page shows before its first question."""
        self._pages += 1
        self._line_counts.update(
            {line for line in lines if MIN_LINE_CHARACTERS <= len(line) <= MAX_LINE_CHARACTERS}
        )

    @property
    def has_enough_pages(self) -> bool:
        """Return whether enough pages were read to recognise the greetings. The minimum is `MIN_PAGES`."""
        return self._pages >= MIN_PAGES

    def list_greeting_lines(self) -> tuple[str, ...]:
        """Return the greeting lines of the target.

        Lines that at least half of the pages show come first. Lines that appeared late on the unasked page follow.
        """
        counts = self._line_counts.most_common(MAX_LINES)
        frequent_lines = tuple(line for line, pages in counts if pages >= MIN_PAGES and 2 * pages >= self._pages)
        return frequent_lines + (self._unasked.late_lines if self._unasked is not None else ())

    async def list_unasked_page_lines_until_age(self, age_s: float) -> tuple[str, ...]:
        """Return the lines that the unasked page showed in the first ``age_s`` seconds after it loaded.

        The result is empty if there is no unasked page (see `UnaskedPage`).
        """
        return () if self._unasked is None else await self._unasked.list_lines_until_age(age_s)


class UnaskedPage:
    """A page of the target on which no question is asked. Each line that appears on it is therefore a greeting.

    The page is opened together with the first page on which a question is asked. If the unasked page fails,
    greetings that appear some time after a page has loaded are not recognised.
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._task: asyncio.Task[None] | None = None
        self._is_open = asyncio.Event()
        self._ended = asyncio.Event()
        self._chat: Chat | None = None
        self._first: tuple[str, ...] = ()
        self._lines: dict[str, None] = {}

    def start(self) -> None:
        """Begin to open the page. A second call has no effect."""
        if self._task is None:
            self._task = asyncio.ensure_future(self._open_page_and_collect_lines())

    def stop_early(self) -> None:
        """Stop watching and close the page early.

        Call this if greetings are not needed, for example because the ``answer`` selector is configured.
        """
        self._ended.set()

    async def close(self) -> None:
        """Close the page if it is still open."""
        self.stop_early()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=MAX_EXTRA_WAIT_S)
            self._task.cancel()

    @property
    def late_lines(self) -> tuple[str, ...]:
        """Return the lines that appeared after the first lines of the page were collected."""
        return tuple(line for line in self._lines if line not in self._first)[:MAX_LINES]

    async def list_lines_until_age(self, age_s: float) -> tuple[str, ...]:
        """Return the lines that the page showed in the first ``age_s`` seconds after it loaded.

        The age is measured by the page's own clock, because two pages load at different times on a busy machine.
        """
        if self._task is None:
            return ()
        await _wait_for_event(self._is_open, OPEN_TIMEOUT_S)
        own_s = await measure_document_age_s(self._chat.frame) if self._chat is not None else None
        if own_s is not None:
            await _wait_for_event(self._ended, min(MAX_EXTRA_WAIT_S, age_s + RENDER_TOLERANCE_S - own_s))
            await self._collect_lines()
        first = tuple(line for line in self._first if MIN_LINE_CHARACTERS <= len(line) <= MAX_LINE_CHARACTERS)
        return (*first, *self.late_lines)

    async def _open_page_and_collect_lines(self) -> None:
        from playwright.async_api import Error  # Playwright is already imported

        try:
            async with self._pages.open_tab() as tab:
                self._chat = await self._pages.open_chat_in_tab(tab)
                await self._collect_lines()
                self._first = tuple(self._lines)
                self._is_open.set()
                await _wait_for_event(self._ended, LISTEN_S)
                await self._collect_lines()
                self._chat = None
        except (ProbeError, Error):
            return
        finally:
            self._chat = None
            self._is_open.set()
            self._ended.set()

    async def _collect_lines(self) -> None:
        from playwright.async_api import Error  # Playwright is already imported

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
    """Return the age of the document in ``frame``, in seconds since it loaded, by the page's own clock.

    Return ``None`` if the page does not respond.
    """
    from playwright.async_api import Error  # Playwright is already imported

    try:
        return await call_in_page(frame, "age") / 1000
    except (ProbeError, Error):
        return None


async def _wait_for_event(event: asyncio.Event, timeout_s: float) -> None:
    """Wait until the event is set, but at most ``timeout_s`` seconds."""
    # The end of the time is a normal result.
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
