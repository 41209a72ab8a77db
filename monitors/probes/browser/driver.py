"""Asks through the page itself, as a user would (V2): Chromium, driven by Playwright.

What was read off a page may not be the answer, or not all of it: then it is ungraded, because "the app was wrong"
and "we could not tell" are two things. What was read is remembered for the next question: one line that answers
different questions, with nothing to prove that the app said it, is the page's own.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Self, assert_never

from monitors.errors import BrowserLost, CaptureUnsure, LoginWall, ProbeError
from monitors.probes.browser.chromium import Chromium, within
from monitors.probes.browser.conversation import PageConversation
from monitors.probes.browser.discover import check_selectors
from monitors.probes.browser.evidence import EvidenceRecorder
from monitors.probes.browser.greetings import Greetings, SilentPage
from monitors.probes.browser.inpage import CaptureDoubt, WatchResult
from monitors.probes.browser.login import Login
from monitors.probes.browser.network import WireTap
from monitors.probes.browser.pages import Pages, Tab, page_failure
from monitors.probes.driver import Answer, WorthStoring, no_evidence
from monitors.probes.settings import CapturePolicy, ProbeSettings
from monitors.records.exchanges import Channel, Evidence, Timings, WirePayload

if TYPE_CHECKING:
    from playwright.async_api import Page


PIN = "name the answer's own element with probe.selectors.answer, or the response that carries it with probe.wire"
SHOWN = 80
"""Characters of a text in a message."""


class CaptureDoubts:
    """What one target's pages were read to say, by question. Lives as long as a run's driver."""

    def __init__(self) -> None:
        self._asked: dict[str, str] = {}

    def raise_if_unsure(self, seen: WatchResult, question: str, *, answered: bool) -> None:
        """`CaptureUnsure`, with what is doubted and what to pin.

        ``answered``: something proves that the page answered; an app may well say the same to everybody.
        """
        why = reason_to_doubt(seen) or (None if answered else self._said_before(seen.text, question))
        if why is not None:
            raise CaptureUnsure(f"{why}; {PIN}", partial_text=seen.text)

    def _said_before(self, text: str, question: str) -> str | None:
        before = self._asked.setdefault(_plain(text), question)
        if _plain(before) == _plain(question):
            return None
        return (
            f"{_quoted(text)} was the same for another question ({_quoted(before)}), "
            "and nothing on the page or the network shows that it answers either"
        )


def reason_to_doubt(seen: WatchResult) -> str | None:
    """What makes one reading doubtful; ``None`` where nothing does."""
    if seen.unsure:
        beside = ", ".join(_quoted(text) for text in seen.unsure[:3])
        return f"{beside} stands beside the answer and may be part of it"
    match seen.doubt:
        case None:
            return None
        case CaptureDoubt.ECHO:
            return f"all that was read says the question back: {_quoted(seen.text)}"
        case CaptureDoubt.STOOD:
            return f"all that was read stood on the page before the question, hidden: {_quoted(seen.text)}"
        case _:
            assert_never(seen.doubt)


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().casefold()


def _quoted(text: str) -> str:
    return f"“{text[:SHOWN]}{'…' if len(text) > SHOWN else ''}”"


class BrowserDriver:
    """A `ChatDriver` over one browser process. Use as an async context manager, within one event loop.

    `address` is the page. `run_folder` is where evidence goes. `search_path` is where a system Chromium is searched
    for (``None``: the process's PATH). ``login`` gets its pages past a login; what is secret in it stands in no
    answer, error or piece of evidence.
    """

    def __init__(
        self,
        address: str,
        settings: ProbeSettings,
        *,
        run_folder: Path,
        search_path: str | None = None,
        login: Login | None = None,
    ) -> None:
        self._settings = settings
        self._run_folder = run_folder
        self.chromium = Chromium(
            browser_path=settings.browser_path,
            search_path=search_path,
            load_images=settings.load_images,
            close_deadline_s=settings.close_deadline_s,
            run_folder=run_folder,
        )
        self._login = login
        self._pages = Pages(self.chromium, address, settings, login)
        self._silent = SilentPage(self._pages)
        self._greetings = Greetings(self._silent)
        self._doubts = CaptureDoubts()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes pages and browser, each with its own deadline."""
        await asyncio.shield(self._close())

    async def _close(self) -> None:
        await self._silent.close()
        await self._pages.close()
        await self.chromium.close()

    async def ask(
        self, turns: tuple[str, ...], *, name: str = "question", worth_storing: WorthStoring = no_evidence
    ) -> Answer:
        """See `ChatDriver.ask`. Every step has a deadline of its own."""
        from playwright.async_api import Error  # loaded with the browser

        await self.chromium.browser()  # so that the library is loaded
        try:
            return await self._asked(turns, name, worth_storing)
        except Error as error:
            raise self._hidden_error(page_failure(error.message)) from (None if self._login else error)
        except ProbeError as error:
            if self._login is None:
                raise
            raise self._hidden_error(error) from None  # its causes may hold what it no longer does

    async def _asked(self, turns: tuple[str, ...], name: str, worth_storing: WorthStoring) -> Answer:
        """Asks on a page of its own; on another where the first met a login wall and the session was renewed."""
        async with self._pages.tab() as tab:
            try:
                return await self._ask_on(tab, turns, name, worth_storing)
            except LoginWall as wall:  # nothing was asked yet
                if not await self._pages.renewed(tab, wall):
                    raise
        async with self._pages.tab() as tab:
            try:
                return await self._ask_on(tab, turns, name, worth_storing)
            except LoginWall as wall:
                await self._pages.renewed(tab, wall)
                raise

    async def _ask_on(self, tab: Tab, turns: tuple[str, ...], name: str, worth_storing: WorthStoring) -> Answer:
        from playwright.async_api import Error  # loaded with the browser

        hidden = self._login.discretion.hidden_in_bytes if self._login else None
        witness = EvidenceRecorder(tab.page, tab.context, self._run_folder, name, hidden=hidden, visit=tab.visit)
        try:
            if self._settings.traces is not CapturePolicy.NEVER:
                await witness.start_trace()
            conversing = within(self._deadline_s(len(turns)), self._converse(tab, turns), "asking")
            answer = await _unless_crashed(tab.page, conversing, self.chromium)
            wanted = await worth_storing(answer)
            proof = await witness.testify(screenshot=wanted.screenshot, trace=wanted.trace)
            return self._hidden(answer.model_copy(update={"evidence": _joined(answer.evidence, proof)}))
        except ProbeError as error:
            failure = tab.visit.rightly_blamed(error)
            failure.evidence = await self._proof_of_failure(witness)
            if failure is error:
                raise
            raise failure from error
        except Error as error:
            failure = page_failure(error.message)
            failure.evidence = await self._proof_of_failure(witness)
            raise failure from error
        finally:
            await witness.dismiss()

    def _deadline_s(self, turns: int) -> float:
        """For a conversation, beyond all deadlines of its steps: a net for what nobody foresaw."""
        return 2 * self._settings.page_deadline_s + turns * (self._settings.answer_deadline_s + 60)

    async def _proof_of_failure(self, witness: EvidenceRecorder) -> Evidence:
        settings = self._settings
        return await witness.testify(
            screenshot=settings.screenshots is not CapturePolicy.NEVER,
            trace=settings.traces is not CapturePolicy.NEVER,
        )

    async def _converse(self, tab: Tab, turns: tuple[str, ...]) -> Answer:
        await check_selectors(tab.page, self._settings.selectors)
        rule = self._settings.wire
        tap = WireTap(tab.page, rule) if rule is not None else None
        conversation = PageConversation(tab.page, self._settings, tab.visit, self._greetings)
        if self._login is None:
            self._silent.begin()
        started = monotonic()
        conversation.chat = await self._pages.chat_on(tab)
        opening_ms = (monotonic() - started) * 1000
        if conversation.chat.selectors.answer is not None:
            self._silent.end()
        else:
            self._silent.begin()  # signed in by now
        try:
            earlier = [(await conversation.ask(turn)).text for turn in turns[:-1]]
            if tap is not None:
                await tap.begin()
            seen = await conversation.ask(turns[-1])
        except ProbeError as error:
            await self._pages.checked_in(tab, error)
            raise
        await self._pages.checked_in(tab)
        wire = await tap.payload() if tap is not None else None
        graded = rule.graded if rule is not None and wire is not None else Channel.VISIBLE
        if graded is Channel.VISIBLE:
            conversation.raise_if_no_chat(seen)
            answered = await conversation.answered(seen)
            self._doubts.raise_if_unsure(seen, turns[-1], answered=answered)
        self._pages.way.proved |= conversation.behaves(seen)
        return self._hidden(_answer(seen, tuple(earlier), wire, graded, opening_ms))

    def _hidden(self, answer: Answer) -> Answer:
        """The answer without what opens the target, should the app repeat it."""
        if self._login is None:
            return answer
        return Answer.model_validate(self._login.discretion.hidden_in(answer.model_dump()))

    def _hidden_error(self, error: ProbeError) -> ProbeError:
        if self._login is not None:
            hidden = self._login.discretion
            error.args = (hidden.hidden(str(error)),)
            error.partial_text = hidden.hidden(error.partial_text)
            error.evidence = Evidence.model_validate(hidden.hidden_in(error.evidence.model_dump()))
        return error


def _answer(
    seen: WatchResult, earlier: tuple[str, ...], wire: WirePayload | None, graded: Channel, opening_ms: float
) -> Answer:
    return Answer(
        visible_text=seen.text,
        earlier=earlier,
        wire=wire,
        graded_channel=graded,
        timings=Timings(
            first_token_ms=seen.first_token_ms,
            total_ms=seen.total_ms,
            opening_ms=opening_ms,
            settling_ms=seen.calm_ms,
        ),
        app_path=wire.app_path if wire is not None else None,
        evidence=Evidence(settle_samples=seen.samples, aside=seen.aside),
    )


def _joined(of_answer: Evidence, proof: Evidence) -> Evidence:
    return proof.model_copy(update={"settle_samples": of_answer.settle_samples, "aside": of_answer.aside})


async def _unless_crashed(page: Page, work: Coroutine[Any, Any, Answer], chromium: Chromium) -> Answer:
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
            raise BrowserLost(chromium.ended_because or "the page crashed")
        return asking.result()
    finally:
        asking.cancel()
        crashed.cancel()
        page.remove_listener("crash", crash)
