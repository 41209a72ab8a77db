"""What `lookout doctor` finds on a chat page, as values, and which received message carried the answer.

A `Listener` hears everything that a page receives while one question is answered. Of what it heard, the things that
carried the answer, and the paths to it, become proposals for ``[…probe.wire]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from monitors.probes.browser.inpage import call, clean
from monitors.probes.browser.network import DATA_KINDS, body_of, passed_over, pushes
from monitors.probes.settings import Selectors
from monitors.probes.wire import WireRule, documents_in, read_documents
from monitors.records.base import Blame, Probability, Record
from monitors.records.exchanges import Channel, NoAnswerReason, WirePayload

if TYPE_CHECKING:
    from playwright.async_api import ConsoleMessage, Page, Response


LIKE_ENOUGH = 0.6
"""The least share of an answer's letters; a page may leave out its sources, a payload may hold an older turn."""

PIECE = 5
"""Letters in a row by which sentences are known again, however the page cuts, joins and numbers them."""
LONG_ENOUGH = 12
"""Letters; a shorter answer ("Yes.") must stand in what was sent as a whole."""
OF_BEYOND = 0.25
"""So much of the likeness is that nothing else was sent: of two texts with the answer, the nearer one wins."""

DOCUMENTS_AT_MOST = 5000
LEAVES_AT_MOST = 20_000
READS_AT_MOST = 200_000
"""Documents times paths that are tried for one address: about a second."""
CITATIONS = re.compile(r"(^|[._])(citations?|sources?|references?|documents?)([._]|$)", re.IGNORECASE)
APP_PATH = re.compile(r"(^|\.)(model|model_name|path|route|provider)$", re.IGNORECASE)
LATENCY = re.compile(r"(^|\.)(latency|latency_ms|ms|duration_ms|elapsed_ms|took_ms)$", re.IGNORECASE)


class NetworkMessage(Record):
    """Something that came: a response's body, or what a socket or event stream pushed, a text each."""

    url: str
    kind: str
    texts: tuple[str, ...]


class WireCandidate(Record):
    """A rule that finds the answer. ``likeness``: how much of it the page showed; ``more``: what it did not.

    ``sources`` are what the rule's ``citations`` named; ``hides`` says whether the page leaves out sources.
    """

    kind: str
    rule: WireRule
    likeness: Probability
    more: str = ""
    sources: tuple[str, ...] = ()
    hides: bool = False


def candidates(received: Iterable[NetworkMessage], answer: str) -> tuple[WireCandidate, ...]:
    """The likeliest rule for each thing that carried ``answer``: first with sources that the page hides."""
    found = [best for one in received if (best := _best(one, answer)) is not None]
    return tuple(sorted(found, key=lambda candidate: (not candidate.hides, -candidate.likeness)))


def common(found: Sequence[tuple[WireCandidate, ...]]) -> tuple[WireCandidate, ...]:
    """One rule for each address and path that carried every answer, as whole as the questions show.

    An answer without a source says nothing of where sources stand: another one may.
    """
    if not found or not all(found):
        return ()
    shared: list[WireCandidate] = []
    for first in found[0]:
        like = [one for of_answer in found for one in of_answer if _is_same(one.rule, first.rule)]
        if len(like) < len(found):
            continue
        rules = [one.rule for one in like]
        known = {
            key: next((value for rule in rules if (value := getattr(rule, key)) is not None), None)
            for key in ("citations", "app_path", "latency_ms")
        }
        shared.append(
            first.model_copy(
                update={
                    "rule": first.rule.model_copy(update=known),
                    "likeness": min(one.likeness for one in like),
                    "more": next((one.more for one in like if one.more), ""),
                    "sources": tuple(dict.fromkeys(name for one in like for name in one.sources)),
                    "hides": any(one.hides for one in like),
                }
            )
        )
    return tuple(sorted(shared, key=lambda candidate: (not candidate.hides, -candidate.likeness)))


