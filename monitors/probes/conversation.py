"""One conversation on one page: send a turn, wait for its answer."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any

from monitors.errors import AnswerTimeout, AppErrorShown, PageNotUnderstood
from monitors.probes.discover import TRUSTED_SCORE, Chat, element, lost
from monitors.probes.inpage import Navigated, Watched, WatchState, call
from monitors.probes.network import Traffic
from monitors.probes.settings import ProbeSettings
from monitors.probes.settle import limits_of, watch_once, whole_answer

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Frame, Page

ACTION_MS = 10_000
GONE = "Execution context was destroyed"


class Conversation:
    """A chat that is being asked. Belongs to its page.

    Made before the page is loaded, because a socket opened then may carry the answer later.
    """

    def __init__(self, page: Page, settings: ProbeSettings) -> None:
        self.chat: Chat
        self._settings = settings
        self._traffic = Traffic(page, on_break=self._broke)
        self._errands: set[asyncio.Task[Any]] = set()

    async def ask(self, turn: str) -> Watched:
        """Types one turn, sends it, and gives the whole answer. Raises a `ProbeError`."""
        box = await self._box()
        await box.fill(turn, timeout=ACTION_MS)
        earlier = await call(self.chat.frame, "arm", self._spec(turn))
        self._traffic.begin()
        try:
            return await self._watched(turn, earlier, box)
        finally:
            self._traffic.end()

    async def _watched(self, turn: str, earlier: list[Any], box: ElementHandle) -> Watched:
        from playwright.async_api import Error  # loaded already: there is a page

        started = monotonic()
        try:
            seen = await self._sent(box)
            return await whole_answer(self.chat.frame, self._traffic, self._settings, seen)
        except Navigated:
            return await self._after_navigation(turn, earlier, started)
        except Error as error:
            if GONE not in error.message and "navigat" not in error.message:
                raise
            return await self._after_navigation(turn, earlier, started)

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

    async def _sent(self, box: ElementHandle) -> Watched:
        """Sends by the likelier way; by the other one when the page does not stir."""
        ways = [self._press_enter, self._click_send]
        by_button = self.chat.selectors.send is not None or (
            not self.chat.profile.presses_enter and self.chat.found.send is not None
        )
        if by_button:
            ways.reverse()
        for way in ways:
            if not await way(box):
                continue
            seen = await watch_once(self.chat.frame, self._settings, limits_of(self._settings, may_be_unsent=True))
            if seen.state is not WatchState.UNSENT:
                return seen
            if self._traffic.started:
                break
        return await watch_once(self.chat.frame, self._settings, limits_of(self._settings))

    async def _press_enter(self, box: ElementHandle) -> bool:
        await box.press("Enter", timeout=ACTION_MS, no_wait_after=True)
        return True

    async def _click_send(self, box: ElementHandle) -> bool:
        """Presses the send control; whether there is one that can be pressed."""
        from playwright.async_api import Error  # loaded already: there is a page

        button = await element(self.chat.frame, "() => __lookout.send")
        if button is None:
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

    def _spec(self, turn: str) -> dict[str, str | None]:
        return {"question": turn, **self.chat.selectors.model_dump()}

    def _broke(self, _why: str) -> None:
        """Tells the watch in the page, which then gives the page a moment to say or mend it."""
        task = asyncio.ensure_future(self._tell_broke())
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    async def _tell_broke(self) -> None:
        from playwright.async_api import Error  # loaded already: there is a page

        try:
            await self.chat.frame.evaluate("() => __lookout.broke()")
        except Error:
            return  # the page is gone as well, which the watch itself reports


def delayed(seen: Watched, waited_ms: float) -> Watched:
    """Times counted from sending, for a watch that could begin only on the next page."""
    first_ms = None if seen.first_token_ms is None else seen.first_token_ms + waited_ms
    return seen.model_copy(update={"first_token_ms": first_ms, "total_ms": seen.total_ms + waited_ms})
