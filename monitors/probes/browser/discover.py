"""Open a page and find its chat: close its dialogs, find frame, message box and profile.

A configured selector without a match is reported by its key. It is never the application's fault. Profiles
describe known kinds of chat page. An unknown page needs no profile: its behaviour shows how to read it.

A page has settled if it has nothing left to do, so that nothing new appears without user input: no timer is
pending, no request is open, and no worker or channel can send a message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from monitors.errors import (
    AccessDenied,
    AnswerTimeout,
    BrowserLost,
    ConfigError,
    LoginWall,
    NotReady,
    PageNotUnderstood,
    ProbeError,
    RateLimited,
    Unreachable,
)
from monitors.probes.browser.inpage import MessageBoxes, Walls, call_in_page
from monitors.probes.browser.opening import (
    MAX_DIALOGS,
    ChatPath,
    Opening,
    has_navigated,
    is_page_gone,
    pass_dialog,
    press_pinned,
)
from monitors.probes.settings import ProbeSettings, Selectors
from monitors.records.base import Record
from monitors.retry import parse_retry_after_s

if TYPE_CHECKING:
    from playwright.async_api import Frame, Page, Request

    from monitors.probes.browser.visit import Visit


CHECK_SELECTORS_SCRIPT = """(given) => given.find(([, selector]) => {
  try { document.createDocumentFragment().querySelector(selector); return false; } catch { return true; }
})?.[0] ?? null"""
MIN_NEW_CHARACTERS = 20
"""Characters beyond the question itself. A name and a time beside it are shorter."""


def format_selector_key(name: str, selector: str) -> str:
    """Format a configured selector for an error, by its key."""
    return f"probe.selectors.{name} = {selector!r}"


async def check_selectors(page: Page, selectors: Selectors) -> None:
    """Raise `PageNotUnderstood` for an invalid CSS selector, before the page is loaded."""
    pinned = [[name, value] for name, value in selectors.model_dump(exclude_none=True).items()]
    invalid_name = await page.evaluate(CHECK_SELECTORS_SCRIPT, pinned) if pinned else None
    if invalid_name is not None:
        raise PageNotUnderstood(
            f"{format_selector_key(invalid_name, getattr(selectors, invalid_name))} is not a CSS selector"
        )


def format_missing_pin(name: str, selectors: Selectors) -> str:
    """Return the start of an error about a configured selector without a match; empty if none is configured."""
    selector = getattr(selectors, name)
    return f"{format_selector_key(name, selector)} matches nothing on the page; " if selector else ""


def raise_if_pinned(name: str, selectors: Selectors) -> None:
    """Raise `PageNotUnderstood` for a missing element if a selector for it is configured."""
    if getattr(selectors, name):
        raise PageNotUnderstood(format_missing_pin(name, selectors).removesuffix("; "))


class PinnedAnswer:
    """Distinguish an app without an answer from a configured ``answer`` selector that no longer matches."""

    def __init__(self, frame: Frame, selector: str | None) -> None:
        self._frame = frame
        self._selector = selector
        self._before = 0

    async def begin(self) -> None:
        """Store the amount of text on the page before the question."""
        if self._selector is not None:
            self._before = await self._count_characters()

    async def assign_blame(self, error: AnswerTimeout, turn: str) -> ProbeError:
        """Return the error, or `PageNotUnderstood` if the page has new text outside the configured selector."""
        if self._selector is None or await self._frame.evaluate(
            "(given) => __lookout.all(given).length", self._selector
        ):
            return error
        new = await self._count_characters() - self._before - len(turn)
        if new < MIN_NEW_CHARACTERS:
            return error
        key = format_selector_key("answer", self._selector)
        return PageNotUnderstood(f"{key} matches nothing, but the page shows {new} new characters")

    async def _count_characters(self) -> int:
        return int(await self._frame.evaluate("() => __lookout.textOf(document.body).length"))


class Profile(Record):
    """The selectors and habits of one kind of chat page.

    ``marks`` is a selector that matches only on such a page. ``selectors`` locate the elements, so that no search
    is needed. ``presses_enter`` means that Enter always sends.
    """

    name: str
    marks: str | None = None
    selectors: Selectors = Selectors()
    presses_enter: bool = False

    def with_overrides(self, given: Selectors) -> Selectors:
        """Return the profile's selectors, replaced by those that the target configures."""
        own = {name: value for name, value in given.model_dump().items() if value is not None}
        return self.selectors.model_copy(update=own)


