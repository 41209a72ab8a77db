"""The results of `lookout doctor` on a chat page, and the search for the message that carried the answer.

A `Listener` records each message that a page receives while one question is answered. The messages that carried
the answer, and the paths to it, become proposals for ``[…probe.wire]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from monitors.probes.browser.inpage import call_in_page, replace_surrogates
from monitors.probes.browser.network import DATA_KINDS, ignore_lost_frame, read_body, read_pushed_messages
from monitors.probes.settings import Selectors
from monitors.probes.wire import WireRule, parse_documents, read_documents
from monitors.records.base import Blame, Probability, Record
from monitors.records.exchanges import Channel, NoAnswerReason, WirePayload

if TYPE_CHECKING:
    from playwright.async_api import ConsoleMessage, Page, Response


MIN_LIKENESS = 0.6
"""The minimal share of an answer's letters. A page may omit sources, and a payload may hold an older turn."""

PIECE_LETTERS = 5
"""Letters in a row that identify a sentence, even if the page splits, joins and numbers text."""
MIN_PIECEWISE_LETTERS = 12
"""Minimal letters for a match by pieces. A shorter answer ("Yes.") must be in the message as a whole."""
UNSHOWN_WEIGHT = 0.25
"""The weight of extra text in the likeness. Of two texts with the answer, the one with less extra text wins."""

MAX_DOCUMENTS = 5000
MAX_LEAVES = 20_000
MAX_READS = 200_000
"""Limit of documents × paths per address: takes about a second."""
CITATIONS = re.compile(r"(^|[._])(citations?|sources?|references?|documents?)([._]|$)", re.IGNORECASE)
APP_PATH = re.compile(r"(^|\.)(model|model_name|path|route|provider)$", re.IGNORECASE)
LATENCY = re.compile(r"(^|\.)(latency|latency_ms|ms|duration_ms|elapsed_ms|took_ms)$", re.IGNORECASE)


class NetworkMessage(Record):
    """A received message: a response's body, or the texts that a socket or event stream pushed."""

    url: str
    kind: str
    texts: tuple[str, ...]


class WireCandidate(Record):
    """A rule that finds the answer. ``likeness``: the share that the page showed. ``more``: the text not shown.

    ``sources`` are the texts that the rule's ``citations`` read. ``hides``: the page omits sources.
    """

    kind: str
    rule: WireRule
    likeness: Probability
    more: str = ""
    sources: tuple[str, ...] = ()
    hides: bool = False


def find_wire_candidates(received: Iterable[NetworkMessage], answer: str) -> tuple[WireCandidate, ...]:
    """Return the likeliest rule for each message that contains ``answer``. Rules with hidden sources come first."""
    wire_candidates = [best for message in received if (best := _find_best_candidate(message, answer)) is not None]
    return tuple(sorted(wire_candidates, key=lambda candidate: (not candidate.hides, -candidate.likeness)))


