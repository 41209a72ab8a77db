"""Hold one conversation with the chat on one page: send a question and wait for the complete answer.

A script in the page watches the text and the controls until the answer looks complete. This script cannot
see open requests. Therefore, this module also checks the network. An incomplete answer is reported as an
error and is never graded as wrong.
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
from monitors.probes.browser.discover import TRUSTED_SCORE, AnswerSelectorCheck, Chat, raise_if_selector_configured
from monitors.probes.browser.greetings import Greetings, measure_document_age_s
from monitors.probes.browser.inpage import Navigated, WatchLimits, WatchResult, WatchState, call_in_page
from monitors.probes.browser.network import Stillness, Traffic, await_unless_frame_lost
from monitors.probes.browser.opening import (
    find_element_by_javascript,
    is_navigation_error,
    is_page_gone,
    uncover_message_box,
)
from monitors.probes.browser.visit import Visit
from monitors.probes.settings import ProbeSettings

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Frame, Page

    Way = Callable[[ElementHandle], Awaitable[bool]]


# If a control of the page shows that the answer is done, wait only until the last words are rendered.
FIRM_QUIET_S = 0.15
# After the last response has ended, wait this long until its data is rendered.
ENDED_QUIET_S = 0.3
# If the page does not react to Enter within this time, click its send button.
UNSENT_S = 1.5
# If a page has emptied its box and shows nothing for this long, the question may be lost, for example because the
# web socket of the page was not open.
LOST_S = 4.0
# Wait this many times longer for an answer that may continue: it stops in the middle of a sentence, or the page
# types it letter by letter, long after the network delivered it.
SLOW_QUIET_FACTOR = 4
TYPED_S = 0.6
_SENTENCE_END = re.compile(r"[^\w\s,–—-]$")
MIN_WAIT_S = 0.05
# A request that is open for longer is a stream, not a poll.
MAX_POLL_S = 1.0
# Patience is the setting `patience_s`. A request that is still open after this many times the patience does not
# bring the answer: some apps never close a request.
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
    """Build the limits for the script that watches the page. All parameters except ``patience`` are in seconds.

    - The watch ends if the page does not change for ``patience`` times `patience_s`. If ``patience`` is 0, the
      watch ends if the page does not change for ``quiet_s``.
    - ``unsent_s``: after this time, a question that is still in the message box is reported as unsent. 0 means
      never.
    - ``lost_s``: after this time, a question that is neither in the message box nor on the page is reported as
      lost. 0 means never.
    - ``quiet_s`` replaces the setting of the same name.
    - ``settle_s`` is the minimum duration of the watch.
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


async def watch_for_answer(frame: Frame, settings: ProbeSettings, limits: WatchLimits) -> WatchResult:
    """Watch the page until the answer looks complete, or until one of ``limits`` is reached. Return the result.

    Raises `Navigated` if the page loads another page meanwhile.
    """
    deadline_s = settings.answer_deadline_s + HANG_SLACK_S
    reading = await call_in_page(frame, "settled", limits.model_dump(), deadline_s=deadline_s)
    if reading is None:
        raise Navigated
    return WatchResult.model_validate(reading)


async def wait_for_complete_answer(
    frame: Frame, traffic: Traffic, settings: ProbeSettings, first: WatchResult
) -> WatchResult:
    """Return the complete answer. `first` is the result of the first watch of the page.

    Raises:
        AnswerIncomplete: the answer was not complete at the deadline, or the connection broke
        AnswerTimeout: no answer started
        AppErrorShown: the page shows an error
        RateLimited: the page says that there are too many requests
        AccessDenied: the page asks for a login or a higher quota
        PageNotUnderstood: the page has new text that may not be the answer
    """
    reading = first
    is_rechecked = False
    while True:
        raise_unless_answered(reading, settings)
        if traffic.cut and not is_rechecked:  # the page may have looked done before it detected the broken stream
            is_rechecked = True
            await call_in_page(frame, "broke", True)
            reading = await watch_for_answer(frame, settings, build_watch_limits(settings))
            continue
        if reading.busy and traffic.is_open:
            raise build_incomplete_error(reading, settings)
        limits = await _choose_next_watch_limits(frame, reading, traffic, settings)
        if limits is None:
            return reading
        reading = await watch_for_answer(frame, settings, limits)