# Gradio 6.31: a chatbot is a log. The toast is the only sign of an exception, after which the box stays disabled.
# Behaviour shows a box that is disabled while the bot answers, so no profile names it.
GRADIO = Profile(
    name="gradio",
    marks=".gradio-container [role=log], .gradio-container [aria-label='chatbot conversation']",
    selectors=Selectors(
        answer="[data-testid=bot]",
        steps=".thought-group",
        busy=".gradio-container [data-testid=status-tracker].generating:not(.hide)",
        error="[data-testid=toast-body].error",
    ),
    presses_enter=True,
)

# Streamlit 1.67: the app element shows whether its script runs.
STREAMLIT = Profile(
    name="streamlit",
    marks="[data-testid=stApp] [data-testid=stChatInput]",
    selectors=Selectors(
        message_box="[data-testid=stChatInputTextArea]",
        busy="[data-testid=stApp][data-test-script-state=running]",
        error="[data-testid=stException]",
    ),
    presses_enter=True,
)

GENERIC = Profile(name="generic")

PROFILES = (GRADIO, STREAMLIT, GENERIC)


def find_profile(name: str) -> Profile:
    """Return the profile with this name. Raises `ConfigError`, which lists the profiles."""
    for profile in PROFILES:
        if profile.name == name:
            return profile
    names = ", ".join(profile.name for profile in PROFILES)
    raise ConfigError(f"probe.profile = {name!r} is not a profile; accepted: {names}")


IDLE_S = 1.0
"""A page must also have been still for this long, because the last changes may not be rendered yet."""
REQUEST_END_TIMEOUT_S = 0.3
"""A request that does not report its end within this time is still open."""
NETWORK_IDLE_TIMEOUT_MS = 50


async def is_idle(page: Page, frame: Frame) -> bool:
    """Whether the page in ``frame`` is still and no frame has anything left to do."""
    from playwright.async_api import Error  # already imported: a page is open

    if await call_in_page(frame, "stillFor") < IDLE_S * 1000 or page.workers:
        return False
    try:
        for frame_on_page in [frame_on_page for frame_on_page in page.frames if not frame_on_page.is_detached()]:
            if await call_in_page(frame_on_page, "pending"):
                return False
    except Error as error:
        if is_page_gone(error.message):
            raise
        return False
    if not await has_loaded(page):
        return False
    ended = await asyncio.gather(*(_has_ended(request) for request in await page.requests()))
    return all(ended)


async def has_loaded(page: Page) -> bool:
    """Whether the page had no open request for a while since its document arrived."""
    from playwright.async_api import TimeoutError as Late  # already imported: a page is open

    try:
        await page.wait_for_load_state("networkidle", timeout=NETWORK_IDLE_TIMEOUT_MS)
    except Late:
        return False
    return True


async def _has_ended(request: Request) -> bool:
    """Whether a request has ended. The size of an ended request is known, except after a failure."""
    from playwright.async_api import Error  # already imported: a page is open

    try:
        # A failed request has also ended.
        with suppress(Error):
            async with asyncio.timeout(REQUEST_END_TIMEOUT_S):
                await request.sizes()
    except TimeoutError:
        return False
    return True


TRUSTED_SCORE = 5
INSPECTION_SLICE_S = 0.4
# A box below this score has no sign of a chat except that one can type into it.
DOUBTFUL_SCORE = 3
# Wait before using a doubtful box: the real one may still load (a frame, a script).
GRACE_S = 2.5
# The same for a box without any sign of a chat: some pages start a chat only after seconds.
WEAK_GRACE_S = 8.0
# A page without a box has settled if it was still for the first time span with nothing more to load, and after
# the second time span in any case. Some pages start their chat after the rest of the page, which takes seconds on
# a busy machine.
STILL_S = 4.0
SETTLED_S = 15.0
# If an inspection takes this many times its slice, the machine is too busy to render the page in time.
STARVED_SLICES = 5


