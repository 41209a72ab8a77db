"""Records of a question with its answer and evidence, or with the reason why there is no answer."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field

from monitors.records.base import Blame, Identifier, Milliseconds, Record, UtcTime


class Origin(StrEnum):
    """Where a question came from: a probe of Lookout, a real user, or the application's log of blocked replies."""

    PROBE = "probe"
    TRAFFIC = "traffic"
    LOG = "log"


class Channel(StrEnum):
    """One of the two texts of an answer.

    ``VISIBLE`` is the text that the user saw, and ``WIRE`` is the text that the application sent.
    """

    VISIBLE = "visible"
    WIRE = "wire"


TextPlace: TypeAlias = Channel | Literal["beside"]
"""The part of a message that contains a text: a `Channel` of the answer, or ``beside``.

``beside`` means the parts of the message outside the answer, such as sources.
"""


class BuildInfo(Record):
    """The build information that an application reports."""

    model: str | None = None
    fingerprint: str | None = None
    versions: Mapping[str, str] = {}


class PageInfo(Record):
    """The properties that identify a page: title, framework, scripts and styles.

    ``shell`` is the beginning of a hash of the HTML, without the parts that differ between loads.
    """

    title: str = ""
    framework: str | None = None
    bundles: tuple[str, ...] = ()
    shell: str
    versions: Mapping[str, str] = {}

    def with_versions(self, versions: Mapping[str, str]) -> Self:
        """Return a copy that also contains ``versions``, which come from the page's response headers."""
        return self.model_copy(update={"versions": versions})


class WirePayload(Record):
    """The answer as the application sent it.

    ``app_path`` is the name of the model or path that answered. ``document_versions`` maps source names to
    versions.
    """

    url: str
    text: str
    citations: tuple[str, ...] = ()
    app_path: str | None = None
    app_latency_ms: Milliseconds | None = None
    build: BuildInfo | None = None
    document_versions: Mapping[str, str] = {}

    def with_build(self, build: BuildInfo | None, document_versions: Mapping[str, str] | None = None) -> Self:
        """Return a copy of the answer that states the application's build.

        If ``document_versions`` is not ``None``, these versions replace the versions of the answer's sources.
        """
        versions = self.document_versions if document_versions is None else document_versions
        return self.model_copy(update={"build": build, "document_versions": versions})

    def with_text_and_citations(self, text: str, citations: tuple[str, ...]) -> Self:
        """Return a copy of the answer with another text and other sources, for example redacted ones."""
        return self.model_copy(update={"text": text, "citations": citations})


class Timings(Record):
    """The times of an answer in milliseconds, measured from the moment when the question was sent.

    ``opening_ms`` and ``settling_ms`` are the times that Lookout itself needs: the time until it found the message
    box, and the time from the last change until the answer counted as complete.
    """

    first_token_ms: Milliseconds | None = None
    total_ms: Milliseconds
    opening_ms: Milliseconds | None = None
    settling_ms: Milliseconds | None = None


class SettleSample(Record):
    """The state of the page at one moment: the length of its text, and whether the page is busy.

    Several samples together show whether the answer is complete.
    """

    at_ms: Milliseconds
    characters: Annotated[int, Field(ge=0)]
    busy: bool


class StepKind(StrEnum):
    """The kind of an agent's step."""

    AGENT = "agent"
    """The agent handed its work to another agent. Such a handoff is called a hop."""
    TOOL = "tool"
    """The agent called a tool."""


class Step(Record):
    """A step of an agent. Unknown values are ``None``, never 0.

    ``detail`` contains the arguments of the step, or the text of the event. If ``cut`` is true, ``detail`` contains
    only the beginning of that text. ``at_ms`` is the time since the start of the job.
    """

    name: str
    detail: str = ""
    cut: bool = False
    kind: StepKind | None = None
    at_ms: Milliseconds | None = None
    duration_ms: Milliseconds | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None

    def with_name_and_detail(self, name: str, detail: str, at_ms: Milliseconds | None) -> Self:
        """Return a copy of the step with another name, detail and time (``at_ms``).

        For example, the new texts contain no lone surrogates.
        """
        return self.model_copy(update={"name": name, "detail": detail, "at_ms": at_ms})


class AgentQuestion(Record):
    """A question for which an agent interrupted its work, and the answer that the agent received.

    ``question`` is empty if the application only reports that it is waiting. ``scripted`` is true if the answer
    comes from the suite.
    """

    question: str
    answer: str
    scripted: bool = False
    at_ms: Milliseconds | None = None


