"""What stands before a chat, terms, tours, banners: seen, read to its end, agreed to, and out of the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from monitors.probes.chromium import within
from monitors.probes.inpage import call

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Frame

ACTION_DEADLINE_S = 15.0
# More than any page was seen to put before its chat: terms, a tour of three steps, cookies.
DIALOGS = 8


async def element(frame: Frame, expression: str) -> ElementHandle | None:
    """The element that an in-page expression gives."""
    handle = await within(ACTION_DEADLINE_S, frame.evaluate_handle(expression), "the page")
    return handle.as_element()


async def pass_dialog(frame: Frame) -> bool:
    """Presses what takes a dialog away; whether there was something to press."""
    await call(frame, "readDialogs")
    while (tick := await element(frame, "() => __lookout.consentBoxes()[0] ?? null")) is not None:
        if not await press(tick):
            break
    return await press(await element(frame, "() => __lookout.wayThrough()"))


async def clear_way(frame: Frame) -> bool:
    """Takes away what has come to lie over the message box since it was found; whether there was something."""
    passed = 0
    while passed < DIALOGS:
        covered = await call(frame, "covered")
        if not (covered and await pass_dialog(frame)) and not await _pass_above(frame):
            break
        passed += 1
    return passed > 0


async def _pass_above(frame: Frame) -> bool:
    """The same for what lies over the frame itself, in the page that holds it."""
    while (parent := frame.parent_frame) is not None:
        holder = await within(ACTION_DEADLINE_S, frame.frame_element(), "the page")
        if await holder.evaluate("(holder) => __lookout.covered(holder)"):
            await call(parent, "readDialogs")
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
        if lost(error.message):
            raise
        return False
    return True


def lost(message: str) -> bool:
    """Whether a browser error means that page or browser are gone, not only a document replaced by the next."""
    return any(mark in message for mark in ("crashed", "Target page, context or browser", "has been closed"))
