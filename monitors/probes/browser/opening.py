"""Open a chat that the page shows only after a click: on a chat button, a tab or a topic.

The position, role and name of a control decide whether it is pressed. If no message box appears, the press is
undone. Controls that send, buy, delete, sign in or leave the site are never pressed, and no form is submitted.
Dialogs in front of the chat, such as terms or cookie banners, are accepted and closed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from monitors.errors import PageNotUnderstood
from monitors.probes.browser.chromium import run_within_deadline
from monitors.probes.browser.inpage import MessageBoxes, call_in_page
from monitors.records.base import Record

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Error, Frame, Page


ACTION_DEADLINE_S = 15.0
CONTEXT_DESTROYED = "Execution context was destroyed"
# Maximum number of dialogs to close on one page. No page in our tests had more dialogs before its chat.
MAX_DIALOGS = 8


async def find_element_by_javascript(frame: Frame, expression: str) -> ElementHandle | None:
    """Return the element that the JavaScript ``expression`` evaluates to, or ``None`` if it is not an element."""
    handle = await run_within_deadline(ACTION_DEADLINE_S, frame.evaluate_handle(expression), "the page")
    return handle.as_element()


async def accept_or_close_dialog(frame: Frame, *, closing: bool = True) -> bool:
    """Accept or close a dialog. Return whether a button of a dialog was found and clicked.

    If ``closing`` is False, only buttons that agree or continue are clicked, because the dialog may be the chat.
    """
    await call_in_page(frame, "readDialogs")
    while (
        tick := await find_element_by_javascript(frame, "() => __lookout.consentBoxes()[0] ?? null")
    ) is not None:
        if not await click_element(tick):
            break
    closes = "true" if closing else "false"
    return await click_element(
        await find_element_by_javascript(frame, f"() => __lookout.wayThrough(__lookout.box, {closes})")
    )


async def uncover_message_box(frame: Frame) -> bool:
    """Close dialogs that now cover the message box. Return whether a dialog was closed."""
    passed = 0
    while passed < MAX_DIALOGS:
        covered = await call_in_page(frame, "covered")
        if not (covered and await accept_or_close_dialog(frame)) and not await _close_dialog_above_frame(frame):
            break
        passed += 1
    return passed > 0


async def _close_dialog_above_frame(frame: Frame) -> bool:
    """Close a dialog in a parent page that covers the frame of the chat. Return whether a dialog was closed."""
    while (parent := frame.parent_frame) is not None:
        holder = await run_within_deadline(ACTION_DEADLINE_S, frame.frame_element(), "the page")
        if await holder.evaluate("(holder) => __lookout.covered(holder)"):
            await call_in_page(parent, "readDialogs")
            way = await holder.evaluate_handle("(holder) => __lookout.wayThrough(holder)")
            if await click_element(way.as_element()):
                return True
        frame = parent
    return False


async def click_element(button: ElementHandle | None) -> bool:
    """Click an element. Return whether the element exists and could be clicked."""
    from playwright.async_api import Error  # Playwright is already imported

    if button is None:
        return False
    try:
        await button.click(timeout=2000)
    except Error as error:
        if is_page_gone(error.message):
            raise
        return False
    return True


def is_navigation_error(error: Error) -> bool:
    """Return whether an error means that the page loaded another page during a call."""
    return CONTEXT_DESTROYED in error.message or "navigat" in error.message


def is_page_gone(message: str) -> bool:
    """Return whether an error message means that the page or the browser has crashed or was closed."""
    return any(mark in message for mark in ("crashed", "Target page, context or browser", "has been closed"))


MAX_STEPS = 3
"""Lookout opens a chat with at most this many clicks: on a chat button, a topic and "new conversation"."""
MAX_PRESSES = 8
"""Maximum number of presses on one page, including those that did not open a chat."""
MIN_SCORE, MIN_SCORE_WITH_BOX = 3.0, 6.0
"""A control is pressed only if it has at least this score.

