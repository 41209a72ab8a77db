"""One conversation on one page: send a turn, wait for its answer.

The page's controls, the network and the text decide together whether an answer is complete (V5). The watch runs
inside the page, as one promise that resolves when the page looks done. The page cannot see whether a request is
still open, so this module checks the requests. A cut-off answer is an error, never a wrong answer.
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
    RateLimited,
)
from monitors.probes.browser.discover import TRUSTED_SCORE, Chat, PinnedAnswer, raise_if_pinned
from monitors.probes.browser.greetings import Greetings, measure_document_age_s
from monitors.probes.browser.inpage import Navigated, WatchLimits, WatchResult, WatchState, call_in_page
from monitors.probes.browser.network import Stillness, Traffic, ignore_lost_frame
from monitors.probes.browser.opening import clear_way, find_element, has_navigated, is_page_gone
from monitors.probes.browser.visit import Visit
from monitors.probes.settings import ProbeSettings

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Frame, Page

    Way = Callable[[ElementHandle], Awaitable[bool]]


# Once a control of the page shows that the answer is done, wait only until the last words are rendered.
FIRM_QUIET_S = 0.15
# Once the last response has ended, wait this long until its data is rendered.
ENDED_QUIET_S = 0.3
# If the page does not react to Enter within this time, press its button.
UNSENT_S = 1.5
# If a page has emptied its box and shows nothing for this long, the question may be lost because the socket was
# not open.
LOST_S = 4.0
# The wait for an answer that may continue is this many times longer. Such an answer stops in mid-sentence, or the
# page types it letter by letter long after the network delivered it. The typing sometimes stalls.
SLOW_QUIET_FACTOR = 4
TYPED_S = 0.6
_SENTENCE_END = re.compile(r"[^\w\s,–—-]$")
MIN_WAIT_S = 0.05
# A request that is still open after this many times the patience does not carry the answer: some apps never close
# one.
OPEN_PATIENCE_FACTOR = 2
# In-page timers are late on busy cores. Only a page that hangs exceeds its deadline by this much.
HANG_SLACK_S = 10.0
_WALL = re.compile(r"quota|(log|sign) ?in|unauthori[sz]ed|out of credits", re.IGNORECASE)


_LIMIT = re.compile(r"rate.?limit|too many requests", re.IGNORECASE)


def build_watch_limits(
    settings: ProbeSettings,
    *,
    patience: int = 0,
    unsent_s: float = 0,
    lost_s: float = 0,
    quiet_s: float | None = None,
    settle_s: float = 0,
) -> WatchLimits:
    """Build the limits of the in-page watch. ``patience``: the factor of the patience that counts as an end.

    ``unsent_s``: report a question that is still in its box after this time. ``lost_s``: report a question that
    is neither in the box nor on the page. 0: never report. ``quiet_s`` overrides the setting. ``settle_s`` is the
    minimal duration of the watch.
    """
    patience_ms = settings.patience_s * 1000
    quiet_ms = patience * patience_ms if patience else (quiet_s or settings.quiet_s) * 1000
    return WatchLimits(
        quiet_ms=quiet_ms,
        ended_quiet_ms=quiet_ms if patience or quiet_s else min(ENDED_QUIET_S * 1000, quiet_ms),
        settle_ms=settle_s * 1000,
        firm_quiet_ms=min(FIRM_QUIET_S, settings.quiet_s) * 1000 if quiet_s is None else quiet_s * 1000,
        patience_ms=patience_ms,
        deadline_ms=settings.answer_deadline_s * 1000,
        unsent_ms=unsent_s * 1000,
        lost_ms=lost_s * 1000,
    )


async def watch_once(frame: Frame, settings: ProbeSettings, limits: WatchLimits) -> WatchResult:
    """Run the in-page watch once. Raise `Navigated` if the page was left during the watch."""
    deadline_s = settings.answer_deadline_s + HANG_SLACK_S
    reading = await call_in_page(frame, "settled", limits.model_dump(), deadline_s=deadline_s)
    if reading is None:
        raise Navigated
    return WatchResult.model_validate(reading)


async def wait_for_whole_answer(
    frame: Frame, traffic: Traffic, settings: ProbeSettings, first: WatchResult
) -> WatchResult:
    """Continue to watch after `first` until the answer is complete.

    Raises `AnswerIncomplete`, `AnswerTimeout`, `AppErrorShown`, `AccessDenied` (a quota or login wall), or
    `PageNotUnderstood` if new text on the page cannot be identified as the answer.
    """
    reading = first
    is_rechecked = False
    while True:
        raise_unless_answer(reading, settings)
        if traffic.cut and not is_rechecked:  # the page may have looked done before it detected the broken stream
            is_rechecked = True
            await call_in_page(frame, "broke", True)
            reading = await watch_once(frame, settings, build_watch_limits(settings))
            continue
        if reading.busy and traffic.is_open:
            raise build_incomplete_error(reading, settings)
        limits = await _compute_next_watch_limits(frame, reading, traffic, settings)
        if limits is None:
            return reading
        reading = await watch_once(frame, settings, limits)


async def _compute_next_watch_limits(
    frame: Frame, reading: WatchResult, traffic: Traffic, settings: ProbeSettings
) -> WatchLimits | None:
    """Return the limits for the next watch; ``None`` if the answer is complete.

    A control's end does not count while a response that began after the question is open, unless a profile
    defines the control. Nor does it count at the first words while a channel or polls may bring more.
    """
    slow_s = SLOW_QUIET_FACTOR * settings.quiet_s
    if reading.calm_ms >= OPEN_PATIENCE_FACTOR * settings.patience_s * 1000:
        return None
    if _may_continue(reading, traffic) and reading.calm_ms < slow_s * 1000:
        return build_watch_limits(settings, quiet_s=slow_s)
    if reading.firm and (reading.certain or not (reading.early or traffic.is_answering)):
        return None
    traffic.changed.clear()
    match await traffic.judge_stillness(characters=len(reading.text), live=reading.live):
        case Stillness.UNKNOWN if reading.firm and not reading.live:
            return None
        case Stillness.ENDED if traffic.polled and reading.calm_ms < slow_s * 1000:
            return build_watch_limits(settings, quiet_s=slow_s)  # a page without enough CPU time renders late
        case Stillness.ENDED:
            return None
        case stillness:
            return await _wait_with_patience(frame, reading, traffic, settings, stillness)


async def _wait_with_patience(
    frame: Frame, reading: WatchResult, traffic: Traffic, settings: ProbeSettings, stillness: Stillness
) -> WatchLimits | None:
    """Wait for more data, and return the limits for the next watch; ``None`` if the patience is over.

    The patience counts once if nothing shows that the application works on this answer. It counts twice while a
    response is open, or while addresses are polled that were not polled before the question.
    """
    is_over = reading.calm_ms >= settings.patience_s * 1000
    is_held = traffic.is_answering or not reading.firm
    left_s = _compute_time_left_s(reading, settings, OPEN_PATIENCE_FACTOR if is_held else 1)
    match stillness:
        case Stillness.OPEN if is_over and not is_held:
            return None
        case Stillness.OPEN:
            if await _wait_for_change(traffic, left_s):
                return build_watch_limits(settings, settle_s=ENDED_QUIET_S)
            return build_watch_limits(settings, patience=OPEN_PATIENCE_FACTOR if is_held else 1)
        case Stillness.RESTING:
            if is_over and traffic.was_polled(await call_in_page(frame, "polledBefore")):
                return None
            # The page is still: until the limit only the end of a request can change this.
            await asyncio.sleep(max(MIN_WAIT_S, min(await traffic.rest_left_s(len(reading.text)), left_s)))
            return build_watch_limits(settings, settle_s=ENDED_QUIET_S)
        case Stillness.UNKNOWN | Stillness.ENDED:
            return None if is_over else build_watch_limits(settings, patience=1)


def _may_continue(reading: WatchResult, traffic: Traffic) -> bool:
    """Whether the answer stops in mid-sentence, or still grew after the last request had ended."""
    typed_s = 0.0 if traffic.ended_at is None else monotonic() - reading.calm_ms / 1000 - traffic.ended_at
    return typed_s > TYPED_S or _SENTENCE_END.search(reading.text) is None


def _compute_time_left_s(reading: WatchResult, settings: ProbeSettings, factor: int) -> float:
    calm_s = factor * settings.patience_s - reading.calm_ms / 1000
    return max(MIN_WAIT_S, min(calm_s, settings.answer_deadline_s - reading.elapsed_ms / 1000))


async def _wait_for_change(traffic: Traffic, timeout_s: float) -> bool:
    """Wait until a request ends; return whether a request ended within the timeout."""
    try:
        async with asyncio.timeout(timeout_s):
            await traffic.changed.wait()
    except TimeoutError:
        return False
    return True


def raise_unless_answer(reading: WatchResult, settings: ProbeSettings) -> None:
    """Raise the error for every end of the watch except a complete answer."""
    match reading.state:
        case WatchState.FINISHED if reading.text:
            return
        case WatchState.ERROR:
            message = (reading.error or "")[:300]
            if _LIMIT.search(message):
                raise RateLimited(f"the page says: {message}", partial_text=reading.text)
            if _WALL.search(message):
                raise AccessDenied(f"the page says: {message}", partial_text=reading.text)
            raise AppErrorShown(f"the page says: {message}", partial_text=reading.text)
        case WatchState.BROKEN if reading.text:
            raise AnswerIncomplete("the stream ended in the middle of the answer", partial_text=reading.text)
        case WatchState.DEADLINE if reading.text:
            raise build_incomplete_error(reading, settings)
        case _:
            raise _build_no_answer_error(reading, settings)


def build_incomplete_error(reading: WatchResult, settings: ProbeSettings) -> AnswerIncomplete:
    """Build the error for an answer that was, or may have been, incomplete at the deadline."""
    busy_note = "; the page still looks busy" if reading.busy else ""
    return AnswerIncomplete(
        f"the answer did not end within {settings.answer_deadline_s:g} s{busy_note}", partial_text=reading.text
    )


def _build_no_answer_error(reading: WatchResult, settings: ProbeSettings) -> ProbeError:
    """Build the error for an empty reading. If the page shows new text, the monitor did not understand the page."""
    if reading.unread and reading.state is not WatchState.BROKEN:
        return PageNotUnderstood(f"Lookout found no answer on the page; new text: {reading.unread[:200]!r}")
    match reading.state:
        case WatchState.BROKEN:
            return AnswerTimeout("the connection broke before an answer began")
        case WatchState.NOTHING:
            return AnswerTimeout("the page was busy, then became idle, but shows no answer")
        case WatchState.DEADLINE:
            return AnswerTimeout(f"no answer began within {settings.answer_deadline_s:g} s")
        case WatchState.FINISHED | WatchState.UNSENT | WatchState.LOST | WatchState.ERROR:
            return PageNotUnderstood("the page looked done but shows no answer")
        case _:
            assert_never(reading.state)


ACTION_MS = 10_000
# A page that keeps the question in its box for this long, after Enter and the button, was not understood.
UNRESPONSIVE_S = 10.0
# A page with a socket gets its first question after it has rendered nothing for the first time span. A page that
# always renders gets its first question after the second.
GREETING_QUIET_S, MAX_GREETING_S = 0.5, 3.0
# The same for the first pages of a run, while the page's greetings are not known yet.
UNKNOWN_GREETING_QUIET_S, MAX_UNKNOWN_GREETING_S = 2.0, 8.0
# The browser's error for an element that was rendered again, and how often in a row a page may rerender its box.
REDRAWN_MARK = "not attached to the DOM"
MAX_REDRAWS = 6


class PageConversation:
    """One conversation with a chat. Belongs to its page.

    Create it before the page is loaded: a socket that opens during loading may carry the answer later.
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
        self._traffic = Traffic(
            page,
            on_break=lambda cut, url: self._notify("broke", cut, url),
            on_end=lambda: self._notify("rested"),
            was_refused=visit.was_refused,
        )
        self._errands: set[asyncio.Task[Any]] = set()

    async def ask(self, turn: str) -> WatchResult:
        """Type one turn, send it and return the whole answer. Raises a `ProbeError`."""
        from playwright.async_api import Error  # already imported: a page is open

        try:
            reading = await self._ask_turn(turn)
        except Error as error:
            if has_navigated(error):
                await self._visit.raise_if_led_away(self.chat.frame)
            raise
        self._visit.raise_if_away(self.chat.frame)
        self._greetings.note_answer(turn, reading.text)
        return reading

    async def _ask_turn(self, turn: str) -> WatchResult:
        await self._find_box()
        first, self._greeted = not self._greeted, True
        if first:
            await self._wait_for_greeting()
        pinned = PinnedAnswer(self.chat.frame, self._settings.selectors.answer)
        await pinned.begin()
        await self._type(turn)
        earlier = await call_in_page(self.chat.frame, "arm", self._build_spec(turn))
        if first:
            self._greetings.note(earlier)
        self._traffic.begin()
        try:
            return await self._read_answer(turn, earlier)
        except AnswerTimeout as error:
            self._visit.raise_if_away(self.chat.frame)
            raise await pinned.assign_blame(error, turn) from error
        finally:
            self._traffic.end()

    async def _read_answer(self, turn: str, earlier: list[Any]) -> WatchResult:
        """Watch until there is an answer. Watches again if the text is, partly or wholly, the page's greeting."""
        try:
            reading = await self._send_and_watch(turn, earlier)
        except AnswerIncomplete:
            if not await self._was_greeted(earlier):
                raise
        else:
            if not await self._was_greeted(earlier):
                if reading.resumed:
                    raise AnswerIncomplete(
                        "the answer to an earlier turn went on after it was taken as whole",
                        partial_text=reading.text,
                    )
                return reading
        again = await watch_once(self.chat.frame, self._settings, build_watch_limits(self._settings))
        return await wait_for_whole_answer(self.chat.frame, self._traffic, self._settings, again)

    async def _was_greeted(self, earlier: list[Any]) -> bool:
        """Whether a greeting came after the question. The page then excludes the greeting from the answer."""
        if self.chat.selectors.answer is not None:
            return False
        greeting_lines = await self._greetings.read_silent_page(
            await measure_document_age_s(self.chat.frame) or 0.0
        )
        late = [line for line in greeting_lines if line not in earlier]
        return bool(late) and bool(await call_in_page(self.chat.frame, "greet", late))

    async def has_proof_of_answer(self, reading: WatchResult) -> bool:
        """Whether there is proof that the page answered: it repeats the question, or it received data."""
        named = self.chat.selectors.answer is not None
        return named or reading.echoed or reading.pushed or await self._traffic.carried_answer(len(reading.text))

    def behaves_like_chat(self, reading: WatchResult) -> bool:
        """Whether the page accepted the question like a chat: it repeats the question, or its box is empty."""
        return reading.echoed or not reading.held

    def raise_if_no_chat(self, reading: WatchResult) -> None:
        """Raise `CaptureUnsure` if the box may belong to another tool that takes any text, not to a chat.

        A configured box, or one that asks for a message or a question, is trusted.
        """
        boxes = self.chat.boxes
        if self.behaves_like_chat(reading) or boxes.pinned or boxes.asks or self.chat.selectors.answer is not None:
            return
        raise CaptureUnsure(
            f"{boxes.box} did not behave like a chat: it still contains the question, and the page does not "
            "repeat the question. If this is the right box, set it as probe.selectors.message_box. If not, set "
            "the elements that lead to the chat as probe.open",
            partial_text=reading.text,
        )

    async def _wait_for_greeting(self) -> None:
        is_known = self._greetings.are_known
        quiet_s = GREETING_QUIET_S if is_known else UNKNOWN_GREETING_QUIET_S
        max_s = MAX_GREETING_S if is_known else MAX_UNKNOWN_GREETING_S
        await call_in_page(self.chat.frame, "greeted", quiet_s * 1000, max_s * 1000)

    async def _send_and_watch(self, turn: str, earlier: list[Any]) -> WatchResult:
        from playwright.async_api import Error  # already imported: a page is open

        started = monotonic()
        try:
            reading = await self._send(turn)
            return await wait_for_whole_answer(self.chat.frame, self._traffic, self._settings, reading)
        except Navigated:
            pass
        except Error as error:
            if not has_navigated(error):
                raise
        while True:  # some pages redirect to the next one
            try:
                return await self._watch_next_page(turn, earlier, started)
            except Navigated:
                pass
            except Error as error:
                if not has_navigated(error):
                    raise
            if monotonic() - started >= self._settings.answer_deadline_s:
                raise AnswerTimeout("the page led to further pages, but none of them showed an answer")

    async def _watch_next_page(self, turn: str, earlier: list[Any], started: float) -> WatchResult:
        """Read the answer of a plain form, which is the new text on the next page."""
        frame = self.chat.frame
        await self._wait_for_answer_page(frame)
        self._visit.raise_if_away(frame)
        await call_in_page(frame, "find", {})
        waited_ms = (monotonic() - started) * 1000
        await call_in_page(frame, "arm", self._build_spec(turn), earlier)
        reading = await watch_once(frame, self._settings, build_watch_limits(self._settings))
        return add_waiting_time(
            await wait_for_whole_answer(frame, self._traffic, self._settings, reading), waited_ms
        )

    async def _wait_for_answer_page(self, frame: Frame) -> None:
        from playwright.async_api import TimeoutError as Late  # already imported: a page is open

        deadline_s = self._settings.answer_deadline_s
        try:
            await frame.wait_for_load_state("load", timeout=deadline_s * 1000)
        except Late as error:
            raise AnswerTimeout(f"the page with the answer did not load within {deadline_s:g} s") from error
        status = await self._traffic.document_status()
        if status is not None and status >= 400:  # noqa: PLR2004 - where HTTP's errors begin
            raise AppErrorShown(f"the page with the answer came with HTTP {status}")

    async def _find_box(self) -> ElementHandle:
        """Return the current message box: pages replace their boxes."""
        pins = {"message_box": self.chat.selectors.message_box, "send": self.chat.selectors.send}
        deadline_s = self._settings.page_deadline_s
        min_score = min(TRUSTED_SCORE, self.chat.boxes.score)
        await call_in_page(
            self.chat.frame, "waitForBox", pins, deadline_s * 1000, min_score, deadline_s=deadline_s + 10
        )
        box = await find_element(self.chat.frame, "() => __lookout.box")
        if box is None:
            await self._visit.raise_if_led_away(self.chat.frame)  # a page that navigated away has no box either
            raise PageNotUnderstood("the message box is gone")
        self._visit.raise_if_away(self.chat.frame)
        return box

    async def _type(self, turn: str) -> None:
        """Type the turn. Type it again if the page replaces its box meanwhile and loses the text."""
        from playwright.async_api import Error  # already imported: a page is open

        for tries_left in reversed(range(MAX_REDRAWS)):
            self._box_now = await self._find_box()
            try:
                await self._fill(self._box_now, turn)
            except Error as error:
                if REDRAWN_MARK not in error.message or not tries_left:
                    raise
            else:
                if await self._box_now.evaluate("(box) => box.isConnected"):
                    return

    async def _fill(self, box: ElementHandle, turn: str) -> None:
        """Type into the box. Type once more if a dialog opened at the first key and took the text."""
        await clear_way(self.chat.frame)
        await box.fill(turn, timeout=ACTION_MS)
        if await clear_way(self.chat.frame):
            await box.fill(turn, timeout=ACTION_MS)

    async def _send(self, turn: str) -> WatchResult:
        """Send with Enter or the button, the likelier first. Try the other if the page does not react."""
        ways = [self._press_enter, self._click_send]
        by_button = self.chat.selectors.send is not None or (
            not self.chat.profile.presses_enter and self.chat.boxes.send is not None
        )
        if by_button:
            ways.reverse()
        for way in ways:
            reading = await self._try_sending(way, turn)
            if reading is not None and self._is_unsent(reading) and await clear_way(self.chat.frame):
                reading = await self._try_sending(way, turn)  # a dialog had covered the box
            if reading is not None and reading.state is WatchState.LOST:
                return await self._send_lost_question(way, turn)
            if reading is not None and not self._is_unsent(reading):
                return reading
            if self._traffic.started:
                break
        limits = build_watch_limits(
            self._settings, unsent_s=min(UNRESPONSIVE_S, self._settings.answer_deadline_s / 2)
        )
        reading = await watch_once(self.chat.frame, self._settings, limits)
        if self._is_stuck(reading):
            boxes = self.chat.boxes
            raise PageNotUnderstood(
                f"the question is still in {boxes.box}: neither Enter nor {boxes.send or 'a button'} sent it; "
                f"boxes on the page: {'; '.join(boxes.others)}"
            )
        if reading.state is not WatchState.UNSENT:
            return reading
        return await watch_once(self.chat.frame, self._settings, build_watch_limits(self._settings))

    async def _try_sending(self, way: Way, turn: str) -> WatchResult | None:
        """Send in one way and return the reading; ``None`` if this way is not possible."""
        from playwright.async_api import Error  # already imported: a page is open

        try:
            was_sent = await way(self._box_now)
        except Error as error:
            if REDRAWN_MARK not in error.message:
                raise
            await self._type(turn)  # the box with the text is gone, and nothing was pressed
            was_sent = await way(self._box_now)
        if not was_sent:
            return None
        limits = build_watch_limits(self._settings, unsent_s=UNSENT_S, lost_s=LOST_S)
        return await watch_once(self.chat.frame, self._settings, limits)

    async def _send_lost_question(self, way: Way, turn: str) -> WatchResult:
        """Send a question once more if no request or frame contained it.

        Raises `PageNotUnderstood` if it is lost again.
        """
        if not self._traffic.has_sent(turn):
            await self._type(turn)
            reading = await self._try_sending(way, turn)
            if reading is None or (reading.state is WatchState.LOST and not self._traffic.has_sent(turn)):
                raise PageNotUnderstood(
                    f"the page emptied {self.chat.boxes.box} twice and did nothing: no request and no socket "
                    "carried the question"
                )
            if reading.state is not WatchState.LOST:
                return reading
        return await watch_once(self.chat.frame, self._settings, build_watch_limits(self._settings))

    def _is_unsent(self, reading: WatchResult) -> bool:
        return reading.state is WatchState.UNSENT or self._is_stuck(reading)

    def _is_stuck(self, reading: WatchResult) -> bool:
        """Whether the page ignored the question: it is still in its box, and nothing was sent or received."""
        untouched = reading.held and not reading.echoed and not self._traffic.started and not reading.pushed
        return untouched and reading.state in {WatchState.UNSENT, WatchState.FINISHED, WatchState.NOTHING}

    async def _press_enter(self, box: ElementHandle) -> bool:
        await box.press("Enter", timeout=ACTION_MS, no_wait_after=True)
        return True

    async def _click_send(self, box: ElementHandle) -> bool:
        """Click the send control; return whether a control was found and clicked."""
        from playwright.async_api import Error  # already imported: a page is open

        button = await find_element(
            self.chat.frame, f"() => __lookout.sendNow({json.dumps(self.chat.selectors.send)})"
        )
        if button is None:
            raise_if_pinned("send", self._settings.selectors)
            return False
        if await button.is_disabled():  # the control waits for keys, not for a value
            await box.press("End")
            await box.type(" ")
            await box.press("Backspace")
        try:
            await button.click(timeout=3000, no_wait_after=True)
        except Error as error:
            if is_page_gone(error.message):
                raise
            return False
        return True

    def _build_spec(self, turn: str) -> dict[str, Any]:
        return {
            "question": turn,
            "greetings": self._greetings.list_lines(),
            "usual": self._greetings.list_usual_lines(),
            **self.chat.selectors.model_dump(),
        }

    def _notify(self, name: str, *given: Any) -> None:
        """Notify the in-page watch of an ended or broken request, without waiting for the page."""
        task = asyncio.ensure_future(ignore_lost_frame(call_in_page(self.chat.frame, name, *given)))
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)


def add_waiting_time(reading: WatchResult, waited_ms: float) -> WatchResult:
    """Return the reading with its times counted from sending, for a watch that began on the next page."""
    first_ms = None if reading.first_token_ms is None else reading.first_token_ms + waited_ms
    return reading.model_copy(update={"first_token_ms": first_ms, "total_ms": reading.total_ms + waited_ms})
