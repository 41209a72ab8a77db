"""The settings of the live probe, with their defaults and the reasons for them.

Also the settings for an agent that works on a job (start it, poll its state, fetch its report: V4), and for a page
behind a login, `[targets.NAME.login]`. Settings name environment variables that hold the secrets.
"""

from __future__ import annotations

import json
import string
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import Field, field_validator, model_validator

from monitors.probes.wire import WireRule
from monitors.records.base import Identifier, Record
from monitors.records.targets import HttpUrl
from monitors.request_headers import API_TOKEN_VARIABLE, HeaderTable

BROWSER_VARIABLE: Final = "CHROMIUM_PATH"

JobSeconds = Annotated[float, Field(gt=0, le=86_400)]
Address = Annotated[str, Field(min_length=1)]
ADDRESS_PARTS = ("start", "job", "location")
"""The placeholders that an address may contain."""

FINISHED = ("completed", "complete", "done", "finished", "succeeded", "success", "resolved")
FAILED = (
    *("failed", "failure", "error", "errored", "cancelled", "canceled", "killed", "timed_out", "timeout"),
    "expired",
)
ASKING = (
    *("awaiting_human", "awaiting_input", "waiting_for_human", "waiting_for_input", "waiting_for_user"),
    *("human_input", "input_required", "input-required", "needs_input", "interrupted"),
)
"""States of an agent that waits for an answer. A plain "waiting" may also be waiting for a worker."""


