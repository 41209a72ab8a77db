"""Define the results of `lookout doctor` for a chat page, and find the network message with the answer.

A `Listener` records all messages that a page receives while the page answers one question. A message that contains
the answer becomes a proposal for the setting ``probe.wire``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.parse import urlsplit

from monitors.probes.browser.inpage import call_in_page, replace_surrogates
from monitors.probes.browser.network import DATA_KINDS, await_unless_frame_lost, read_body, read_pushed_messages
from monitors.probes.settings import Selectors
from monitors.probes.wire import WireRule, extract_payload, parse_documents
from monitors.records.base import Blame, Probability, Record
from monitors.records.exchanges import Channel, NoAnswerReason, WirePayload

if TYPE_CHECKING:
    from playwright.async_api import ConsoleMessage, Page, Response


MIN_LIKENESS = 0.6
"""A message must contain at least this share of the letters of an answer. A page may change a part of the text."""

PIECE_LETTERS = 5
"""Number of letters in each piece when two texts are compared piece by piece.

Small pieces are used because a page may split, join and number the text.
"""
MIN_PIECEWISE_LETTERS = 12
"""An answer with at least this many letters is compared piece by piece.

A message must contain a shorter answer completely.
"""
UNSHOWN_WEIGHT = 0.25
"""How strongly extra text in a message lowers the likeness of the message to the answer, from 0 to 1.