@dataclass(frozen=True)
class Chat:
    """A chat that accepts questions. Valid as long as its page; never leaves the event loop."""

    frame: Frame
    profile: Profile
    selectors: Selectors
    boxes: MessageBoxes


async def open_chat(
    page: Page, address: str, settings: ProbeSettings, visit: Visit, way: ChatPath | None = None
) -> Chat:
    """Load the page and find the chat on it.

    Raises `Unreachable` (no answer, HTTP error), `AccessDenied` (login or quota wall, or an address outside the
    target), `LeftTarget`, `NotReady` (still loading at its deadline; `BrowserLost` if this machine is the cause)
    or `PageNotUnderstood`.
    """
    from playwright.async_api import Error  # already imported: a page is open

    deadline = monotonic() + settings.page_deadline_s
    await _load(page, address, settings, visit)
    for selector in settings.open:
        await press_pinned(page, selector, f"probe.open = {selector!r}", deadline - monotonic())
    while True:
        try:
            return require_app_page(await find_chat(page, settings, deadline, way), visit)
        except (NotReady, PageNotUnderstood):
            visit.raise_if_away(page.main_frame)
            raise
        except Error as error:
            if not has_navigated(error) or monotonic() >= deadline:
                raise
        await visit.raise_if_led_away(page.main_frame)


def require_app_page(chat: Chat, visit: Visit) -> Chat:
    """Return the chat if its page still belongs to the app. Raises `LeftTarget`."""
    visit.raise_if_away(chat.frame)
    return chat


async def _load(page: Page, address: str, settings: ProbeSettings, visit: Visit) -> None:
    from playwright.async_api import Error  # already imported: a page is open
    from playwright.async_api import TimeoutError as Late

    deadline_s, response = settings.page_deadline_s, None
    await visit.guard.check(address)
    try:
        response = await page.goto(address, wait_until="domcontentloaded", timeout=deadline_s * 1000)
    except Late as error:
        raise Unreachable(f"{address} did not load within {deadline_s:g} s") from error
    except Error as error:
        cause = visit.explain_failed_opening(address, error)
        if cause is not None:
            raise cause from error
    await visit.arrive(address, response)
    if response is not None:
        _check_status(address, response.status, response.headers)


def _check_status(address: str, status: int, headers: Mapping[str, str]) -> None:
    if status in (401, 403):
        raise LoginWall(f"{address} answered HTTP {status}: a login wall")
    if status == 429:  # noqa: PLR2004 - Too Many Requests
        wait_s = parse_retry_after_s(headers)
        raise RateLimited(f"{address} answered HTTP 429: too many requests", retry_after_s=wait_s)
    if status in (402, 407):
        raise AccessDenied(f"{address} answered HTTP {status}: a login or quota wall")
    if status >= 400:  # noqa: PLR2004 - where HTTP's errors begin
        raise Unreachable(f"{address} answered HTTP {status}")


