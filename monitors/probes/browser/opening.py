"""Open a chat that is not on the page yet but behind a launcher, a tab or a welcome screen with topics.

Position, role and name decide which control to press. A message box that appears is the proof. A wrong press is
undone and noted. Controls that send, buy, delete, sign in or leave the site are never pressed, and forms are not
submitted meanwhile. Dialogs before a chat (terms, tours, banners) are scrolled to their end, accepted and closed.
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
# More dialogs than any observed page had before its chat: terms, a tour of three steps, cookies.
MAX_DIALOGS = 8


async def find_element(frame: Frame, expression: str) -> ElementHandle | None:
    """Return the element that an in-page expression evaluates to."""
    handle = await run_within_deadline(ACTION_DEADLINE_S, frame.evaluate_handle(expression), "the page")
    return handle.as_element()


async def pass_dialog(frame: Frame, *, closing: bool = True) -> bool:
    """Press the button that closes a dialog; return whether a dialog was found.

    Without ``closing`` only press buttons that agree or continue: the dialog may be the chat itself.
    """
    await call_in_page(frame, "readDialogs")
    while (tick := await find_element(frame, "() => __lookout.consentBoxes()[0] ?? null")) is not None:
        if not await press(tick):
            break
    closes = "true" if closing else "false"
    return await press(await find_element(frame, f"() => __lookout.wayThrough(__lookout.box, {closes})"))


async def clear_way(frame: Frame) -> bool:
    """Close elements that have covered the message box since it was found; return whether any did."""
    passed = 0
    while passed < MAX_DIALOGS:
        covered = await call_in_page(frame, "covered")
        if not (covered and await pass_dialog(frame)) and not await _pass_above(frame):
            break
        passed += 1
    return passed > 0


async def _pass_above(frame: Frame) -> bool:
    """Close elements that cover the frame itself, in its parent page; return whether any did."""
    while (parent := frame.parent_frame) is not None:
        holder = await run_within_deadline(ACTION_DEADLINE_S, frame.frame_element(), "the page")
        if await holder.evaluate("(holder) => __lookout.covered(holder)"):
            await call_in_page(parent, "readDialogs")
            way = await holder.evaluate_handle("(holder) => __lookout.wayThrough(holder)")
            if await press(way.as_element()):
                return True
        frame = parent
    return False


async def press(button: ElementHandle | None) -> bool:
    """Click an element; return whether it exists and could be clicked."""
    from playwright.async_api import Error  # already imported: a page is open

    if button is None:
        return False
    try:
        await button.click(timeout=2000)
    except Error as error:
        if is_page_gone(error.message):
            raise
        return False
    return True


def has_navigated(error: Error) -> bool:
    """Whether an error means that the page navigated during a call."""
    return CONTEXT_DESTROYED in error.message or "navigat" in error.message


def is_page_gone(message: str) -> bool:
    """Whether a browser error means that the page or browser is gone, not only that a document was replaced."""
    return any(mark in message for mark in ("crashed", "Target page, context or browser", "has been closed"))


MAX_STEPS = 3
"""Limit of steps before a chat: a launcher, a topic, "new conversation". No observed page had more."""
MAX_PRESSES = 8
"""Limit of presses on one page, wrong ones included."""
MIN_SCORE, MIN_SCORE_WITH_BOX = 3.0, 6.0
"""The minimal score of a control to be pressed: without a box, and with a doubtful box."""
MIN_STEP_SCORE = 2.0
"""The same for controls that appeared after a step. One topic among others scores only by its position."""
REACTION_TIMEOUT_S = 1.5
"""A page that has not changed for this long has ignored the press."""
BOX_TIMEOUT_S = 5.0
"""The time for an opened frame or script to load its message box."""
MAX_COVERS = 3
WAIT_MS = 300
TRUSTED_SCORE = 5


class Opener(Record):
    """A control that may open the chat. ``key`` is the same on every page; ``selector`` finds the control."""

    number: int
    score: float
    key: str
    label: str
    selector: str | None = None


@dataclass
class ChatPath:
    """The steps that opened the chat of one target, for all its pages. ``proved``: its box accepted a question."""

    steps: tuple[Opener, ...] = ()
    proved: bool = False


@dataclass
class OpenerPress:
    """A press, and the state of the page before it."""

    opener: Opener
    frame: Frame
    standing: str
    tab: ElementHandle | None
    at: float = field(default_factory=monotonic)


class Opening:
    """The search for the chat on one page.

    ``undone`` are the labels of controls that opened no chat; ``dialogs`` counts the closed dialogs.
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
    def knows_way(self) -> bool:
        """Whether the steps are known from an earlier page and some of them are still to be done here."""
        return self._presses < len(self._way.steps)

    @property
    def pressed(self) -> bool:
        """Whether a press on this page is in effect."""
        return self._pending is not None or bool(self._steps)

    async def try_better_box(self, boxes: MessageBoxes) -> bool:
        """Look for a better box than a doubtful one; return whether a control was pressed or is still loading."""
        if (
            (self._way.proved and not self.knows_way)
            or boxes.pinned
            or (boxes.score >= TRUSTED_SCORE and boxes.asks)
        ):
            return False
        return await self.press_next(box=True)

    async def press_next(self, *, box: bool = False) -> bool:
        """Press the control that most likely opens the chat; false if no control is left to try.

        ``box``: a doubtful box exists. Then only controls that very likely open a chat are tried.
        """
        if self._pending is not None and not await self._resolve_last_press(self._pending, box=box):
            return True
        while self._presses < MAX_PRESSES:
            chosen = await self._choose_next(box=box)
            if chosen is not None:
                return await self._press(*chosen)
            if not self._steps:
                return False
            await self._undo(self._steps.pop())
        while self._steps:
            await self._undo(self._steps.pop())
        return False

    def confirm_path(self) -> None:
        """Store the presses that led to the message box as the way to the chat."""
        if self._pending is not None:
            self._steps.append(self._pending)
            self._pending = None
        if self._steps:
            self._way.steps = tuple(step.opener for step in self._steps)

    async def _resolve_last_press(self, last: OpenerPress, *, box: bool) -> bool:
        """Decide whether the last press was a step or must be undone; return whether the decision is made."""
        changed = await self._describe_state() != last.standing
        age_s = monotonic() - last.at
        leads_on = changed and not box and await self._has_next_step(last)
        if age_s < (BOX_TIMEOUT_S if changed and not box else REACTION_TIMEOUT_S) and not leads_on:
            return False
        self._pending = None
        if changed and not box and len(self._steps) < MAX_STEPS - 1:
            self._steps.append(last)
        else:
            await self._undo(last)
        return True

    async def _has_next_step(self, last: OpenerPress) -> bool:
        """Whether the step that followed this one on earlier pages is already possible."""
        keys = [step.key for step in self._way.steps]
        at = keys.index(last.opener.key) + 1 if last.opener.key in keys else len(keys)
        return at < len(keys) and any(
            opener.key == keys[at] for _, opener in await self._list_offers(MIN_STEP_SCORE)
        )

    async def _choose_next(self, *, box: bool) -> tuple[Frame, Opener] | None:
        """Return the likeliest control that was not tried. Controls that appeared with the last step come first."""
        min_score = MIN_SCORE_WITH_BOX if box else MIN_STEP_SCORE if self._steps else MIN_SCORE
        offers = [offer for offer in await self._list_offers(min_score) if offer[1].key not in self._tried]
        keys = [step.key for step in self._way.steps]
        offers.sort(key=lambda offer: (offer[1].key not in keys, -offer[1].score))
        if not self._steps:
            self._before |= {opener.key for _, opener in offers}
            return next(iter(offers), None)
        return next((offer for offer in offers if offer[1].key not in self._before), None)

    async def _list_offers(self, min_score: float) -> list[tuple[Frame, Opener]]:
        from playwright.async_api import Error  # already imported: a page is open

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

    async def _press(self, frame: Frame, opener: Opener) -> bool:
        self._tried.add(opener.key)
        self._presses += 1
        tab = await find_element(frame, "() => __lookout.selectedTab()")
        last = OpenerPress(opener, frame, await self._describe_state(), tab)
        handle = await find_element(frame, f"() => __lookout.offered({opener.number})")
        await call_in_page(frame, "holdForms", True)
        try:
            if await press_through(handle):
                self._pending = last
        finally:
            await self._release(frame)
        return True

    async def _release(self, frame: Frame) -> None:
        from playwright.async_api import Error  # already imported: a page is open

        try:
            await call_in_page(frame, "holdForms", False)
        except Error as error:  # the press led to another page without any control to press
            if is_page_gone(error.message):
                raise

    async def _undo(self, last: OpenerPress) -> None:
        """Undo a wrong press: by the earlier tab or page, a "close" button, or the same control again."""
        self.undone.append(last.opener.label)
        standing = await self._describe_state()
        if standing == last.standing:
            return
        if standing.split()[0] != last.standing.split()[0]:
            await self._page.go_back(wait_until="domcontentloaded")
            return
        if last.tab is not None and await press(last.tab):
            return
        await self._page.keyboard.press("Escape")
        if await self._describe_state() == last.standing:
            return
        if not await press(await find_element(last.frame, "() => __lookout.closer()")):
            await press(await find_element(last.frame, f"() => __lookout.offered({last.opener.number})"))

    async def _describe_state(self) -> str:
        """Return the page's address, the amount of its content and the number of its frames, to compare states."""
        frames = [frame for frame in self._page.frames if not frame.is_detached()]
        return f"{await call_in_page(self._page.main_frame, 'standing')} {len(frames)}"


async def press_through(handle: ElementHandle | None) -> bool:
    """Press an element. Close a banner that covers it first."""
    for _ in range(MAX_COVERS):
        if handle is None or not await handle.evaluate("(one) => __lookout.covered(one)"):
            break
        way = await handle.evaluate_handle("(one) => __lookout.wayThrough(one)")
        if not await press(way.as_element()):
            break
    return await press(handle)


async def press_pinned(page: Page, selector: str, key: str, seconds_left: float) -> None:
    """Press a configured control as soon as any frame shows it.

    Raises `PageNotUnderstood` if the control does not appear in time, or cannot be pressed.
    """
    deadline = monotonic() + seconds_left
    while monotonic() < deadline:
        for frame in [frame_on_page for frame_on_page in page.frames if not frame_on_page.is_detached()]:
            if await call_in_page(frame, "comes", selector, WAIT_MS):
                expression = f"() => __lookout.pinnedOpener({json.dumps(selector)})"
                if await press_through(await find_element(frame, expression)):
                    return
    raise PageNotUnderstood(f"{key} matches no clickable element on the page")
