"""From an address to a chat that can be asked: open the page, pass its dialogs, find frame, box and profile."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from monitors.errors import AccessDenied, BrowserLost, NotReady, PageNotUnderstood, ProbeError, Unreachable
from monitors.probes.address_guard import guard_of
from monitors.probes.dialogs import DIALOGS, element, lost, pass_dialog, press
from monitors.probes.inpage import Found, Walls, call
from monitors.probes.pins import nothing_there
from monitors.probes.profiles import GENERIC, PROFILES, Profile, profile_named
from monitors.probes.settings import ProbeSettings, Selectors

if TYPE_CHECKING:
    from playwright.async_api import Frame, Page

TRUSTED_SCORE = 5
SLICE_S = 0.4
# A box below this has nothing for it but that one can type there.
DOUBTFUL_SCORE = 3
# How long a doubtful box is let stand before it is taken: the real one may still be on its way (a frame, a script).
GRACE_S = 2.5
# The same for a box with nothing for it: some pages start a chat only after seconds of their own.
WEAK_GRACE_S = 8.0
# A page without any box has settled when it stood still for so long with nothing more to load, and is given so long
# in all: some start their chat once the rest of the page stands, which takes seconds on a busy machine.
STILL_S = 4.0
SETTLED_S = 15.0
# A look that takes so many times its slice: the machine is too busy to draw the page in time.
STARVED_SLICES = 5


@dataclass(frozen=True)
class Chat:
    """A page that can be asked. Lives as long as its page; never leaves the event loop."""

    frame: Frame
    profile: Profile
    selectors: Selectors
    found: Found


async def open_chat(page: Page, address: str, settings: ProbeSettings) -> Chat:
    """Loads the page and finds the chat on it.

    Raises `Unreachable` (no answer, HTTP error), `AccessDenied` (login or quota wall, an address that is not the
    target's), `NotReady` (still loading at its deadline; `BrowserLost` where this machine is to blame) or
    `PageNotUnderstood`.
    """
    deadline = monotonic() + settings.page_deadline_s
    await _load(page, address, settings)
    return await find_chat(page, settings, deadline)


async def _load(page: Page, address: str, settings: ProbeSettings) -> None:
    from playwright.async_api import Error  # loaded already: there is a page
    from playwright.async_api import TimeoutError as Late

    deadline_s, guard = settings.page_deadline_s, guard_of(address, settings)
    await guard.check(address)
    try:
        response = await page.goto(address, wait_until="domcontentloaded", timeout=deadline_s * 1000)
    except Late as error:
        raise Unreachable(f"{address} did not load within {deadline_s:g} s") from error
    except Error as error:
        if "net::" not in error.message:
            raise
        raise Unreachable(f"{address}: {_net_error(error.message)}") from error
    if response is not None:
        await guard.check_page(response)
        _check_status(address, response.status)


def _net_error(message: str) -> str:
    return message[message.index("net::") :].split(maxsplit=1)[0].removeprefix("net::")


def _check_status(address: str, status: int) -> None:
    if status in (401, 402, 403, 407, 429):
        raise AccessDenied(f"{address} answered HTTP {status}: a login or quota wall")
    if status >= 400:  # noqa: PLR2004 - where HTTP's errors begin
        raise Unreachable(f"{address} answered HTTP {status}")


async def find_chat(page: Page, settings: ProbeSettings, deadline: float) -> Chat:
    """The chat on a loaded page; `deadline` is in `time.monotonic` seconds.

    Raises as `open_chat` does; a page without a chat says so soon after it has settled.
    """
    started = monotonic()
    passed = looks = 0
    opened = False
    while True:
        frame, found = await _best(page, settings)
        looks += 1
        waited_s = monotonic() - started
        if found.covered and passed < DIALOGS:
            if await pass_dialog(frame):
                passed += 1
                continue
            if waited_s < GRACE_S:  # its way through may not be open yet
                await asyncio.sleep(SLICE_S / 4)
                continue
        if found.enabled and waited_s >= _grace_s(found.score):
            return await _taken(frame, found, settings)
        if not found.box and waited_s >= GRACE_S:
            if passed < DIALOGS and await pass_dialog(frame):
                passed += 1
                continue
            if not opened and await _open_folded(page):
                opened = True
                continue
            raise_if_wall(found, await _walls(frame))
        if monotonic() >= deadline or (not found.box and await _settled(page, frame, waited_s)):
            raise await _without_chat(frame, found, settings, look_s=waited_s / looks)


async def _without_chat(frame: Frame, found: Found, settings: ProbeSettings, *, look_s: float) -> ProbeError:
    """Why there is nothing to ask. A page that is still loading is worth another try; see `Walls.loading`."""
    walls = await _walls(frame)
    raise_if_wall(found, walls)
    if look_s > STARVED_SLICES * SLICE_S:
        return BrowserLost(f"this machine is too busy to draw the page: a look at it takes {look_s:.1f} s")
    if walls.loading:
        return NotReady(f"the page was still loading after {settings.page_deadline_s:g} s: {seen_on(found, walls)}")
    pinned = nothing_there("message_box", settings.selectors)
    return PageNotUnderstood(f"{pinned}no usable message box: {seen_on(found, walls)}")


def _grace_s(score: float) -> float:
    """How long a box is let stand before it is taken, in seconds from the page's first look."""
    if score >= TRUSTED_SCORE:
        return 0.0
    return GRACE_S if score >= DOUBTFUL_SCORE else WEAK_GRACE_S


async def _taken(frame: Frame, found: Found, settings: ProbeSettings) -> Chat:
    """The chat with that box, unless it is as likely to be another one or a login form."""
    if found.score < TRUSTED_SCORE:
        walls = await _walls(frame)
        if walls.passwords:
            raise AccessDenied(f"a login form stands where the chat should be: {seen_on(found, Walls())}")
        if found.rivals:
            raise PageNotUnderstood(
                f"{found.rivals + 1} boxes look alike, pin selectors.message_box: {seen_on(found, walls)}"
            )
    return await _chat(frame, found, settings)


async def _settled(page: Page, frame: Frame, waited_s: float) -> bool:
    """Whether the page has loaded all it wants and stands still: what is not there now will not come.

    A page that listens to its server, or has never been without an open request, may be drawn at any time: it never
    settles before its deadline.
    """
    from playwright.async_api import TimeoutError as Late  # loaded already: there is a page

    if waited_s < SETTLED_S or await call(frame, "stillFor") < STILL_S * 1000 or await call(frame, "listens"):
        return False
    try:
        await page.wait_for_load_state("networkidle", timeout=50)
    except Late:
        return False
    return True


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


async def _chat(frame: Frame, found: Found, settings: ProbeSettings) -> Chat:
    profile = await _profile(frame, settings)
    return Chat(frame=frame, profile=profile, selectors=profile.with_overrides(settings.selectors), found=found)


async def _profile(frame: Frame, settings: ProbeSettings) -> Profile:
    if settings.profile is not None:
        return profile_named(settings.profile)
    marks = [(profile.name, profile.marks) for profile in PROFILES if profile.marks is not None]
    name = await call(frame, "profileOf", marks)
    return profile_named(name) if name else GENERIC


async def _open_folded(page: Page) -> bool:
    """Opens a chat that is folded away behind a button."""
    return await press(await element(page.main_frame, "() => __lookout.opener(false)"))
