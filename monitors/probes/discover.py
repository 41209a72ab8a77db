"""From an address to a chat that can be asked: open the page, pass its dialogs, find frame, box and profile."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from monitors.errors import AccessDenied, PageNotUnderstood, Unreachable
from monitors.probes.chromium import within
from monitors.probes.inpage import Found, Walls, call
from monitors.probes.profiles import GENERIC, PROFILES, Profile, profile_named
from monitors.probes.settings import ProbeSettings, Selectors

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Frame, Page

TRUSTED_SCORE = 5
SLICE_S = 0.4
ACTION_DEADLINE_S = 15.0
# How long a doubtful box is let stand before it is taken: the real one may still be on its way (a frame, a script).
GRACE_S = 2.5
DIALOGS = 4


@dataclass(frozen=True)
class Chat:
    """A page that can be asked. Lives as long as its page; never leaves the event loop."""

    frame: Frame
    profile: Profile
    selectors: Selectors
    found: Found


async def open_chat(page: Page, address: str, settings: ProbeSettings) -> Chat:
    """Loads the page and finds the chat on it.

    Raises `Unreachable` (no answer, HTTP error), `AccessDenied` (login or quota wall) or `PageNotUnderstood`.
    """
    deadline = monotonic() + settings.page_deadline_s
    await _load(page, address, settings.page_deadline_s)
    return await find_chat(page, settings, deadline)


async def _load(page: Page, address: str, deadline_s: float) -> None:
    from playwright.async_api import Error  # loaded already: there is a page
    from playwright.async_api import TimeoutError as Late

    try:
        response = await page.goto(address, wait_until="domcontentloaded", timeout=deadline_s * 1000)
    except Late as error:
        raise Unreachable(f"{address} did not load within {deadline_s:g} s") from error
    except Error as error:
        if "net::" not in error.message:
            raise
        raise Unreachable(f"{address}: {_net_error(error.message)}") from error
    if response is not None:
        _check_status(address, response.status)


def _net_error(message: str) -> str:
    return message[message.index("net::") :].split(maxsplit=1)[0].removeprefix("net::")


def _check_status(address: str, status: int) -> None:
    if status in (401, 402, 403, 407, 429):
        raise AccessDenied(f"{address} answered HTTP {status}: a login or quota wall")
    if status >= 400:  # noqa: PLR2004 - where HTTP's errors begin
        raise Unreachable(f"{address} answered HTTP {status}")


async def find_chat(page: Page, settings: ProbeSettings, deadline: float) -> Chat:
    """The chat on a loaded page; `deadline` is in `time.monotonic` seconds."""
    started = monotonic()
    dismissed = 0
    opened = False
    while True:
        frame, found = await _best(page, settings)
        if found.covered and dismissed < DIALOGS and await _pass_dialog(frame):
            dismissed += 1
            continue
        settled = monotonic() - started >= GRACE_S
        if found.box and found.enabled and (found.score >= TRUSTED_SCORE or settled):
            if found.score < TRUSTED_SCORE and (await _walls(frame)).passwords:
                raise AccessDenied(f"a login form stands where the chat should be: {seen_on(found, Walls())}")
            return await _chat(frame, found, settings)
        if settled and not found.box:
            if dismissed < DIALOGS and await _pass_dialog(frame):
                dismissed += 1
                continue
            if not opened and await _open_folded(page):
                opened = True
                continue
            raise_if_wall(found, await _walls(frame))
        if monotonic() >= deadline:
            walls = await _walls(frame)
            raise_if_wall(found, walls)
            raise PageNotUnderstood(f"no usable message box: {seen_on(found, walls)}")


async def _walls(frame: Frame) -> Walls:
    return Walls.model_validate(await call(frame, "walls"))


def raise_if_wall(found: Found, walls: Walls) -> None:
    """`AccessDenied` where a page without a chat asks to sign in, or speaks of a quota."""
    if walls.login:
        raise AccessDenied(f"a login wall stands before the chat: {seen_on(found, walls)}")
    if walls.quota:
        raise AccessDenied(f"a quota wall stands before the chat: {seen_on(found, walls)}")


def seen_on(found: Found, walls: Walls) -> str:
    """What was on the page, for a person: its title, boxes and first words."""
    boxes = "; ".join(found.others) or "no text box"
    return f"page titled {found.title!r}, {boxes}, text {walls.text[:120]!r}"


async def _best(page: Page, settings: ProbeSettings) -> tuple[Frame, Found]:
    """The frame with the likeliest box; looks for at most a slice of time, returns at once when one is trusted."""
    frames = [frame for frame in page.frames if not frame.is_detached()]
    looks = {asyncio.ensure_future(_look(frame, settings)): frame for frame in frames}
    results: list[tuple[Frame, Found]] = []
    pending = set(looks)
    try:
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            results += [(looks[task], found) for task in done if (found := task.result()) is not None]
            if any(found.score >= TRUSTED_SCORE and found.enabled for _, found in results):
                break
    finally:
        for task in pending:
            task.cancel()
    return max(results, key=lambda result: result[1].score, default=(page.main_frame, EMPTY))


EMPTY = Found(score=0, enabled=False, box=None, send=None, covered=False, others=(), title="")


async def _look(frame: Frame, settings: ProbeSettings) -> Found | None:
    """What a frame offers within a slice of time; ``None`` when it went away meanwhile."""
    from playwright.async_api import Error  # loaded already: there is a page

    try:
        given = settings.selectors.model_dump(exclude_none=True)
        return Found.model_validate(await call(frame, "waitForBox", given, SLICE_S * 1000))
    except Error as error:
        if lost(error.message) or frame.page.is_closed():
            raise
        await asyncio.sleep(SLICE_S / 4)
        return None


def lost(message: str) -> bool:
    """Whether a browser error means that page or browser are gone, not only a document replaced by the next."""
    return any(mark in message for mark in ("crashed", "Target page, context or browser", "has been closed"))


async def _chat(frame: Frame, found: Found, settings: ProbeSettings) -> Chat:
    profile = await _profile(frame, settings)
    return Chat(frame=frame, profile=profile, selectors=profile.with_overrides(settings.selectors), found=found)


async def _profile(frame: Frame, settings: ProbeSettings) -> Profile:
    if settings.profile is not None:
        return profile_named(settings.profile)
    marks = [(profile.name, profile.marks) for profile in PROFILES if profile.marks is not None]
    name = await call(frame, "profileOf", marks)
    return profile_named(name) if name else GENERIC


async def element(frame: Frame, expression: str) -> ElementHandle | None:
    """The element that an in-page expression gives."""
    handle = await within(ACTION_DEADLINE_S, frame.evaluate_handle(expression), "the page")
    return handle.as_element()


async def _pass_dialog(frame: Frame) -> bool:
    """Presses what takes a dialog away; whether there was something to press."""
    while (tick := await element(frame, "() => __lookout.consentBoxes()[0] ?? null")) is not None:
        if not await _press(tick):
            break
    return await _press(await element(frame, "() => __lookout.wayThrough()"))


async def _open_folded(page: Page) -> bool:
    """Opens a chat that is folded away behind a button."""
    return await _press(await element(page.main_frame, "() => __lookout.opener(false)"))


async def _press(button: ElementHandle | None) -> bool:
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