async def find_chat(page: Page, settings: ProbeSettings, deadline: float, way: ChatPath | None = None) -> Chat:
    """Find the chat on a loaded page; `deadline` is in `time.monotonic` seconds.

    ``way`` is how earlier pages were opened; this page updates it. Raises the errors of `open_chat`. A page
    without a chat raises soon after it has settled.
    """
    started = monotonic()
    inspections = 0
    opening = Opening(page, way or ChatPath())
    was_idle = False
    while True:
        frame, boxes = await _find_best_frame(page, settings)
        inspections += 1
        waited_s = monotonic() - started
        is_still, was_idle = was_idle, False  # before the inspection, which then includes all content
        if boxes.covered and await _uncover_box(frame, opening, waited_s):
            continue
        if boxes.enabled and (waited_s >= _compute_grace_s(boxes.score) or is_still):
            if monotonic() < deadline and await opening.try_better_box(boxes):
                continue
            opening.confirm_path()
            return await _take_chat(frame, boxes, settings)
        is_time = waited_s >= GRACE_S or opening.knows_way or is_still
        has_other_box = is_time and not boxes.box and await _has_another_box(page, settings)
        if not boxes.box and is_time and not has_other_box and await _press_to_open(frame, opening, deadline):
            continue
        if monotonic() >= deadline or (not boxes.box and (is_still or await _has_settled(page, frame, waited_s))):
            raise await _build_no_chat_error(
                frame,
                boxes,
                settings,
                inspection_s=waited_s / inspections,
                undone=opening.undone,
                has_other_box=has_other_box,
            )
        was_idle = await is_idle(page, frame)


async def _has_another_box(page: Page, settings: ProbeSettings) -> bool:
    """Whether the page has a text box without the configured one: the chat is already open, so press nothing."""
    if settings.selectors.message_box is None:
        return False
    selectors = settings.selectors.model_copy(update={"message_box": None})
    _, boxes = await _find_best_frame(page, settings.model_copy(update={"selectors": selectors}))
    return boxes.enabled and boxes.score >= DOUBTFUL_SCORE


async def _uncover_box(frame: Frame, opening: Opening, waited_s: float) -> bool:
    """Close any element that covers the box; return whether one was closed or may still close."""
    if opening.dialogs >= MAX_DIALOGS:
        return False
    if await pass_dialog(frame):
        opening.dialogs += 1
        return True
    if waited_s < GRACE_S:
        # A dialog may still open; the browser sends no event for it.
        await asyncio.sleep(INSPECTION_SLICE_S / 4)
        return True
    return False


async def _press_to_open(frame: Frame, opening: Opening, deadline: float) -> bool:
    """Press a control that may open the chat on a page without a box; return whether to look again."""
    if opening.dialogs < MAX_DIALOGS and await pass_dialog(frame, closing=not opening.pressed):
        opening.dialogs += 1
        return True
    return monotonic() < deadline and await opening.press_next()


async def _build_no_chat_error(
    frame: Frame,
    boxes: MessageBoxes,
    settings: ProbeSettings,
    *,
    inspection_s: float,
    undone: list[str],
    has_other_box: bool,
) -> ProbeError:
    """Build the error for a page without a chat, once it has settled or at the deadline.

    A login wall counts only now: many pages show "Log in" before their chat has loaded. A page that is still
    loading deserves another try; see `Walls.loading`.
    """
    walls = await _read_walls(frame)
    raise_if_wall(boxes, walls)
    if inspection_s > STARVED_SLICES * INSPECTION_SLICE_S:
        return BrowserLost(
            f"this machine is too busy to render the page; one inspection takes {inspection_s:.1f} s"
        )
    if walls.loading:
        return NotReady(
            f"the page was still loading after {settings.page_deadline_s:g} s: {describe_page(boxes, walls)}"
        )
    pinned = format_missing_pin("message_box", settings.selectors)
    if has_other_box:
        return PageNotUnderstood(f"{pinned}the page has another text box; `lookout doctor ADDRESS` shows it")
    pressed = "; ".join(f"“{label}”" for label in undone)
    tried = f"; clicked without effect: {pressed}" if undone else ""
    return PageNotUnderstood(f"{pinned}no usable message box: {describe_page(boxes, walls)}{tried}")


def _compute_grace_s(score: float) -> float:
    """Return how long to wait before using a box, in seconds from the page's first inspection."""
    if score >= TRUSTED_SCORE:
        return 0.0
    return GRACE_S if score >= DOUBTFUL_SCORE else WEAK_GRACE_S