If two messages contain the answer, the one with less extra text is therefore preferred.
"""

MAX_DOCUMENTS = 5000
MAX_LEAVES = 20_000
MAX_READS = 200_000
"""Maximum number of values (documents times paths) that are read for one address. Reading them takes about 1 s."""
CITATIONS = re.compile(r"(^|[._])(citations?|sources?|references?|documents?)([._]|$)", re.IGNORECASE)
APP_PATH = re.compile(r"(^|\.)(model|model_name|path|route|provider)$", re.IGNORECASE)
LATENCY = re.compile(r"(^|\.)(latency|latency_ms|ms|duration_ms|elapsed_ms|took_ms)$", re.IGNORECASE)


class NetworkMessage(Record):
    """A message that a page received: the body of a response, or the texts of a web socket or event stream."""

    url: str
    kind: str
    texts: tuple[str, ...]


class WireCandidate(Record):
    """A rule that finds the answer in a network message.

    - ``likeness`` is the share of the answer on the page that the message contains (see
      `compute_answer_share_in_text`).
    - ``more`` is text in the message that the page does not show.
    - ``sources`` contains the names of the sources that the rule reads.
    - ``hides`` is True if the rule finds at least one source or text that the page does not show.
    """

    kind: str
    rule: WireRule
    likeness: Probability
    more: str = ""
    sources: tuple[str, ...] = ()
    hides: bool = False


def find_wire_candidates(received: Iterable[NetworkMessage], answer: str) -> tuple[WireCandidate, ...]:
    """Return the best rule for each message that contains ``answer``.

    Rules that find text or sources that the page does not show come first.
    """
    wire_candidates = [best for message in received if (best := _find_best_candidate(message, answer)) is not None]
    return tuple(sorted(wire_candidates, key=lambda candidate: (not candidate.hides, -candidate.likeness)))


def find_common_candidates(by_answer: Sequence[tuple[WireCandidate, ...]]) -> tuple[WireCandidate, ...]:
    """Return the rules that found every answer: one rule for each address and path.

    ``by_answer`` contains the rules for each answer. The paths of the sources, the model and the latency may
    come from the rules of any answer, because some answers have no sources.
    """
    if not by_answer or not all(by_answer):
        return ()
    shared: list[WireCandidate] = []
    for first in by_answer[0]:
        alike = [
            candidate
            for answer_candidates in by_answer
            for candidate in answer_candidates
            if (candidate.rule.url, candidate.rule.text) == (first.rule.url, first.rule.text)
        ]
        if len(alike) < len(by_answer):
            continue
        shared.append(
            WireCandidate(
                kind=first.kind,
                rule=first.rule.with_detail_paths([candidate.rule for candidate in alike]),
                likeness=min(candidate.likeness for candidate in alike),
                more=next((candidate.more for candidate in alike if candidate.more), ""),
                sources=tuple(dict.fromkeys(name for candidate in alike for name in candidate.sources)),
                hides=any(candidate.hides for candidate in alike),
            )
        )
    return tuple(sorted(shared, key=lambda candidate: (not candidate.hides, -candidate.likeness)))


def read_answer_by_rule(rule: WireRule, received: Iterable[NetworkMessage]) -> WirePayload | None:
    """Return the last answer that the rule finds in the messages, or ``None`` if the rule finds no answer.

    A run of the suite reads the answer in the same way.
    """
    for message in reversed(tuple(received)):
        if not rule.matches(message.url):
            continue
        if not rule.text:
            return WirePayload(url=message.url, text="".join(message.texts))
        documents = [document for text in message.texts for document in parse_documents(text)]
        payload = extract_payload(rule, message.url, documents)
        if payload is not None:
            return payload
    return None


def _find_best_candidate(message: NetworkMessage, answer: str) -> WireCandidate | None:
    documents = [document for text in message.texts for document in parse_documents(text)][:MAX_DOCUMENTS]
    if not documents:
        text = "".join(message.texts)
        return _build_candidate(message, "", text, answer, joins_pieces=True, documents=[])
    options = [
        _build_candidate(message, path, text, answer, joins_pieces=joins_pieces, documents=documents)
        for path in list_limited_text_paths(documents)
        for joins_pieces in (True, False)
        if (text := read_text_at(path, documents, joins_pieces=joins_pieces)) is not None
    ]
    return max((way for way in options if way is not None), key=lambda way: way.likeness, default=None)


def _build_candidate(
    message: NetworkMessage, path: str, text: str, answer: str, *, joins_pieces: bool, documents: list[Any]
) -> WireCandidate | None:
    like = compute_answer_share_in_text(text, answer)
    if like < MIN_LIKENESS:
        return None
    rule = build_wire_rule(message.url, path, joins_pieces=joins_pieces, documents=documents)
    more, payload = _find_unshown_bracketed_texts(text, answer), extract_payload(rule, "", documents)
    sources = payload.citations if payload is not None else ()
    hidden = any(keep_letters_and_digits(source) not in keep_letters_and_digits(answer) for source in sources)
    return WireCandidate(
        kind=message.kind, likeness=like, more=more, rule=rule, sources=sources, hides=bool(more) or hidden
    )


def build_wire_rule(url: str, path: str, *, joins_pieces: bool, documents: list[Any]) -> WireRule:
    """Build a rule that reads the answer at ``path``.

    The rule also reads the sources, the model and the latency, if ``documents`` contain fields with usual names for
    them.
    """
    rest = list(dict.fromkeys(path for path, _ in _iterate_leaves(documents)))
    citations = _find_wildcard_or_shortest_path(rest, CITATIONS)
    return WireRule(
        url=build_url_pattern(url),
        text=path,
        joins=joins_pieces,
        # the path of the list of sources, without the keys of its items
        citations=None if citations is None else re.sub(r"(?<=\.\*)\..*$", "", citations),
        app_path=_find_wildcard_or_shortest_path(rest, APP_PATH),
        latency_ms=_find_wildcard_or_shortest_path(rest, LATENCY),
        graded=Channel.WIRE,
    )


def read_text_at(path: str, documents: list[Any], *, joins_pieces: bool) -> str | None:
    """Return the text at a path in the documents, or ``None`` if there is no text."""
    rule = WireRule(url=".", text=path, joins=joins_pieces)
    payload = extract_payload(rule, "", documents)
    return None if payload is None else payload.text


def compute_answer_share_in_text(text: str, answer: str) -> float:
    """Return the share of ``answer`` that ``text`` contains, from 0 to 1. Extra text in ``text`` lowers the share.

    ``text`` was sent over the network, and ``answer`` was read from the page. Only letters and digits are compared,
    in small pieces, because a page may omit sources and add its own words.
    """
    sent, shown_letters = keep_letters_and_digits(text), keep_letters_and_digits(answer)
    if not sent or not shown_letters:
        return 0.0
    if len(shown_letters) < MIN_PIECEWISE_LETTERS:
        return min(len(shown_letters) / len(sent), 1.0) if shown_letters in sent else 0.0
    if sent == shown_letters:
        return 1.0
    shown_pieces = _split_into_overlapping_pieces(shown_letters)
    if not any(piece in sent for piece in list(shown_pieces)[:: max(1, len(shown_pieces) // 16)]):
        return 0.0
    sent_pieces = _split_into_overlapping_pieces(sent)
    both = shown_pieces & sent_pieces
    unshown_share = 1 - len(both) / len(sent_pieces) if sent_pieces else 1.0
    return min(len(both) / len(shown_pieces) * (1 - UNSHOWN_WEIGHT * unshown_share), 0.99)


def _split_into_overlapping_pieces(letters: str) -> set[str]:
    return {letters[at : at + PIECE_LETTERS] for at in range(len(letters) - PIECE_LETTERS + 1)}


def keep_letters_and_digits(text: str) -> str:
    """Return the letters and digits of a text in lower case, so that formatting does not affect a comparison."""
    return re.sub(r"[\W_]+", "", text).lower()


def build_url_pattern(url: str) -> str:
    """Return a regular expression for the path of an address. A part that looks like an id matches any text."""
    parts = urlsplit(url)
    path = "/".join(_build_url_step_pattern(step) for step in parts.path.split("/"))
    end = r"(\?|$)"
    return f"^wss?://[^/]+{path}{end}" if parts.scheme in ("ws", "wss") else f"{path}{end}"


def _build_url_step_pattern(step: str) -> str:
    is_variable = re.fullmatch(r"[0-9a-fA-F-]{8,}|\d+|[A-Za-z0-9_-]{20,}", step) and re.search(r"\d", step)
    return "[^/]+" if is_variable else re.escape(step).replace(r"\-", "-")


def _find_unshown_bracketed_texts(text: str, answer: str) -> str:
    """Return up to three texts in square brackets that ``text`` contains but ``answer`` does not."""
    lines = [
        piece
        for piece in re.findall(r"\[[^\]]{3,120}\]", text)
        if keep_letters_and_digits(piece) not in keep_letters_and_digits(answer)
    ]
    return " ".join(lines[:3])


def list_limited_text_paths(documents: list[Any]) -> list[str]:
    """Return the paths of the texts in the documents, in their order.

    The maximum number of paths is `MAX_READS` divided by the number of documents, but at least 20.
    """
    texts = {path: None for path, value in _iterate_leaves(documents) if isinstance(value, str)}
    return list(texts)[: max(20, MAX_READS // len(documents))]


def _iterate_leaves(documents: list[Any]) -> Iterator[tuple[str, Any]]:
    return islice((leaf for document in documents for leaf in _iterate_leaves_of(document, ())), MAX_LEAVES)


def _iterate_leaves_of(value: Any, path: tuple[str, ...], depth: int = 0) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and depth < 12:  # noqa: PLR2004 - deeper than any real reply
        for key, inner in cast("dict[str, Any]", value).items():
            if "." not in key:
                yield from _iterate_leaves_of(inner, (*path, key), depth + 1)
    elif isinstance(value, list) and depth < 12:  # noqa: PLR2004 - as above
        items = cast("list[Any]", value)
        if not items:
            yield ".".join(path), None
        for number, inner in enumerate(items[:20]):
            yield from _iterate_leaves_of(inner, (*path, str(number)), depth + 1)
        for inner in items[:20]:
            yield from _iterate_leaves_of(inner, (*path, "*"), depth + 1)
        if len(items) > 1:
            yield from _iterate_leaves_of(items[-1], (*path, "-1"), depth + 1)
    else:
        yield ".".join(path), value


def _find_wildcard_or_shortest_path(paths: list[str], pattern: re.Pattern[str]) -> str | None:
    matches = [path for path in paths if pattern.search(path)]
    return min(matches, key=lambda path: ("*" not in path, path.count("."))) if matches else None


HARMLESS = "Hello! What can you help me with?"
"""A question that any bot can answer, and that starts no action or search in the app."""


class AskPermission(StrEnum):
    """Whether an inspection may ask the page a question."""

    NEVER = "never"
    IF_NEEDED = "if-needed"
    """Ask a question only if the page does not mark the elements that contain answers."""
    ALWAYS = "always"


class PageElement(Record):
    """An element of the page. ``role`` and ``name`` are from the accessibility tree.

    ``selector`` matches the element, or is ``None`` if no selector matches it. ``how_sure`` describes in words how
    certain Lookout is that this is the right element.
    """

    role: str
    name: str
    selector: str | None
    how_sure: str
    in_shadow: bool = False

    def with_certainty(self, how_sure: str) -> Self:
        """Return a copy in which ``how_sure`` describes how certain Lookout is about the element."""
        return self.model_copy(update={"how_sure": how_sure})

    def with_selector_of_all_answers(self, selector: str | None) -> Self:
        """Return a copy that describes the elements of all answers, instead of the element of one answer.

        ``selector`` matches all answers, or is ``None`` if no selector matches them.
        """
        return self.model_copy(update={"selector": selector, "name": ""})


class Overview(Record):
    """A short description of the page: its title, headings, controls and first words."""

    title: str = ""
    headings: tuple[str, ...] = ()
    boxes: tuple[str, ...] = ()
    buttons: tuple[str, ...] = ()
    dialogs: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    text: str = ""


PIN = (
    "open the screenshot and set the missing selectors (message_box, send, answer) under "
    "[targets.NAME.probe.selectors]"
)

ADVICE = {
    NoAnswerReason.UNREACHABLE: (
        "open the address on this machine. Check its spelling, the network and the proxy, and whether the app runs"
    ),
    NoAnswerReason.NOT_READY: "wait until the app runs, then try again",
    NoAnswerReason.ANSWER_TIMEOUT: (
        "ask the page a question by hand. If the answer appears slowly, raise probe.answer_deadline_s. If it "
        f"appears fast, {PIN}"
    ),
    NoAnswerReason.INCOMPLETE: (
        "ask the page a question by hand. If the answer takes long, raise probe.answer_deadline_s"
    ),
    NoAnswerReason.APP_ERROR_SHOWN: "the app reports an error. Read the log of the app",
    NoAnswerReason.LEFT_TARGET: (
        "open the address by hand and check where it redirects. If the new address is the app, set it as the "
        "target's address or add it to probe.allowed_origins. If not, correct the redirect of the app"
    ),
    NoAnswerReason.ACCESS_DENIED: (
        "if the page asks for a login, configure [targets.NAME.login] in lookout.toml (docs/login.md), or ask the "
        'app through its API (probe.driver = "json", with LOOKOUT_API_TOKEN)'
    ),
    NoAnswerReason.RATE_LIMITED: (
        "wait until the app accepts requests again, and set probe.requests_per_minute to the app's limit"
    ),
    NoAnswerReason.LOGIN_FAILED: "run `lookout login NAME`, which signs in and reports the error",
    NoAnswerReason.NO_SUCH_PATH: "correct the path of url or probe.api.url under [targets.NAME] in lookout.toml",
    NoAnswerReason.END_NOT_FOUND: "set probe.api.done to the name or the data of the event that ends each stream",
    NoAnswerReason.ANSWER_NOT_FOUND: (
        "set probe.api.text to the path of the answer in the API's response. Put dots between the names: "
        'part.text for {"part": {"text": "…"}}'
    ),
    NoAnswerReason.PAGE_NOT_UNDERSTOOD: f"check that the chat is at this address. If the address is right, {PIN}",
    NoAnswerReason.OLD_JOB: "ask as another user, or configure staging to forget old jobs",
    NoAnswerReason.CAPTURE_UNSURE: f"compare the text that Lookout read with the page. Then {PIN}",
    NoAnswerReason.BROWSER_LOST: "try again. If the error occurs again, check the free memory of the machine",
    NoAnswerReason.CIRCUIT_OPEN: "wait until the app runs, then try again",
}
"""The advice for each reason why there is no answer."""

API_ADVICE = {
    NoAnswerReason.UNREACHABLE: (
        "ask the API from this machine. Check its address in lookout.toml, the network and the proxy, and whether "
        "the app runs"
    ),
    NoAnswerReason.ANSWER_TIMEOUT: (
        "ask the API a question by hand. If the answer is slow, raise probe.answer_deadline_s. If there is no "
        "answer, read the log of the app"
    ),
    NoAnswerReason.INCOMPLETE: (
        "ask the API a question by hand. If the answer takes long, raise probe.answer_deadline_s. If not, read the "
        "log of the app"
    ),
    NoAnswerReason.ACCESS_DENIED: (
        "set the variable that the error names, in the environment of the process that starts runs"
    ),
    NoAnswerReason.PAGE_NOT_UNDERSTOOD: (
        "compare the API's response with the settings that the error names, and correct these settings under "
        "[targets.NAME.probe] in lookout.toml"
    ),
}
"""The advice for an API. It contains only the reasons for which the advice differs from the advice for a page."""


def find_advice(reason: NoAnswerReason, *, is_api: bool) -> str:
    """Return the advice for the reason why there is no answer."""
    return (API_ADVICE.get(reason) if is_api else None) or ADVICE[reason]


QUESTIONS = (HARMLESS, "Which topics can you answer questions about?", "What can you not help me with?")
"""Three questions that any bot can answer, and that start no action or search.