class JobSettings(Record):
    """`driver = "job"`. Paths as in `WireRule`.

    In an address ``{start}`` is where the job was posted, ``{job}`` its id, ``{location}`` the ``Location`` header
    of the reply. A reply to the start that already says that the job is finished is taken at its word.
    """

    url: str | None = Field(default=None, description="where to post; left out: the target's address")
    request: str = Field(
        default='{"question": "{question}"}',
        description="the JSON to post; {question} stands for the turn, "
        '"{history}" for the list of messages before it (in a list: for each of them), {conversation} for an id of '
        "this conversation",
    )
    id: str = Field(default="id", description="path to the job's id in the reply to the start")
    status_url: Address = Field(
        default="{start}/{job}",
        description="where to poll the state, made of {start}, {job} and {location} (the reply's Location header)",
    )
    events_url: Address | None = Field(
        default=None, description="an event stream of the job's progress; when it breaks off, status_url is asked"
    )
    report_url: Address | None = Field(
        default=None, description="where the report is; left out: in the finished state"
    )
    report_request: str | None = Field(
        default=None,
        description="the JSON that report_url is posted, where it is not fetched by a plain GET: a GraphQL query, "
        "say; {job} stands for the job's id. GraphQL's `errors` in the reply are errors, whatever its HTTP status",
    )
    cancel_url: Address | None = Field(
        default=None, description="where to post when the deadline has passed, so that the agent stops"
    )
    state: str = Field(default="status", description="path to the job's state; one that is not listed is running")
    event_type: str = Field(
        default="type",
        description="path to the type of an event, where events have no name of their own: job.done is the state "
        "done; types of an agent's steps (agent.spawned, agent.tool_call, …) are read where event_step is left out",
    )
    created_at: str = Field(
        default="created_at",
        description="path to when the job was made, in its state: a start that is answered with an older job "
        "measures nothing new, and is no answer",
    )
    finished: tuple[str, ...] = Field(default=FINISHED, description="states that mean: the report is there")
    failed: tuple[str, ...] = Field(default=FAILED, description="states that mean: there will be no report")
    text: str = Field(
        default="report", description="path to the report's text; empty: the whole body, which need not be JSON"
    )
    citations: str | None = Field(
        default=None, description="path to the sources: a list gives its items, an empty one none"
    )
    app_path: str | None = Field(default=None, description="path to the name of the model or path that answered")
    app_version: str | None = Field(default=None, description="path to the app's version")
    latency_ms: str | None = Field(default=None, description="path to the app's own latency in milliseconds")
    error: str = Field(default="error", description="path to what went wrong")
    steps: str | None = Field(
        default=None,
        description="path to the steps (tool calls) in state or report, such as steps.*; stored as evidence",
    )
    event_step: str | None = Field(default=None, description="path to the one step in an event of events_url")
    step_name: str = Field(default="name", description="path to a step's name within the step")
    hops: str | None = Field(default=None, description="path to the number of hops, where the app counts them")
    trace_url: str = Field(
        default="langsmith_url",
        description="path to the address, or the id, of the job's trace in LangSmith, in its state; it is read "
        "where the target has a table `langsmith`",
    )
    asking: tuple[str, ...] = Field(
        default=ASKING,
        description="states, or names of events, that mean: the agent has stopped and waits for an answer to a "
        "question",
    )
    awaiting: str = Field(
        default="awaiting_human", description="path to a true or false value that says whether it waits for one"
    )
    question: str | None = Field(
        default=None,
        description="path to its question, in a state, in an event or else in the reply of report_url; a text "
        "there means that it waits",
    )
    answer_url: Address | None = Field(
        default=None,
        description="where to post the answer, such as {start}/{job}/answer; without it a job that asks has failed",
    )
    answer: str = Field(
        default='{"answer": "{answer}"}', description="the JSON to post; {answer} stands for the answer"
    )
    default_answer: Annotated[str, Field(min_length=1)] = Field(
        default="I don't know.", description="the answer where the case has none for the question (`when_asked`)"
    )
    most_questions: Annotated[int, Field(ge=0, le=100)] = Field(
        default=5, description="questions that one job may ask; with one more it is given up"
    )
    deadline_s: JobSeconds = Field(default=900.0, description="from the start to the report")
    poll_s: JobSeconds = Field(
        default=2.0, description="first pause between two polls; each next one is 1.5 times it"
    )
    poll_most_s: JobSeconds = Field(default=30.0, description="longest pause between two polls")
    request_deadline_s: JobSeconds = Field(default=30.0, description="for one request")
    silence_s: JobSeconds = Field(
        default=60.0, description="without an event for so long, the stream is given up and status_url asked"
    )
    stumbles: Annotated[int, Field(ge=0, le=1000)] = Field(
        default=5, description="polls in a row that may fail (HTTP 404, 429, 5xx, no connection) before it counts"
    )
    busy_patience_s: Annotated[float, Field(ge=0, le=86_400)] = Field(
        default=300.0,
        description="how long a start is tried again that is answered with HTTP 429: too many jobs are under way",
    )
    report_most_mb: Annotated[float, Field(gt=0, le=1000)] = Field(
        default=5.0, description="longest reply that is read, in megabytes; a longer one is no answer"
    )

    @field_validator("request", "report_request", "answer")
    @classmethod
    def _check_json(cls, value: str | None) -> str | None:
        try:
            json.loads(value or "null")
        except ValueError as error:
            raise ValueError(f"not JSON: {error}") from error
        return value

    @model_validator(mode="after")
    def _check_report_request(self) -> Self:
        if self.report_request is None:
            return self
        if self.report_url is None:
            raise ValueError('`report_url` beside `report_request`: where to post it, such as "/graphql"')
        if not any(part in self.report_request + self.report_url for part in ("{job}", "{location}")):
            raise ValueError(
                "{job} in `report_request` or `report_url`: without it every job would get the same report"
            )
        return self

    @field_validator("answer")
    @classmethod
    def _check_answer_placeholder(cls, value: str) -> str:
        if "{answer}" not in value:
            raise ValueError('{answer} is missing; accepted: JSON that holds it, as {"answer": "{answer}"}')
        return value

    @field_validator("status_url", "events_url", "report_url", "cancel_url", "answer_url")
    @classmethod
    def _check_address_parts(cls, value: str | None) -> str | None:
        try:
            named = [name for _, name, _, _ in string.Formatter().parse(value or "") if name is not None]
        except ValueError as error:
            raise ValueError(f"not an address with {{start}}, {{job}} or {{location}}: {error}") from error
        unknown = [name for name in named if name not in ADDRESS_PARTS]
        if unknown:
            raise ValueError(
                f"{{{unknown[0]}}} is not a placeholder of an address; accepted: {{start}}, {{job}}, {{location}}"
            )
        return value


