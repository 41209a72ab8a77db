"""What was asked and what came back, or why nothing did."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from monitors.records.base import Blame, Identifier, Milliseconds, Record, UtcTime


class Origin(StrEnum):
    """Who asked: our probe, a real user, or a real user whose answer the app itself blocked."""

    PROBE = "probe"
    TRAFFIC = "traffic"
    LOG = "log"


class Channel(StrEnum):
    """Which text: what the user saw, or what the app sent over the wire."""

    VISIBLE = "visible"
    WIRE = "wire"


class BuildInfo(Record):
    """What an app says of its build beside an answer: the model and its fingerprint, and other versions by name."""

    model: str | None = None
    fingerprint: str | None = None
    versions: Mapping[str, str] = {}


class PageInfo(Record):
    """What a page is made of: its title, its framework with the version, its scripts and styles.

    ``shell`` are the first 16 hexadecimal digits of its HTML's SHA-256, without what differs from load to load.
    ``versions`` are what its headers say of the server.
    """

    title: str = ""
    framework: str | None = None
    bundles: tuple[str, ...] = ()
    shell: str
    versions: Mapping[str, str] = {}


class WirePayload(Record):
    """The answer as the app sent it. ``app_path`` names the model or path that answered, when it says so.

    ``document_versions`` are hashes or versions that it gives of its sources, by their names.
    """

    url: str
    text: str
    citations: tuple[str, ...] = ()
    app_path: str | None = None
    app_latency_ms: Milliseconds | None = None
    build: BuildInfo | None = None
    document_versions: Mapping[str, str] = {}


class Timings(Record):
    """The application's time, in milliseconds from sending; ``first_token_ms`` is absent where none can be seen.

    The monitor's own time stands beside it, where an answer was read off a page: ``opening_ms`` until there was a
    message box, ``settling_ms`` from the last change until the answer was taken as whole.
    """

    first_token_ms: Milliseconds | None = None
    total_ms: Milliseconds
    opening_ms: Milliseconds | None = None
    settling_ms: Milliseconds | None = None


class SettleSample(Record):
    """One observation of the page while it answered: what the answer-finished oracle went by."""

    at_ms: Milliseconds
    characters: Annotated[int, Field(ge=0)]
    busy: bool


class StepKind(StrEnum):
    """What a step is, where it says so."""

    AGENT = "agent"
    """Work was handed to an agent: a hop."""
    TOOL = "tool"
    """A tool was called."""


class Step(Record):
    """One thing an agent did on the way: a tool call, a hop. What is not known of it is absent, never 0.

    ``detail`` are its arguments, or all that was said of it; ``cut`` says that this is the beginning alone, which
    does not tell two calls apart. ``at_ms`` is when it was seen, or began, from the beginning of the job.
    """

    name: str
    detail: str = ""
    cut: bool = False
    kind: StepKind | None = None
    at_ms: Milliseconds | None = None
    duration_ms: Milliseconds | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None


class AgentQuestion(Record):
    """A question for which an agent stopped its work, and what it was answered.

    ``question`` is empty where the app says only that it waits. ``scripted`` is true of an answer from the suite.
    ``at_ms`` is when it was seen, counted from the job's start.
    """

    question: str
    answer: str
    scripted: bool = False
    at_ms: Milliseconds | None = None


class Evidence(Record):
    """Proof stored with an exchange. Paths are relative to the run's folder; screenshots never leave it.

    ``steps`` are what an agent did, in order; ``steps_cut`` says that more may follow them. ``hops`` is how often
    work was handed to an agent: by the app's own count, where it gives one, else by its trace. ``questions`` are
    those for which it stopped. ``aside`` are the texts at the edges of the answer's message (names, times, marks)
    that were not read as part of it.
    ``refused`` are connections that the page tried to make and the address guard did not allow. ``page`` is what
    the page was made of.
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
    refused: tuple[str, ...] = ()
    page: PageInfo | None = None


class Attempt(Record):
    """A try that gave nothing, recorded so that a retry never hides a fault."""

    started_at: UtcTime
    blame: Blame
    reason: str
    detail: str


class Exchange(Record):
    """A whole answer with its evidence. A cut-off answer is never an exchange, see `NoAnswer`.

    ``repeat`` counts from 0 when a case is asked several times. ``concurrency`` is how many questions were under
    way at once when it was asked. ``earlier_answers`` are the replies to all turns but the last.
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
        """The sources that the app listed beside its text, on the wire."""
        return self.wire.citations if self.wire is not None else ()

    @property
    def graded_text(self) -> str:
        """The text that graders read."""
        if self.graded_channel is Channel.WIRE and self.wire is not None:
            return self.wire.text
        return self.visible_text


class NoAnswerReason(StrEnum):
    """Why nothing gradable came back."""

    UNREACHABLE = "unreachable"
    NOT_READY = "not_ready"
    ANSWER_TIMEOUT = "answer_timeout"
    INCOMPLETE = "incomplete"
    APP_ERROR_SHOWN = "app_error_shown"
    LEFT_TARGET = "left_target"
    """The page went to an address that is not the app's."""
    ACCESS_DENIED = "access_denied"
    LOGIN_FAILED = "login_failed"
    """The target has a login, and nobody is signed in: its session has ended, or its form lets nobody in."""
    NO_SUCH_PATH = "no_such_path"
    """An API answers, but takes no question at the path that is configured: HTTP 404 or 405."""
    END_NOT_FOUND = "end_not_found"
    """An API's streams end, none of them with the event that is configured to end them."""
    ANSWER_NOT_FOUND = "answer_not_found"
    """An API answered, and there is no text at the path that is configured."""
    PAGE_NOT_UNDERSTOOD = "page_not_understood"
    CAPTURE_UNSURE = "capture_unsure"
    """Something was read, and it may not be the answer, or not all of it."""
    BROWSER_LOST = "browser_lost"
    OLD_JOB = "old_job"
    """The start was answered with a job from before: its report is not one of the deploy that is asked."""
    CIRCUIT_OPEN = "circuit_open"
    """Not asked: the app was already known to be down."""


NOT_READ: Final = frozenset({NoAnswerReason.END_NOT_FOUND, NoAnswerReason.ANSWER_NOT_FOUND})
"""Something was answered, which the configuration does not let Lookout read."""
NOT_LET_IN: Final = frozenset(
    {NoAnswerReason.NO_SUCH_PATH, NoAnswerReason.ACCESS_DENIED, NoAnswerReason.LOGIN_FAILED}
)
"""Something answered, and took no question."""


class NoAnswer(Record):
    """Nothing gradable came back: a reason and a blame, never "wrong"."""

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