def find_common_candidates(by_answer: Sequence[tuple[WireCandidate, ...]]) -> tuple[WireCandidate, ...]:
    """Return one rule for each address and path that carried every answer, as complete as the questions show.

    An answer without sources does not show their path, but another answer may.
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
        rules = [candidate.rule for candidate in alike]
        common_paths = {
            key: next((value for rule in rules if (value := getattr(rule, key)) is not None), None)
            for key in ("citations", "app_path", "latency_ms")
        }
        shared.append(
            first.model_copy(
                update={
                    "rule": first.rule.model_copy(update=common_paths),
                    "likeness": min(candidate.likeness for candidate in alike),
                    "more": next((candidate.more for candidate in alike if candidate.more), ""),
                    "sources": tuple(dict.fromkeys(name for candidate in alike for name in candidate.sources)),
                    "hides": any(candidate.hides for candidate in alike),
                }
            )
        )
    return tuple(sorted(shared, key=lambda candidate: (not candidate.hides, -candidate.likeness)))


def read_rule_payload(rule: WireRule, received: Iterable[NetworkMessage]) -> WirePayload | None:
    """Read the answer by the rule like a run; the last match counts."""
    for message in reversed(tuple(received)):
        if not rule.matches(message.url):
            continue
        documents = [document for text in message.texts for document in parse_documents(text)]
        payload = read_documents(rule, message.url, documents) if rule.text else _whole(message)
        if payload is not None:
            return payload
    return None


def _whole(message: NetworkMessage) -> WirePayload:
    return WirePayload(url=message.url, text="".join(message.texts))


def _find_best_candidate(message: NetworkMessage, answer: str) -> WireCandidate | None:
    documents = [document for text in message.texts for document in parse_documents(text)][:MAX_DOCUMENTS]
    if not documents:
        text = "".join(message.texts)
        return _build_candidate(message, "", text, answer, joins=True, documents=[])
    options = [
        _build_candidate(message, path, text, answer, joins=joins, documents=documents)
        for path in list_text_paths(documents)
        for joins in (True, False)
        if (text := read_text_at(path, documents, joins=joins)) is not None
    ]
    return max((way for way in options if way is not None), key=lambda way: way.likeness, default=None)


def _build_candidate(
    message: NetworkMessage, path: str, text: str, answer: str, *, joins: bool, documents: list[Any]
) -> WireCandidate | None:
    like = compute_likeness(text, answer)
    if like < MIN_LIKENESS:
        return None
    rule = build_rule(message.url, path, joins=joins, documents=documents)
    more, payload = _find_unshown_text(text, answer), read_documents(rule, "", documents)
    sources = payload.citations if payload is not None else ()
    hidden = any(keep_letters_and_digits(source) not in keep_letters_and_digits(answer) for source in sources)
    return WireCandidate(
        kind=message.kind, likeness=like, more=more, rule=rule, sources=sources, hides=bool(more) or hidden
    )


def build_rule(url: str, path: str, *, joins: bool, documents: list[Any]) -> WireRule:
    """Build the rule for a text at ``path``, with the paths of sources, model and latency."""
    rest = list(_iterate_paths(documents))
    return WireRule(
        url=build_url_pattern(url),
        text=path,
        joins=joins,
        citations=_strip_item_keys(_find_first_path(rest, CITATIONS)),
        app_path=_find_first_path(rest, APP_PATH),
        latency_ms=_find_first_path(rest, LATENCY),
        graded=Channel.WIRE,
    )


def _strip_item_keys(path: str | None) -> str | None:
    """Return the path of the list of sources, without the keys of its items."""
    return None if path is None else re.sub(r"(?<=\.\*)\..*$", "", path)


def read_text_at(path: str, documents: list[Any], *, joins: bool) -> str | None:
    """Read the text at a path in the documents; ``None`` if the path has none."""
    rule = WireRule(url=".", text=path, joins=joins)
    payload = read_documents(rule, "", documents)
    return None if payload is None else payload.text


def compute_likeness(text: str, answer: str) -> float:
    """Return the share of the shown answer that was sent, less a part for extra text. Letters and digits count.

    A page may omit sources in the middle and add its own marks and cards, so the two texts may differ in both
    directions. The sentences are therefore searched for piece by piece.
    """
    sent, shown_letters = keep_letters_and_digits(text), keep_letters_and_digits(answer)
    if not sent or not shown_letters:
        return 0.0
    if len(shown_letters) < MIN_PIECEWISE_LETTERS:
        return min(len(shown_letters) / len(sent), 1.0) if shown_letters in sent else 0.0
    if sent == shown_letters:
        return 1.0
    shown_pieces = _split_pieces(shown_letters)
    if not any(piece in sent for piece in list(shown_pieces)[:: max(1, len(shown_pieces) // 16)]):
        return 0.0
    sent_pieces = _split_pieces(sent)
    both = shown_pieces & sent_pieces
    unshown_share = 1 - len(both) / len(sent_pieces) if sent_pieces else 1.0
    return min(len(both) / len(shown_pieces) * (1 - UNSHOWN_WEIGHT * unshown_share), 0.99)


def _split_pieces(letters: str) -> set[str]:
    return {letters[at : at + PIECE_LETTERS] for at in range(len(letters) - PIECE_LETTERS + 1)}


def keep_letters_and_digits(text: str) -> str:
    """Return only the letters and digits in lower case, because they do not depend on a page's formatting."""
    return re.sub(r"[\W_]+", "", text).lower()