Selector = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(gt=0, le=3600)]


class FromEnvironment(Record):
    """A value that must not stand in a file: `{ env = "BOT_PASSWORD" }`."""

    env: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
            description="environment variable that holds the value: the only way for a secret",
        ),
    ]
    prefix: str = Field(default="", description='stands before the value, such as "Bearer "')


class BasicAuth(Record):
    """The credentials of HTTP authentication, which a browser asks for in its own dialog."""

    user: FromEnvironment = Field(description='the name, as `{ env = "VARIABLE" }`')
    password: FromEnvironment = Field(description='the password, as `{ env = "VARIABLE" }`')


class LoginSettings(Record):
    """One way in, or several together. With an empty table a person signs in, by `lookout login NAME`."""

    url: HttpUrl | None = Field(default=None, description="where to sign in; left out: the target's address")
    user: FromEnvironment | None = Field(
        default=None, description='who signs in by the form, as `{ env = "VARIABLE" }`'
    )
    password: FromEnvironment | None = Field(
        default=None, description='the password for the form, as `{ env = "VARIABLE" }`'
    )
    user_field: Selector | None = Field(
        default=None, description="CSS selector of the field for the name; left out: found"
    )
    password_field: Selector | None = Field(
        default=None, description="CSS selector of the field for the password; left out: found"
    )
    submit: Selector | None = Field(
        default=None, description="CSS selector of the button that signs in; left out: Enter, or the button found"
    )
    signed_in: Selector | None = Field(
        default=None,
        description="CSS selector of an element that only signed-in users see, if others get a chat too",
    )
    headers: dict[str, FromEnvironment] = Field(
        default={}, description="request headers, sent only to the target's own origin"
    )
    cookies: dict[str, FromEnvironment] = Field(default={}, description="cookies of the target's address")
    basic: BasicAuth | None = Field(default=None, description="user and password of HTTP authentication")
    deadline_s: Seconds = Field(default=60.0, description="for the form, from opening its page to being signed in")

    @model_validator(mode="after")
    def _check_form_fields(self) -> Self:
        if self.user is not None and self.password is None:
            raise ValueError("`password` beside `user`")
        if self.password is None and (self.user_field or self.password_field or self.submit):
            raise ValueError("`user` and `password` beside the form's fields; without them a person signs in")
        return self

    @property
    def has_form(self) -> bool:
        """Whether Lookout signs in by itself."""
        return self.password is not None

    @property
    def needs_person(self) -> bool:
        """Whether only a session that a person started opens the page."""
        return not (self.has_form or self.headers or self.cookies or self.basic)

    def secrets(self) -> Iterator[tuple[str, FromEnvironment]]:
        """Yield every value that comes from the environment, with its key."""
        named = {"user": self.user, "password": self.password}
        if self.basic is not None:
            named |= {"basic.user": self.basic.user, "basic.password": self.basic.password}
        named |= {f"headers.{name}": value for name, value in self.headers.items()}
        named |= {f"cookies.{name}": value for name, value in self.cookies.items()}
        yield from ((key, value) for key, value in named.items() if value is not None)


WebOrigin = Annotated[str, Field(pattern=r"^https?://[^/?#@\s]+/?$")]
"""A scheme, host and port, without a path."""
Count = Annotated[int, Field(ge=1, le=1000)]