The first value applies to a page without a message box, and the second to a page with a doubtful message box.
"""
MIN_STEP_SCORE = 2.0
"""Minimum score to press a control that appeared only after an earlier press, such as one of several topics."""
REACTION_TIMEOUT_S = 1.5
"""Seconds to wait for a change of the page after a press. If nothing changes by then, the press had no effect."""
BOX_TIMEOUT_S = 5.0
"""After a press that changed the page, Lookout waits at most this many seconds for a message box."""
MAX_COVERS = 3
WAIT_MS = 300
TRUSTED_SCORE = 5


class Opener(Record):
    """A control that may open the chat. ``key`` identifies the control on all pages of a target."""

    number: int
    score: float
    key: str
    label: str
    selector: str | None = None


@dataclass
class ChatPath:
    """The steps that opened the chat on one page of a target. The steps are repeated on other pages of the target.

    ``proved`` is True if a message box that these steps opened has accepted a question.
    """

    steps: tuple[Opener, ...] = ()
    proved: bool = False


@dataclass
class OpenerPress:
    """A control that was pressed, and the state of the page before it was pressed."""

    opener: Opener
    frame: Frame
    page_state: str
    tab: ElementHandle | None
    at: float = field(default_factory=monotonic)


class Opening:
    """The search for the chat on one page.

    ``undone`` contains the labels of controls that did not open a chat. ``dialogs`` is the number of closed
    dialogs.
    """

    def __init__(self, page: Page, way: ChatPath) -> None:
        self._page = page
        self._way = way
        self._pending: OpenerPress | None = None
        self._steps: list[OpenerPress] = []
        self._tried: set[str] = set()
        self._before: set[str] = set()
        self._presses = 0
        self.dialogs = 0
        self.undone: list[str] = []

    @property
    def has_known_steps_left(self) -> bool:
        """Return whether some of the known steps that open the chat are still missing on this page."""
        return self._presses < len(self._way.steps)

    @property
    def has_pressed(self) -> bool:
        """Return whether a control was pressed on this page and the press was not undone."""
        return self._pending is not None or bool(self._steps)

    async def press_opener_of_better_box(self, boxes: MessageBoxes) -> bool:
        """If the message box is doubtful, press a control that may open a better box.

        Return True if a control was pressed, or if an earlier press may still change the page.
        """
        if (
            (self._way.proved and not self.has_known_steps_left)
            or boxes.pinned
            or (boxes.score >= TRUSTED_SCORE and boxes.asks)
        ):
            return False
        return await self.press_next_opener(box=True)

    async def press_next_opener(self, *, box: bool = False) -> bool:
        """Press the control that most likely opens the chat. Undo the previous press if it had no effect.

        If ``box`` is True, the page already has a doubtful message box, and only controls that very likely open a
        chat are pressed. Return True if a control was pressed, or if an earlier press may still change the page.
        """
        if self._pending is not None and not await self._keep_or_undo_last_press(self._pending, box=box):
            return True
        while self._presses < MAX_PRESSES:
            chosen = await self._choose_next_opener(box=box)
            if chosen is not None:
                return await self._press_opener(*chosen)
            if not self._steps:
                return False
            await self._undo_press(self._steps.pop())
        while self._steps:
            await self._undo_press(self._steps.pop())
        return False

    def store_steps_for_later_pages(self) -> None:
        """Store the presses that opened the message box as the steps for later pages."""
        if self._pending is not None:
            self._steps.append(self._pending)
            self._pending = None
        if self._steps:
            self._way.steps = tuple(step.opener for step in self._steps)

    async def _keep_or_undo_last_press(self, last: OpenerPress, *, box: bool) -> bool:
        """Keep the press ``last`` as a step that opens the chat, or undo it.

        Return False if the page needs more time before this can be decided. If ``box`` is True, the page already
        has a doubtful message box, and the press is undone.
        """
        changed = await self._describe_page_state() != last.page_state
        age_s = monotonic() - last.at
        leads_on = changed and not box and await self._is_next_known_step_visible(last)
        if age_s < (BOX_TIMEOUT_S if changed and not box else REACTION_TIMEOUT_S) and not leads_on:
            return False
        self._pending = None
        if changed and not box and len(self._steps) < MAX_STEPS - 1:
            self._steps.append(last)
        else:
            await self._undo_press(last)
        return True

    async def _is_next_known_step_visible(self, last: OpenerPress) -> bool:
        """Return whether the page already shows the next known control.

        The next known control is the one that was pressed after ``last`` on earlier pages of the target.
        """
        keys = [step.key for step in self._way.steps]
        at = keys.index(last.opener.key) + 1 if last.opener.key in keys else len(keys)
        return at < len(keys) and any(
            opener.key == keys[at] for _, opener in await self._list_openers(MIN_STEP_SCORE)
        )

    async def _choose_next_opener(self, *, box: bool) -> tuple[Frame, Opener] | None:
        """Return the control that most likely opens the chat and was not tried yet, with its frame.

        After a control has opened a part of the chat, only controls that appeared later are considered.
        """
        min_score = MIN_SCORE_WITH_BOX if box else MIN_STEP_SCORE if self._steps else MIN_SCORE
        offers = [offer for offer in await self._list_openers(min_score) if offer[1].key not in self._tried]
        keys = [step.key for step in self._way.steps]
        offers.sort(key=lambda offer: (offer[1].key not in keys, -offer[1].score))
        if not self._steps:
            self._before |= {opener.key for _, opener in offers}
            return next(iter(offers), None)
        return next((offer for offer in offers if offer[1].key not in self._before), None)

    async def _list_openers(self, min_score: float) -> list[tuple[Frame, Opener]]:
        from playwright.async_api import Error  # Playwright is already imported

        offers: list[tuple[Frame, Opener]] = []
        for frame in [frame_on_page for frame_on_page in self._page.frames if not frame_on_page.is_detached()]:
            try:
                offers += [
                    (frame, Opener.model_validate(offer))
                    for offer in await call_in_page(frame, "openers", min_score)
                ]
            except Error as error:
                if is_page_gone(error.message):
                    raise
        return offers

    async def _press_opener(self, frame: Frame, opener: Opener) -> bool:
        self._tried.add(opener.key)
        self._presses += 1
        tab = await find_element_by_javascript(frame, "() => __lookout.selectedTab()")
        last = OpenerPress(opener, frame, await self._describe_page_state(), tab)
        handle = await find_element_by_javascript(frame, f"() => __lookout.offered({opener.number})")
        await call_in_page(frame, "holdForms", True)
        try:
            if await uncover_and_click(handle):
                self._pending = last
        finally:
            await self._allow_forms_again(frame)
        return True

    async def _allow_forms_again(self, frame: Frame) -> None:
        from playwright.async_api import Error  # Playwright is already imported

        try:
            await call_in_page(frame, "holdForms", False)
        except Error as error:  # the press led to another page without any control to press
            if is_page_gone(error.message):
                raise

    async def _undo_press(self, last: OpenerPress) -> None:
        """Undo a wrong press: go back, select the earlier tab, or close the element that the press opened."""
        self.undone.append(last.opener.label)
        page_state = await self._describe_page_state()
        if page_state == last.page_state:
            return
        if page_state.split()[0] != last.page_state.split()[0]:
            await self._page.go_back(wait_until="domcontentloaded")
            return
        if last.tab is not None and await click_element(last.tab):
            return
        await self._page.keyboard.press("Escape")
        if await self._describe_page_state() == last.page_state:
            return
        if not await click_element(await find_element_by_javascript(last.frame, "() => __lookout.closer()")):
            await click_element(
                await find_element_by_javascript(last.frame, f"() => __lookout.offered({last.opener.number})")
            )

    async def _describe_page_state(self) -> str:
        """Return a text that changes with the page: the address, the amount of content and the number of frames."""
        frames = [frame for frame in self._page.frames if not frame.is_detached()]
        return f"{await call_in_page(self._page.main_frame, 'describePage')} {len(frames)}"


async def uncover_and_click(handle: ElementHandle | None) -> bool:
    """Click an element, after closing banners that cover it. Return whether the element could be clicked."""
    for _ in range(MAX_COVERS):
        if handle is None or not await handle.evaluate("(one) => __lookout.covered(one)"):
            break
        way = await handle.evaluate_handle("(one) => __lookout.wayThrough(one)")
        if not await click_element(way.as_element()):
            break
    return await click_element(handle)


async def press_configured_opener(page: Page, selector: str, key: str, seconds_left: float) -> None:
    """Press a configured control as soon as a frame shows the control.

    Raises `PageNotUnderstood` if the control does not appear within ``seconds_left``, or cannot be clicked.
    """
    deadline = monotonic() + seconds_left
    while monotonic() < deadline:
        for frame in [frame_on_page for frame_on_page in page.frames if not frame_on_page.is_detached()]:
            if await call_in_page(frame, "comes", selector, WAIT_MS):
                expression = f"() => __lookout.pinnedOpener({json.dumps(selector)})"
                if await uncover_and_click(await find_element_by_javascript(frame, expression)):
                    return
    raise PageNotUnderstood(f"{key} matches no clickable element on the page")
