"""One conversation on one page: send a turn, wait for its answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING, Any

from monitors.errors import AnswerTimeout, AppErrorShown, PageNotUnderstood
from monitors.probes.dialogs import clear_way, element, lost
from monitors.probes.discover import TRUSTED_SCORE, Chat
from monitors.probes.greetings import Greetings
from monitors.probes.inpage import Navigated, Watched, WatchState, call
from monitors.probes.network import Traffic
from monitors.probes.pins import PinnedAnswer, raise_if_pinned
from monitors.probes.settings import ProbeSettings
from monitors.probes.settle import UNSENT_S, limits_of, watch_once, whole_answer

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Error, Frame, Page

    Way = Callable[[ElementHandle], Awaitable[bool]]

ACTION_MS = 10_000
# A page that leaves the question in its box for so long, whatever is pressed, was not understood.
DEAF_S = 10.0
GONE = "Execution context was destroyed"
# A page with a socket is asked its first question once it has drawn nothing for so long; one that always draws
# is waited for no longer than the second.
GREETED_S, GREETING_S = 0.5, 3.0
# The same for the first pages of a run, while nobody knows yet what such a page says to whoever comes.
STRANGER_GREETED_S, STRANGER_GREETING_S = 2.0, 8.0
# How the browser words it that an element was drawn anew, and how often in a row a page may do that to its box.
REDRAWN = "not attached to the DOM"
REDRAWS = 6


class Conversation:
    """A chat that is being asked. Belongs to its page.

    Made before the page is loaded, because a socket opened then may carry the answer later.
    """

    def __init__(self, page: Page, settings: ProbeSettings, greetings: Greetings | None = None) -> None:
        self.chat: Chat
        self._box_now: ElementHandle
        self._greeted = False
        self._greetings = greetings or Greetings()
        self._settings = settings
        self._traffic = Traffic(page, on_break=self._broke)
        self._errands: set[asyncio.Task[Any]] = set()

    async def ask(self, turn: str) -> Watched:
        """Types one turn, sends it, and gives the whole answer. Raises a `ProbeError`."""
        await self._box()
        first, self._greeted = not self._greeted, True
        if first:
            await self._let_greet()
        pinned = PinnedAnswer(self.chat.frame, self._settings.selectors.answer)
        await pinned.begin()
        await self._type(turn)
        earlier = await call(self.chat.frame, "arm", self._spec(turn))
        if first:
            self._greetings.note(earlier)
        self._traffic.begin()
        try:
            return await self._watched(turn, earlier)
        except AnswerTimeout as error:
            raise await pinned.blamed_rightly(error, turn) from error
        finally:
            self._traffic.end()

    async def _let_greet(self) -> None:
        known = self._greetings.known
        quiet_s = GREETED_S if known else STRANGER_GREETED_S
        most_s = GREETING_S if known else STRANGER_GREETING_S
        await call(self.chat.frame, "greeted", quiet_s * 1000, most_s * 1000)

    async def _watched(self, turn: str, earlier: list[Any]) -> Watched:
        from playwright.async_api import Error  # loaded already: there is a page

        started = monotonic()
        try:
            seen = await self._sent(turn)
            return await whole_answer(self.chat.frame, self._traffic, self._settings, seen)
        except Navigated:
            pass
        except Error as error:
            if not gone(error):
                raise
        while True:  # some pages lead on to the next one
            try:
                return await self._after_navigation(turn, earlier, started)
            except Navigated:
                pass
            except Error as error:
                if not gone(error):
                    raise
            if monotonic() - started >= self._settings.answer_deadline_s:
                raise AnswerTimeout("the page led on to others, and no answer stood on one")

    async def _after_navigation(self, turn: str, earlier: list[Any], started: float) -> Watched:
        """A plain form answers with a new page: what is new on it is the answer."""
        frame = self.chat.frame
        await self._loaded(frame)
        await call(frame, "find", {})
        waited_ms = (monotonic() - started) * 1000
        await call(frame, "arm", self._spec(turn), earlier)
        seen = await watch_once(frame, self._settings, limits_of(self._settings))
        return delayed(await whole_answer(frame, self._traffic, self._settings, seen), waited_ms)

    async def _loaded(self, frame: Frame) -> None:
        from playwright.async_api import TimeoutError as Late  # loaded already: there is a page

        deadline_s = self._settings.answer_deadline_s
        try:
            await frame.wait_for_load_state("load", timeout=deadline_s * 1000)
        except Late as error:
            raise AnswerTimeout(f"the page with the answer did not load within {deadline_s:g} s") from error
        status = await self._traffic.document_status()
        if status is not None and status >= 400:  # noqa: PLR2004 - where HTTP's errors begin
            raise AppErrorShown(f"the page with the answer came with HTTP {status}")

    async def _box(self) -> ElementHandle:
        """The message box as it stands now: pages draw theirs anew."""
        given = {"message_box": self.chat.selectors.message_box, "send": self.chat.selectors.send}
        deadline_s = self._settings.page_deadline_s
        enough = min(TRUSTED_SCORE, self.chat.found.score)
        await call(self.chat.frame, "waitForBox", given, deadline_s * 1000, enough, deadline_s=deadline_s + 10)
        box = await element(self.chat.frame, "() => __lookout.box")
        if box is None:
            raise PageNotUnderstood("the message box has gone")
        return box

    async def _type(self, turn: str) -> None:
        """Types the turn; again where the page draws its box anew meanwhile, and what was in it is lost."""
        from playwright.async_api import Error  # loaded already: there is a page

        for tries_left in reversed(range(REDRAWS)):
            self._box_now = await self._box()
            try:
                await self._fill(self._box_now, turn)
            except Error as error:
                if REDRAWN not in error.message or not tries_left:
                    raise
            else:
                if await self._box_now.evaluate("(box) => box.isConnected"):
                    return

    async def _fill(self, box: ElementHandle, turn: str) -> None:
        """Types into the box; once more where a dialog that opens at the first touch of it took what was typed."""
        await clear_way(self.chat.frame)
        await box.fill(turn, timeout=ACTION_MS)
        if await clear_way(self.chat.frame):
            await box.fill(turn, timeout=ACTION_MS)

    async def _sent(self, turn: str) -> Watched:
        """Sends by the likelier way; by the other one when the page does not stir."""
        ways = [self._press_enter, self._click_send]
        by_button = self.chat.selectors.send is not None or (
            not self.chat.profile.presses_enter and self.chat.found.send is not None
        )
        if by_button:
            ways.reverse()
        for way in ways:
            seen = await self._tried(way, turn)
            if seen is not None and self._unsent(seen) and await clear_way(self.chat.frame):
                seen = await self._tried(way, turn)  # a dialog had come between
            if seen is not None and not self._unsent(seen):
                return seen
            if self._traffic.started:
                break
        deaf = limits_of(self._settings, unsent_s=min(DEAF_S, self._settings.answer_deadline_s / 2))
        seen = await watch_once(self.chat.frame, self._settings, deaf)
        if self._stuck(seen):
            found = self.chat.found
            raise PageNotUnderstood(
                f"the question still stands in {found.box}: neither Enter nor {found.send or 'a button'} sends it; "
                f"boxes seen: {'; '.join(found.others)}"
            )
        if seen.state is not WatchState.UNSENT:
            return seen
        return await watch_once(self.chat.frame, self._settings, limits_of(self._settings))

    async def _tried(self, way: Way, turn: str) -> Watched | None:
        """What comes of sending that way; ``None`` where it cannot be tried."""
        from playwright.async_api import Error  # loaded already: there is a page

        try:
            could = await way(self._box_now)
        except Error as error:
            if REDRAWN not in error.message:
                raise
            await self._type(turn)  # the box that held it is gone, and nothing was pressed
            could = await way(self._box_now)
        if not could:
            return None
        return await watch_once(self.chat.frame, self._settings, limits_of(self._settings, unsent_s=UNSENT_S))

    def _unsent(self, seen: Watched) -> bool:
        return seen.state is WatchState.UNSENT or self._stuck(seen)

    def _stuck(self, seen: Watched) -> bool:
        """Whether the page took no notice: the question stands in its box, and nothing went out or came in."""
        untouched = seen.held and not seen.echoed and not self._traffic.started and not seen.pushed
        return untouched and seen.state in {WatchState.UNSENT, WatchState.FINISHED, WatchState.NOTHING}

    async def _press_enter(self, box: ElementHandle) -> bool:
        await box.press("Enter", timeout=ACTION_MS, no_wait_after=True)
        return True

    async def _click_send(self, box: ElementHandle) -> bool:
        """Presses the send control; whether there is one that can be pressed."""
        from playwright.async_api import Error  # loaded already: there is a page

        button = await element(self.chat.frame, f"() => __lookout.sendNow({json.dumps(self.chat.selectors.send)})")
        if button is None:
            raise_if_pinned("send", self._settings.selectors)
            return False
        if await button.is_disabled():  # it waits for keys, not for a value
            await box.press("End")
            await box.type(" ")
            await box.press("Backspace")
        try:
            await button.click(timeout=3000, no_wait_after=True)
        except Error as error:
            if lost(error.message):
                raise
            return False
        return True

    def _spec(self, turn: str) -> dict[str, Any]:
        return {"question": turn, "greetings": self._greetings.lines(), **self.chat.selectors.model_dump()}

    def _broke(self, cut: bool) -> None:
        """Tells the watch in the page, which then gives the page a moment to say or mend it."""
        task = asyncio.ensure_future(self._tell_broke(cut))
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    async def _tell_broke(self, cut: bool) -> None:
        from playwright.async_api import Error  # loaded already: there is a page

        try:
            await self.chat.frame.evaluate("(cut) => __lookout.broke(cut)", cut)
        except Error:
            return  # the page is gone as well, which the watch itself reports


def gone(error: Error) -> bool:
    """Whether the page was left while something was asked of it."""
    return GONE in error.message or "navigat" in error.message


def delayed(seen: Watched, waited_ms: float) -> Watched:
    """Times counted from sending, for a watch that could begin only on the next page."""
    first_ms = None if seen.first_token_ms is None else seen.first_token_ms + waited_ms
    return seen.model_copy(update={"first_token_ms": first_ms, "total_ms": seen.total_ms + waited_ms})