class PartKind(StrEnum):
    """The kind of a message part outside the answer."""

    THINKING = "thinking"
    TOOL = "tool"
    SOURCE = "source"
    STATUS = "status"
    NAME = "name"


class AnswerPart(Record):
    """A part of a message outside the answer, for example a source."""

    kind: PartKind
    text: str


class Evidence(Record):
    """The evidence that was collected with an answer. Paths are relative to the folder of the run.

    - ``steps`` contains an agent's steps. If ``steps_cut`` is true, the agent may have made more steps.
    - ``hops`` is the number of times that an agent gave the work to another agent.
    - ``aside`` contains texts at the edges of the message, such as names and times.
    - ``parts`` contains sources, tool cards, reasoning and status texts.
    - ``refused`` contains the connections of the page that Lookout's address guard blocked.
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

    def with_samples_and_texts_from(self, reading: Evidence) -> Self:
        """Return a copy of this evidence that has the samples, and the texts outside the answer, of ``reading``.

        ``reading`` is the evidence that was collected while the answer was read from the page.
        """
        return self.model_copy(
            update={"settle_samples": reading.settle_samples, "aside": reading.aside, "parts": reading.parts}
        )


class Attempt(Record):
    """A failed attempt to ask a question. The record is stored, so that a later success does not hide the fault."""

    started_at: UtcTime
    blame: Blame
    reason: str
    detail: str


class Exchange(Record):
    """A question with its complete answer and evidence. An incomplete answer is a `NoAnswer`.

    ``repeat`` counts from 0 if a case is asked several times. ``concurrency`` is the number of questions that were
    asked at the same time. ``earlier_answers`` contains the replies to all turns except the last.
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
    def separately_sent_citations(self) -> tuple[str, ...]:
        """Return the sources that the application sent separately from its text."""
        return self.wire.citations if self.wire is not None else ()

    @property
    def text_outside_answer(self) -> str:
        """Return the text of all message parts outside the answer, joined to one text."""
        return "\n".join(part.text for part in self.evidence.parts)

    @property
    def graded_text(self) -> str:
        """Return the text that graders read."""
        if self.graded_channel is Channel.WIRE and self.wire is not None:
            return self.wire.text
        return self.visible_text


class NoAnswerReason(StrEnum):
    """Why there is no answer that can be graded."""

    UNREACHABLE = "unreachable"
    NOT_READY = "not_ready"
    ANSWER_TIMEOUT = "answer_timeout"
    INCOMPLETE = "incomplete"
    APP_ERROR_SHOWN = "app_error_shown"
    LEFT_TARGET = "left_target"
    """The page went to an address that does not belong to the application."""
    ACCESS_DENIED = "access_denied"
    RATE_LIMITED = "rate_limited"
    """The application limits the number of requests, and the run ended before the rate limit was lifted."""
    LOGIN_FAILED = "login_failed"
    """The target has a login, and Lookout is not signed in: the session has expired, or the login failed."""
    NO_SUCH_PATH = "no_such_path"
    """An API answers, but does not accept questions at the configured path (HTTP 404 or 405)."""
    END_NOT_FOUND = "end_not_found"
    """An API's streams end without the configured end event."""
    ANSWER_NOT_FOUND = "answer_not_found"
    """An API answered, but its JSON response has no text at the path that is configured for the answer."""
    PAGE_NOT_UNDERSTOOD = "page_not_understood"
    CAPTURE_UNSURE = "capture_unsure"
    """The text that was read may not be the answer, or may be incomplete."""
    BROWSER_LOST = "browser_lost"
    OLD_JOB = "old_job"
    """The application returned an older job, whose report may come from another deploy."""
    CIRCUIT_OPEN = "circuit_open"
    """The case was not asked, because the application was already known to be down."""


NOT_READ: Final = frozenset({NoAnswerReason.END_NOT_FOUND, NoAnswerReason.ANSWER_NOT_FOUND})
"""Reasons for a missing answer: the application answered, but not in the form that the settings describe."""
NOT_LET_IN: Final = frozenset(
    {
        NoAnswerReason.NO_SUCH_PATH,
        NoAnswerReason.ACCESS_DENIED,
        NoAnswerReason.RATE_LIMITED,
        NoAnswerReason.LOGIN_FAILED,
    }
)
"""Reasons for a missing answer: the application responded, but did not accept the question."""


# The fields are not in a common base class with Exchange, because that would change the order of keys in the
# journal.
class NoAnswer(Record):
    """A question that got no gradable answer. ``reason`` states why, and ``blame`` states who caused the problem.

    A `NoAnswer` never counts as a wrong answer.
    """

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
