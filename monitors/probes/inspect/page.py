"""Inspect a chat page: find the message box, the send button and the elements that contain the answers.

`inspect_page` asks at most one harmless question. If the inspection fails, the result contains advice.
`ask_trial_questions` asks several questions. It checks whether the answers are plausible, whether the page
hides a part of them, and whether the "new chat" button works.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from monitors.errors import LoginFailed, LoginWall, ProbeError
from monitors.facts.error_leaks import find_error_leak
from monitors.probes.browser.chromium import Chromium, finish_within_deadline
from monitors.probes.browser.conversation import PageConversation
from monitors.probes.browser.discover import TRUSTED_SCORE, Chat, raise_if_selector_invalid
from monitors.probes.browser.driver import CaptureDoubts
from monitors.probes.browser.greetings import Greetings
from monitors.probes.browser.inpage import WatchResult, call_in_page, replace_surrogates
from monitors.probes.browser.login import Login
from monitors.probes.browser.pages import Pages, Tab, build_page_error, find_new_chat_button
from monitors.probes.inspect.findings import (
    ADVICE,
    HARMLESS,
    OTHER_ANSWER,
    QUESTIONS,
    REMEMBER,
    REMEMBERED,
    SAME_ANSWER,
    AskPermission,
    Listener,
    NetworkMessage,
    NewChat,
    Overview,
    PageElement,
    PageInspection,
    PageProblem,
    Trial,
    WireCandidate,
    find_common_candidates,
    find_wire_candidates,
    keep_letters_and_digits,
    read_answer_by_rule,
)
from monitors.probes.settings import Isolation, ProbeSettings
from monitors.probes.wire import WireRule
from monitors.storage import OWNER_ONLY_MODE


def build_page_problem(error: ProbeError) -> PageProblem:
    """Return the description of an error, with the advice."""
    return PageProblem(reason=error.reason, blame=error.blame, detail=str(error), to_do=ADVICE[error.reason])


DESCRIBE_SCRIPT = Path(__file__).parents[1] / "browser" / "inpage" / "describe.js"
PICTURE_DEADLINE_S = 15.0
# A question with the proposed selectors may take 10 s, or 3 times as long as the question without these selectors.
MIN_PINNED_DEADLINE_S, PINNED_DEADLINE_FACTOR = 10.0, 3
# Colours that people with red-green blindness can distinguish (Okabe and Ito).
OUTLINE_MARKS = (("box", "message box", "#0072B2"), ("send", "send", "#D55E00"), ("answer", "answer", "#007A5A"))
TREE_LINE = re.compile(r'- (?:\'|")?([a-z]+)(?: "((?:[^"\\]|\\.)*)")?')
"""A pattern for one line of an accessibility tree, such as ``- textbox "Your message"``."""


async def inspect_page(
    address: str,
    settings: ProbeSettings,
    *,
    picture: Path,
    asking: AskPermission = AskPermission.IF_NEEDED,
    search_path: str | None = None,
    login: Login | None = None,
) -> PageInspection:
    """Inspect a page with a new browser, and return the result.

    The screenshot is stored at the path ``picture``, whose folder must exist. ``login`` signs in, and its secrets
    are redacted from the result. Raises only `BrowserMissing` and `BrowserLost`; other problems are reported in the
    result.
    """
    chromium = Chromium(
        browser_path=settings.browser_path,
        search_path=search_path,
        load_images=True,
        close_deadline_s=settings.close_deadline_s,
    )
    async with chromium:
        await chromium.start_if_needed()
        from playwright.async_api import Error  # loaded with the browser

        pages = Pages(chromium, address, settings, login)
        try:
            if login is None:
                return await _inspect_on_new_tab(pages, settings, PageInspection(address=address), asking, picture)
            inspection = await _inspect_signed_in(pages, settings, PageInspection(address=address), asking, picture)
            shown = login.secret_filter.redact_in(inspection.model_dump(exclude={"picture"}))
            return PageInspection.model_validate({**shown, "picture": inspection.picture})  # not redacted
        except Error as error:
            raise build_page_error(error.message) from error


async def _inspect_on_new_tab(
    pages: Pages, settings: ProbeSettings, inspection: PageInspection, asking: AskPermission, goal: Path
) -> PageInspection:
    async with pages.open_tab() as tab:
        await tab.page.add_init_script(path=DESCRIBE_SCRIPT)
        return await PageInspector(pages, tab, settings, inspection, asking).inspect(goal)


async def _inspect_signed_in(
    pages: Pages, settings: ProbeSettings, inspection: PageInspection, asking: AskPermission, goal: Path
) -> PageInspection:
    """Inspect a page that requires a login. Sign in again by the form if the session has ended."""
    try:
        async with pages.open_tab() as tab:
            try:
                await pages.open_chat_in_tab(tab)
            except LoginWall as wall:
                await pages.renew_session(tab, wall)
    except LoginFailed as error:
        return inspection.with_problem(build_page_problem(error))
    except ProbeError:
        pass  # the inspection itself reports the error
    return await _inspect_on_new_tab(pages, settings, inspection, asking, goal)


class PageInspector:
    """Inspect one page. ``_inspection`` contains what was found so far."""

    def __init__(
        self, pages: Pages, tab: Tab, settings: ProbeSettings, inspection: PageInspection, asking: AskPermission
    ) -> None:
        self._pages = pages
        self._tab = tab
        self._page = tab.page
        self._settings = settings
        self._inspection = inspection
        self._asking = asking
        self._listener = Listener(tab.page)
        self._frame = tab.page.main_frame

    async def inspect(self, picture: Path) -> PageInspection:
        """Return the inspection of the page. Errors of the page are reported in its ``problem``."""
        conversation = PageConversation(self._page, self._settings, self._tab.visit)
        started = monotonic()
        try:
            await raise_if_selector_invalid(self._page, self._settings.selectors)
            conversation.chat = await self._pages.open_chat_in_tab(self._tab)
            self._update_inspection(usable_s=round(monotonic() - started, 2))
            await self._record_chat_elements(conversation.chat)
            await self._find_answer_place_or_ask(conversation)
        except ProbeError as error:
            self._update_inspection(problem=build_page_problem(error))
        self._update_inspection(
            http_status=self._listener.status,
            loaded_s=self._listener.loaded_s,
            console_errors=tuple(self._listener.console_errors),
            refused=self._tab.visit.refused,
            overview=await self._read_overview(),
            picture=await self._take_screenshot(picture),
        )
        return self._inspection

    def _update_inspection(self, **changes: Any) -> None:
        self._inspection = self._inspection.model_copy(update=changes)

    async def _record_chat_elements(self, chat: Chat) -> None:
        self._frame = chat.frame
        pinned = self._settings.selectors
        await chat.frame.evaluate(DESCRIBE_SCRIPT.read_text(encoding="utf-8"))
        box = await self._describe_element(
            "__lookout.box", _describe_certainty(chat.boxes.score, pinned.message_box)
        )
        send = await self._describe_element(
            "__lookout.send", "pinned" if pinned.send else "found by its name or its position next to the box"
        )
        to_press = send is not None and send.selector is not None and not chat.profile.presses_enter
        selectors = {
            "message_box": pinned.message_box or (box.selector if box else None),
            "send": pinned.send or (send.selector if send is not None and to_press else None),
        }
        self._update_inspection(
            open=self._settings.open or tuple(step.selector for step in self._pages.way.steps if step.selector),
            profile=chat.profile.name,
            starters=tuple(map(replace_surrogates, await call_in_page(chat.frame, "starters"))),
            frame=None if chat.frame == self._page.main_frame else replace_surrogates(chat.frame.url),
            box=box,
            send=send,
            selectors=pinned.model_copy(update=selectors),
        )

    async def _find_answer_place_or_ask(self, conversation: PageConversation) -> None:
        """Find the place where answers appear: from ARIA attributes of the page, or by asking one question."""
        chat = conversation.chat
        place = await self._describe_element("__lookout.place()", "the page marks it as the list of messages")
        recognised = chat.selectors.answer is not None or place is not None
        if self._asking is AskPermission.NEVER or (self._asking is AskPermission.IF_NEEDED and recognised):
            self._update_inspection(
                why_asked=_explain_not_asking(chat, self._asking, recognised=recognised),
                answer=self._describe_answer_place(chat, place),
            )
            return
        self._update_inspection(
            asked=HARMLESS,
            why_asked="you requested it" if recognised else "the page does not mark where answers appear",
        )
        await self._listener.start_recording()
        started = monotonic()
        reading = await conversation.ask(HARMLESS)
        self._update_inspection(answer_text=reading.text, answered_s=round(monotonic() - started, 2))
        await chat.frame.evaluate(
            DESCRIBE_SCRIPT.read_text(encoding="utf-8")
        )  # a plain form answers with a new page
        self._update_inspection(answer=await self._find_answer_element(chat, reading.text))
        box = self._inspection.box
        if box is not None and not chat.boxes.pinned:
            proved = conversation.was_question_accepted(reading)
            self._update_inspection(
                box=box.with_certainty(
                    "sure: the box accepted the question as a chat does"
                    if proved
                    else "a guess: the box still contains the question"
                )
            )
        conversation.raise_if_not_a_chat(reading)
        CaptureDoubts().raise_if_answer_doubtful(reading, HARMLESS, is_proven=True)
        self._update_inspection(wire=find_wire_candidates(await self._listener.collect_messages(), reading.text))

    def _describe_answer_place(self, chat: Chat, place: PageElement | None) -> PageElement | None:
        if chat.selectors.answer is None:
            return place
        sure = "pinned" if self._settings.selectors.answer else f"from the profile {chat.profile.name}"
        role = place.role if place else "messages"
        return PageElement(role=role, name="", selector=chat.selectors.answer, how_sure=sure)

    async def _find_answer_element(self, chat: Chat, text: str) -> PageElement | None:
        sure = "found by the new text on the page after the question"
        await self._evaluate("__lookout.findAnswer(given)", text)
        part = await self._describe_element("__lookout.answerAt", sure)
        if part is None or chat.selectors.answer is not None:
            described = self._describe_answer_place(chat, part)
            return described if described and described.selector else part
        selector = await self._evaluate("__lookout.answerSelector(given[0], given[1])", [text, HARMLESS])
        selector = None if selector is None else replace_surrogates(selector)
        if selector is not None:
            self._update_inspection(selectors=self._inspection.selectors.with_answer(selector))
        return part.with_selector_of_all_answers(selector)

    async def _describe_element(self, expression: str, how_sure: str) -> PageElement | None:
        """Describe the element that a JavaScript expression evaluates to."""
        described = await self._evaluate(f"({expression}) && __lookout.describe({expression})")
        if described is None:
            return None
        role, name = await self._read_accessible_role_and_name(described["selector"]) or (
            described["role"] or described["tag"],
            described["name"],
        )
        shadow = bool(described["shadow"])
        return PageElement(
            role=replace_surrogates(role),
            name=replace_surrogates(name),
            selector=described["selector"],
            how_sure=how_sure,
            in_shadow=shadow,
        )

    async def _evaluate(self, expression: str, given: Any = None) -> Any:
        return await self._frame.evaluate(f"(given) => ({expression}) ?? null", given)

    async def _read_accessible_role_and_name(self, selector: str | None) -> tuple[str, str] | None:
        """Return the role and the name of an element in the accessibility tree."""
        from playwright.async_api import Error  # Playwright is already imported

        if selector is None:
            return None
        try:
            snapshot = await self._frame.locator(selector).first.aria_snapshot(timeout=2000)
        except Error:
            return None
        first = TREE_LINE.match(snapshot)
        return None if first is None else (first[1], first[2] or "")

    async def _read_overview(self) -> Overview:
        main = self._page.main_frame
        frames = [
            replace_surrogates(frame_on_page.url)
            for frame_on_page in self._page.frames
            if frame_on_page != main and frame_on_page.url.startswith("http")
        ]
        overview: dict[str, Any] = {}
        if await finish_within_deadline(
            main.evaluate(DESCRIBE_SCRIPT.read_text(encoding="utf-8")), PICTURE_DEADLINE_S
        ):
            overview = await call_in_page(main, "overview")
        return Overview.model_validate(
            {**overview, "title": replace_surrogates(await self._page.title()), "frames": frames}
        )

    async def _take_screenshot(self, picture: Path) -> str | None:
        """Take a screenshot in which the found elements are outlined. Return the path of the screenshot."""
        await finish_within_deadline(self._frame.evaluate("() => __lookout.show?.()"), PICTURE_DEADLINE_S)
        given = [[list(mark) for mark in OUTLINE_MARKS], self._settings.selectors.model_dump(exclude_none=True)]
        marking = self._frame.evaluate("(given) => __lookout.markFound?.(...given)", given)
        await finish_within_deadline(marking, PICTURE_DEADLINE_S)
        taking = self._page.screenshot(path=picture, timeout=PICTURE_DEADLINE_S * 1000)
        if not await finish_within_deadline(taking, PICTURE_DEADLINE_S):
            return None
        await asyncio.to_thread(picture.chmod, OWNER_ONLY_MODE)
        return str(picture)


def _describe_certainty(score: float, pinned: str | None) -> str:
    if pinned:
        return "pinned"
    likely = "likely" if score >= TRUSTED_SCORE else "a guess"
    return f"{likely}: the score is {score:g} (likely: {TRUSTED_SCORE} or more). Not tested with a question"


def _explain_not_asking(chat: Chat, asking: AskPermission, *, recognised: bool) -> str:
    if not recognised:
        return "you requested no test question. The first real question will show where answers appear"
    if asking is AskPermission.NEVER:
        return "you requested no test question"
    if chat.selectors.answer:
        return f"no test question was necessary: the profile {chat.profile.name} defines where answers appear"
    return "no test question was necessary: the page marks where messages appear"


@dataclass(frozen=True)
class TrialAnswer:
    """A question with the text that was read and the received messages, or with the error.

    ``new_chat`` is True if the page had a button for a new conversation after the answer.
    """

    question: str
    seen: WatchResult | None = None
    received: tuple[NetworkMessage, ...] = ()
    error: ProbeError | None = None
    new_chat: bool = False


class TriedPage(NamedTuple):
    """The results of the trial questions, the rules that found all answers, and the "new chat" test."""

    trials: tuple[Trial, ...]
    rules: tuple[WireCandidate, ...]
    new_chat: NewChat | None


async def ask_trial_questions(
    address: str,
    settings: ProbeSettings,
    *,
    questions: Sequence[str] = QUESTIONS,
    search_path: str | None = None,
    login: Login | None = None,
    tries_new_chat: bool = True,
) -> TriedPage:
    """Ask each question on a new page, then test the "new chat" button of the page.

    The button is tested only if the settings give each case a new page. Raises only `BrowserMissing` and
    `BrowserLost`.
    """
    chromium = Chromium(browser_path=settings.browser_path, search_path=search_path)
    async with chromium:
        await chromium.start_if_needed()
        from playwright.async_api import Error  # loaded with the browser

        pages, greetings = Pages(chromium, address, settings, login), Greetings()
        try:
            trial_answers = [
                await _ask_trial_question(pages, settings, greetings, question) for question in questions
            ]
            should_try_new_chat = (
                tries_new_chat
                and settings.isolation is Isolation.CONTEXT
                and any(trial_answer.new_chat for trial_answer in trial_answers)
            )
            new_chat = await _test_new_chat(pages, settings, greetings) if should_try_new_chat else None
        except Error as error:
            raise build_page_error(error.message) from None
        finally:
            await pages.close()
    wire_candidates = find_common_candidates(
        [
            find_wire_candidates(trial_answer.received, trial_answer.seen.text)
            for trial_answer in trial_answers
            if trial_answer.seen is not None
        ]
    )
    rule = settings.wire or (wire_candidates[0].rule if wire_candidates else None)
    trials = tuple(
        _build_trial(trial_answer, trial_answers, rule, configured=settings.wire is not None)
        for trial_answer in trial_answers
    )
    trials = tuple(_add_doubt_if_other_answer(trial, trials) for trial in trials)
    if login is not None:
        hide = login.secret_filter.redact_in
        trials = tuple(Trial.model_validate(hide(trial_answer.model_dump())) for trial_answer in trials)
        wire_candidates = tuple(
            WireCandidate.model_validate(hide(trial_answer.model_dump())) for trial_answer in wire_candidates
        )
    return TriedPage(trials, wire_candidates, new_chat)


async def _test_new_chat(pages: Pages, settings: ProbeSettings, greetings: Greetings) -> NewChat | None:
    """Test whether a bot forgets the conversation after a click on "new chat".

    Return ``None`` if a question got no answer.
    """
    remember, recall = REMEMBER
    try:
        async with pages.open_tab() as tab:
            started = monotonic()
            conversation = PageConversation(tab.page, settings, tab.visit, greetings)
            conversation.chat = await pages.open_chat_in_tab(tab)
            fresh_s = round(monotonic() - started, 2)
            await conversation.ask(remember)
            recalled = REMEMBERED in (await conversation.ask(recall)).text.casefold()
            started = monotonic()
            chat = await pages.start_new_chat(tab) if recalled else None
            if chat is None:
                return NewChat(recalled=recalled)
            button_s = round(monotonic() - started, 2)
            new_conversation = PageConversation(tab.page, settings, tab.visit, greetings)
            new_conversation.chat = chat
            forgotten = REMEMBERED not in (await new_conversation.ask(recall)).text.casefold()
            return NewChat(recalled=True, forgotten=forgotten, button_s=button_s, fresh_s=fresh_s)
    except ProbeError:
        return None  # the three questions were answered: this error is not the fault of the page


async def _ask_trial_question(
    pages: Pages, settings: ProbeSettings, greetings: Greetings, question: str
) -> TrialAnswer:
    try:
        async with pages.open_tab() as tab:
            try:
                return await _ask_trial_question_on_tab(pages, tab, settings, greetings, question)
            except LoginWall as wall:
                if not await pages.renew_session(tab, wall):
                    raise
        async with pages.open_tab() as tab:
            return await _ask_trial_question_on_tab(pages, tab, settings, greetings, question)
    except ProbeError as error:
        return TrialAnswer(question, error=error)


async def _ask_trial_question_on_tab(
    pages: Pages, tab: Tab, settings: ProbeSettings, greetings: Greetings, question: str
) -> TrialAnswer:
    listener = Listener(tab.page)
    conversation = PageConversation(tab.page, settings, tab.visit, greetings)
    conversation.chat = await pages.open_chat_in_tab(tab)
    await listener.start_recording()
    reading = await conversation.ask(question)
    received = await listener.collect_messages()
    if settings.wire is None:
        conversation.raise_if_not_a_chat(reading)
        CaptureDoubts().raise_if_answer_doubtful(reading, question, is_proven=True)
    return TrialAnswer(question, reading, received, new_chat=await find_new_chat_button(tab.page) is not None)


def _build_trial(
    trial_answer: TrialAnswer, all_heard: Sequence[TrialAnswer], rule: WireRule | None, *, configured: bool
) -> Trial:
    if trial_answer.seen is None:
        return Trial(
            question=trial_answer.question,
            problem=None if trial_answer.error is None else build_page_problem(trial_answer.error),
        )
    sent = read_answer_by_rule(rule, trial_answer.received) if rule is not None else None
    others = [
        other_answer.seen.text
        for other_answer in all_heard
        if other_answer is not trial_answer and other_answer.seen is not None
    ]
    doubt = _explain_implausible_answer(trial_answer.question, trial_answer.seen.text, others)
    if configured and sent is None:
        doubt = "the page received no message that matches probe.wire"
    reading = trial_answer.seen
    stripped = (*reading.aside, *(f"{part.kind}: {part.text}" for part in reading.parts))
    return Trial(question=trial_answer.question, text=reading.text, sent=sent, doubt=doubt, stripped=stripped)


def _add_doubt_if_other_answer(trial: Trial, trials: Sequence[Trial]) -> Trial:
    """Return ``trial``. Add a doubt if the page shows the answer that the app sent to another question."""
    shown = keep_letters_and_digits(trial.text)
    own = keep_letters_and_digits(trial.sent.text) if trial.sent else shown
    others = [keep_letters_and_digits(other.sent.text) for other in trials if other is not trial and other.sent]
    if trial.doubt or not shown or shown in own or not any(shown in other for other in others):
        return trial
    return trial.with_doubt(OTHER_ANSWER)


async def verify_proposed_selectors(
    inspection: PageInspection, settings: ProbeSettings, question: str, login: Login | None = None
) -> PageInspection:
    """Ask a question with the proposed selectors. Return the inspection without the selectors that do not work.

    Raises only `BrowserMissing` and `BrowserLost`.
    """
    proposals = inspection.selectors
    if proposals == settings.selectors and inspection.open == settings.open:
        return inspection
    deadline_s = settings.answer_deadline_s
    if inspection.answered_s is not None:
        deadline_s = min(deadline_s, MIN_PINNED_DEADLINE_S + PINNED_DEADLINE_FACTOR * inspection.answered_s)
    for selectors, note in (
        (proposals, ""),
        (proposals.with_answer(settings.selectors.answer), f"answer = {proposals.answer!r}"),
    ):
        pinned = settings.with_page_elements(selectors, inspection.open, deadline_s)
        tried = await ask_trial_questions(
            inspection.address, pinned, questions=(question,), login=login, tries_new_chat=False
        )
        trial = tried.trials[0]
        if trial.problem is None and not trial.doubt:
            return inspection.with_tested_selectors(selectors, inspection.open, note)
        if proposals.answer is None or proposals.answer == settings.selectors.answer:
            break
    return inspection.with_tested_selectors(settings.selectors, settings.open, "every proposed selector")


def _explain_implausible_answer(question: str, text: str, others: Sequence[str]) -> str:
    """Return the reason why ``text`` is probably not the answer to ``question``, or an empty string.

    ``others`` contains the answers to the other questions.
    """
    letters = keep_letters_and_digits(text)
    if not letters:
        return "the answer contains no word"
    if letters in keep_letters_and_digits(question):
        return "the answer repeats the question or a part of it"
    if letters in map(keep_letters_and_digits, others):
        return SAME_ANSWER
    leak = find_error_leak(text, question)
    return "" if leak is None else "the answer is an error message"