async def _take_chat(frame: Frame, boxes: MessageBoxes, settings: ProbeSettings) -> Chat:
    """Build the chat with this box. Raise if another box is as likely, or if the box belongs to a login form."""
    if boxes.score < TRUSTED_SCORE:
        walls = await _read_walls(frame)
        if walls.passwords:
            raise LoginWall(f"the page shows a login form instead of the chat: {describe_page(boxes, Walls())}")
        if boxes.equals:
            raise PageNotUnderstood(
                f"{boxes.equals + 1} boxes look alike; set selectors.message_box: {describe_page(boxes, walls)}"
            )
    return await _build_chat(frame, boxes, settings)


async def _has_settled(page: Page, frame: Frame, waited_s: float) -> bool:
    """Whether the page has loaded everything and is still, so that nothing new will appear.

    A page that listens to its server, or that always has an open request, may render at any time. Such a page
    never settles before the deadline.
    """
    if (
        waited_s < SETTLED_S
        or await call_in_page(frame, "stillFor") < STILL_S * 1000
        or await call_in_page(frame, "listens")
    ):
        return False
    return await has_loaded(page)


async def _read_walls(frame: Frame) -> Walls:
    return Walls.model_validate(await call_in_page(frame, "walls"))


def raise_if_wall(boxes: MessageBoxes, walls: Walls) -> None:
    """Raise `AccessDenied` when a page without a chat asks to sign in or mentions a quota."""
    if walls.login:
        raise LoginWall(f"a login wall is in front of the chat: {describe_page(boxes, walls)}")
    if walls.quota:
        raise AccessDenied(f"a quota wall is in front of the chat: {describe_page(boxes, walls)}")


def describe_page(message_boxes: MessageBoxes, walls: Walls) -> str:
    """Describe the page for messages: its title, boxes and first words."""
    boxes = "; ".join(message_boxes.others) or "no text box"
    return f"page titled {message_boxes.title!r}, {boxes}, text {walls.text[:120]!r}"


async def _find_best_frame(page: Page, settings: ProbeSettings) -> tuple[Frame, MessageBoxes]:
    """Return the frame with the likeliest box within one time slice, or at once if a box is trusted."""
    frames = [frame for frame in page.frames if not frame.is_detached()]
    inspections = {asyncio.ensure_future(_inspect(frame, settings)): frame for frame in frames}
    results: list[tuple[Frame, MessageBoxes]] = []
    pending = set(inspections)
    try:
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            results += [(inspections[task], boxes) for task in done if (boxes := task.result()) is not None]
            if any(boxes.score >= TRUSTED_SCORE and boxes.enabled for _, boxes in results):
                break
    finally:
        for task in pending:
            task.cancel()
    return max(results, key=lambda result: result[1].score, default=(page.main_frame, NO_BOXES))


NO_BOXES = MessageBoxes(score=0, enabled=False, box=None, send=None, covered=False, others=(), title="")


async def _inspect(frame: Frame, settings: ProbeSettings) -> MessageBoxes | None:
    """Inspect a frame for message boxes within one time slice; ``None`` if the frame was removed meanwhile."""
    from playwright.async_api import Error  # already imported: a page is open

    try:
        given = settings.selectors.model_dump(exclude_none=True)
        return MessageBoxes.model_validate(
            await call_in_page(frame, "waitForBox", given, INSPECTION_SLICE_S * 1000)
        )
    except Error as error:
        if is_page_gone(error.message) or frame.page.is_closed():
            raise
        # The frame is being replaced; the caller inspects the new one.
        await asyncio.sleep(INSPECTION_SLICE_S / 4)
        return None


async def _build_chat(frame: Frame, boxes: MessageBoxes, settings: ProbeSettings) -> Chat:
    profile = await _detect_profile(frame, settings)
    return Chat(frame=frame, profile=profile, selectors=profile.with_overrides(settings.selectors), boxes=boxes)


async def _detect_profile(frame: Frame, settings: ProbeSettings) -> Profile:
    if settings.profile is not None:
        return find_profile(settings.profile)
    marks = [(profile.name, profile.marks) for profile in PROFILES if profile.marks is not None]
    name = await call_in_page(frame, "profileOf", marks)
    return find_profile(name) if name else GENERIC