class Isolation(StrEnum):
    """How one case is separated from the next."""

    CONTEXT = "context"
    """A browser context of its own: no cookie, no storage is shared."""
    RELOAD = "reload"
    """The page is loaded again; cookies and storage stay."""
    NEW_CHAT = "new-chat"
    """Press the page's own "new chat" button; load the page again where there is none."""


class CapturePolicy(StrEnum):
    """When to store a screenshot or a trace."""

    NEVER = "never"
    FAILURES = "failures"
    """When asking failed, and when the answer was judged wrong while its page was still open."""
    FAILURES_AND_SEVERE = "failures-and-severe"
    """The same, and every case of severity 3."""
    ALWAYS = "always"


class Selectors(Record):
    """CSS selectors that a target configures; others are found automatically. They reach into open shadow roots."""

    message_box: Selector | None = Field(default=None, description="the box the question is typed into")
    send: Selector | None = Field(
        default=None, description="the control that sends; left out: Enter, or the button found"
    )
    answer: Selector | None = Field(default=None, description="one bot answer; the newest ones are read")
    steps: Selector | None = Field(default=None, description="parts of an answer that only tell how it was found")
    busy: Selector | None = Field(default=None, description="visible while the app is answering")
    error: Selector | None = Field(default=None, description="visible when the app says that something went wrong")


class ReadinessSettings(Record):
    """How long a target is waited for, and how it says which commit it runs."""

    deadline_s: Seconds = Field(default=600.0, description="for a deploy to serve; a Space builds for minutes")
    poll_s: Seconds = Field(default=5.0, description="between two polls at the target's state")
    request_deadline_s: Seconds = Field(default=15.0, description="for one request")
    version_url: str | None = Field(default=None, description="an address of the app that names the commit it runs")
    version_path: str = Field(
        default="sha", description="path to the commit in the version endpoint's JSON; empty: its whole text"
    )
    hub_url: str | None = Field(default=None, description="the Hub's address; left out: the public one")


class ApiSettings(Record):
    """How a chat API is spoken to, for targets that are not asked through their page. Paths as in `WireRule`."""

    url: str | None = Field(default=None, description="where to post; left out: the target's address")
    function: str = Field(default="chat", description="Gradio only: the name of the API endpoint")
    request: str = Field(
        default='{"question": "{question}"}',
        description="the JSON to post; {question} stands for the turn, "
        '"{history}" for the list of messages before it (in a list: for each of them), {conversation} for an id of '
        "this conversation",
    )
    text: str = Field(
        default="answer",
        description="path to the answer's text in the response or in each event: names joined by dots, a number "
        'for a place in a list ("part.text", "output.0.content"); so are all paths here',
    )
    citations: str | None = Field(
        default=None, description="path to the sources: a list gives its items, an empty one none"
    )
    app_path: str | None = Field(default=None, description="path to the name of the model or path that answered")
    app_version: str | None = Field(default=None, description="path to the app's version")
    latency_ms: str | None = Field(default=None, description="path to the app's own latency in milliseconds")
    error: str = Field(default="error", description="path to an error; something there means that asking failed")
    joins: bool = Field(
        default=True, description="a stream's texts are tokens to join; false: each replaces the one before"
    )
    done: str = Field(
        default="[DONE]", description="a stream's last data or event name; without it the answer was cut off"
    )

    @field_validator("request")
    @classmethod
    def _check_json(cls, value: str) -> str:
        try:
            json.loads(value)
        except ValueError as error:
            raise ValueError(f"not JSON: {error}") from error
        return value


