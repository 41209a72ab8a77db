"""Looks at a chat page as a run would, and tells what it found: where to type, how to send, where answers stand.

It goes to the given address alone, and asks one harmless question at most.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from time import monotonic
from typing import Any

from monitors.errors import ProbeError
from monitors.probes.chromium import Chromium, closed
from monitors.probes.conversation import Conversation
from monitors.probes.discover import TRUSTED_SCORE, Chat
from monitors.probes.inpage import call, clean
from monitors.probes.listener import Listener
from monitors.probes.page_advice import trouble_of
from monitors.probes.page_look import HARMLESS, Asking, Overview, PageLook, Part
from monitors.probes.pages import Pages, Tab, lost_page
from monitors.probes.pins import check_selectors
from monitors.probes.settings import ProbeSettings
from monitors.probes.wire_candidates import candidates

DESCRIBE = Path(__file__).with_name("inpage") / "describe.js"
DEADLINE_S = 15.0
OWNER_ONLY = 0o600
# Colours that people who do not tell red from green can tell apart (after Okabe and Ito).
MARKS = (("box", "message box", "#0072B2"), ("send", "send", "#D55E00"), ("answer", "answer", "#007A5A"))
LINE = re.compile(r'- (?:\'|")?([a-z]+)(?: "((?:[^"\\]|\\.)*)")?')
"""One line of an accessibility tree: ``- textbox "Your message"``."""


async def look_at_page(
    address: str,
    settings: ProbeSettings,
    *,
    picture: Path,
    asking: Asking = Asking.IF_NEEDED,
    search_path: str | None = None,
) -> PageLook:
    """One look, with a browser of its own. ``picture`` is where the PNG goes; its folder exists.

    What stands in the way of a chat is told in the `PageLook`; raised are `BrowserMissing` and `BrowserLost` alone.
    """
    chromium = Chromium(
        browser_path=settings.browser_path,
        search_path=search_path,
        load_images=True,
        close_deadline_s=settings.close_deadline_s,
    )
    async with chromium:
        await chromium.browser()
        from playwright.async_api import Error  # loaded with the browser

        pages = Pages(chromium, address, settings)
        try:
            async with pages.tab() as tab:
                return await Looker(pages, tab, settings, PageLook(address=address), asking).look(picture)
        except Error as error:
            raise lost_page(error.message) from error


class Looker:
    """Looks at one page; what it has seen so far is in ``_seen``."""

    def __init__(self, pages: Pages, tab: Tab, settings: ProbeSettings, seen: PageLook, asking: Asking) -> None:
        self._pages = pages
        self._tab = tab
        self._page = tab.page
        self._settings = settings
        self._seen = seen
        self._asking = asking
        self._listener = Listener(tab.page)
        self._frame = tab.page.main_frame

    async def look(self, picture: Path) -> PageLook:
        """Everything, as far as the page lets itself be asked."""
        conversation = Conversation(self._page, self._settings)
        started = monotonic()
        try:
            await check_selectors(self._page, self._settings.selectors)
            conversation.chat = await self._pages.chat_on(self._tab)
            self._note(usable_s=round(monotonic() - started, 2))
            await self._note_chat(conversation.chat)
            await self._note_answer(conversation)
        except ProbeError as error:
            self._note(trouble=trouble_of(error))
        self._note(
            http_status=self._listener.status,
            loaded_s=self._listener.loaded_s,
            console_errors=tuple(self._listener.console_errors),
            overview=await self._overview(),
            picture=await self._take_picture(picture),
        )
        return self._seen

    def _note(self, **found: Any) -> None:
        self._seen = self._seen.model_copy(update=found)

    async def _note_chat(self, chat: Chat) -> None:
        self._frame = chat.frame
        pinned = self._settings.selectors
        await chat.frame.evaluate(DESCRIBE.read_text(encoding="utf-8"))
        box = await self._part("__lookout.box", _how_sure(chat.found.score, pinned.message_box))
        send = await self._part(
            "__lookout.send", "pinned" if pinned.send else "by its name or place beside the box"
        )
        to_press = send is not None and send.selector is not None and not chat.profile.presses_enter
        found = {
            "message_box": pinned.message_box or (box.selector if box else None),
            "send": pinned.send or (send.selector if send is not None and to_press else None),
        }
        self._note(
            profile=chat.profile.name,
            frame=None if chat.frame == self._page.main_frame else clean(chat.frame.url),
            box=box,
            send=send,
            selectors=pinned.model_copy(update=found),
        )

    async def _note_answer(self, conversation: Conversation) -> None:
        """Where answers stand: told by the page, or found out with one question."""
        chat = conversation.chat
        place = await self._part("__lookout.place()", "the page marks it as where messages appear")
        told = chat.selectors.answer is not None or place is not None
        if self._asking is Asking.NEVER or (self._asking is Asking.IF_NEEDED and told):
            self._note(why_asked=_why_not(chat, self._asking, told=told), answer=self._told_place(chat, place))
            return
        self._note(
            asked=HARMLESS, why_asked="as you wished" if told else "the page does not tell where answers stand"
        )
        await self._listener.begin()
        started = monotonic()
        seen = await conversation.ask(HARMLESS)
        self._note(answer_text=seen.text, answered_s=round(monotonic() - started, 2))
        await chat.frame.evaluate(DESCRIBE.read_text(encoding="utf-8"))  # a plain form answers with a new page
        self._note(answer=await self._answer_part(chat, seen.text))
        self._note(wire=candidates(await self._listener.received(), seen.text))

    def _told_place(self, chat: Chat, place: Part | None) -> Part | None:
        if chat.selectors.answer is None:
            return place
        sure = "pinned" if self._settings.selectors.answer else f"by the profile {chat.profile.name}"
        role = place.role if place else "messages"
        return Part(role=role, name="", selector=chat.selectors.answer, how_sure=sure)

    async def _answer_part(self, chat: Chat, text: str) -> Part | None:
        sure = "read: what was new on the page after the question"
        await self._in_page("__lookout.findAnswer(given)", text)
        part = await self._part("__lookout.answerAt", sure)
        if part is None or chat.selectors.answer is not None:
            known = self._told_place(chat, part)
            return known if known and known.selector else part
        found = await self._in_page("__lookout.answerSelector(given[0], given[1])", [text, HARMLESS])
        if found is not None:
            self._note(selectors=self._seen.selectors.model_copy(update={"answer": clean(found)}))
        return part.model_copy(update={"selector": None if found is None else clean(found), "name": ""})

    async def _part(self, expression: str, how_sure: str) -> Part | None:
        """The element that an expression gives, as a person would name it."""
        told = await self._in_page(f"({expression}) && __lookout.describe({expression})")
        if told is None:
            return None
        role, name = await self._in_tree(told["selector"]) or (told["role"] or told["tag"], told["name"])
        shadow = bool(told["shadow"])
        return Part(
            role=clean(role), name=clean(name), selector=told["selector"], how_sure=how_sure, in_shadow=shadow
        )

    async def _in_page(self, expression: str, given: Any = None) -> Any:
        return await self._frame.evaluate(f"(given) => ({expression}) ?? null", given)

    async def _in_tree(self, selector: str | None) -> tuple[str, str] | None:
        """Role and name in the accessibility tree."""
        from playwright.async_api import Error  # loaded already: there is a page

        if selector is None:
            return None
        try:
            told = await self._frame.locator(selector).first.aria_snapshot(timeout=2000)
        except Error:
            return None
        first = LINE.match(told)
        return None if first is None else (first[1], first[2] or "")

    async def _overview(self) -> Overview:
        main = self._page.main_frame
        frames = [clean(one.url) for one in self._page.frames if one != main and one.url.startswith("http")]
        told: dict[str, Any] = {}
        if await closed(main.evaluate(DESCRIBE.read_text(encoding="utf-8")), DEADLINE_S):
            told = await call(main, "overview")
        return Overview.model_validate({**told, "title": clean(await self._page.title()), "frames": frames})

    async def _take_picture(self, picture: Path) -> str | None:
        """The page with what was found outlined."""
        await closed(self._frame.evaluate("() => __lookout.show?.()"), DEADLINE_S)
        given = [[list(mark) for mark in MARKS], self._settings.selectors.model_dump(exclude_none=True)]
        marking = self._frame.evaluate("(given) => __lookout.markFound?.(...given)", given)
        await closed(marking, DEADLINE_S)
        taking = self._page.screenshot(path=picture, timeout=DEADLINE_S * 1000)
        if not await closed(taking, DEADLINE_S):
            return None
        await asyncio.to_thread(picture.chmod, OWNER_ONLY)
        return str(picture)


def _how_sure(score: float, pinned: str | None) -> str:
    if pinned:
        return "pinned"
    return f"sure (score {score:g})" if score >= TRUSTED_SCORE else f"a guess (score {score:g} of {TRUSTED_SCORE})"


def _why_not(chat: Chat, asking: Asking, *, told: bool) -> str:
    if not told:
        return "none was asked, as you wished; where answers stand is found out while the first one comes"
    if asking is Asking.NEVER:
        return "none was asked, as you wished"
    if chat.selectors.answer:
        return f"none was needed: the profile {chat.profile.name} says where answers stand"
    return "none was needed: the page marks where messages appear"
