"""A question with its answer and evidence, or the reason why there was no answer."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field

from monitors.records.base import Blame, Identifier, Milliseconds, Record, UtcTime


class Origin(StrEnum):
    """The origin of a question: our probe, a real user, or a real user whose answer the app itself blocked."""

    PROBE = "probe"
    TRAFFIC = "traffic"
    LOG = "log"


class Channel(StrEnum):
    """Which text: what the user saw, or what the app sent over the wire."""

    VISIBLE = "visible"
    WIRE = "wire"


TextPlace: TypeAlias = Channel | Literal["beside"]
"""A text of an exchange; ``beside`` are the parts of the answer's message that are not the answer."""


class BuildInfo(Record):
    """What an app says about its build: the model and its fingerprint, and other versions by name."""

    model: str | None = None
    fingerprint: str | None = None
    versions: Mapping[str, str] = {}


class PageInfo(Record):
    """A page's title, its framework with the version, its scripts and styles.

    ``shell`` are the first 16 hexadecimal digits of its HTML's SHA-256, without the parts that differ between
    loads. ``versions`` are the server's versions in its headers.
    """

    title: str = ""
    framework: str | None = None
    bundles: tuple[str, ...] = ()
    shell: str
    versions: Mapping[str, str] = {}


class WirePayload(Record):
    """The answer as the app sent it. ``app_path`` names the model or path that answered, if the app says so.

    ``document_versions`` are the hashes or versions of its sources, by their names.
    """

    url: str
    text: str
    citations: tuple[str, ...] = ()
    app_path: str | None = None
    app_latency_ms: Milliseconds | None = None
    build: BuildInfo | None = None
    document_versions: Mapping[str, str] = {}

    def add_build(self, build: BuildInfo | None) -> Self:
        """Return the answer with the build that made it."""
        return self.model_copy(update={"build": build})

    def with_text_and_citations(self, text: str, citations: tuple[str, ...]) -> Self:
        """Return the answer with other words for it and its sources, such as ones that can be stored."""
        return self.model_copy(update={"text": text, "citations": citations})


class Timings(Record):
    """The application's times, in milliseconds from sending; ``first_token_ms`` is absent if it cannot be measured.

    For an answer that was read off a page also the monitor's own times: ``opening_ms`` until the message box was
    found, ``settling_ms`` from the last change until the answer counted as complete.
    """

    first_token_ms: Milliseconds | None = None
    total_ms: Milliseconds
    opening_ms: Milliseconds | None = None
    settling_ms: Milliseconds | None = None


class SettleSample(Record):
    """One observation of the page while it answered, used to decide whether the answer is complete."""

    at_ms: Milliseconds
    characters: Annotated[int, Field(ge=0)]
    busy: bool


class StepKind(StrEnum):
    """The kind of a step, if it is known."""

    AGENT = "agent"
    """Work was handed to an agent: a hop."""
    TOOL = "tool"
    """A tool was called."""


class Step(Record):
    """One step of an agent: a tool call or a hop. Unknown values are absent, never 0.

    ``detail`` are its arguments, or the event's text; ``cut`` says that it is only the beginning, which cannot
    distinguish two calls. ``at_ms`` is when the step began or was seen, from the start of the job.
    """

    name: str
    detail: str = ""
    cut: bool = False
    kind: StepKind | None = None
    at_ms: Milliseconds | None = None
    duration_ms: Milliseconds | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None


class AgentQuestion(Record):
    """A question for which an agent stopped its work, and the answer that it got.

    ``question`` is empty if the app says only that it waits. ``scripted`` is true for an answer from the suite.
    ``at_ms`` is when the question was seen, from the start of the job.
    """

    question: str
    answer: str
    scripted: bool = False
    at_ms: Milliseconds | None = None


class PartKind(StrEnum):
    """What a page marks a part of a message as that is not the answer."""

    THINKING = "thinking"
    TOOL = "tool"
    SOURCE = "source"
    STATUS = "status"
    NAME = "name"


class AnswerPart(Record):
    """A part of the answer's message that is not the answer."""

    kind: PartKind
    text: str


class Evidence(Record):
    """Evidence stored with an exchange. Paths are relative to the run's folder; screenshots never leave it.

    ``steps`` are an agent's steps, in order; ``steps_cut`` says that more may follow. ``hops`` is how often work
    was handed to an agent, by the app's own count or its trace. ``questions`` are those for which it stopped.
    ``aside`` are texts at the edges of the answer's message (names, times, marks) that are not part of the answer.
    ``parts`` are its sources, tool cards, reasoning, status and names; citations and disclosures count there too.
    ``refused`` are the page's connections that the address guard blocked. ``page`` describes the page.
    """

    screenshot: str | None = None
    trace: str | None = None
    console_errors: tuple[str, ...] = ()
    settle_samples: tuple[SettleSample, ...] = ()
    steps: tuple[Step, ...] = ()
    steps_cut: bool = False
    hops: Annotated[int, Field(ge=0)] | None = None
    questions: tuple[AgentQuestion, ...] = ()
    aside: tuple[str, ...] = ()
    parts: tuple[AnswerPart, ...] = ()
    refused: tuple[str, ...] = ()
    page: PageInfo | None = None