Each question has a different right answer.
"""
SAME_ANSWER = "another question had the same answer"
OTHER_ANSWER = "the app sent the text on the page as the answer to another question"


class PageProblem(Record):
    """The reason why Lookout could not ask the page a question, and what the user should do."""

    reason: NoAnswerReason
    blame: Blame
    detail: str
    to_do: str


class Trial(Record):
    """One trial question, which was asked in the same way as in a run.

    - ``text`` is the answer on the page, and ``sent`` is the answer that the rule found in the network
      messages.
    - ``doubt`` is the reason why ``text`` is probably not the answer.
    - ``stripped`` contains texts of the message that are not part of the answer, such as names and sources.
    - ``by_page`` is the reason why ``text`` failed, and ``by_wire`` is the reason why ``sent`` failed. The
      reason is empty for a correct answer, and ``None`` for an answer that was not graded.
    """

    question: str
    text: str = ""
    sent: WirePayload | None = None
    doubt: str = ""
    stripped: tuple[str, ...] = ()
    problem: PageProblem | None = None
    by_page: str | None = None
    by_wire: str | None = None

    def with_doubt(self, doubt: str) -> Self:
        """Return the trial with ``doubt``, the reason why its text is probably not the answer."""
        return self.model_copy(update={"doubt": doubt})

    def with_grades(self, *, by_page: str | None, by_wire: str | None) -> Self:
        """Return the trial with the grades of ``text`` (from the page) and ``sent`` (from the network)."""
        return self.model_copy(update={"by_page": by_page, "by_wire": by_wire})


REMEMBER = ("Please remember this word for a moment: quillfern.", "Which word did I ask you to remember?")
"""Two turns of one conversation.