async def _choose_next_watch_limits(
    frame: Frame, reading: WatchResult, traffic: Traffic, settings: ProbeSettings
) -> WatchLimits | None:
    """Return the limits for the next watch of the page, or ``None`` if the answer is complete.

    ``reading`` is the result of the last watch. A control of the page, such as a stop button, may signal too
    early that the answer is complete. Its signal is therefore accepted only in two cases:

    - A profile or the configuration names the control.
    - No response is open, and the control did not signal the end when the first words of the answer appeared.
    """
    slow_s = SLOW_QUIET_FACTOR * settings.quiet_s
    if reading.calm_ms >= OPEN_PATIENCE_FACTOR * settings.patience_s * 1000:
        return None
    if _may_answer_continue(reading, traffic) and reading.calm_ms < slow_s * 1000:
        return build_watch_limits(settings, quiet_s=slow_s)
    if reading.firm and (reading.certain or not (reading.early or traffic.is_answering)):
        return None
    traffic.request_ended.clear()
    match await traffic.classify_network_stillness(characters=len(reading.text), live=reading.live):
        case Stillness.UNKNOWN if reading.firm and not reading.live:
            return None
        case Stillness.ENDED if traffic.has_polled and reading.calm_ms < slow_s * 1000:
            return build_watch_limits(settings, quiet_s=slow_s)  # a page without enough CPU time renders late
        case Stillness.ENDED:
            return None
        case stillness:
            return await _wait_and_choose_watch_limits(frame, reading, traffic, settings, stillness)


async def _wait_and_choose_watch_limits(
    frame: Frame, reading: WatchResult, traffic: Traffic, settings: ProbeSettings, stillness: Stillness
) -> WatchLimits | None:
    """Wait for more data from the network.

    Return the limits for the next watch, or ``None`` if the text did not change for too long.

    The wait ends when the text has not changed for `patience_s`. If a request is open, this time is doubled in two
    cases: a response is arriving, or no control of the page has shown that the app is done.
    """
    is_over = reading.calm_ms >= settings.patience_s * 1000
    is_held = traffic.is_answering or not reading.firm
    factor = OPEN_PATIENCE_FACTOR if is_held else 1
    calm_left_s = factor * settings.patience_s - reading.calm_ms / 1000
    left_s = max(MIN_WAIT_S, min(calm_left_s, settings.answer_deadline_s - reading.elapsed_ms / 1000))
    match stillness:
        case Stillness.OPEN:
            is_late = is_over and not is_held  # but the open request may be a poll, which ends soon
            if await _wait_until_any_request_ends(traffic, MAX_POLL_S if is_late else left_s):
                return build_watch_limits(settings, settle_s=ENDED_QUIET_S)
            return None if is_late else build_watch_limits(settings, patience=factor)
        case Stillness.RESTING:
            if is_over and traffic.has_polled_any(await call_in_page(frame, "polledBefore")):
                return None
            # The page does not change. Until the limit, only the end of a request can change this.
            await asyncio.sleep(
                max(MIN_WAIT_S, min(await traffic.compute_polling_timeout_left_s(len(reading.text)), left_s))
            )
            return build_watch_limits(settings, settle_s=ENDED_QUIET_S)
        case Stillness.UNKNOWN | Stillness.ENDED:
            return None if is_over else build_watch_limits(settings, patience=1)


def _may_answer_continue(reading: WatchResult, traffic: Traffic) -> bool:
    """Return whether more of the answer may follow, although its text has stopped changing.

    This is assumed if the answer ends in the middle of a sentence, or if the text still grew after the last request
    had ended.
    """
    typed_s = 0.0 if traffic.ended_at is None else monotonic() - reading.calm_ms / 1000 - traffic.ended_at
    return typed_s > TYPED_S or _SENTENCE_END.search(reading.text) is None


async def _wait_until_any_request_ends(traffic: Traffic, timeout_s: float) -> bool:
    """Wait until a request ends. Return whether a request ended within ``timeout_s``."""
    try:
        async with asyncio.timeout(timeout_s):
            await traffic.request_ended.wait()
    except TimeoutError:
        return False
    return True