def _is_same(one: WireRule, other: WireRule) -> bool:
    return (one.url, one.text) == (other.url, other.text)


def payload_of(rule: WireRule, received: Iterable[NetworkMessage]) -> WirePayload | None:
    """What the rule finds in what came: as a run reads it; the last that matches counts."""
    for one in reversed(tuple(received)):
        if not rule.matches(one.url):
            continue
        documents = [document for text in one.texts for document in documents_in(text)]
        found = read_documents(rule, one.url, documents) if rule.text else _whole(one)
        if found is not None:
            return found
    return None


def _whole(one: NetworkMessage) -> WirePayload:
    return WirePayload(url=one.url, text="".join(one.texts))


def _best(one: NetworkMessage, answer: str) -> WireCandidate | None:
    documents = [document for text in one.texts for document in documents_in(text)][:DOCUMENTS_AT_MOST]
    if not documents:
        text = "".join(one.texts)
        return _candidate(one, "", text, answer, joins=True, documents=[])
    ways = [
        _candidate(one, path, text, answer, joins=joins, documents=documents)
        for path in paths_to_text(documents)
        for joins in (True, False)
        if (text := text_at(path, documents, joins=joins)) is not None
    ]
    return max((way for way in ways if way is not None), key=lambda way: way.likeness, default=None)


def _candidate(
    one: NetworkMessage, path: str, text: str, answer: str, *, joins: bool, documents: list[Any]
) -> WireCandidate | None:
    like = likeness(text, answer)
    if like < LIKE_ENOUGH:
        return None
    rule = rule_at(one.url, path, joins=joins, documents=documents)
    more, payload = _beyond(text, answer), read_documents(rule, "", documents)
    sources = payload.citations if payload is not None else ()
    hidden = any(bare(source) not in bare(answer) for source in sources)
    return WireCandidate(
        kind=one.kind, likeness=like, more=more, rule=rule, sources=sources, hides=bool(more) or hidden
    )


def rule_at(url: str, path: str, *, joins: bool, documents: list[Any]) -> WireRule:
    """The rule for a text at ``path``, with what else its documents name: sources, model, latency."""
    rest = list(_paths(documents))
    return WireRule(
        url=pattern_of(url),
        text=path,
        joins=joins,
        citations=_list_of(_first(rest, CITATIONS)),
        app_path=_first(rest, APP_PATH),
        latency_ms=_first(rest, LATENCY),
        graded=Channel.WIRE,
    )


def _list_of(path: str | None) -> str | None:
    """The list of sources that a path leads into: its items name themselves, whichever of their keys came first."""
    return None if path is None else re.sub(r"(?<=\.\*)\..*$", "", path)


def text_at(path: str, documents: list[Any], *, joins: bool) -> str | None:
    """What a path reads in the documents, ``None`` where it leads nowhere."""
    rule = WireRule(url=".", text=path, joins=joins)
    payload = read_documents(rule, "", documents)
    return None if payload is None else payload.text