If the second answer contains the word of the first turn, the bot remembers that turn.
"""
REMEMBERED = "quillfern"


class NewChat(Record):
    """What happens after a click on the "new chat" button of a page.

    - ``recalled``: without a click, the bot remembers an earlier turn of the conversation.
    - ``forgotten``: after a click, the bot no longer remembers this turn. ``None`` if the button was not
      tested.
    - ``button_s`` is the number of seconds until the chat is ready after a click. ``fresh_s`` is the number of
      seconds until the chat is ready on a new page.
    """

    recalled: bool
    forgotten: bool | None = None
    button_s: float = 0.0
    fresh_s: float = 0.0


class PageInspection(Record):
    """The result of the inspection of one page. Times are in seconds since the page was opened.

    - ``open`` contains the selectors of the controls that open the chat.
    - ``frame`` is the address of the frame with the chat, if the chat is in a frame.
    - ``why_asked`` is the reason why a question was asked or not asked.
    - ``starters`` contains questions that the page suggests.
    - ``fallback_answer`` contains the app's answer to every general question, or is empty if the answers differed.
    - ``pins_note`` names the proposed selectors that did not work. These selectors are not in ``selectors``.
    - ``picture`` is the path of the screenshot.
    """

    address: str
    http_status: int | None = None
    loaded_s: float | None = None
    usable_s: float | None = None
    profile: str | None = None
    frame: str | None = None
    box: PageElement | None = None
    send: PageElement | None = None
    answer: PageElement | None = None
    asked: str | None = None
    why_asked: str = ""
    answer_text: str = ""
    answered_s: float | None = None
    wire: tuple[WireCandidate, ...] = ()
    open: tuple[str, ...] = ()
    selectors: Selectors = Selectors()
    console_errors: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    overview: Overview = Overview()
    picture: str | None = None
    problem: PageProblem | None = None
    trials: tuple[Trial, ...] = ()
    new_chat: NewChat | None = None
    starters: tuple[str, ...] = ()
    fallback_answer: str = ""
    pins_note: str = ""

    def with_problem(self, problem: PageProblem) -> Self:
        """Return the inspection with ``problem``, the reason why no question could be asked."""
        return self.model_copy(update={"problem": problem})

    def with_tested_selectors(self, selectors: Selectors, opened_by: tuple[str, ...], pins_note: str) -> Self:
        """Return the inspection with the selectors that worked in a test, and a note about the other selectors."""
        return self.model_copy(update={"selectors": selectors, "open": opened_by, "pins_note": pins_note})

    def with_fallback_answer(self, text: str) -> Self:
        """Return the inspection with ``text``, the app's answer to every general question."""
        return self.model_copy(update={"fallback_answer": text})

    def with_trials(
        self, trials: tuple[Trial, ...], wire: tuple[WireCandidate, ...], new_chat: NewChat | None
    ) -> Self:
        """Return the inspection with the results of the trial.

        These are the trial questions, the rules that found all answers, and the result of testing the "new chat"
        button.
        """
        return self.model_copy(update={"trials": trials, "wire": wire, "new_chat": new_chat})


