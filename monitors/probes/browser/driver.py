"""Ask through the page itself, like a user (V2): Chromium, driven by Playwright.

If the text read from a page may not be the complete answer, the case is ungraded: "the app was wrong" and "we
could not read the answer" are different results. The text is stored and compared with the answers to later
questions. One line that answers different questions, without proof that the app sent it, belongs to the page.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Self, assert_never

from monitors.errors import BrowserLost, CaptureUnsure, LoginWall, ProbeError
from monitors.probes.browser.chromium import Chromium, run_within_deadline
from monitors.probes.browser.conversation import PageConversation
from monitors.probes.browser.discover import check_selectors
from monitors.probes.browser.evidence import EvidenceRecorder
from monitors.probes.browser.greetings import Greetings, SilentPage
from monitors.probes.browser.inpage import CaptureDoubt, WatchResult
from monitors.probes.browser.login import Login
from monitors.probes.browser.network import WireTap
from monitors.probes.browser.pages import Pages, Tab, build_page_error
from monitors.probes.driver import Answer, SelectEvidence, store_no_evidence
from monitors.probes.settings import CapturePolicy, ProbeSettings
from monitors.records.exchanges import Channel, Evidence, Timings, WirePayload

if TYPE_CHECKING:
    from playwright.async_api import Page


PIN_ADVICE = (
    "set probe.selectors.answer to the element of the answer, or probe.wire to the response with the answer"
)
MAX_SHOWN_CHARACTERS = 80
"""Characters of a text that a message shows."""


class CaptureDoubts:
    """The texts read from one target's pages, by question. Lives as long as a run's driver."""

    def __init__(self) -> None:
        self._asked: dict[str, str] = {}
        self._sent: dict[str, str] = {}

    def note_answers(self, turns: Sequence[str], answers: Sequence[str]) -> None:
        """Store the answers to the earlier turns of a conversation."""
        for turn, answer in zip(turns, answers, strict=False):
            self._sent.setdefault(_normalize_text(answer), _normalize_text(turn))

    def raise_if_other_answer(self, shown: str, sent: str, question: str) -> None:
        """Raise `CaptureUnsure` if the graded text was sent for this question but the page shows another answer."""
        shown, sent, question = map(_normalize_text, (shown, sent, question))
        owner = self._sent.setdefault(sent, question)
        if shown and shown not in sent and self._sent.get(shown, owner) != question:
            raise CaptureUnsure(
                f"the page shows {_quote_text(shown)}, which was sent for another question "
                f"({_quote_text(self._sent[shown])}), while the graded text came over the wire",
                partial_text=shown,
            )

    def raise_if_unsure(self, reading: WatchResult, question: str, *, is_proven: bool) -> None:
        """Raise `CaptureUnsure` for a doubtful text, with the doubt and the setting that resolves it.

        ``is_proven``: proof exists that the page answered. The same text for two questions is then accepted.
        """
        reason = explain_answer_doubt(reading) or (
            None if is_proven else self._describe_repetition(reading.text, question)
        )
        if reason is not None:
            raise CaptureUnsure(f"{reason}; {PIN_ADVICE}", partial_text=reading.text)

    def _describe_repetition(self, text: str, question: str) -> str | None:
        before = self._asked.setdefault(_normalize_text(text), question)
        if _normalize_text(before) == _normalize_text(question):
            return None
        return (
            f"{_quote_text(text)} was also the answer to another question ({_quote_text(before)}), and the page "
            "and the network do not show which one it answers"
        )


def explain_answer_doubt(reading: WatchResult) -> str | None:
    """Return why a reading is doubtful; ``None`` if it is not."""
    if reading.unsure:
        texts = ", ".join(_quote_text(text) for text in reading.unsure[:3])
        return f"{texts} is next to the answer and may be part of it"
    match reading.doubt:
        case None:
            return None
        case CaptureDoubt.ECHO:
            return f"the text only repeats the question: {_quote_text(reading.text)}"
        case CaptureDoubt.STOOD:
            return f"the text was already on the page before the question, but hidden: {_quote_text(reading.text)}"
        case _:
            assert_never(reading.doubt)


def _normalize_text(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().casefold()


def _quote_text(text: str) -> str:
    return f"“{text[:MAX_SHOWN_CHARACTERS]}{'…' if len(text) > MAX_SHOWN_CHARACTERS else ''}”"


class BrowserDriver:
    """A `ChatDriver` over one browser process. Use as an async context manager, within one event loop.

    `address` is the page. `run_folder` stores the evidence. `search_path` is searched for a system Chromium
    (``None``: the process's PATH). ``login`` signs in the pages; its secrets are redacted from answers, errors
    and evidence.
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
        """Close pages and browser, each with a separate deadline."""
        await asyncio.shield(self._close())

    async def _close(self) -> None:
        await self._silent.close()
        await self._pages.close()
        await self.chromium.close()

    async def ask(
        self, turns: tuple[str, ...], *, name: str = "question", worth_storing: SelectEvidence = store_no_evidence
    ) -> Answer:
        """See `ChatDriver.ask`. Each step has a separate deadline."""
        from playwright.async_api import Error  # loaded with the browser

        await self.chromium.browser()  # loads the library
        try:
            return await self._ask_with_login(turns, name, worth_storing)
        except Error as error:
            raise self._redact_error(build_page_error(error.message)) from (None if self._login else error)
        except ProbeError as error:
            if self._login is None:
                raise
            raise self._redact_error(error) from None  # its causes may hold unredacted texts

    async def _ask_with_login(self, turns: tuple[str, ...], name: str, worth_storing: SelectEvidence) -> Answer:
        """Ask on a new page. Ask on a second page if the first met a login wall and the session was renewed."""
        async with self._pages.lend_tab() as tab:
            try:
                return await self._ask_on(tab, turns, name, worth_storing)
            except LoginWall as wall:  # no question was sent yet
                if not await self._pages.renew_session(tab, wall):
                    raise
        async with self._pages.lend_tab() as tab:
            try:
                return await self._ask_on(tab, turns, name, worth_storing)
            except LoginWall as wall:
                await self._pages.renew_session(tab, wall)
                raise

    async def _ask_on(self, tab: Tab, turns: tuple[str, ...], name: str, worth_storing: SelectEvidence) -> Answer:
        from playwright.async_api import Error  # loaded with the browser

        hidden = self._login.secret_filter.redact_bytes if self._login else None
        recorder = EvidenceRecorder(tab.page, tab.context, self._run_folder, name, hidden=hidden, visit=tab.visit)
        try:
            if self._settings.traces is not CapturePolicy.NEVER:
                await recorder.start_trace()
            conversing = run_within_deadline(
                self._compute_deadline_s(len(turns)), self._converse(tab, turns), "asking"
            )
            answer = await _run_unless_crashed(tab.page, conversing, self.chromium)
            evidence_filter = await worth_storing(answer)
            proof = await recorder.collect(screenshot=evidence_filter.screenshot, trace=evidence_filter.trace)
            return self._redact(answer.model_copy(update={"evidence": _merge_evidence(answer.evidence, proof)}))
        except ProbeError as error:
            failure = tab.visit.assign_blame(error)
            failure.evidence = await self._record_failure_evidence(recorder)
            if failure is error:
                raise
            raise failure from error
        except Error as error:
            failure = build_page_error(error.message)
            failure.evidence = await self._record_failure_evidence(recorder)
            raise failure from error
        finally:
            await recorder.dismiss()

    def _compute_deadline_s(self, turns: int) -> float:
        """Return the safety deadline of a conversation, longer than the deadlines of all its steps."""
        return 2 * self._settings.page_deadline_s + turns * (self._settings.answer_deadline_s + 60)

    async def _record_failure_evidence(self, recorder: EvidenceRecorder) -> Evidence:
        settings = self._settings
        return await recorder.collect(
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
        conversation.chat = await self._pages.open_chat_on(tab)
        opening_ms = (monotonic() - started) * 1000
        if conversation.chat.selectors.answer is not None:
            self._silent.end()
        else:
            self._silent.begin()  # signed in by now
        try:
            earlier = [(await conversation.ask(turn)).text for turn in turns[:-1]]
            if tap is not None:
                await tap.begin()
            reading = await conversation.ask(turns[-1])
        except ProbeError as error:
            await self._pages.check_session(tab, error)
            raise
        await self._pages.check_session(tab)
        wire = await tap.read_payload() if tap is not None else None
        graded = rule.graded if rule is not None and wire is not None else Channel.VISIBLE
        if wire is not None:
            self._doubts.note_answers(turns, earlier)
            self._doubts.raise_if_other_answer(reading.text, wire.text, turns[-1])
        if graded is Channel.VISIBLE:
            conversation.raise_if_no_chat(reading)
            is_proven = await conversation.has_proof_of_answer(reading)
            self._doubts.raise_if_unsure(reading, turns[-1], is_proven=is_proven)
        self._pages.way.proved |= conversation.behaves_like_chat(reading)
        return self._redact(_build_answer(reading, tuple(earlier), wire, graded, opening_ms))

    def _redact(self, answer: Answer) -> Answer:
        """Return the answer without the login's secrets, in case the app repeats them."""
        if self._login is None:
            return answer
        return Answer.model_validate(self._login.secret_filter.redact_in(answer.model_dump()))

    def _redact_error(self, error: ProbeError) -> ProbeError:
        if self._login is not None:
            secrets = self._login.secret_filter
            error.args = (secrets.redact(str(error)),)
            error.partial_text = secrets.redact(error.partial_text)
            error.evidence = Evidence.model_validate(secrets.redact_in(error.evidence.model_dump()))
        return error


def _build_answer(
    reading: WatchResult, earlier: tuple[str, ...], wire: WirePayload | None, graded: Channel, opening_ms: float
) -> Answer:
    return Answer(
        visible_text=reading.text,
        earlier=earlier,
        wire=wire,
        graded_channel=graded,
        timings=Timings(
            first_token_ms=reading.first_token_ms,
            total_ms=reading.total_ms,
            opening_ms=opening_ms,
            settling_ms=reading.calm_ms,
        ),
        app_path=wire.app_path if wire is not None else None,
        evidence=Evidence(settle_samples=reading.samples, aside=reading.aside, parts=reading.parts),
    )


def _merge_evidence(answer_evidence: Evidence, proof: Evidence) -> Evidence:
    return proof.model_copy(
        update={
            "settle_samples": answer_evidence.settle_samples,
            "aside": answer_evidence.aside,
            "parts": answer_evidence.parts,
        }
    )


async def _run_unless_crashed(page: Page, work: Coroutine[Any, Any, Answer], chromium: Chromium) -> Answer:
    """Return the answer, or raise `BrowserLost` at once when the page crashes."""
    crashed = asyncio.get_running_loop().create_future()

    def set_crashed(_page: Page) -> None:
        if not crashed.done():
            crashed.set_result(None)

    page.on("crash", set_crashed)
    asking = asyncio.ensure_future(work)
    try:
        await asyncio.wait({asking, crashed}, return_when=asyncio.FIRST_COMPLETED)
        if not asking.done():
            raise BrowserLost(chromium.ended_because or "the page crashed")
        return asking.result()
    finally:
        asking.cancel()
        crashed.cancel()
        page.remove_listener("crash", set_crashed)
