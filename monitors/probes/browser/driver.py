"""Ask questions on the page of the app, as a user does. Playwright controls the browser.

If the text that was read may not be the complete answer, the case is not graded. The text is also compared with the
answers to other questions. A text that is read for different questions is probably a part of the page and not an
answer.
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
from monitors.probes.browser.discover import raise_if_selector_invalid
from monitors.probes.browser.evidence import EvidenceRecorder
from monitors.probes.browser.greetings import Greetings, UnaskedPage
from monitors.probes.browser.inpage import CaptureDoubt, WatchResult
from monitors.probes.browser.login import Login
from monitors.probes.browser.network import WireTap
from monitors.probes.browser.pages import Pages, Tab, build_page_error
from monitors.probes.driver import Answer, SelectEvidence, select_no_evidence
from monitors.probes.settings import CapturePolicy, ProbeSettings
from monitors.records.exchanges import Channel, Evidence, Timings, WirePayload

if TYPE_CHECKING:
    from playwright.async_api import Page


PIN_ADVICE = (
    "Set probe.selectors.answer to the selector of the answer, or probe.wire to the response with the answer"
)
MAX_SHOWN_CHARACTERS = 80
"""An error message shows at most this many characters of a text."""


class CaptureDoubts:
    """Finds texts that were read from the page but may not be the answer.

    All answers of a run are stored, so that each new text can be compared with the answers to other questions.
    """

    def __init__(self) -> None:
        self._asked: dict[str, str] = {}
        self._sent: dict[str, str] = {}

    def store_earlier_answers(self, turns: Sequence[str], answers: Sequence[str]) -> None:
        """Store the ``answers`` that the app sent to ``turns``, the earlier messages of a conversation."""
        for turn, answer in zip(turns, answers, strict=False):
            self._sent.setdefault(_normalize_text(answer), _normalize_text(turn))

    def raise_if_page_shows_other_answer(self, shown: str, sent: str, question: str) -> None:
        """Raise `CaptureUnsure` if the page shows the answer to another question.

        ``shown`` is the text on the page, and ``sent`` is the text that the app sent for this question.
        """
        shown, sent, question = map(_normalize_text, (shown, sent, question))
        owner = self._sent.setdefault(sent, question)
        if shown and shown not in sent and self._sent.get(shown, owner) != question:
            raise CaptureUnsure(
                f"the page shows {_quote_text(shown)}, which the app sent as the answer to another question "
                f"({_quote_text(self._sent[shown])})",
                partial_text=shown,
            )

    def raise_if_answer_doubtful(self, reading: WatchResult, question: str, *, is_proven: bool) -> None:
        """Raise `CaptureUnsure` if the text in ``reading`` may not be the answer.

        The error names the setting that helps. If ``is_proven`` is True, the text is certainly an answer of the
        page. Two questions may then have the same answer.
        """
        reason = explain_answer_doubt(reading) or (
            None if is_proven else self._record_answer_and_explain_repeat(reading.text, question)
        )
        if reason is not None:
            raise CaptureUnsure(f"{reason}. {PIN_ADVICE}", partial_text=reading.text)

    def _record_answer_and_explain_repeat(self, text: str, question: str) -> str | None:
        before = self._asked.setdefault(_normalize_text(text), question)
        if _normalize_text(before) == _normalize_text(question):
            return None
        return (
            f"Lookout also read {_quote_text(text)} as the answer to another question ({_quote_text(before)}). "
            "This text may be a fixed part of the page"
        )


def explain_answer_doubt(reading: WatchResult) -> str | None:
    """Return why the text in ``reading`` may not be the answer, or ``None`` if there is no doubt."""
    if reading.unsure:
        texts = ", ".join(_quote_text(text) for text in reading.unsure[:3])
        return f"this text next to the answer may be a part of the answer: {texts}"
    match reading.doubt:
        case None:
            return None
        case CaptureDoubt.ECHO:
            return f"the text on the page only repeats the question: {_quote_text(reading.text)}"
        case CaptureDoubt.STOOD:
            return f"this text was hidden on the page before Lookout sent the question: {_quote_text(reading.text)}"
        case _:
            assert_never(reading.doubt)


def _normalize_text(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().casefold()


def _quote_text(text: str) -> str:
    return f"“{text[:MAX_SHOWN_CHARACTERS]}{'…' if len(text) > MAX_SHOWN_CHARACTERS else ''}”"


class BrowserDriver:
    """A `ChatDriver` that uses one browser. Use it as an async context manager, in one event loop only.

    `address` is the address of the page. Evidence is stored in `run_folder`. Lookout searches for a Chromium in the
    folders `search_path`, or in PATH. ``login`` signs in, and its secrets are redacted from answers, errors and
    evidence.
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
        self._unasked = UnaskedPage(self._pages)
        self._greetings = Greetings(self._unasked)
        self._doubts = CaptureDoubts()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the pages and the browser, each within its own deadline."""
        await asyncio.shield(self._close_pages_and_browser())

    async def _close_pages_and_browser(self) -> None:
        await self._unasked.close()
        await self._pages.close()
        await self.chromium.close()

    async def ask(
        self,
        turns: tuple[str, ...],
        *,
        name: str = "question",
        select_evidence: SelectEvidence = select_no_evidence,
    ) -> Answer:
        """See `ChatDriver.ask`. Each step has its own deadline."""
        from playwright.async_api import Error  # loaded with the browser

        await self.chromium.start_if_needed()  # loads the library
        try:
            return await self._ask_and_renew_session(turns, name, select_evidence)
        except Error as error:
            raise self._redact_secrets_in_error(build_page_error(error.message)) from (
                None if self._login else error
            )
        except ProbeError as error:
            if self._login is None:
                raise
            raise self._redact_secrets_in_error(error) from None  # its causes may hold unredacted texts

    async def _ask_and_renew_session(
        self, turns: tuple[str, ...], name: str, select_evidence: SelectEvidence
    ) -> Answer:
        """Ask on a new page. If the page requires a login, renew the session and ask on a second page."""
        async with self._pages.open_tab() as tab:
            try:
                return await self._ask_on_tab(tab, turns, name, select_evidence)
            except LoginWall as wall:  # no question was sent yet
                if not await self._pages.renew_session(tab, wall):
                    raise
        async with self._pages.open_tab() as tab:
            try:
                return await self._ask_on_tab(tab, turns, name, select_evidence)
            except LoginWall as wall:
                await self._pages.renew_session(tab, wall)
                raise

    async def _ask_on_tab(
        self, tab: Tab, turns: tuple[str, ...], name: str, select_evidence: SelectEvidence
    ) -> Answer:
        from playwright.async_api import Error  # loaded with the browser

        hidden = self._login.secret_filter.redact_bytes if self._login else None
        recorder = EvidenceRecorder(tab.page, tab.context, self._run_folder, name, hidden=hidden, visit=tab.visit)
        try:
            if self._settings.traces is not CapturePolicy.NEVER:
                await recorder.start_trace()
            # A safety deadline, which is longer than the deadlines of all steps together.
            settings = self._settings
            deadline_s = 2 * settings.page_deadline_s + len(turns) * (settings.answer_deadline_s + 60)
            conversing = run_within_deadline(
                deadline_s, self._ask_turns_and_build_last_answer(tab, turns), "the conversation"
            )
            answer = await _wait_unless_page_crashes(tab.page, conversing, self.chromium)
            evidence_filter = await select_evidence(answer)
            proof = await recorder.collect_evidence(
                screenshot=evidence_filter.screenshot, trace=evidence_filter.trace
            )
            return self._redact_secrets(answer.with_evidence_files(proof))
        except ProbeError as error:
            failure = tab.visit.replace_error_of_refused_connection(error)
            failure.evidence = await self._record_failure_evidence(recorder)
            if failure is error:
                raise
            raise failure from error
        except Error as error:
            failure = build_page_error(error.message)
            failure.evidence = await self._record_failure_evidence(recorder)
            raise failure from error
        finally:
            await recorder.stop_recording()

    async def _record_failure_evidence(self, recorder: EvidenceRecorder) -> Evidence:
        settings = self._settings
        return await recorder.collect_evidence(
            screenshot=settings.screenshots is not CapturePolicy.NEVER,
            trace=settings.traces is not CapturePolicy.NEVER,
        )

    async def _ask_turns_and_build_last_answer(self, tab: Tab, turns: tuple[str, ...]) -> Answer:
        await raise_if_selector_invalid(tab.page, self._settings.selectors)
        rule = self._settings.wire
        tap = WireTap(tab.page, rule) if rule is not None else None
        conversation = PageConversation(tab.page, self._settings, tab.visit, self._greetings)
        if self._login is None:
            self._unasked.start()
        started = monotonic()
        conversation.chat = await self._pages.open_chat_in_tab(tab)
        opening_ms = (monotonic() - started) * 1000
        if conversation.chat.selectors.answer is not None:
            self._unasked.stop_early()
        else:
            self._unasked.start()  # signed in by now
        try:
            earlier = [(await conversation.ask(turn)).text for turn in turns[:-1]]
            if tap is not None:
                await tap.reset_and_start_capture()
            reading = await conversation.ask(turns[-1])
        except ProbeError as error:
            await self._pages.renew_ended_session_and_raise(tab, error)
            raise
        await self._pages.renew_ended_session_and_raise(tab)
        wire = await tap.stop_capture_and_read_answer() if tap is not None else None
        graded = rule.graded if rule is not None and wire is not None else Channel.VISIBLE
        if wire is not None:
            self._doubts.store_earlier_answers(turns, earlier)
            self._doubts.raise_if_page_shows_other_answer(reading.text, wire.text, turns[-1])
        if graded is Channel.VISIBLE:
            conversation.raise_if_not_a_chat(reading)
            is_proven = await conversation.is_certain_answer(reading)
            self._doubts.raise_if_answer_doubtful(reading, turns[-1], is_proven=is_proven)
        self._pages.way.proved |= conversation.was_question_accepted(reading)
        return self._redact_secrets(_build_answer(reading, tuple(earlier), wire, graded, opening_ms))

    def _redact_secrets(self, answer: Answer) -> Answer:
        """Return the answer without the secrets of the login, because the app may repeat the secrets."""
        if self._login is None:
            return answer
        return Answer.model_validate(self._login.secret_filter.redact_in(answer.model_dump()))

    def _redact_secrets_in_error(self, error: ProbeError) -> ProbeError:
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


async def _wait_unless_page_crashes(page: Page, work: Coroutine[Any, Any, Answer], chromium: Chromium) -> Answer:
    """Wait for ``work`` and return its result. Raises `BrowserLost` as soon as the page crashes."""
    crashed = asyncio.get_running_loop().create_future()

    def set_crashed(_page: Page) -> None:
        if not crashed.done():
            crashed.set_result(None)

    page.on("crash", set_crashed)
    asking = asyncio.ensure_future(work)
    try:
        await asyncio.wait({asking, crashed}, return_when=asyncio.FIRST_COMPLETED)
        if not asking.done():
            raise BrowserLost(chromium.forced_end_reason or "the page crashed")
        return asking.result()
    finally:
        asking.cancel()
        crashed.cancel()
        page.remove_listener("crash", set_crashed)