class ProbeSettings(Record):
    """Everything about asking one target. All durations in seconds."""

    driver: Identifier = Field(
        default="browser", description="how to talk to it: browser, gradio, json, sse or job"
    )
    profile: Identifier | None = Field(
        default=None,
        description="a known kind of page: gradio, streamlit or generic; left out: found out on the page",
    )
    selectors: Selectors = Field(default=Selectors(), description="selectors that override the profile's")
    open: tuple[Selector, ...] = Field(
        default=(),
        description="selectors of what is pressed, one after the other, before the chat is there; left out: found",
    )
    isolation: Isolation = Field(default=Isolation.CONTEXT, description="how far cases are separated")
    concurrency: Count | None = Field(
        default=None,
        description="questions under way at once; left out: two for each core at first, then by what the cores "
        "have left, eight at the most",
    )
    requests_per_minute: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description="questions that are asked a minute at most, each turn of a conversation counted; left out: as "
        "fast as the app answers, until it limits requests (HTTP 429)",
    )
    answer_deadline_s: Seconds = Field(default=60.0, description="from sending to the whole answer")
    page_deadline_s: Seconds = Field(default=30.0, description="from opening the page to a usable message box")
    close_deadline_s: Seconds = Field(
        default=5.0, description="for closing a page; a crashed one can hang for ever"
    )
    quiet_s: Seconds = Field(
        default=0.8, description="text unchanged and network still: the answer is taken as whole"
    )
    patience_s: Seconds = Field(
        default=12.0, description="text unchanged where neither the page nor the network says that the answer ended"
    )
    attempts: Count = Field(default=2, description="tries for each question; failed ones are recorded")
    retry_pause_s: Annotated[float, Field(ge=0, le=600)] = Field(default=1.0, description="between two tries")
    circuit_breaker_failures: Count = Field(
        default=5, description="questions in a row without an answer after which the rest is not asked"
    )
    outage_patience_s: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=60.0, description="for an app that stops answering in mid-run to serve again; then the run stops"
    )
    repeats_severity_3: Count = Field(default=1, description="how often each severity-3 case is asked")
    screenshots: CapturePolicy = Field(
        default=CapturePolicy.FAILURES_AND_SEVERE, description="when a picture of the page is stored"
    )
    traces: CapturePolicy = Field(
        default=CapturePolicy.NEVER,
        description="when a Playwright trace is stored; recording costs every question about 0.2 s",
    )
    load_images: bool = Field(default=False, description="load the page's images, which pictures then show")
    browser_path: str | None = Field(
        default=None, description="the Chromium to use; left out: found on this machine"
    )
    private_network: bool = Field(
        default=False,
        description="the target itself may be in a private network or on this machine, though neither digits nor "
        "its name say so; other hosts and ports there stay closed, link-local addresses too",
    )
    service_workers: bool = Field(
        default=False,
        description="let the page register service workers; only for an app that does not work without",
    )
    allowed_origins: tuple[WebOrigin, ...] = Field(
        default=(),
        description='further addresses that belong to the app, as `["http://api.internal:8000"]`: its page may '
        "reach them though they are in a private network, and may lead there",
    )
    readiness: ReadinessSettings = Field(default=ReadinessSettings(), description="waiting for a deploy to serve")
    headers: HeaderTable = Field(
        default={},
        description="sent with every request of the drivers gradio, json, sse and job, to the configured hosts "
        f"alone; without an Authorization here, {API_TOKEN_VARIABLE} is sent as a bearer token where it is set",
    )
    api: ApiSettings = Field(default=ApiSettings(), description="for the drivers gradio, json and sse")
    job: JobSettings = Field(default=JobSettings(), description="for the driver job")
    wire: WireRule | None = Field(
        default=None, description="the response that carries the answer, where the page hides part"
    )

    def use_browser(self, environment: Mapping[str, str]) -> Self:
        """Return the settings with the environment's browser, unless they name one."""
        path = environment.get(BROWSER_VARIABLE)
        return self if self.browser_path or not path else self.model_copy(update={"browser_path": path})


def compute_concurrency(settings: ProbeSettings, cores: int) -> int:
    """Return how many questions to run at once: as configured, or else two per core.

    Measured on 2 cores: four pages at 1 s a reply use both cores fully; eight take longer for the same questions.
    """
    return settings.concurrency if settings.concurrency is not None else max(1, 2 * cores)