def raise_unless_answered(reading: WatchResult, settings: ProbeSettings) -> None:
    """Raise an error unless ``reading`` contains a complete answer."""
    match reading.state:
        case WatchState.FINISHED if reading.text:
            return
        case WatchState.ERROR:
            message = (reading.error or "")[:300]
            if _LIMIT.search(message):
                raise RateLimited(f"the page shows: {message}", partial_text=reading.text)
            if _WALL.search(message):
                raise AccessDenied(f"the page shows: {message}", partial_text=reading.text)
            raise AppErrorShown(f"the page shows: {message}", partial_text=reading.text)
        case WatchState.BROKEN if reading.text:
            raise AnswerIncomplete("the connection broke before the answer was complete", partial_text=reading.text)
        case WatchState.DEADLINE if reading.text:
            raise build_incomplete_error(reading, settings)
        case _:
            raise _build_no_answer_error(reading, settings)


def build_incomplete_error(reading: WatchResult, settings: ProbeSettings) -> AnswerIncomplete:
    """Return the error for an answer that may have been incomplete at the deadline."""
    busy_note = ", and the page still looks busy" if reading.busy else ""
    return AnswerIncomplete(
        f"the answer did not end within {settings.answer_deadline_s:g} s{busy_note}", partial_text=reading.text
    )


def _build_no_answer_error(reading: WatchResult, settings: ProbeSettings) -> ProbeError:
    """Return the error for a question after which no answer was found on the page.

    If the page has new text, the error says that Lookout did not find the answer in it, and the app is not blamed.
    """
    if reading.unread and reading.state is not WatchState.BROKEN:
        return PageNotUnderstood(f"Lookout found no answer in the new text of the page: {reading.unread[:200]!r}")
    match reading.state:
        case WatchState.BROKEN:
            return AnswerTimeout("the connection broke before the answer started")
        case WatchState.NOTHING:
            return AnswerTimeout("the page was busy and is now idle, but it shows no answer")
        case WatchState.DEADLINE:
            return AnswerTimeout(f"the answer did not start within {settings.answer_deadline_s:g} s")
        case WatchState.FINISHED | WatchState.UNSENT | WatchState.LOST | WatchState.ERROR:
            return PageNotUnderstood("the page seems to be finished, but it shows no answer")
        case _:
            assert_never(reading.state)


ACTION_MS = 10_000
# If the question is still in the box this long after Enter and the send button, Lookout cannot use the page.
UNRESPONSIVE_S = 10.0
# A page with a web socket may still load its greeting. Send the first question after the page has not changed for
# the first time span, or at the latest after the second.
GREETING_QUIET_S, MAX_GREETING_S = 0.5, 3.0
# The same two times for the first pages of a run, when the greetings are not known yet.
UNKNOWN_GREETING_QUIET_S, MAX_UNKNOWN_GREETING_S = 2.0, 8.0
# A part of the browser's error message if the page has replaced an element, and how often a page may replace its
# box.
REDRAWN_MARK = "not attached to the DOM"
MAX_REDRAWS = 6