def is_same_answer_for_all(trials: Sequence[Trial]) -> bool:
    """Return whether all questions have the same answer, such as "I do not know" or a fixed text of the page."""
    return len(trials) > 1 and all(trial.doubt == SAME_ANSWER and trial.problem is None for trial in trials)


MAX_RESPONSES = 40
MAX_TEXT_CHARACTERS = 2_000_000
"""Maximum number of characters of one response that are searched for the answer."""


class Listener:
    """Record the network messages and console errors of a page.

    ``status`` is the HTTP status of the page. ``loaded_s`` is the number of seconds until the page has loaded.
    """

    def __init__(self, page: Page) -> None:
        self._page = page
        self._responses: list[Response] = []
        self._hearing = False
        self._made = monotonic()
        self.status: int | None = None
        self.loaded_s: float | None = None
        self.console_errors: list[str] = []
        page.on("response", self._on_response)
        page.on("console", self._store_console_error)
        page.on("domcontentloaded", self._store_load_time)

    async def start_recording(self) -> None:
        """Start to record network messages."""
        self._hearing = True
        for frame in self._page.frames:
            await await_unless_frame_lost(call_in_page(frame, "hear"))

    async def collect_messages(self) -> tuple[NetworkMessage, ...]:
        """Return the recorded responses, and the messages of web sockets and event streams."""
        messages: list[NetworkMessage] = []
        for response in self._responses:
            body = await read_body(response)
            if body:
                kind = f"response to {response.request.method}"
                messages.append(
                    NetworkMessage(
                        url=replace_surrogates(response.url), kind=kind, texts=(body[:MAX_TEXT_CHARACTERS],)
                    )
                )
        for url, texts in (await read_pushed_messages(self._page)).items():
            kind = "web socket" if url.startswith("ws") else "event stream"
            messages.append(NetworkMessage(url=url, kind=kind, texts=tuple(texts)))
        return tuple(messages)

    def _on_response(self, response: Response) -> None:
        if response.frame == self._page.main_frame and response.request.is_navigation_request():
            self.status = response.status
        kinds = DATA_KINDS - {"eventsource"}  # the page itself records these, message by message
        if self._hearing and response.request.resource_type in kinds and len(self._responses) < MAX_RESPONSES:
            self._responses.append(response)

    def _store_load_time(self, _page: Page) -> None:
        if self.loaded_s is None:
            self.loaded_s = round(monotonic() - self._made, 2)

    def _store_console_error(self, message: ConsoleMessage) -> None:
        if message.type == "error" and len(self.console_errors) < 5:  # noqa: PLR2004 - enough to see the error
            self.console_errors.append(replace_surrogates(message.text)[:300])
