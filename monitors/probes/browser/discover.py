"""Open a page and find its chat: close dialogs, then find the frame and the message box.

A profile describes one known kind of chat page, such as Gradio. On other pages, Lookout identifies the chat by the
roles, names, positions and behaviour of elements. If a configured selector matches nothing, the error names the
setting, and the app is not blamed.

A page has settled if nothing new can appear without user input: no timer is pending, no request is open, and no
worker, web socket or event stream can bring a message.
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
    accept_or_close_dialog,
    is_navigation_error,
    is_page_gone,
    press_configured_opener,
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
"""If the page has at least this many new characters besides the question, they may be an answer.

The name and the time that a page may add to a message have fewer characters.
"""


def format_selector_setting(name: str, selector: str) -> str:
    """Return the name and value of a selector setting for an error message."""
    return f"probe.selectors.{name} = {selector!r}"


async def raise_if_selector_invalid(page: Page, selectors: Selectors) -> None:
    """Raise `PageNotUnderstood` if a configured selector is not valid CSS."""
    pinned = [[name, value] for name, value in selectors.model_dump(exclude_none=True).items()]
    invalid_name = await page.evaluate(CHECK_SELECTORS_SCRIPT, pinned) if pinned else None
    if invalid_name is not None:
        raise PageNotUnderstood(
            f"{format_selector_setting(invalid_name, getattr(selectors, invalid_name))} is not a valid CSS selector"
        )


def format_unmatched_selector_prefix(name: str, selectors: Selectors) -> str:
    """Return the beginning of an error message, which says that the configured selector matches nothing.

    The result is empty if no selector is configured.
    """
    selector = getattr(selectors, name)
    return f"{format_selector_setting(name, selector)} matches nothing on the page; " if selector else ""


def raise_if_selector_configured(name: str, selectors: Selectors) -> None:
    """Raise `PageNotUnderstood` if a selector is configured for ``name``.

    Call this function if the page has no such element.
    """
    if getattr(selectors, name):
        raise PageNotUnderstood(format_unmatched_selector_prefix(name, selectors).removesuffix("; "))


class AnswerSelectorCheck:
    """Find out why no answer was read before the deadline.

    Either the app did not answer, or the configured ``answer`` selector does not match the elements that contain
    the answers.
    """

    def __init__(self, frame: Frame, selector: str | None) -> None:
        self._frame = frame
        self._selector = selector
        self._before = 0

    async def count_text_before_question(self) -> None:
        """Count the characters on the page, so that new text can be detected later.

        Call this method before the question is sent.
        """
        if self._selector is not None:
            self._before = await self._count_page_characters()

    async def choose_timeout_error(self, error: AnswerTimeout, turn: str) -> ProbeError:
        """Return ``error``, or `PageNotUnderstood` if the page has new text and the selector matches nothing."""
        if self._selector is None or await self._frame.evaluate(
            "(given) => __lookout.all(given).length", self._selector
        ):
            return error
        new = await self._count_page_characters() - self._before - len(turn)
        if new < MIN_NEW_CHARACTERS:
            return error
        key = format_selector_setting("answer", self._selector)
        return PageNotUnderstood(
            f"{key} matches nothing, but the page shows {new} new characters. Check this selector"
        )

    async def _count_page_characters(self) -> int:
        return int(await self._frame.evaluate("() => __lookout.textOf(document.body).length"))


class Profile(Record):
    """The description of one known kind of chat page.

    ``marks`` is a selector that matches only on such a page. ``selectors`` match the elements of the chat, so that
    Lookout does not have to search for these elements. ``presses_enter`` is True if the Enter key always sends the
    question.
    """

    name: str
    marks: str | None = None
    selectors: Selectors = Selectors()
    presses_enter: bool = False


# Gradio 6.31. A toast is the only sign of an exception. After an exception the message box stays disabled.
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
    """Return the profile with this name. Raises `ConfigError`, which lists the accepted names."""
    for profile in PROFILES:
        if profile.name == name:
            return profile
    names = ", ".join(profile.name for profile in PROFILES)
    raise ConfigError(f"probe.profile = {name!r} is not a profile; accepted: {names}")


IDLE_S = 1.0
"""Seconds without a change after which a page counts as idle. Before that, it may still render changes."""
REQUEST_END_TIMEOUT_S = 0.3
"""Seconds to wait for the end of a request. After that, the request counts as open."""
NETWORK_IDLE_TIMEOUT_MS = 50


async def is_idle(page: Page, frame: Frame) -> bool:
    """Return whether ``frame`` has not changed for `IDLE_S`, and no frame can change without user input."""
    from playwright.async_api import Error  # Playwright is already imported

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
    if not await has_reached_network_idle(page):
        return False
    ended = await asyncio.gather(*(_has_request_ended(request) for request in await page.requests()))
    return all(ended)


async def has_reached_network_idle(page: Page) -> bool:
    """Return whether the page has loaded, and has had no open request for a short time."""
    from playwright.async_api import TimeoutError as Late  # Playwright is already imported

    try:
        await page.wait_for_load_state("networkidle", timeout=NETWORK_IDLE_TIMEOUT_MS)
    except Late:
        return False
    return True


async def _has_request_ended(request: Request) -> bool:
    """Return whether a request has ended or failed."""
    from playwright.async_api import Error  # Playwright is already imported

    try:
        with suppress(Error):  # a failed request has no size
            async with asyncio.timeout(REQUEST_END_TIMEOUT_S):
                await request.sizes()
    except TimeoutError:
        return False
    return True


TRUSTED_SCORE = 5
INSPECTION_SLICE_S = 0.4
# A box below this score shows no sign of a chat, except that it accepts text.
DOUBTFUL_SCORE = 3
# Seconds to wait before a doubtful box is used, because the real box may still load.
GRACE_S = 2.5
# Seconds to wait before a box without a sign of a chat is used, because some pages load their chat late.
WEAK_GRACE_S = 8.0
# A page without a message box has settled after SETTLED_S if it did not change for STILL_S and has loaded. Some
# pages start their chat after the rest of the page, which takes seconds on a busy machine.
STILL_S = 4.0
SETTLED_S = 15.0
# If an inspection takes this many times longer than planned, the machine is too busy to render the page.
STARVED_SLICES = 5


@dataclass(frozen=True)
class Chat:
    """A chat that was found on a page. It accepts questions as long as the page is open."""

    frame: Frame
    profile: Profile
    selectors: Selectors
    boxes: MessageBoxes


async def open_chat(
    page: Page, address: str, settings: ProbeSettings, visit: Visit, way: ChatPath | None = None
) -> Chat:
    """Load the page and return the chat on it.

    Raises:
        Unreachable: the page does not load, or has an HTTP error status
        AccessDenied: the page asks for a login or a higher quota, or the address is outside the target
        LeftTarget: the page leads to another site
        NotReady: the page is still loading at its deadline
        BrowserLost: this machine is too busy to load the page
        PageNotUnderstood: the page has no chat that Lookout can use
    """
    from playwright.async_api import Error  # Playwright is already imported

    deadline = monotonic() + settings.page_deadline_s
    await _load_page(page, address, settings, visit)
    for selector in settings.open:
        await press_configured_opener(page, selector, f"probe.open = {selector!r}", deadline - monotonic())
    while True:
        try:
            return require_page_of_app(await find_or_open_chat(page, settings, deadline, way), visit)
        except (NotReady, PageNotUnderstood):
            visit.raise_if_page_left_app(page.main_frame)
            raise
        except Error as error:
            if not is_navigation_error(error) or monotonic() >= deadline:
                raise
        await visit.wait_and_raise_if_left(page.main_frame)


def require_page_of_app(chat: Chat, visit: Visit) -> Chat:
    """Return the chat. Raises `LeftTarget` if the page of the chat does not belong to the app."""
    visit.raise_if_page_left_app(chat.frame)
    return chat


async def _load_page(page: Page, address: str, settings: ProbeSettings, visit: Visit) -> None:
    from playwright.async_api import Error  # Playwright is already imported
    from playwright.async_api import TimeoutError as Late

    deadline_s, response = settings.page_deadline_s, None
    await visit.guard.check(address)
    try:
        response = await page.goto(address, wait_until="domcontentloaded", timeout=deadline_s * 1000)
    except Late as error:
        raise Unreachable(f"{address} did not load within {deadline_s:g} s") from error
    except Error as error:
        cause = visit.build_opening_error(address, error)
        if cause is not None:
            raise cause from error
    await visit.store_opened_page(address, response)
    if response is not None:
        _raise_if_error_status(address, response.status, response.headers)


def _raise_if_error_status(address: str, status: int, headers: Mapping[str, str]) -> None:
    if status in (401, 403):
        raise LoginWall(f"{address} answered HTTP {status}: it requires a login")
    if status == 429:  # noqa: PLR2004 - Too Many Requests
        wait_s = parse_retry_after_s(headers)
        raise RateLimited(f"{address} answered HTTP 429: too many requests", retry_after_s=wait_s)
    if status in (402, 407):
        raise AccessDenied(f"{address} answered HTTP {status}: it requires a login or a higher quota")
    if status >= 400:  # noqa: PLR2004 - where HTTP's errors begin
        raise Unreachable(f"{address} answered HTTP {status}")


async def find_or_open_chat(
    page: Page, settings: ProbeSettings, deadline: float, way: ChatPath | None = None
) -> Chat:
    """Return the chat on a loaded page. `deadline` is in seconds of `time.monotonic`.

    ``way`` contains the steps that opened the chat on earlier pages, and is updated. Raises the errors of
    `open_chat`. If the page has no message box, the error is raised soon after the page has settled, even before
    the deadline.
    """
    started = monotonic()
    inspections = 0
    opening = Opening(page, way or ChatPath())
    was_still = False
    while True:
        frame, boxes = await _find_best_frame_and_boxes(page, settings)
        inspections += 1
        waited_s = monotonic() - started
        is_still, was_still = was_still, False  # before the inspection, which then includes all content
        if boxes.covered and await _close_or_await_dialog_above_box(frame, opening, waited_s):
            continue
        if boxes.enabled and (waited_s >= _compute_box_wait_s(boxes.score) or is_still):
            if monotonic() < deadline and await opening.press_opener_of_better_box(boxes):
                continue
            opening.store_steps_for_later_pages()
            return await _require_usable_chat(frame, boxes, settings)
        is_time = waited_s >= GRACE_S or opening.has_known_steps_left or is_still
        has_other_box = is_time and not boxes.box and await _has_box_other_than_configured(page, settings)
        if (
            not boxes.box
            and is_time
            and not has_other_box
            and await _press_control_to_open_chat(frame, opening, deadline)
        ):
            continue
        if monotonic() >= deadline or (not boxes.box and is_still):
            raise await _build_no_chat_error(
                frame,
                boxes,
                settings,
                inspection_s=waited_s / inspections,
                undone=opening.undone,
                has_other_box=has_other_box,
            )
        was_still = await is_idle(page, frame) or await _has_settled(page, frame, monotonic() - started)


async def _has_box_other_than_configured(page: Page, settings: ProbeSettings) -> bool:
    """Return whether the page has a text box that the configured ``message_box`` selector does not match.

    If the page has such a box, the chat is already open, and the selector is probably wrong.
    """
    if settings.selectors.message_box is None:
        return False
    _, boxes = await _find_best_frame_and_boxes(page, settings.without_message_box())
    return boxes.enabled and boxes.score >= DOUBTFUL_SCORE


async def _close_or_await_dialog_above_box(frame: Frame, opening: Opening, waited_s: float) -> bool:
    """Close a dialog that covers the message box.

    Return True if a dialog was closed, or if the page is so new that a dialog may still appear.
    """
    if opening.dialogs >= MAX_DIALOGS:
        return False
    if await accept_or_close_dialog(frame):
        opening.dialogs += 1
        return True
    if waited_s < GRACE_S:
        # A dialog may still open; the browser sends no event for it.
        await asyncio.sleep(INSPECTION_SLICE_S / 4)
        return True
    return False


async def _press_control_to_open_chat(frame: Frame, opening: Opening, deadline: float) -> bool:
    """Press a control that may open the chat. Return True if the page must be inspected again after that."""
    if opening.dialogs < MAX_DIALOGS and await accept_or_close_dialog(frame, closing=not opening.has_pressed):
        opening.dialogs += 1
        return True
    return monotonic() < deadline and await opening.press_next_opener()


async def _build_no_chat_error(
    frame: Frame,
    boxes: MessageBoxes,
    settings: ProbeSettings,
    *,
    inspection_s: float,
    undone: list[str],
    has_other_box: bool,
) -> ProbeError:
    """Return the error for a page without a chat, or raise the error for a login form or a quota limit.

    Call this function only after the page has settled or at the deadline, because many pages show "Log in" until
    their chat has loaded.
    """
    walls = await _detect_login_and_quota(frame)
    raise_if_login_or_quota_shown(boxes, walls)
    if inspection_s > STARVED_SLICES * INSPECTION_SLICE_S:
        return BrowserLost(
            f"this machine is too busy to render the page: one inspection of the page takes {inspection_s:.1f} s"
        )
    if walls.loading:
        return NotReady(
            f"the page was still loading after {settings.page_deadline_s:g} s: {describe_page(boxes, walls)}"
        )
    pinned = format_unmatched_selector_prefix("message_box", settings.selectors)
    if has_other_box:
        return PageNotUnderstood(
            f"{pinned}the page has another text box. Run `lookout doctor ADDRESS` to see this box"
        )
    pressed = "; ".join(f"“{label}”" for label in undone)
    tried = f". Lookout clicked without effect: {pressed}" if undone else ""
    return PageNotUnderstood(f"{pinned}the page has no usable message box: {describe_page(boxes, walls)}{tried}")


def _compute_box_wait_s(score: float) -> float:
    """Return for how many seconds after the first inspection Lookout waits before it uses a box with this score.

    Meanwhile, a better box may appear. A box with a high score is used immediately.
    """
    if score >= TRUSTED_SCORE:
        return 0.0
    return GRACE_S if score >= DOUBTFUL_SCORE else WEAK_GRACE_S


async def _require_usable_chat(frame: Frame, boxes: MessageBoxes, settings: ProbeSettings) -> Chat:
    """Return the chat with the best of the message boxes that were found in ``frame``.

    Raises `LoginWall` if the page shows a password field, and `PageNotUnderstood` if several boxes have the
    same score.
    """
    if boxes.score < TRUSTED_SCORE:
        walls = await _detect_login_and_quota(frame)
        if walls.passwords:
            raise LoginWall(f"the page shows a login form instead of the chat: {describe_page(boxes, Walls())}")
        if boxes.equals:
            raise PageNotUnderstood(
                f"{boxes.equals + 1} boxes may be the message box: {describe_page(boxes, walls)}. Set "
                "probe.selectors.message_box to the selector of the right box"
            )
    return await _build_chat(frame, boxes, settings)


async def _has_settled(page: Page, frame: Frame, waited_s: float) -> bool:
    """Return whether the page has loaded everything and will not change without user input.

    A page with a web socket, an event stream or an open request may change at any time, and never settles.
    """
    if (
        waited_s < SETTLED_S
        or await call_in_page(frame, "stillFor") < STILL_S * 1000
        or await call_in_page(frame, "listens")
    ):
        return False
    return await has_reached_network_idle(page)


async def _detect_login_and_quota(frame: Frame) -> Walls:
    return Walls.model_validate(await call_in_page(frame, "walls"))


def raise_if_login_or_quota_shown(boxes: MessageBoxes, walls: Walls) -> None:
    """Raise `LoginWall` or `AccessDenied` if a page without a chat shows a login form or a quota limit."""
    if walls.login:
        raise LoginWall(f"the page shows a login form instead of the chat: {describe_page(boxes, walls)}")
    if walls.quota:
        raise AccessDenied(f"the page shows a quota limit instead of the chat: {describe_page(boxes, walls)}")


def describe_page(message_boxes: MessageBoxes, walls: Walls) -> str:
    """Return a description of a page for an error message: its title, text boxes and first words."""
    boxes = "; ".join(message_boxes.others) or "no text box"
    return f"title {message_boxes.title!r}, {boxes}, text {walls.text[:120]!r}"


async def _find_best_frame_and_boxes(page: Page, settings: ProbeSettings) -> tuple[Frame, MessageBoxes]:
    """Return the frame with the likeliest message box, and the text boxes of this frame.

    All frames are inspected at the same time. A box with a high score ends the search immediately.
    """
    frames = [frame for frame in page.frames if not frame.is_detached()]
    inspections = {asyncio.ensure_future(_find_boxes_in_frame(frame, settings)): frame for frame in frames}
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


async def _find_boxes_in_frame(frame: Frame, settings: ProbeSettings) -> MessageBoxes | None:
    """Return the text boxes of a frame, or ``None`` if the page removed the frame meanwhile."""
    from playwright.async_api import Error  # Playwright is already imported

    try:
        given = settings.selectors.model_dump(exclude_none=True)
        return MessageBoxes.model_validate(
            await call_in_page(frame, "waitForBox", given, INSPECTION_SLICE_S * 1000)
        )
    except Error as error:
        if is_page_gone(error.message) or frame.page.is_closed():
            raise
        # The page is replacing the frame. The caller inspects the new frame.
        await asyncio.sleep(INSPECTION_SLICE_S / 4)
        return None


async def _build_chat(frame: Frame, boxes: MessageBoxes, settings: ProbeSettings) -> Chat:
    profile = await _detect_profile(frame, settings)
    selectors = profile.selectors.with_overrides(settings.selectors)
    return Chat(frame=frame, profile=profile, selectors=selectors, boxes=boxes)


async def _detect_profile(frame: Frame, settings: ProbeSettings) -> Profile:
    if settings.profile is not None:
        return find_profile(settings.profile)
    marks = [(profile.name, profile.marks) for profile in PROFILES if profile.marks is not None]
    name = await call_in_page(frame, "profileOf", marks)
    return find_profile(name) if name else GENERIC
