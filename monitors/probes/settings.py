"""Settings of a target: how Lookout asks questions, runs jobs of an agent, and signs in to a page.

Secrets are in environment variables. The settings contain only the names of these variables.
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
"""The placeholders that an address in `JobSettings` may contain."""

FINISHED = ("completed", "complete", "done", "finished", "succeeded", "success", "resolved")
FAILED = (
    *("failed", "failure", "error", "errored", "cancelled", "canceled", "killed", "timed_out", "timeout"),
    "expired",
)
ASKING = (
    *("awaiting_human", "awaiting_input", "waiting_for_human", "waiting_for_input", "waiting_for_user"),
    *("human_input", "input_required", "input-required", "needs_input", "interrupted"),
)
"""States of an agent that waits for a person. "waiting" is missing, because a job may also wait for a worker."""


class JobSettings(Record):
    """Settings of `driver = "job"`. Paths have the format of `WireRule`.

    An address may contain three placeholders: ``{start}`` is the address to which the job was posted, ``{job}`` is
    the id of the job, and ``{location}`` is the ``Location`` header in the reply to the start request. If that
    reply already reports that the job is finished, Lookout does not poll.
    """

    url: str | None = Field(
        default=None, description="address to which Lookout posts the question. Default: the target's address"
    )
    request: str = Field(
        default='{"question": "{question}"}',
        description='the JSON to post. Lookout replaces {question} with the message of the user, "{history}" with '
        'the list of earlier messages, and {conversation} with an id of the conversation. If "{history}" is an '
        "item of a list, each earlier message becomes an item of this list",
    )
    id: str = Field(
        default="id", description="path to the job's id in the reply to the request that starts the job"
    )
    status_url: Address = Field(
        default="{start}/{job}",
        description="address at which Lookout polls the state of the job. It may contain {start} (the address to "
        "which the job was posted), {job} (the id of the job) and {location} (the Location header of the reply)",
    )
    events_url: Address | None = Field(
        default=None,
        description="address of an event stream with the progress of the job. If the stream ends early, Lookout "
        "polls status_url",
    )
    report_url: Address | None = Field(
        default=None,
        description="address of the report. Default: Lookout reads the report from the state of the finished job",
    )
    report_request: str | None = Field(
        default=None,
        description="the JSON to post to report_url if a GET request is not enough, for example a GraphQL query. "
        "Lookout replaces {job} with the id of the job. A GraphQL reply with `errors` counts as an error, with "
        "any HTTP status",
    )
    cancel_url: Address | None = Field(
        default=None,
        description="address to which Lookout sends a POST request after the deadline, to stop the agent",
    )
    state: str = Field(
        default="status",
        description="path to the job's state. A job counts as running in every state that `finished`, "
        "`failed` and `asking` do not list",
    )
    event_type: str = Field(
        default="type",
        description="path to the type of an event, for events without a name. An event of the type job.done sets "
        "the state to done. If event_step is not set, Lookout also reads the agent's steps from events of the "
        "types agent.spawned, agent.tool_call, …",
    )
    created_at: str = Field(
        default="created_at",
        description="path to the creation time in the job's state. If the app returns an older job instead of a "
        "new one, the question counts as not answered",
    )
    finished: tuple[str, ...] = Field(
        default=FINISHED, description="states in which the report of the job is ready"
    )
    failed: tuple[str, ...] = Field(
        default=FAILED, description="states that mean that the job failed and has no report"
    )
    text: str = Field(
        default="report",
        description="path to the text of the report. If this path is empty, the whole body is the report, even if "
        "it is not JSON",
    )
    citations: str | None = Field(
        default=None, description="path to the sources. If the value is a list, each item is a source"
    )
    app_path: str | None = Field(
        default=None,
        description="path to the name of the model that answered, or of the app's internal route (such as primary "
        "or fallback)",
    )
    app_version: str | None = Field(default=None, description="path to the app's version")
    latency_ms: str | None = Field(
        default=None, description="path to the latency that the app reports, in milliseconds"
    )
    error: str = Field(default="error", description="path to the error of the job")
    steps: str | None = Field(
        default=None,
        description="path to the agent's steps (tool calls) in the state or the report, such as steps.*. Lookout "
        "stores the steps as evidence",
    )
    event_step: str | None = Field(default=None, description="path to the agent's step in an event of events_url")
    step_name: str = Field(default="name", description="path from a step to its name")
    hops: str | None = Field(
        default=None,
        description="path to the number of hops (how often one agent handed the work to another), if the app "
        "reports this number",
    )
    trace_url: str = Field(
        default="langsmith_url",
        description="path in the state to the address or the id of the job's LangSmith trace. Lookout reads the "
        "trace only if the target has a table `langsmith`",
    )
    asking: tuple[str, ...] = Field(
        default=ASKING,
        description="states or event names which mean that the agent has asked a question and waits for the answer",
    )
    awaiting: str = Field(
        default="awaiting_human", description="path to a value that is true while the agent waits for an answer"
    )
    question: str | None = Field(
        default=None,
        description="path to the agent's question in a state, in an event, or in the reply of report_url. If "
        "there is a text at this path, the agent waits for an answer",
    )
    answer_url: Address | None = Field(
        default=None,
        description="address to which Lookout posts the answer to the agent's question, such as "
        "{start}/{job}/answer. Without this address, a job fails if the agent asks a question",
    )
    answer: str = Field(
        default='{"answer": "{answer}"}',
        description="the JSON to post to answer_url. Lookout replaces {answer} with the answer",
    )
    default_answer: Annotated[str, Field(min_length=1)] = Field(
        default="I don't know.",
        description="answer to a question of the agent if the case has no answer to it in `when_asked`",
    )
    most_questions: Annotated[int, Field(ge=0, le=100)] = Field(
        default=5,
        description="maximum number of questions that the agent may ask in one job. If it asks more, Lookout "
        "stops the job",
    )
    deadline_s: JobSeconds = Field(
        default=900.0, description="maximum time in seconds from the start of the job to its report"
    )
    poll_s: JobSeconds = Field(
        default=2.0,
        description="first pause between two polls, in seconds. Each further pause is 1.5 times as long as the "
        "one before",
    )
    poll_most_s: JobSeconds = Field(default=30.0, description="longest pause between two polls, in seconds")
    request_deadline_s: JobSeconds = Field(default=30.0, description="timeout of one request, in seconds")
    silence_s: JobSeconds = Field(
        default=60.0,
        description="maximum time in seconds without an event on the stream. After that, Lookout closes the "
        "stream and polls status_url",
    )
    stumbles: Annotated[int, Field(ge=0, le=1000)] = Field(
        default=5,
        description="maximum number of failed polls in a row (HTTP 404, 429, 5xx, no connection). One more failed "
        "poll is an error",
    )
    busy_patience_s: Annotated[float, Field(ge=0, le=86_400)] = Field(
        default=300.0,
        description="maximum time in seconds for which Lookout tries to start a job while the app answers with "
        "HTTP 429 (too many jobs)",
    )
    report_most_mb: Annotated[float, Field(gt=0, le=1000)] = Field(
        default=5.0, description="maximum size of a reply in megabytes. A larger reply is an error"
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
            raise ValueError('set `report_url` together with `report_request`, such as "/graphql"')
        if not any(part in self.report_request + self.report_url for part in ("{job}", "{location}")):
            raise ValueError(
                "write {job} or {location} in `report_request` or `report_url`. Otherwise, all jobs get the same "
                "report"
            )
        return self

    @field_validator("answer")
    @classmethod
    def _check_answer_placeholder(cls, value: str) -> str:
        if "{answer}" not in value:
            raise ValueError(
                '{answer} is missing; accepted: JSON that contains {answer}, such as {"answer": "{answer}"}'
            )
        return value

    @field_validator("status_url", "events_url", "report_url", "cancel_url", "answer_url")
    @classmethod
    def _check_address_placeholders(cls, value: str | None) -> str | None:
        try:
            named = [name for _, name, _, _ in string.Formatter().parse(value or "") if name is not None]
        except ValueError as error:
            raise ValueError(f"not a valid address: {error}; accepted: {{start}}, {{job}}, {{location}}") from error
        unknown = [name for name in named if name not in ADDRESS_PARTS]
        if unknown:
            raise ValueError(
                f"{{{unknown[0]}}} is not a placeholder for an address; accepted: {{start}}, {{job}}, {{location}}"
            )
        return value


Selector = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(gt=0, le=3600)]


class FromEnvironment(Record):
    """The environment variable with a secret, written as `{ env = "BOT_PASSWORD" }`."""

    env: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
            description="name of the environment variable with the value",
        ),
    ]
    prefix: str = Field(default="", description='text that Lookout writes before the value, such as "Bearer "')


class BasicAuth(Record):
    """User name and password for HTTP authentication, which a browser asks for in its own dialog."""

    user: FromEnvironment = Field(description='the user name, written as `{ env = "VARIABLE" }`')
    password: FromEnvironment = Field(description='the password, written as `{ env = "VARIABLE" }`')


class LoginSettings(Record):
    """Settings of the login: by a form, headers, cookies or HTTP authentication.

    If the table is empty, a person signs in with `lookout login NAME`.
    """

    url: HttpUrl | None = Field(
        default=None, description="address of the login page. Default: the target's address"
    )
    user: FromEnvironment | None = Field(
        default=None, description='the user name for the login form, written as `{ env = "VARIABLE" }`'
    )
    password: FromEnvironment | None = Field(
        default=None, description='the password for the login form, written as `{ env = "VARIABLE" }`'
    )
    user_field: Selector | None = Field(
        default=None, description="CSS selector of the field for the user name. Default: detected"
    )
    password_field: Selector | None = Field(
        default=None, description="CSS selector of the field for the password. Default: detected"
    )
    submit: Selector | None = Field(
        default=None,
        description="CSS selector of the button that submits the login form. Default: Enter, or the detected "
        "button",
    )
    signed_in: Selector | None = Field(
        default=None,
        description="CSS selector of an element that only signed-in users see. Set it if the page also shows a "
        "chat to users who are not signed in",
    )
    headers: dict[str, FromEnvironment] = Field(
        default={}, description="request headers that sign in. Lookout sends them only to the target's own origin"
    )
    cookies: dict[str, FromEnvironment] = Field(
        default={}, description="cookies that sign in. Lookout sets them for the target's address"
    )
    basic: BasicAuth | None = Field(default=None, description="user name and password for HTTP authentication")
    deadline_s: Seconds = Field(
        default=60.0,
        description="maximum time in seconds for the login, from opening the page with the form to the end of "
        "the login",
    )

    @model_validator(mode="after")
    def _check_form_fields(self) -> Self:
        if self.user is not None and self.password is None:
            raise ValueError("set `password` together with `user`")
        if self.password is None and (self.user_field or self.password_field or self.submit):
            raise ValueError(
                "set `password` together with `user_field`, `password_field` or `submit`. Without `password`, "
                "Lookout does not fill in the form"
            )
        return self

    @property
    def has_form_login(self) -> bool:
        """Return whether Lookout signs in by the form of the page."""
        return self.password is not None

    @property
    def needs_person_to_sign_in(self) -> bool:
        """Return whether a person must sign in, because nothing else is configured."""
        return not (self.has_form_login or self.headers or self.cookies or self.basic)

    def secrets(self) -> Iterator[tuple[str, FromEnvironment]]:
        """Yield each configured secret with the name of its setting."""
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
    """The way in which Lookout separates one case from the next."""

    CONTEXT = "context"
    """Each case has a new browser context, without the cookies and storage of other cases."""
    RELOAD = "reload"
    """For each case, the page is loaded again. Cookies and storage stay."""
    NEW_CHAT = "new-chat"
    """Lookout clicks the "new chat" button of the page. If there is no such button, Lookout loads the page again.
    """


class CapturePolicy(StrEnum):
    """When a screenshot or a trace of a question is stored."""

    NEVER = "never"
    FAILURES = "failures"
    """When a question has no answer, or its answer is graded as wrong."""
    FAILURES_AND_SEVERE = "failures-and-severe"
    """When a question has no answer or a wrong answer, and for each case of severity 3."""
    ALWAYS = "always"


class Selectors(Record):
    """CSS selectors from the settings of a target. Lookout searches for each element that has no selector here.

    A selector also matches elements in open shadow roots.
    """

    message_box: Selector | None = Field(default=None, description="CSS selector of the box for the question")
    send: Selector | None = Field(
        default=None,
        description="CSS selector of the button that sends the question. Default: Enter, or the detected button",
    )
    answer: Selector | None = Field(
        default=None, description="CSS selector of the bot's answers. Lookout reads the newest one"
    )
    steps: Selector | None = Field(
        default=None,
        description="CSS selector of the parts of an answer that are not its text, but show how the app found the "
        "answer",
    )
    busy: Selector | None = Field(
        default=None, description="CSS selector of an element that is visible while the app is answering"
    )
    error: Selector | None = Field(
        default=None, description="CSS selector of an element that is visible if the app shows an error"
    )

    def with_overrides(self, overrides: Selectors) -> Self:
        """Return a copy in which each selector that is set in ``overrides`` replaces the selector of this name."""
        return self.model_copy(update=overrides.model_dump(exclude_none=True))

    def with_answer(self, answer: str | None) -> Self:
        """Return a copy with another ``answer`` selector."""
        return self.model_copy(update={"answer": answer})


class ReadinessSettings(Record):
    """Settings for the wait until a target is ready, and for the commit that the target runs."""

    deadline_s: Seconds = Field(
        default=600.0,
        description="maximum time in seconds to wait for a new deploy to respond. A Hugging Face Space can take "
        "several minutes to build",
    )
    poll_s: Seconds = Field(default=5.0, description="pause in seconds between two polls of the target's state")
    request_deadline_s: Seconds = Field(default=15.0, description="timeout of one request, in seconds")
    version_url: str | None = Field(
        default=None, description="address at which the app returns the commit that it runs"
    )
    version_path: str = Field(
        default="sha",
        description="path to the commit in the JSON response of version_url. If this path is empty, the whole "
        "response is the commit",
    )
    hub_url: str | None = Field(
        default=None, description="address of the Hugging Face Hub. Default: the public Hub"
    )


# Has fields of JobSettings. Each of the two is a table of lookout.toml with its own defaults and order.
class ApiSettings(Record):
    """Settings for asking a target through its API. Paths have the format of `WireRule`."""

    url: str | None = Field(
        default=None, description="address to which Lookout posts the question. Default: the target's address"
    )
    function: str = Field(default="chat", description="name of the API endpoint, only for Gradio")
    request: str = Field(
        default='{"question": "{question}"}',
        description='the JSON to post. Lookout replaces {question} with the message of the user, "{history}" with '
        'the list of earlier messages, and {conversation} with an id of the conversation. If "{history}" is an '
        "item of a list, each earlier message becomes an item of this list",
    )
    text: str = Field(
        default="answer",
        description="path to the text of the answer in the response, or in each event of a stream. A path "
        'consists of names and of positions in lists, with dots between them: "part.text", "output.0.content". '
        "All paths in this table have this format",
    )
    citations: str | None = Field(
        default=None, description="path to the sources. If the value is a list, each item is a source"
    )
    app_path: str | None = Field(
        default=None,
        description="path to the name of the model that answered, or of the app's internal route (such as primary "
        "or fallback)",
    )
    app_version: str | None = Field(default=None, description="path to the app's version")
    latency_ms: str | None = Field(
        default=None, description="path to the latency that the app reports, in milliseconds"
    )
    error: str = Field(
        default="error",
        description="path to the error in the app's JSON response. If there is a value at this path, the question "
        "failed",
    )
    joins: bool = Field(
        default=True,
        description="whether Lookout joins the texts of a stream. If false, each text replaces the previous text",
    )
    done: str = Field(
        default="[DONE]",
        description="the data or the name of the event that ends a complete stream. If a stream ends without this "
        "event, the answer is incomplete",
    )

    def with_end_mark(self, done: str) -> Self:
        """Return the settings with another end mark of a stream."""
        return self.model_copy(update={"done": done})

    @field_validator("request")
    @classmethod
    def _check_json(cls, value: str) -> str:
        try:
            json.loads(value)
        except ValueError as error:
            raise ValueError(f"not JSON: {error}") from error
        return value


class ProbeSettings(Record):
    """Settings for asking questions to one target. All times are in seconds."""

    driver: Identifier = Field(
        default="browser",
        description="how Lookout asks the application: browser (on the page), gradio, json or sse (through an "
        "API), or job (an agent that works on jobs)",
    )
    profile: Identifier | None = Field(
        default=None,
        description="kind of the page: gradio, streamlit or generic. Default: detected on the page",
    )
    selectors: Selectors = Field(
        default=Selectors(), description="selectors that override the selectors of the profile"
    )
    open: tuple[Selector, ...] = Field(
        default=(),
        description="CSS selectors of the elements that Lookout clicks, in this order, to open the chat. Default: "
        "detected",
    )
    isolation: Isolation = Field(
        default=Isolation.CONTEXT,
        description="how Lookout separates one case from the next: context (a new browser context, without "
        "cookies and storage of other cases), reload (load the page again) or new-chat (click the page's button "
        "for a new chat)",
    )
    concurrency: Count | None = Field(
        default=None,
        description="maximum number of questions at the same time. Default: two for each core at first, then as "
        "many as the CPU allows, at most eight",
    )
    requests_per_minute: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description="maximum number of questions per minute. Each turn of a conversation counts. Default: as fast "
        "as the app answers, until the app limits requests (HTTP 429)",
    )
    answer_deadline_s: Seconds = Field(
        default=60.0, description="maximum time in seconds from sending a question to the complete answer"
    )
    page_deadline_s: Seconds = Field(
        default=30.0, description="maximum time in seconds from opening the page until the message box is usable"
    )
    close_deadline_s: Seconds = Field(
        default=5.0,
        description="maximum time in seconds for closing a page. Without this limit, a crashed page could "
        "hang forever",
    )
    quiet_s: Seconds = Field(
        default=0.8,
        description="time in seconds for which the text must not change and the network must be quiet before the "
        "answer counts as complete",
    )
    patience_s: Seconds = Field(
        default=12.0,
        description="time in seconds for which the text must not change before the answer counts as complete, if "
        "neither the page nor the network shows the end of the answer",
    )
    attempts: Count = Field(
        default=2, description="maximum number of attempts for each question. Lookout records failed attempts"
    )
    retry_pause_s: Annotated[float, Field(ge=0, le=600)] = Field(
        default=1.0, description="pause in seconds between two attempts"
    )
    circuit_breaker_failures: Count = Field(
        default=5,
        description="number of questions in a row without an answer after which Lookout asks no more questions in "
        "the run",
    )
    outage_patience_s: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=60.0,
        description="maximum time in seconds for which a run waits for an app that has stopped answering. After "
        "that, the run stops",
    )
    repeats_severity_3: Count = Field(
        default=1, description="number of times that Lookout asks each severity-3 case in a run"
    )
    screenshots: CapturePolicy = Field(
        default=CapturePolicy.FAILURES_AND_SEVERE,
        description="for which questions Lookout stores a screenshot of the page",
    )
    traces: CapturePolicy = Field(
        default=CapturePolicy.NEVER,
        description="for which questions Lookout stores a Playwright trace. Recording takes about 0.2 s for each "
        "question",
    )
    load_images: bool = Field(
        default=False, description="whether the page loads images, so that screenshots show them"
    )
    browser_path: str | None = Field(
        default=None, description="path of the Chromium browser. Default: detected on this machine"
    )
    private_network: bool = Field(
        default=False,
        description="whether the name of the target may resolve to a private network or to this machine. Other "
        "hosts and ports of the private network, and link-local addresses, stay blocked",
    )
    service_workers: bool = Field(
        default=False,
        description="whether the page may register service workers. Set this only if the app needs them",
    )
    allowed_origins: tuple[WebOrigin, ...] = Field(
        default=(),
        description='other addresses of the app, such as `["http://api.internal:8000"]`. The page may connect and '
        "redirect to them, even in a private network",
    )
    readiness: ReadinessSettings = Field(default=ReadinessSettings(), description="how Lookout waits for a deploy")
    headers: HeaderTable = Field(
        default={},
        description="headers of every request of the drivers gradio, json, sse and job. Lookout sends them only to "
        f"the configured hosts. If there is no Authorization header and {API_TOKEN_VARIABLE} is set, Lookout sends "
        "this token as a bearer token",
    )
    api: ApiSettings = Field(default=ApiSettings(), description="settings for the drivers gradio, json and sse")
    job: JobSettings = Field(default=JobSettings(), description="settings for the driver job")
    wire: WireRule | None = Field(
        default=None,
        description="the network response that contains the answer. Set this if the page hides a part of the "
        "answer",
    )

    def with_browser_from_environment(self, environment: Mapping[str, str]) -> Self:
        """Return the settings with the browser path from CHROMIUM_PATH, unless a browser path is already set."""
        path = environment.get(BROWSER_VARIABLE)
        return self if self.browser_path or not path else self.model_copy(update={"browser_path": path})

    def with_api(self, driver: str, api: ApiSettings) -> Self:
        """Return the settings with another driver and other API settings."""
        return self.model_copy(update={"driver": driver, "api": api})

    def with_page_elements(
        self, selectors: Selectors, opened_by: tuple[str, ...], answer_deadline_s: float
    ) -> Self:
        """Return the settings with new selectors, new controls that open the chat and a new answer deadline."""
        return self.model_copy(
            update={"selectors": selectors, "open": opened_by, "answer_deadline_s": answer_deadline_s}
        )

    def with_readiness_times(self, deadline_s: float, poll_s: float) -> Self:
        """Return the settings with another deadline for a deploy and another time between two polls."""
        readiness = self.readiness.model_copy(update={"deadline_s": deadline_s, "poll_s": poll_s})
        return self.model_copy(update={"readiness": readiness})

    def without_message_box(self) -> Self:
        """Return the settings without a selector for the message box, so that Lookout searches for the box."""
        selectors = self.selectors.model_copy(update={"message_box": None})
        return self.model_copy(update={"selectors": selectors})

    def with_concurrency(self, concurrency: int) -> Self:
        """Return the settings with another number of parallel questions."""
        return self.model_copy(update={"concurrency": concurrency})

    def with_deadlines_up_to(self, max_s: float) -> Self:
        """Return the settings in which the deadlines for an answer and for a job are at most ``max_s``."""
        job = self.job.model_copy(update={"deadline_s": min(self.job.deadline_s, max_s)})
        return self.model_copy(update={"answer_deadline_s": min(self.answer_deadline_s, max_s), "job": job})


def compute_concurrency(settings: ProbeSettings, cores: int) -> int:
    """Return the number of parallel questions: the configured number, or two for each core.

    On 2 cores, 4 pages whose answers take 1 s use both cores fully. With 8 pages, answers take longer.
    """
    return settings.concurrency if settings.concurrency is not None else max(1, 2 * cores)