class Attempt(Record):
    """A failed attempt, recorded so that a retry never hides a fault."""

    started_at: UtcTime
    blame: Blame
    reason: str
    detail: str


class Exchange(Record):
    """A complete answer with its evidence. A cut-off answer is never an exchange, see `NoAnswer`.

    ``repeat`` counts from 0 if a case is asked several times. ``concurrency`` is how many questions were running
    when it was asked. ``earlier_answers`` are the replies to all turns but the last.
    """

    outcome: Literal["exchange"] = "exchange"
    run_id: Identifier
    case_id: Identifier
    repeat: Annotated[int, Field(ge=0)] = 0
    origin: Origin = Origin.PROBE
    turns: tuple[str, ...]
    earlier_answers: tuple[str, ...] = ()
    visible_text: str
    wire: WirePayload | None = None
    graded_channel: Channel = Channel.VISIBLE
    asked_at: UtcTime
    timings: Timings
    app_path: str | None = None
    app_version: str | None = None
    evidence: Evidence = Evidence()
    failed_attempts: tuple[Attempt, ...] = ()
    concurrency: Annotated[int, Field(ge=1)] = 1

    @property
    def listed_citations(self) -> tuple[str, ...]:
        """The sources that the app listed on the wire in addition to its text."""
        return self.wire.citations if self.wire is not None else ()

    @property
    def beside_text(self) -> str:
        """The parts of the answer's message that are not the answer, as one text."""
        return "\n".join(part.text for part in self.evidence.parts)

    @property
    def graded_text(self) -> str:
        """The text that graders read."""
        if self.graded_channel is Channel.WIRE and self.wire is not None:
            return self.wire.text
        return self.visible_text


class NoAnswerReason(StrEnum):
    """Why there is no gradable answer."""

    UNREACHABLE = "unreachable"
    NOT_READY = "not_ready"
    ANSWER_TIMEOUT = "answer_timeout"
    INCOMPLETE = "incomplete"
    APP_ERROR_SHOWN = "app_error_shown"
    LEFT_TARGET = "left_target"
    """The page went to an address that is not the app's."""
    ACCESS_DENIED = "access_denied"
    RATE_LIMITED = "rate_limited"
    """The application limits requests, for longer than the run lasts."""
    LOGIN_FAILED = "login_failed"
    """The target has a login, and Lookout is not signed in: the session has ended, or the login failed."""
    NO_SUCH_PATH = "no_such_path"
    """An API answers, but does not accept questions at the configured path: HTTP 404 or 405."""
    END_NOT_FOUND = "end_not_found"
    """An API's streams end without the configured end event."""
    ANSWER_NOT_FOUND = "answer_not_found"
    """An API answered, but there is no text at the configured path."""
    PAGE_NOT_UNDERSTOOD = "page_not_understood"
    CAPTURE_UNSURE = "capture_unsure"
    """The text that was read may not be the answer, or not all of it."""
    BROWSER_LOST = "browser_lost"
    OLD_JOB = "old_job"
    """The start of a job was answered with an older job, whose report may come from another deploy."""
    CIRCUIT_OPEN = "circuit_open"
    """Not asked: the app was already known to be down."""


NOT_READ: Final = frozenset({NoAnswerReason.END_NOT_FOUND, NoAnswerReason.ANSWER_NOT_FOUND})
"""There was an answer, but Lookout cannot read it with its configuration."""
NOT_LET_IN: Final = frozenset(
    {
        NoAnswerReason.NO_SUCH_PATH,
        NoAnswerReason.ACCESS_DENIED,
        NoAnswerReason.RATE_LIMITED,
        NoAnswerReason.LOGIN_FAILED,
    }
)
"""The application answered, but did not accept a question."""


class NoAnswer(Record):
    """There was no gradable answer: a reason and a blame, never "wrong"."""

    outcome: Literal["no_answer"] = "no_answer"
    run_id: Identifier
    case_id: Identifier
    repeat: Annotated[int, Field(ge=0)] = 0
    origin: Origin = Origin.PROBE
    turns: tuple[str, ...]
    reason: NoAnswerReason
    blame: Blame
    detail: str
    partial_text: str = ""
    asked_at: UtcTime
    evidence: Evidence = Evidence()
    failed_attempts: tuple[Attempt, ...] = ()
    concurrency: Annotated[int, Field(ge=1)] = 1


ProbeResult = Annotated[Exchange | NoAnswer, Field(discriminator="outcome")]