def build_url_pattern(url: str) -> str:
    """Return a pattern for the path of the address. Parts that change between questions match any text."""
    parts = urlsplit(url)
    steps = [_generalize_step(step) for step in parts.path.split("/")]
    path = "/".join(steps)
    end = r"(\?|$)"
    return f"^wss?://[^/]+{path}{end}" if parts.scheme in ("ws", "wss") else f"{path}{end}"


def _generalize_step(step: str) -> str:
    is_variable = re.fullmatch(r"[0-9a-fA-F-]{8,}|\d+|[A-Za-z0-9_-]{20,}", step) and re.search(r"\d", step)
    return "[^/]+" if is_variable else re.escape(step).replace(r"\-", "-")


def _find_unshown_text(text: str, answer: str) -> str:
    """Return text that was sent but not shown, if the text is one piece at the end or in the middle."""
    lines = [
        piece
        for piece in re.findall(r"\[[^\]]{3,120}\]", text)
        if keep_letters_and_digits(piece) not in keep_letters_and_digits(answer)
    ]
    return " ".join(lines[:3])


def list_text_paths(documents: list[Any]) -> list[str]:
    """List each path that leads to a text, in the order of the documents."""
    texts = {path: None for path, value in _iterate_leaves(documents) if isinstance(value, str)}
    return list(texts)[: max(20, MAX_READS // len(documents))]


def _iterate_paths(documents: list[Any]) -> Iterator[str]:
    yield from dict.fromkeys(path for path, _ in _iterate_leaves(documents))


def _iterate_leaves(documents: list[Any]) -> Iterator[tuple[str, Any]]:
    return islice((leaf for document in documents for leaf in _walk_value(document, ())), MAX_LEAVES)


def _walk_value(value: Any, path: tuple[str, ...], depth: int = 0) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and depth < 12:  # noqa: PLR2004 - deeper than any real reply
        for key, inner in cast("dict[str, Any]", value).items():
            if "." not in key:
                yield from _walk_value(inner, (*path, key), depth + 1)
    elif isinstance(value, list) and depth < 12:  # noqa: PLR2004 - as above
        items = cast("list[Any]", value)
        if not items:
            yield ".".join(path), None
        for number, inner in enumerate(items[:20]):
            yield from _walk_value(inner, (*path, str(number)), depth + 1)
        for inner in items[:20]:
            yield from _walk_value(inner, (*path, "*"), depth + 1)
        if len(items) > 1:
            yield from _walk_value(items[-1], (*path, "-1"), depth + 1)
    else:
        yield ".".join(path), value


def _find_first_path(paths: list[str], pattern: re.Pattern[str]) -> str | None:
    matches = [path for path in paths if pattern.search(path)]
    return min(matches, key=lambda path: ("*" not in path, path.count("."))) if matches else None


HARMLESS = "Hello! What can you help me with?"
"""The question of an inspection. Any bot can answer it, and it triggers no action or search in the app."""


class AskPermission(StrEnum):
    """Whether an inspection may ask the page a question."""

    NEVER = "never"
    IF_NEEDED = "if-needed"
    """Only if the page itself does not mark the place of answers."""
    ALWAYS = "always"


class PageElement(Record):
    """An element of the page. ``role`` and ``name`` are from the accessibility tree.

    ``selector`` finds the element again, if any selector does. ``how_sure`` is in words.
    """

    role: str
    name: str
    selector: str | None
    how_sure: str
    in_shadow: bool = False


class Overview(Record):
    """A short description of the page for people."""

    title: str = ""
    headings: tuple[str, ...] = ()
    boxes: tuple[str, ...] = ()
    buttons: tuple[str, ...] = ()
    dialogs: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    text: str = ""


PIN = (
    "open the picture and write the missed selectors under [targets.NAME.probe.selectors]: message_box, send, "
    "answer"
)

ADVICE = {
    NoAnswerReason.UNREACHABLE: (
        "open the address on this machine; check its spelling, the network and the proxy, and whether the app is up"
    ),
    NoAnswerReason.NOT_READY: "wait until the app is up, then try again",
    NoAnswerReason.ANSWER_TIMEOUT: (
        "ask the page by hand. If the answer appears but is slow, raise probe.answer_deadline_s; if it appears "
        f"fast, {PIN}"
    ),
    NoAnswerReason.INCOMPLETE: "ask the page by hand; if its answers are long, raise probe.answer_deadline_s",
    NoAnswerReason.APP_ERROR_SHOWN: "the app itself reports an error; read its log",
    NoAnswerReason.LEFT_TARGET: (
        "open the address by hand and check where it redirects. If that is the app, set it as the target's "
        "address or add it to probe.allowed_origins. If not, the app sends its users away"
    ),
    NoAnswerReason.ACCESS_DENIED: (
        "if the page asks for a login, configure [targets.NAME.login] in lookout.toml (docs/login.md), or ask the "
        'app through its API (probe.driver = "json", with LOOKOUT_API_TOKEN)'
    ),
    NoAnswerReason.RATE_LIMITED: (
        "wait until the app accepts requests again, and set probe.requests_per_minute to its limit"
    ),
    NoAnswerReason.LOGIN_FAILED: "run `lookout login NAME`: it signs in and reports the error",
    NoAnswerReason.NO_SUCH_PATH: "correct the path of url or probe.api.url under [targets.NAME] in lookout.toml",
    NoAnswerReason.END_NOT_FOUND: (
        "set probe.api.done to the name, or the data, of the event that ends each stream"
    ),
    NoAnswerReason.ANSWER_NOT_FOUND: (
        "set probe.api.text to the path of the answer in the API's response, with dots between the steps: "
        'part.text for {"part": {"text": "…"}}'
    ),
    NoAnswerReason.PAGE_NOT_UNDERSTOOD: f"check that the chat is at this address. If it is, {PIN}",
    NoAnswerReason.OLD_JOB: "ask as another user, or configure staging to forget old jobs",
    NoAnswerReason.CAPTURE_UNSURE: f"compare the text that Lookout read with the page; then {PIN}",
    NoAnswerReason.BROWSER_LOST: "try again; if the error stays, the machine may not have enough memory",
    NoAnswerReason.CIRCUIT_OPEN: "wait until the app is up, then try again",
}
"""What to do about each reason for a missing answer."""

API_ADVICE = {
    NoAnswerReason.UNREACHABLE: (
        "ask the API from this machine; check its address in lookout.toml, the network and the proxy, and whether "
        "the app is up"
    ),
    NoAnswerReason.ANSWER_TIMEOUT: (
        "ask the API by hand. If the answer is slow, raise probe.answer_deadline_s; if there is no answer, read "
        "the app's log"
    ),
    NoAnswerReason.INCOMPLETE: (
        "ask the API by hand. If its answers are long, raise probe.answer_deadline_s; if not, read the app's log"
    ),
    NoAnswerReason.ACCESS_DENIED: "set the named variable in the environment of the process that starts runs",
    NoAnswerReason.PAGE_NOT_UNDERSTOOD: (
        "compare the API's response with the named settings under [targets.NAME.probe] in lookout.toml, and "
        "correct them"
    ),
}
"""Different advice for an API, which has no page, no picture and no message box."""


def get_advice(reason: NoAnswerReason, *, is_api: bool) -> str:
    """Return what to do about one reason."""
    return (API_ADVICE.get(reason) if is_api else None) or ADVICE[reason]


QUESTIONS = (HARMLESS, "Which topics can you answer questions about?", "What can you not help me with?")
"""Questions that any bot can answer. They trigger no action or search, and a good answer to one fits no other."""
SAME_ANSWER = "another question had the very same answer"
OTHER_ANSWER = "the text on the page is what was sent for another question"


class PageProblem(Record):
    """Why the page could not be asked, and what to do."""

    reason: NoAnswerReason
    blame: Blame
    detail: str
    to_do: str


class Trial(Record):
    """One question, asked like a run. ``sent`` is the text that the proposed or configured rule read.

    ``doubt`` is the reason why the text is probably not the answer. ``stripped`` are the texts of its message
    outside the answer: names, marks, tool cards, sources. ``by_page`` and ``by_wire`` are a suite's grades of the
    shown and the sent text: empty if right, ``None`` if not graded.
    """

    question: str
    text: str = ""
    sent: WirePayload | None = None
    doubt: str = ""
    stripped: tuple[str, ...] = ()
    problem: PageProblem | None = None
    by_page: str | None = None
    by_wire: str | None = None


REMEMBER = ("Please remember this word for a moment: quillfern.", "Which word did I ask you to remember?")
"""Asked in one conversation. If the second answer has the word, the bot recalls earlier turns."""
REMEMBERED = "quillfern"


class NewChat(Record):
    """The result of the "new chat" button: seconds until the chat is ready, by the button and on a new page.

    ``recalled``: the bot repeated a word of an earlier turn. ``forgotten``: it did not repeat the word after the
    button; ``None`` if it was not asked again.
    """

    recalled: bool
    forgotten: bool | None = None
    button_s: float = 0.0
    fresh_s: float = 0.0


class PageInspection(Record):
    """One inspection of one page. Times in seconds from opening it. ``picture`` is the screenshot's path, if any.

    ``open`` are selectors of the controls that were pressed to open the chat. ``frame`` is the address of the
    chat's frame, if it is not the page itself. ``why_asked`` is the reason why a question was asked or not asked.
    ``new_chat`` is set if the page has such a button and it was tried. ``starters`` are questions that the page
    itself suggests. ``fallback_answer`` is the one answer that all general questions got. ``pins_note`` names the
    proposed selectors that failed a trial; they are not in ``selectors``.
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


def is_one_answer(trials: Sequence[Trial]) -> bool:
    """Whether all questions got one answer: the fallback of a bot without small talk, or a text of the page."""
    return len(trials) > 1 and all(trial.doubt == SAME_ANSWER and trial.problem is None for trial in trials)


MAX_RESPONSES = 40
MAX_TEXT_CHARACTERS = 2_000_000
"""Limit of the characters of one response that are searched."""


class Listener:
    """Record a page's messages. ``status`` and ``loaded_s`` (seconds from creation) are of the page's document."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._responses: list[Response] = []
        self._hearing = False
        self._made = monotonic()
        self.status: int | None = None
        self.loaded_s: float | None = None
        self.console_errors: list[str] = []
        page.on("response", self._on_response)
        page.on("console", self._on_console)
        page.on("domcontentloaded", self._on_loaded)

    async def begin(self) -> None:
        """Start to record."""
        self._hearing = True
        for frame in self._page.frames:
            await ignore_lost_frame(call_in_page(frame, "hear"))

    async def collect_messages(self) -> tuple[NetworkMessage, ...]:
        """Return the recorded bodies of responses and messages of sockets and event streams."""
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

    def _on_loaded(self, _page: Page) -> None:
        if self.loaded_s is None:
            self.loaded_s = round(monotonic() - self._made, 2)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and len(self.console_errors) < 5:  # noqa: PLR2004 - enough to see the error
            self.console_errors.append(replace_surrogates(message.text)[:300])
