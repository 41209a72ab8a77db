"""Asks through the page itself, as a user would (V2): Chromium, driven by Playwright."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from monitors.errors import BrowserLost, ProbeError
from monitors.probes.chromium import Chromium, within
from monitors.probes.conversation import Conversation
from monitors.probes.driver import Answer, WorthKeeping, nothing_kept
from monitors.probes.evidence import Witness
from monitors.probes.greetings import Greetings
from monitors.probes.inpage import Watched
from monitors.probes.pages import Pages, Tab, lost_page
from monitors.probes.pins import check_selectors
from monitors.probes.settings import Keep, ProbeSettings
from monitors.probes.wiretap import WireTap
from monitors.records.exchanges import Channel, Evidence, Timings, WirePayload

if TYPE_CHECKING:
    from playwright.async_api import Page


class BrowserDriver:
    """A `ChatDriver` over one browser process. Use as an async context manager, within one event loop.

    `address` is the page. `run_folder` is where evidence goes. `search_path` is where a system Chromium is looked
    for (``None``: the process's PATH).
    """

    def __init__(
        self, address: str, settings: ProbeSettings, *, run_folder: Path, search_path: str | None = None
    ) -> None:
        self._settings = settings
        self._run_folder = run_folder
        self.chromium = Chromium(
            browser_path=settings.browser_path,
            search_path=search_path,
            load_images=settings.load_images,
            close_deadline_s=settings.close_deadline_s,
        )
        self._pages = Pages(self.chromium, address, settings)
        self._greetings = Greetings()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes pages and browser, each with its own deadline."""
        await asyncio.shield(self._close())

    async def _close(self) -> None:
        await self._pages.close()
        await self.chromium.close()

    async def ask(
        self, turns: tuple[str, ...], *, name: str = "question", worth_keeping: WorthKeeping = nothing_kept
    ) -> Answer:
        """See `ChatDriver.ask`. Every step has a deadline of its own."""
        from playwright.async_api import Error  # loaded with the browser

        await self.chromium.browser()  # so that the library is loaded
        try:
            async with self._pages.tab() as tab:
                return await self._ask_on(tab, turns, name, worth_keeping)
        except Error as error:
            raise lost_page(error.message) from error

    async def _ask_on(self, tab: Tab, turns: tuple[str, ...], name: str, worth_keeping: WorthKeeping) -> Answer:
        from playwright.async_api import Error  # loaded with the browser

        witness = Witness(tab.page, tab.context, self._run_folder, name)
        try:
            if self._settings.traces is not Keep.NEVER:
                await witness.start_trace()
            conversing = within(self._deadline_s(len(turns)), self._converse(tab, turns), "asking")
            answer = await _unless_crashed(tab.page, conversing)
            wanted = await worth_keeping(answer)
            proof = await witness.testify(screenshot=wanted.screenshot, trace=wanted.trace)
            return answer.model_copy(update={"evidence": _joined(answer.evidence, proof)})
        except ProbeError as error:
            error.evidence = await self._proof_of_failure(witness)
            raise
        except Error as error:
            failure = lost_page(error.message)
            failure.evidence = await self._proof_of_failure(witness)
            raise failure from error
        finally:
            await witness.dismiss()

    def _deadline_s(self, turns: int) -> float:
        """For a conversation, beyond all deadlines of its steps: a net for what nobody foresaw."""
        return 2 * self._settings.page_deadline_s + turns * (self._settings.answer_deadline_s + 60)

    async def _proof_of_failure(self, witness: Witness) -> Evidence:
        settings = self._settings
        return await witness.testify(
            screenshot=settings.screenshots is not Keep.NEVER, trace=settings.traces is not Keep.NEVER
        )

    async def _converse(self, tab: Tab, turns: tuple[str, ...]) -> Answer:
        await check_selectors(tab.page, self._settings.selectors)
        rule = self._settings.wire
        tap = WireTap(tab.page, rule) if rule is not None else None
        conversation = Conversation(tab.page, self._settings, self._greetings)
        conversation.chat = await self._pages.chat_on(tab)
        earlier = [(await conversation.ask(turn)).text for turn in turns[:-1]]
        if tap is not None:
            await tap.begin()
        seen = await conversation.ask(turns[-1])
        wire = await tap.payload() if tap is not None else None
        graded = rule.graded if rule is not None and wire is not None else Channel.VISIBLE
        return _answer(seen, tuple(earlier), wire, graded)


def _answer(seen: Watched, earlier: tuple[str, ...], wire: WirePayload | None, graded: Channel) -> Answer:
    return Answer(
        visible_text=seen.text,
        earlier=earlier,
        wire=wire,
        graded_channel=graded,
        timings=Timings(first_token_ms=seen.first_token_ms, total_ms=seen.total_ms),
        app_path=wire.app_path if wire is not None else None,
        evidence=Evidence(settle_samples=seen.samples),
    )


def _joined(of_answer: Evidence, proof: Evidence) -> Evidence:
    return proof.model_copy(update={"settle_samples": of_answer.settle_samples})


async def _unless_crashed(page: Page, work: Coroutine[Any, Any, Answer]) -> Answer:
    """The answer; `BrowserLost` at once when the page crashes, whatever call was waiting for it."""
    crashed = asyncio.get_running_loop().create_future()

    def crash(_page: Page) -> None:
        if not crashed.done():
            crashed.set_result(None)

    page.on("crash", crash)
    asking = asyncio.ensure_future(work)
    try:
        await asyncio.wait({asking, crashed}, return_when=asyncio.FIRST_COMPLETED)
        if not asking.done():
            raise BrowserLost("the page crashed")
        return asking.result()
    finally:
        asking.cancel()
        crashed.cancel()
        page.remove_listener("crash", crash)