class PageConversation:
    """One conversation with the chat on one page.

    Create this object before the page is loaded, because answers may arrive through a web socket that opens during
    loading.
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
            on_break=lambda cut, url: self._notify_page_script("broke", cut, url),
            on_end=lambda: self._notify_page_script("rested"),
            was_refused=visit.was_refused,
        )
        self._errands: set[asyncio.Task[Any]] = set()

    async def ask(self, turn: str) -> WatchResult:
        """Type one question, send the question and return the complete answer. Raises a `ProbeError`."""
        from playwright.async_api import Error  # Playwright is already imported

        try:
            reading = await self._ask_turn(turn)
        except Error as error:
            if is_navigation_error(error):
                await self._visit.wait_and_raise_if_left(self.chat.frame)
            raise
        self._visit.raise_if_page_left_app(self.chat.frame)
        self._greetings.add_answer(turn, reading.text)
        return reading

    async def _ask_turn(self, turn: str) -> WatchResult:
        await self._find_message_box()
        first, self._greeted = not self._greeted, True
        if first:  # wait for the page's greeting
            quiet_s, max_s = (
                (GREETING_QUIET_S, MAX_GREETING_S)
                if self._greetings.has_enough_pages
                else (UNKNOWN_GREETING_QUIET_S, MAX_UNKNOWN_GREETING_S)
            )
            await call_in_page(self.chat.frame, "greeted", quiet_s * 1000, max_s * 1000)
        selector_check = AnswerSelectorCheck(self.chat.frame, self._settings.selectors.answer)
        await selector_check.count_text_before_question()
        await self._type_turn(turn)
        earlier = await call_in_page(self.chat.frame, "arm", self._build_watch_request(turn))
        if first:
            self._greetings.count_lines_of_fresh_page(earlier)
        self._traffic.reset_and_start_tracking()
        try:
            return await self._send_and_read_answer(turn, earlier)
        except AnswerTimeout as error:
            self._visit.raise_if_page_left_app(self.chat.frame)
            raise await selector_check.choose_timeout_error(error, turn) from error
        finally:
            self._traffic.stop_tracking()

    async def _send_and_read_answer(self, turn: str, earlier: list[Any]) -> WatchResult:
        """Send the question and return the answer.

        If the new text contained the page's greeting, exclude the greeting and watch the page again.
        """
        try:
            reading = await self._send_and_watch_for_answer(turn, earlier)
        except AnswerIncomplete:
            if not await self._exclude_late_greeting(earlier):
                raise
        else:
            if not await self._exclude_late_greeting(earlier):
                if reading.resumed:
                    raise AnswerIncomplete(
                        "the answer to an earlier turn seemed to be complete, but it continued later",
                        partial_text=reading.text,
                    )
                return reading
        again = await watch_for_answer(self.chat.frame, self._settings, build_watch_limits(self._settings))
        return await wait_for_complete_answer(self.chat.frame, self._traffic, self._settings, again)

    async def _exclude_late_greeting(self, earlier: list[Any]) -> bool:
        """Exclude greetings that the page showed only after the question was sent.

        Return whether this changes the answer.

        ``earlier`` contains the lines that the page showed before the question.
        """
        if self.chat.selectors.answer is not None:
            return False
        greeting_lines = await self._greetings.list_unasked_page_lines_until_age(
            await measure_document_age_s(self.chat.frame) or 0.0
        )
        late = [line for line in greeting_lines if line not in earlier]
        return bool(late) and bool(await call_in_page(self.chat.frame, "greet", late))

    async def is_certain_answer(self, reading: WatchResult) -> bool:
        """Return whether the text in ``reading`` is certainly an answer of the page.

        This is the case if the ``answer`` selector is configured, if the page repeats the question, if a web socket
        or an event stream received data, or if a response may have contained the text.
        """
        named = self.chat.selectors.answer is not None
        return (
            named
            or reading.echoed
            or reading.pushed
            or await self._traffic.may_have_carried_answer(len(reading.text))
        )

    def was_question_accepted(self, reading: WatchResult) -> bool:
        """Return whether the page handled the question as a chat does.

        A chat repeats the question or empties the box.
        """
        return reading.echoed or not reading.held

    def raise_if_not_a_chat(self, reading: WatchResult) -> None:
        """Raise `CaptureUnsure` if the text box may belong to another tool, for example to a search.

        This is possible if the box still contains the question and the page does not repeat the question. The check
        is skipped if the ``message_box`` or ``answer`` selector is configured, or if the box asks for a message.
        """
        boxes = self.chat.boxes
        if (
            self.was_question_accepted(reading)
            or boxes.pinned
            or boxes.asks
            or self.chat.selectors.answer is not None
        ):
            return
        raise CaptureUnsure(
            f"{boxes.box} is possibly not the box of a chat: the question is still in the box, and the page does "
            "not repeat the question. If this is the right box, set probe.selectors.message_box to its selector. "
            "If this is the wrong box, set probe.open to the elements that open the chat",
            partial_text=reading.text,
        )

    async def _send_and_watch_for_answer(self, turn: str, earlier: list[Any]) -> WatchResult:
        from playwright.async_api import Error  # Playwright is already imported

        started = monotonic()
        try:
            reading = await self._send_by_enter_or_button(turn)
            return await wait_for_complete_answer(self.chat.frame, self._traffic, self._settings, reading)
        except Navigated:
            pass
        except Error as error:
            if not is_navigation_error(error):
                raise
        while True:  # some pages redirect to the next one
            try:
                return await self._read_answer_on_next_page(turn, earlier, started)
            except Navigated:
                pass
            except Error as error:
                if not is_navigation_error(error):
                    raise
            if monotonic() - started >= self._settings.answer_deadline_s:
                raise AnswerTimeout("the page opened other pages, but none of these pages showed an answer")

    async def _read_answer_on_next_page(self, turn: str, earlier: list[Any], started: float) -> WatchResult:
        """Return the answer if the chat is a plain HTML form: the new text on the page that the form opens."""
        frame = self.chat.frame
        await self._wait_for_answer_page(frame)
        self._visit.raise_if_page_left_app(frame)
        await call_in_page(frame, "find", {})
        waited_ms = (monotonic() - started) * 1000
        await call_in_page(frame, "arm", self._build_watch_request(turn), earlier)
        reading = await watch_for_answer(frame, self._settings, build_watch_limits(self._settings))
        answer = await wait_for_complete_answer(frame, self._traffic, self._settings, reading)
        return answer.with_waiting_time(waited_ms)

    async def _wait_for_answer_page(self, frame: Frame) -> None:
        from playwright.async_api import TimeoutError as Late  # Playwright is already imported

        deadline_s = self._settings.answer_deadline_s
        try:
            await frame.wait_for_load_state("load", timeout=deadline_s * 1000)
        except Late as error:
            raise AnswerTimeout(f"the page with the answer did not load within {deadline_s:g} s") from error
        status = await self._traffic.read_form_page_status()
        if status is not None and status >= 400:  # noqa: PLR2004 - where HTTP's errors begin
            raise AppErrorShown(f"the page with the answer has HTTP status {status}")

    async def _find_message_box(self) -> ElementHandle:
        """Return the message box. Each call searches for the box again, because pages replace their boxes."""
        pins = {"message_box": self.chat.selectors.message_box, "send": self.chat.selectors.send}
        deadline_s = self._settings.page_deadline_s
        min_score = min(TRUSTED_SCORE, self.chat.boxes.score)
        await call_in_page(
            self.chat.frame, "waitForBox", pins, deadline_s * 1000, min_score, deadline_s=deadline_s + 10
        )
        box = await find_element_by_javascript(self.chat.frame, "() => __lookout.box")
        if box is None:
            await self._visit.wait_and_raise_if_left(
                self.chat.frame
            )  # a page that navigated away has no box either
            raise PageNotUnderstood("the message box disappeared from the page")
        self._visit.raise_if_page_left_app(self.chat.frame)
        return box

    async def _type_turn(self, turn: str) -> None:
        """Type the question.

        If the page replaces its box, or a dialog receives the text, type the question again.
        """
        from playwright.async_api import Error  # Playwright is already imported

        for tries_left in reversed(range(MAX_REDRAWS)):
            self._box_now = await self._find_message_box()
            try:
                await uncover_message_box(self.chat.frame)
                await self._box_now.fill(turn, timeout=ACTION_MS)
                if await uncover_message_box(self.chat.frame):  # a dialog opened at the first key and took the text
                    await self._box_now.fill(turn, timeout=ACTION_MS)
            except Error as error:
                if REDRAWN_MARK not in error.message or not tries_left:
                    raise
            else:
                if await self._box_now.evaluate("(box) => box.isConnected"):
                    return

    async def _send_by_enter_or_button(self, turn: str) -> WatchResult:
        """Send the question with Enter or the send button. If the page does not react, try the other of the two."""
        ways = [self._press_enter, self._click_send_button]
        by_button = self.chat.selectors.send is not None or (
            not self.chat.profile.presses_enter and self.chat.boxes.send is not None
        )
        if by_button:
            ways.reverse()
        for way in ways:
            reading = await self._try_one_send_method(way, turn)
            if reading is not None and self._is_unsent(reading) and await uncover_message_box(self.chat.frame):
                reading = await self._try_one_send_method(way, turn)  # a dialog had covered the box
            if reading is not None and reading.state is WatchState.LOST:
                return await self._resend_question_if_not_sent(way, turn, reading)
            if reading is not None and not self._is_unsent(reading):
                return reading
            if self._traffic.started:
                break
        limits = build_watch_limits(
            self._settings, unsent_s=min(UNRESPONSIVE_S, self._settings.answer_deadline_s / 2)
        )
        reading = await watch_for_answer(self.chat.frame, self._settings, limits)
        if self._is_question_ignored(reading):
            boxes = self.chat.boxes
            raise PageNotUnderstood(
                f"neither Enter nor {boxes.send or 'a button'} sent the question. It is still in {boxes.box}. "
                f"Boxes on the page: {'; '.join(boxes.others)}"
            )
        if reading.state is not WatchState.UNSENT:
            return reading
        return await watch_for_answer(self.chat.frame, self._settings, build_watch_limits(self._settings))

    async def _try_one_send_method(self, way: Way, turn: str) -> WatchResult | None:
        """Send the question with ``way`` and watch the page. Return ``None`` if ``way`` returns False.

        ``way`` is a function that presses Enter or clicks the send button.
        """
        from playwright.async_api import Error  # Playwright is already imported

        try:
            was_sent = await way(self._box_now)
        except Error as error:
            if REDRAWN_MARK not in error.message:
                raise
            await self._type_turn(turn)  # the box with the text is gone, and nothing was pressed
            was_sent = await way(self._box_now)
        if not was_sent:
            return None
        limits = build_watch_limits(self._settings, unsent_s=UNSENT_S, lost_s=LOST_S)
        return await watch_for_answer(self.chat.frame, self._settings, limits)

    async def _resend_question_if_not_sent(self, way: Way, turn: str, reading: WatchResult) -> WatchResult:
        """Send the question a second time if no request and no socket message contained it, and watch the page.

        Raises `PageNotUnderstood` if the page empties the box again without sending the question.
        """
        if not self._may_have_been_sent(turn, reading):
            await self._type_turn(turn)
            again = await self._try_one_send_method(way, turn)
            if again is None or (again.state is WatchState.LOST and not self._may_have_been_sent(turn, again)):
                raise PageNotUnderstood(
                    f"the page emptied {self.chat.boxes.box} twice, but no request and no web socket message "
                    "contained the question"
                )
            if again.state is not WatchState.LOST:
                return again
        return await watch_for_answer(self.chat.frame, self._settings, build_watch_limits(self._settings))

    def _may_have_been_sent(self, turn: str, reading: WatchResult) -> bool:
        """Return whether a request or a web socket message may have contained the question.

        If a web socket or an event stream received data, the page may have encoded the question. In this case, any
        sent data that is at least as long as the question counts.
        """
        return self._traffic.has_sent(turn, in_any_form=reading.pushed)

    def _is_unsent(self, reading: WatchResult) -> bool:
        return reading.state is WatchState.UNSENT or self._is_question_ignored(reading)

    def _is_question_ignored(self, reading: WatchResult) -> bool:
        """Return whether the question is still in the box, and the page has sent and received nothing."""
        untouched = reading.held and not reading.echoed and not self._traffic.started and not reading.pushed
        return untouched and reading.state in {WatchState.UNSENT, WatchState.FINISHED, WatchState.NOTHING}

    async def _press_enter(self, box: ElementHandle) -> bool:
        """Press Enter in the box. Always return True, because Enter can always be pressed."""
        await box.press("Enter", timeout=ACTION_MS, no_wait_after=True)
        return True

    async def _click_send_button(self, box: ElementHandle) -> bool:
        """Click the send button. Return whether a button was found and clicked."""
        from playwright.async_api import Error  # Playwright is already imported

        button = await find_element_by_javascript(
            self.chat.frame, f"() => __lookout.sendNow({json.dumps(self.chat.selectors.send)})"
        )
        if button is None:
            raise_if_selector_configured("send", self._settings.selectors)
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

    def _build_watch_request(self, turn: str) -> dict[str, Any]:
        return {
            "question": turn,
            "greetings": self._greetings.list_greeting_lines(),
            "usual": self._greetings.list_lines_common_to_answers(),
            **self.chat.selectors.model_dump(),
        }

    def _notify_page_script(self, name: str, *given: Any) -> None:
        """Call the function ``name`` of Lookout's script in the page, without waiting for its result."""
        task = asyncio.ensure_future(await_unless_frame_lost(call_in_page(self.chat.frame, name, *given)))
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)