def likeness(text: str, answer: str) -> float:
    """How much of what the page shows was sent, less a part of what else was sent. Letters and digits count.

    A page leaves sources out in the middle, and sets marks and cards of its own between the sentences: neither text
    need stand in the other, their sentences are searched for piece by piece.
    """
    sent, seen = bare(text), bare(answer)
    if not sent or not seen:
        return 0.0
    if len(seen) < LONG_ENOUGH:
        return min(len(seen) / len(sent), 1.0) if seen in sent else 0.0
    if sent == seen:
        return 1.0
    shown = _pieces(seen)
    if not any(piece in sent for piece in list(shown)[:: max(1, len(shown) // 16)]):
        return 0.0
    came = _pieces(sent)
    both = shown & came
    beyond = 1 - len(both) / len(came) if came else 1.0
    return min(len(both) / len(shown) * (1 - OF_BEYOND * beyond), 0.99)


def _pieces(letters: str) -> set[str]:
    return {letters[at : at + PIECE] for at in range(len(letters) - PIECE + 1)}


def bare(text: str) -> str:
    """Letters and digits only, lower case: what stays of a text however a page sets it."""
    return re.sub(r"[\W_]+", "", text).lower()


def pattern_of(url: str) -> str:
    """A pattern for the address: its path, with what changes from question to question left open."""
    parts = urlsplit(url)
    steps = [_step(step) for step in parts.path.split("/")]
    path = "/".join(steps)
    end = r"(\?|$)"
    return f"^wss?://[^/]+{path}{end}" if parts.scheme in ("ws", "wss") else f"{path}{end}"


def _step(step: str) -> str:
    made = re.fullmatch(r"[0-9a-fA-F-]{8,}|\d+|[A-Za-z0-9_-]{20,}", step) and re.search(r"\d", step)
    return "[^/]+" if made else re.escape(step).replace(r"\-", "-")


def _beyond(text: str, answer: str) -> str:
    """What was sent and not shown, if it is one piece at the end or in the middle."""
    lines = [piece for piece in re.findall(r"\[[^\]]{3,120}\]", text) if bare(piece) not in bare(answer)]
    return " ".join(lines[:3])


def paths_to_text(documents: list[Any]) -> list[str]:
    """Each path that leads to a text, in the order of the documents."""
    texts = {path: None for path, value in _leaves(documents) if isinstance(value, str)}
    return list(texts)[: max(20, READS_AT_MOST // len(documents))]


def _paths(documents: list[Any]) -> Iterator[str]:
    yield from dict.fromkeys(path for path, _ in _leaves(documents))


def _leaves(documents: list[Any]) -> Iterator[tuple[str, Any]]:
    return islice((leaf for document in documents for leaf in _walk(document, ())), LEAVES_AT_MOST)


def _walk(value: Any, path: tuple[str, ...], depth: int = 0) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and depth < 12:  # noqa: PLR2004 - deeper than any reply that was seen
        for key, inner in cast("dict[str, Any]", value).items():
            if "." not in key:
                yield from _walk(inner, (*path, key), depth + 1)
    elif isinstance(value, list) and depth < 12:  # noqa: PLR2004 - as above
        items = cast("list[Any]", value)
        if not items:
            yield ".".join(path), None
        for number, inner in enumerate(items[:20]):
            yield from _walk(inner, (*path, str(number)), depth + 1)
        for inner in items[:20]:
            yield from _walk(inner, (*path, "*"), depth + 1)
        if len(items) > 1:
            yield from _walk(items[-1], (*path, "-1"), depth + 1)
    else:
        yield ".".join(path), value


def _first(paths: list[str], wanted: re.Pattern[str]) -> str | None:
    hits = [path for path in paths if wanted.search(path)]
    return min(hits, key=lambda path: ("*" not in path, path.count("."))) if hits else None


HARMLESS = "Hello! What can you help me with?"
"""The question that an inspection asks: any bot can answer it, and it makes the app do or search nothing."""


class AskPermission(StrEnum):
    """Whether the page may be asked a question."""

    NEVER = "never"
    IF_NEEDED = "if-needed"
    """Only where the page itself does not show where answers stand."""
    ALWAYS = "always"


class PageElement(Record):
    """Something that was found. ``role`` and ``name`` are as the browser gives them to a screen reader.

    ``selector`` finds it again, where one does; ``how_sure`` is in words.
    """

    role: str
    name: str
    selector: str | None
    how_sure: str
    in_shadow: bool = False


class Overview(Record):
    """What a person would mention who was asked what is on the page."""

    title: str = ""
    headings: tuple[str, ...] = ()
    boxes: tuple[str, ...] = ()
    buttons: tuple[str, ...] = ()
    dialogs: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()
    text: str = ""


PIN = "see the picture and pin what was missed under [targets.NAME.probe.selectors]: message_box, send, answer"

ADVICE = {
    NoAnswerReason.UNREACHABLE: "open the address on this machine: spelling, network, proxy, or the app is down",
    NoAnswerReason.NOT_READY: "wait until the app serves, then try again",
    NoAnswerReason.ANSWER_TIMEOUT: (
        "ask the page by hand; when an answer appears there, "
        f"raise probe.answer_deadline_s if it was slow, else {PIN}"
    ),
    NoAnswerReason.INCOMPLETE: "ask the page by hand; when its answers are long, raise probe.answer_deadline_s",
    NoAnswerReason.APP_ERROR_SHOWN: "the app itself says that something went wrong: its own log knows more",
    NoAnswerReason.LEFT_TARGET: (
        "open the address by hand and see where it ends: if the app lives there, make that the target's address or "
        "name it in probe.allowed_origins; if not, the app sends its users away"
    ),
    NoAnswerReason.ACCESS_DENIED: (
        "where it asks to sign in, tell Lookout how by [targets.NAME.login] in lookout.toml (docs/login.md); or "
        'ask the app through its API (probe.driver = "json", with LOOKOUT_API_TOKEN)'
    ),
    NoAnswerReason.LOGIN_FAILED: "run `lookout login NAME`: it signs in and says what stands in the way",
    NoAnswerReason.NO_SUCH_PATH: "correct the path of url or probe.api.url under [targets.NAME] in lookout.toml",
    NoAnswerReason.END_NOT_FOUND: (
        "set probe.api.done to the name, or else the data, of the event that ends each stream"
    ),
    NoAnswerReason.ANSWER_NOT_FOUND: (
        "set probe.api.text to the path that leads to the answer in what the API sent, its steps joined by dots: "
        'part.text for {"part": {"text": "…"}}'
    ),
    NoAnswerReason.PAGE_NOT_UNDERSTOOD: f"is there a chat at this very address? If so, {PIN}",
    NoAnswerReason.OLD_JOB: "ask as another user, or let staging forget old jobs",
    NoAnswerReason.CAPTURE_UNSURE: f"compare what was read with the page; then {PIN}",
    NoAnswerReason.BROWSER_LOST: "try again; when it stays so, the machine may be short of memory",
    NoAnswerReason.CIRCUIT_OPEN: "wait until the app serves, then try again",
}
"""What a person can do about each reason why nothing gradable came back."""

API_ADVICE = {
    NoAnswerReason.UNREACHABLE: (
        "ask the API from this machine: its address in lookout.toml, network, proxy, or the app is down"
    ),
    NoAnswerReason.ANSWER_TIMEOUT: (
        "ask the API by hand; when an answer comes late, raise probe.answer_deadline_s, else see the app's own log"
    ),
    NoAnswerReason.INCOMPLETE: (
        "ask the API by hand; when its answers are long, raise probe.answer_deadline_s, else see the app's own log"
    ),
    NoAnswerReason.ACCESS_DENIED: "set what is named in the environment of whatever starts runs",
    NoAnswerReason.PAGE_NOT_UNDERSTOOD: (
        "see what the API sends and correct what is named under [targets.NAME.probe] in lookout.toml"
    ),
}
"""The same for an API, where it is something else: an API has no page, no picture and no message box."""


def advice_on(reason: NoAnswerReason, *, is_api: bool) -> str:
    """What a person can do about one reason."""
    return (API_ADVICE.get(reason) if is_api else None) or ADVICE[reason]


QUESTIONS = (HARMLESS, "Which topics can you answer questions about?", "What can you not help me with?")
"""Any bot can answer them, they make the app do or search nothing, and no good answer to one fits another."""
SAME_ANSWER = "another question had the very same answer"


class PageProblem(Record):
    """Why the page could not be asked, and what to do."""

    reason: NoAnswerReason
    blame: Blame
    detail: str
    to_do: str


class Trial(Record):
    """One question as a run asks it. ``sent`` is what the proposed or configured rule read beside its text.

    ``doubt`` says why the text is hardly an answer. ``by_page`` and ``by_wire`` are a suite's grades of both texts:
    empty where it is right, ``None`` where nobody graded it.
    """

    question: str
    text: str = ""
    sent: WirePayload | None = None
    doubt: str = ""
    trouble: PageProblem | None = None
    by_page: str | None = None
    by_wire: str | None = None


REMEMBER = ("Please remember this word for a moment: quillfern.", "Which word did I ask you to remember?")
"""Asked in one conversation; an answer to the second that has the word shows that the bot recalls earlier turns."""
REMEMBERED = "quillfern"


class NewChat(Record):
    """What the page's "new chat" button does. Seconds until the chat could be asked: by it, and on a fresh page.

    ``recalled``: the bot knew a word of an earlier turn. ``forgotten``: it did not after the button; ``None`` where
    it was not asked again.
    """

    recalled: bool
    forgotten: bool | None = None
    button_s: float = 0.0
    fresh_s: float = 0.0


class PageInspection(Record):
    """One inspection of one page. Times in seconds from opening it. ``picture`` is a path, or none could be taken.

    ``open`` are selectors of what was pressed before the chat was there. ``frame`` is the address of the frame that
    the chat is in, when it is not the page itself. ``why_asked`` says why a question was asked, or why none was.
    ``new_chat`` is there where the page has such a button and it was tried.
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
    trouble: PageProblem | None = None
    trials: tuple[Trial, ...] = ()
    new_chat: NewChat | None = None

    @property
    def small_talk_falls_back(self) -> bool:
        """Whether questions for any bot had one same answer and no other fault, as of a bot without small talk."""
        asked = tuple(trial.question for trial in self.trials)
        same = all(trial.doubt == SAME_ANSWER and trial.trouble is None for trial in self.trials)
        return asked == QUESTIONS and same


RESPONSES_AT_MOST = 40
TEXT_AT_MOST = 2_000_000
"""Characters of one response that are searched."""


class Listener:
    """Belongs to its page. ``status`` and ``loaded_s`` are of the page's own document, seconds from the making."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._responses: list[Response] = []
        self._hearing = False
        self._made = monotonic()
        self.status: int | None = None
        self.loaded_s: float | None = None
        self.console_errors: list[str] = []
        page.on("response", self._responded)
        page.on("console", self._heard)
        page.on("domcontentloaded", self._loaded)

    async def begin(self) -> None:
        """Stores what comes from now on."""
        self._hearing = True
        for frame in self._page.frames:
            await passed_over(call(frame, "hear"))

    async def received(self) -> tuple[NetworkMessage, ...]:
        """What came since: bodies of responses, and what sockets and event streams pushed."""
        found: list[NetworkMessage] = []
        for response in self._responses:
            body = await body_of(response)
            if body:
                kind = f"response to {response.request.method}"
                found.append(NetworkMessage(url=clean(response.url), kind=kind, texts=(body[:TEXT_AT_MOST],)))
        for url, texts in (await pushes(self._page)).items():
            kind = "web socket" if url.startswith("ws") else "event stream"
            found.append(NetworkMessage(url=url, kind=kind, texts=tuple(texts)))
        return tuple(found)

    def _responded(self, response: Response) -> None:
        if response.frame == self._page.main_frame and response.request.is_navigation_request():
            self.status = response.status
        kinds = DATA_KINDS - {"eventsource"}  # those are heard in the page, message by message
        if self._hearing and response.request.resource_type in kinds and len(self._responses) < RESPONSES_AT_MOST:
            self._responses.append(response)

    def _loaded(self, _page: Page) -> None:
        if self.loaded_s is None:
            self.loaded_s = round(monotonic() - self._made, 2)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type == "error" and len(self.console_errors) < 5:  # noqa: PLR2004 - enough to see what is wrong
            self.console_errors.append(clean(message.text)[:300])
