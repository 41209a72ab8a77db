"""One conversation on one page: send a turn, wait for its answer.

The page's own controls, the network and the text decide together when an answer is whole (V5). The watch itself
runs inside the page, in one promise: it resolves when the page looks done. The page cannot know whether a request
is still open, so that is asked here. A cut-off answer is an error, never a wrong answer.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, assert_never

from monitors.errors import (
    AccessDenied,
    AnswerIncomplete,
    AnswerTimeout,
    AppErrorShown,
    CaptureUnsure,
    PageNotUnderstood,
    ProbeError,
)
from monitors.probes.browser.discover import TRUSTED_SCORE, Chat, PinnedAnswer, raise_if_pinned
from monitors.probes.browser.greetings import Greetings, document_age_s
from monitors.probes.browser.inpage import Navigated, WatchLimits, WatchResult, WatchState, call
from monitors.probes.browser.network import Stillness, Traffic
from monitors.probes.browser.opening import clear_way, element, gone, page_gone
from monitors.probes.browser.visit import Visit
from monitors.probes.settings import ProbeSettings

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Frame, Page

    Way = Callable[[ElementHandle], Awaitable[bool]]


# After a page's own control said that it is done, only the rendering of the last words is waited for.
FIRM_QUIET_S = 0.15
# A page that does nothing for so long after Enter wants its button pressed.
UNSENT_S = 1.5
# An answer that may go on is waited for so many times longer: one that stops in mid-sentence, or that the page
# types by itself, letter by letter, since long after the network brought the last of it. Typing stalls at times.
SLOW_QUIETS = 4
TYPED_S = 0.6
_ENDS = re.compile(r"[^\w\s,–—-]$")
SHORTEST_S = 0.05
# A request that is open after so many times the patience belongs to no answer: some apps hold one open for ever.
OPEN_PATIENCE = 2
# In-page timers are late when the cores are busy; only a page that hangs misses its deadline by this much.
HANG_SLACK_S = 10.0
_WALL = re.compile(
    r"quota|rate.?limit|too many requests|(log|sign) ?in|unauthori[sz]ed|out of credits", re.IGNORECASE
)


def limits_of(
    settings: ProbeSettings, *, patience: int = 0, unsent_s: float = 0, quiet_s: float | None = None
) -> WatchLimits:
    """The settings as the page reads them. ``patience``: only so many times the patience counts as an end.

    ``unsent_s``: speak up when the question still stands in its box after so long; 0: never. ``quiet_s``: instead
    of the settings' own.
    """
    patience_ms = settings.patience_s * 1000
    return WatchLimits(
        quiet_ms=patience * patience_ms if patience else (quiet_s or settings.quiet_s) * 1000,
        firm_quiet_ms=min(FIRM_QUIET_S, settings.quiet_s) * 1000 if quiet_s is None else quiet_s * 1000,
        patience_ms=patience_ms,
        deadline_ms=settings.answer_deadline_s * 1000,
        unsent_ms=unsent_s * 1000,
    )


async def watch_once(frame: Frame, settings: ProbeSettings, limits: WatchLimits) -> WatchResult:
    """One promise in the page. Raises `Navigated` when the page has gone meanwhile."""
    deadline_s = settings.answer_deadline_s + HANG_SLACK_S
    seen = await call(frame, "settled", limits.model_dump(), deadline_s=deadline_s)
    if seen is None:
        raise Navigated
    return WatchResult.model_validate(seen)


async def whole_answer(frame: Frame, traffic: Traffic, settings: ProbeSettings, first: WatchResult) -> WatchResult:
    """Goes on watching from `first` until the answer is whole.

    Raises `AnswerIncomplete`, `AnswerTimeout`, `AppErrorShown`, `AccessDenied` (a quota or login wall), or
    `PageNotUnderstood` where something new stands on the page that nobody can take for the answer.
    """
    seen = first
    doubted = False
    while True:
        raise_for(seen, settings)
        if traffic.cut and not doubted:  # the page may have looked done before it knew of the cut
            doubted = True
            await call(frame, "broke", True)
            seen = await watch_once(frame, settings, limits_of(settings))
            continue
        if seen.busy and traffic.is_open:
            raise incomplete(seen, settings)
        limits = await _to_go_on(seen, traffic, settings)
        if limits is None:
            return seen
        seen = await watch_once(frame, settings, limits)


async def _to_go_on(seen: WatchResult, traffic: Traffic, settings: ProbeSettings) -> WatchLimits | None:
    """The limits to go on watching with; ``None`` where the answer is whole."""
    slow_s = SLOW_QUIETS * settings.quiet_s
    if seen.calm_ms >= OPEN_PATIENCE * settings.patience_s * 1000:
        return None
    if _may_go_on(seen, traffic) and seen.calm_ms < slow_s * 1000:
        return limits_of(settings, quiet_s=slow_s)
    if seen.firm:
        return None
    traffic.changed.clear()
    match await traffic.stillness(characters=len(seen.text), pushed=seen.pushed):
        case Stillness.ENDED if traffic.polled and seen.calm_ms < slow_s * 1000:
            return limits_of(settings, quiet_s=slow_s)  # a starved page renders what it received long after
        case Stillness.ENDED:
            return None
        case Stillness.OPEN:
            patience = 0 if await _changes(traffic, _time_left_s(seen, settings)) else OPEN_PATIENCE
        case Stillness.RESTING | Stillness.UNKNOWN if seen.calm_ms >= settings.patience_s * 1000:
            return None
        case Stillness.RESTING:
            left_s = min(await traffic.rest_left_s(), settings.patience_s - seen.calm_ms / 1000)
            # The page rests; nothing but a request that ends can change that before.
            await asyncio.sleep(max(SHORTEST_S, left_s))
            return limits_of(settings)
        case Stillness.UNKNOWN:
            patience = 1
    return limits_of(settings, patience=patience)


def _may_go_on(seen: WatchResult, traffic: Traffic) -> bool:
    """Whether it stops in mid-sentence, or grew on its own after the last request had ended."""
    typed_s = 0.0 if traffic.ended_at is None else monotonic() - seen.calm_ms / 1000 - traffic.ended_at
    return typed_s > TYPED_S or _ENDS.search(seen.text) is None


def _time_left_s(seen: WatchResult, settings: ProbeSettings) -> float:
    calm_s = OPEN_PATIENCE * settings.patience_s - seen.calm_ms / 1000
    return max(SHORTEST_S, min(calm_s, settings.answer_deadline_s - seen.elapsed_ms / 1000))


async def _changes(traffic: Traffic, timeout_s: float) -> bool:
    """Whether a request ends within the time."""
    try:
        async with asyncio.timeout(timeout_s):
            await traffic.changed.wait()
    except TimeoutError:
        return False
    return True


def raise_for(seen: WatchResult, settings: ProbeSettings) -> None:
    """Turns every end but a whole answer into its error."""
    match seen.state:
        case WatchState.FINISHED if seen.text:
            return
        case WatchState.ERROR:
            shown = (seen.error or "")[:300]
            if _WALL.search(shown):
                raise AccessDenied(f"the page says: {shown}", partial_text=seen.text)
            raise AppErrorShown(f"the page says: {shown}", partial_text=seen.text)
        case WatchState.BROKEN if seen.text:
            raise AnswerIncomplete("the stream broke off in mid-answer", partial_text=seen.text)
        case WatchState.DEADLINE if seen.text:
            raise incomplete(seen, settings)
        case _:
            raise _without_answer(seen, settings)


def incomplete(seen: WatchResult, settings: ProbeSettings) -> AnswerIncomplete:
    """For an answer that was still coming at the deadline, or may have been: the page said that it is busy."""
    shown = "; the page still shows that it is busy" if seen.busy else ""
    return AnswerIncomplete(
        f"the answer did not end within {settings.answer_deadline_s:g} s{shown}", partial_text=seen.text
    )


def _without_answer(seen: WatchResult, settings: ProbeSettings) -> ProbeError:
    """Nothing was read. Where something new stands on the page, it is the monitor that did not understand it."""
    if seen.unread and seen.state is not WatchState.BROKEN:
        return PageNotUnderstood(f"no answer could be found on the page; new there: {seen.unread[:200]!r}")
    match seen.state:
        case WatchState.BROKEN:
            return AnswerTimeout("the connection broke before an answer began")
        case WatchState.NOTHING:
            return AnswerTimeout("the page was busy, became idle, and shows no answer")
        case WatchState.DEADLINE:
            return AnswerTimeout(f"no answer began within {settings.answer_deadline_s:g} s")
        case WatchState.FINISHED | WatchState.UNSENT | WatchState.ERROR:
            return PageNotUnderstood("the page looked done, and no answer stood on it")
        case _:
            assert_never(seen.state)


ACTION_MS = 10_000
# A page that leaves the question in its box for so long, whatever is pressed, was not understood.
DEAF_S = 10.0
# A page with a socket gets its first question once it has rendered nothing for so long. A page that always renders
# is waited for no longer than the second.
GREETED_S, GREETING_S = 0.5, 3.0
# The same for the first pages of a run, while it is unknown what such a page says to every visitor.
STRANGER_GREETED_S, STRANGER_GREETING_S = 2.0, 8.0
# The browser's words for an element that was rendered anew, and how often in a row a page may do that to its box.
REDRAWN = "not attached to the DOM"
REDRAWS = 6


class PageConversation:
    """A chat that is being asked. Belongs to its page.

    Made before the page is loaded, because a socket opened then may carry the answer later.
    """

    def __init__(
        self, page: Page, settings: ProbeSettings, visit: Visit, greetings: Greetings | None = None
    ) -> None:
        self.chat: Chat
        self._box_now: ElementHandle
        self._greeted = False
        self._greetings = greetings or Greetings()
        self._settings = settings
        self._visit = visit
        self._traffic = Traffic(page, on_break=self._broke, was_refused=visit.was_refused)
        self._errands: set[asyncio.Task[Any]] = set()

    async def ask(self, turn: str) -> WatchResult:
        """Types one turn, sends it, and gives the whole answer. Raises a `ProbeError`."""
        from playwright.async_api import Error  # loaded already: there is a page

        try:
            seen = await self._asked(turn)
        except Error as error:
            if gone(error):
                await self._visit.raise_if_led_away(self.chat.frame)
            raise
        self._visit.raise_if_away(self.chat.frame)
        return seen

    async def _asked(self, turn: str) -> WatchResult:
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
            return await self._answer(turn, earlier)
        except AnswerTimeout as error:
            self._visit.raise_if_away(self.chat.frame)
            raise await pinned.blamed_rightly(error, turn) from error
        finally:
            self._traffic.end()

    async def _answer(self, turn: str, earlier: list[Any]) -> WatchResult:
        """The answer; watched on where what was read is, in part or all, what the page says to everybody."""
        try:
            seen = await self._watched(turn, earlier)
        except AnswerIncomplete:
            if not await self._was_greeted(earlier):
                raise
        else:
            if not await self._was_greeted(earlier):
                return seen
        again = await watch_once(self.chat.frame, self._settings, limits_of(self._settings))
        return await whole_answer(self.chat.frame, self._traffic, self._settings, again)

    async def _was_greeted(self, earlier: list[Any]) -> bool:
        """Whether a greeting came after the question; from now on the page reads its answer without it."""
        if self.chat.selectors.answer is not None:
            return False
        said = await self._greetings.uninvited(await document_age_s(self.chat.frame) or 0.0)
        late = [line for line in said if line not in earlier]
        return bool(late) and bool(await call(self.chat.frame, "greet", late))

    async def answered(self, seen: WatchResult) -> bool:
        """Whether anything proves that the page answered: it repeats the question, or something came to it."""
        named = self.chat.selectors.answer is not None
        return named or seen.echoed or seen.pushed or await self._traffic.carried(len(seen.text))

    def behaves(self, seen: WatchResult) -> bool:
        """Whether the page took the question as a chat does: it repeats it, or its box is empty again."""
        return seen.echoed or not seen.held

    def raise_if_no_chat(self, seen: WatchResult) -> None:
        """`CaptureUnsure` for a box that only resembled a chat's: it may belong to a tool that takes any text.

        One that is pinned or itself asks for a message or a question is believed.
        """
        found = self.chat.found
        if self.behaves(seen) or found.pinned or found.asks or self.chat.selectors.answer is not None:
            return
        raise CaptureUnsure(
            f"{found.box} did not behave like a chat: it still holds the question, which the page does not repeat. "
            "If it is the right one, pin it with probe.selectors.message_box, else what leads to the chat with "
            "probe.open",
            partial_text=seen.text,
        )

    async def _let_greet(self) -> None:
        known = self._greetings.known
        quiet_s = GREETED_S if known else STRANGER_GREETED_S
        most_s = GREETING_S if known else STRANGER_GREETING_S
        await call(self.chat.frame, "greeted", quiet_s * 1000, most_s * 1000)

    async def _watched(self, turn: str, earlier: list[Any]) -> WatchResult:
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

    async def _after_navigation(self, turn: str, earlier: list[Any], started: float) -> WatchResult:
        """A plain form answers with a new page: what is new on it is the answer."""
        frame = self.chat.frame
        await self._loaded(frame)
        self._visit.raise_if_away(frame)
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
        """The message box as it stands now: pages render theirs anew."""
        given = {"message_box": self.chat.selectors.message_box, "send": self.chat.selectors.send}
        deadline_s = self._settings.page_deadline_s
        enough = min(TRUSTED_SCORE, self.chat.found.score)
        await call(self.chat.frame, "waitForBox", given, deadline_s * 1000, enough, deadline_s=deadline_s + 10)
        box = await element(self.chat.frame, "() => __lookout.box")
        if box is None:
            raise PageNotUnderstood("the message box has gone")
        self._visit.raise_if_away(self.chat.frame)
        return box

    async def _type(self, turn: str) -> None:
        """Types the turn; again where the page renders its box anew meanwhile, and what was in it is gone."""
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

    async def _sent(self, turn: str) -> WatchResult:
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

    async def _tried(self, way: Way, turn: str) -> WatchResult | None:
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

    def _unsent(self, seen: WatchResult) -> bool:
        return seen.state is WatchState.UNSENT or self._stuck(seen)

    def _stuck(self, seen: WatchResult) -> bool:
        """Whether the page ignored it: the question stands in its box, and nothing went out or came in."""
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
            if page_gone(error.message):
                raise
            return False
        return True

    def _spec(self, turn: str) -> dict[str, Any]:
        return {"question": turn, "greetings": self._greetings.lines(), **self.chat.selectors.model_dump()}

    def _broke(self, cut: bool) -> None:
        """Notifies the watch in the page, which then gives the page a moment to say or mend it."""
        task = asyncio.ensure_future(self._report_broken(cut))
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    async def _report_broken(self, cut: bool) -> None:
        from playwright.async_api import Error  # loaded already: there is a page

        try:
            await self.chat.frame.evaluate("(cut) => __lookout.broke(cut)", cut)
        except Error:
            return  # the page is gone as well, which the watch itself reports


def delayed(seen: WatchResult, waited_ms: float) -> WatchResult:
    """Times counted from sending, for a watch that could begin only on the next page."""
    first_ms = None if seen.first_token_ms is None else seen.first_token_ms + waited_ms
    return seen.model_copy(update={"first_token_ms": first_ms, "total_ms": seen.total_ms + waited_ms})
