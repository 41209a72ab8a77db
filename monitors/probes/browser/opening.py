"""Opening a chat that does not stand on the page yet: a launcher, a tab, a welcome screen with topics first.

Place, role and name choose what to press; a message box that appears is the proof. A wrong press is undone and
noted. Nothing is pressed that sends, buys, deletes, signs in or leaves the site, and no form is sent meanwhile.
What stands before a chat (terms, tours, banners) is seen, read to its end, agreed to, and out of the way.
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
# More than any page was seen to put before its chat: terms, a tour of three steps, cookies.
MAX_DIALOGS = 8


async def find_element(frame: Frame, expression: str) -> ElementHandle | None:
    """The element that an in-page expression gives."""
    handle = await run_within_deadline(ACTION_DEADLINE_S, frame.evaluate_handle(expression), "the page")
    return handle.as_element()


async def pass_dialog(frame: Frame, *, closing: bool = True) -> bool:
    """Presses what takes a dialog away; whether there was something to press.

    Without ``closing`` only what agrees or goes on: the dialog may be the chat itself.
    """
    await call_in_page(frame, "readDialogs")
    while (tick := await find_element(frame, "() => __lookout.consentBoxes()[0] ?? null")) is not None:
        if not await press(tick):
            break
    closes = "true" if closing else "false"
    return await press(await find_element(frame, f"() => __lookout.wayThrough(__lookout.box, {closes})"))


async def clear_way(frame: Frame) -> bool:
    """Takes away what has come to lie over the message box since it was found; whether there was something."""
    passed = 0
    while passed < MAX_DIALOGS:
        covered = await call_in_page(frame, "covered")
        if not (covered and await pass_dialog(frame)) and not await _pass_above(frame):
            break
        passed += 1
    return passed > 0


async def _pass_above(frame: Frame) -> bool:
    """The same for what lies over the frame itself, in the page that holds it."""
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
    """Clicks it; whether it is there and could be clicked."""
    from playwright.async_api import Error  # loaded already: there is a page

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
    """Whether the page was left while something was asked of it."""
    return CONTEXT_DESTROYED in error.message or "navigat" in error.message


def is_page_gone(message: str) -> bool:
    """Whether a browser error means that page or browser are gone, not only a document replaced by the next."""
    return any(mark in message for mark in ("crashed", "Target page, context or browser", "has been closed"))


MAX_STEPS = 3
"""A launcher, a topic, "new conversation": more was not seen before a chat."""
MAX_PRESSES = 8
"""The most presses on one page, wrong ones included."""
MIN_SCORE, MIN_SCORE_WITH_BOX = 3.0, 6.0
"""How likely a control must be to open a chat: where there is no box, and where there is a doubtful one."""
MIN_STEP_SCORE = 2.0
"""The same for what came with a step: a topic among others has nothing for it but its place."""
REACTION_TIMEOUT_S = 1.5
"""A page that has not changed for so long after a press ignored it."""
BOX_TIMEOUT_S = 5.0
"""What a press opened may load its message box for so long: a frame, a script."""
MAX_COVERS = 3
WAIT_MS = 300
TRUSTED_SCORE = 5


class Opener(Record):
    """A control that may open the chat. ``key`` is the same on every page, ``selector`` finds it."""

    number: int
    score: float
    key: str
    label: str
    selector: str | None = None


@dataclass
class ChatPath:
    """How the chat of one target was reached; known to all its pages. ``proved``: its box took a question."""

    steps: tuple[Opener, ...] = ()
    proved: bool = False


@dataclass
class OpenerPress:
    """A press, and how the page stood before it."""

    opener: Opener
    frame: Frame
    standing: str
    tab: ElementHandle | None
    at: float = field(default_factory=monotonic)


class Opening:
    """The search for the chat on one page.

    ``undone`` are the labels of what was pressed in vain; ``dialogs`` counts what was pressed out of the way.
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
        """Whether an earlier page was opened, and this one was not yet all the way."""
        return self._presses < len(self._way.steps)

    @property
    def pressed(self) -> bool:
        """Whether something is open that was pressed here."""
        return self._pending is not None or bool(self._steps)

    async def try_better_box(self, boxes: MessageBoxes) -> bool:
        """Whether a doubtful box may give way to a better one: something was pressed, or is waited for."""
        if (
            (self._way.proved and not self.knows_way)
            or boxes.pinned
            or (boxes.score >= TRUSTED_SCORE and boxes.asks)
        ):
            return False
        return await self.press_next(box=True)

    async def press_next(self, *, box: bool = False) -> bool:
        """Presses what most likely opens the chat; false when there is nothing left to try.

        ``box``: there is a doubtful one; then only what very likely opens a chat is tried.
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
        """The box is there: what was pressed for it is the way."""
        if self._pending is not None:
            self._steps.append(self._pending)
            self._pending = None
        if self._steps:
            self._way.steps = tuple(step.opener for step in self._steps)

    async def _resolve_last_press(self, last: OpenerPress, *, box: bool) -> bool:
        """Whether it is known what the last press came to: a step on the way, or nothing, which is undone."""
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
        """Whether the step that came after this one on earlier pages can be taken already."""
        keys = [step.key for step in self._way.steps]
        at = keys.index(last.opener.key) + 1 if last.opener.key in keys else len(keys)
        return at < len(keys) and any(
            opener.key == keys[at] for _, opener in await self._list_offers(MIN_STEP_SCORE)
        )

    async def _choose_next(self, *, box: bool) -> tuple[Frame, Opener] | None:
        """The likeliest that was not tried; on the way, what came with the last step first."""
        min_score = MIN_SCORE_WITH_BOX if box else MIN_STEP_SCORE if self._steps else MIN_SCORE
        offers = [offer for offer in await self._list_offers(min_score) if offer[1].key not in self._tried]
        keys = [step.key for step in self._way.steps]
        offers.sort(key=lambda offer: (offer[1].key not in keys, -offer[1].score))
        if not self._steps:
            self._before |= {opener.key for _, opener in offers}
            return next(iter(offers), None)
        return next((offer for offer in offers if offer[1].key not in self._before), None)

    async def _list_offers(self, min_score: float) -> list[tuple[Frame, Opener]]:
        from playwright.async_api import Error  # loaded already: there is a page

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
        from playwright.async_api import Error  # loaded already: there is a page

        try:
            await call_in_page(frame, "holdForms", False)
        except Error as error:  # the press led to another page, which holds nothing
            if is_page_gone(error.message):
                raise

    async def _undo(self, last: OpenerPress) -> None:
        """Takes away what a wrong press opened: by the tab or the page before, its "close", or itself once more."""
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
        """The page's address first, then how much stands in it and how many frames."""
        frames = [frame for frame in self._page.frames if not frame.is_detached()]
        return f"{await call_in_page(self._page.main_frame, 'standing')} {len(frames)}"


async def press_through(handle: ElementHandle | None) -> bool:
    """Presses it; a banner that lies over it is taken away first."""
    for _ in range(MAX_COVERS):
        if handle is None or not await handle.evaluate("(one) => __lookout.covered(one)"):
            break
        way = await handle.evaluate_handle("(one) => __lookout.wayThrough(one)")
        if not await press(way.as_element()):
            break
    return await press(handle)


async def press_pinned(page: Page, selector: str, key: str, seconds_left: float) -> None:
    """Presses a control that the target names, as soon as it stands in any frame.

    Raises `PageNotUnderstood` when it does not come in time, or cannot be pressed.
    """
    deadline = monotonic() + seconds_left
    while monotonic() < deadline:
        for frame in [frame_on_page for frame_on_page in page.frames if not frame_on_page.is_detached()]:
            if await call_in_page(frame, "comes", selector, WAIT_MS):
                expression = f"() => __lookout.pinnedOpener({json.dumps(selector)})"
                if await press_through(await find_element(frame, expression)):
                    return
    raise PageNotUnderstood(f"{key} matches nothing on the page that can be pressed")
