"""Send the requests for a job of an agent, and track the job by its states and events.

Requests are limited in time and size.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from time import monotonic
from typing import Any, cast
from urllib.parse import quote, urljoin, urlsplit

import httpx

from monitors.address_guard import AddressGuard
from monitors.errors import (
    AccessDenied,
    AnswerIncomplete,
    AnswerTimeout,
    AppErrorShown,
    OldJob,
    PageNotUnderstood,
    ProbeError,
    Unreachable,
)
from monitors.facts.agent_trace import (
    MAX_DETAIL_LENGTH,
    STEP_EVENTS,
    AgentPath,
    TimedEvent,
    build_path_from_events,
    build_step,
    read_trace,
)
from monitors.http_client import MEGABYTE_BYTES, GuardedClient, describe_http_error
from monitors.json_path import collect_items
from monitors.plural import plural
from monitors.probes.api.driver import Event, parse_json
from monitors.probes.browser.inpage import replace_surrogates
from monitors.probes.job.questions import AgentQuestions
from monitors.probes.settings import JobSettings
from monitors.records.base import Record
from monitors.records.exchanges import AgentQuestion, Evidence, Step
from monitors.request_headers import RequestHeaders
from monitors.retry import TryAgain, parse_retry_after_s

GONE_STATUSES = (404, 410)
REFUSED_STATUSES = (401, 403)
WALL_STATUSES = (402, 407)
REFUSED_QUERY_STATUSES = (400, 422)
"""The HTTP statuses with which a GraphQL server rejects a query. The body of the response contains the errors."""
CONFLICT, TOO_MANY_REQUESTS, MIN_ERROR_STATUS, MIN_SERVER_ERROR = 409, 429, 400, 500
MAX_EVENTS_BYTES = 200 * MEGABYTE_BYTES
"""Maximum number of bytes in the event stream of a job. The limit for other responses is a setting."""
CHUNK_BYTES = 65_536


class Body(Record):
    """The text of a response, and the address that sent it."""

    url: str
    text: str


class JobHttp:
    """Send requests to one app. ``headers`` are sent only to the hosts in ``start_url`` and in the settings.

    Errors show an address without its query, because the query may contain a key.
    """

    def __init__(self, settings: JobSettings, headers: RequestHeaders, start_url: str, guard: AddressGuard) -> None:
        self._settings = settings
        self._headers = headers
        self._client = GuardedClient(
            guard,
            deadline_s=settings.deadline_s + settings.request_deadline_s,  # the job's time begins at its start
            max_bytes=MAX_EVENTS_BYTES,
            headers=headers,
            addresses=[start_url, *_list_configured_origins(settings)],
            timeout=httpx.Timeout(settings.request_deadline_s, read=None),  # reading the body has separate limits
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def start_job(self, url: str, body: Any, key: str) -> AsyncGenerator[httpx.Response]:
        """Start a job and yield the response. The body of the response is not read yet.

        Use the same ``key`` for all attempts to start the same job. Raises `TryAgain` if the app has too many jobs
        (HTTP 429) and did not start this job. After `Unreachable` or `AccessDenied`, the job was possibly started.
        """
        try:
            async with asyncio.timeout(self._settings.request_deadline_s) as limit:
                sending = self._client.stream("POST", url, json=body, headers={"Idempotency-Key": key})
                async with sending as response:
                    if response.status_code in GONE_STATUSES:
                        raise Unreachable(
                            f"{redact_url(url)} answered HTTP {response.status_code}: the server does not accept "
                            "jobs at this path"
                        )
                    self._raise_if_error_status(response)
                    limit.reschedule(None)  # the body has separate limits
                    yield response
        except TryAgain as temporary_error:
            if isinstance(temporary_error.error, AccessDenied):
                raise
            raise temporary_error.error from temporary_error
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL) as error:
            raise Unreachable(
                f"Lookout could not start the job at {redact_url(url)}: {describe_http_error(error)}"
            ) from error

    async def fetch(self, url: str, body: Any = None) -> Body:
        """Return the response to a GET, or to a POST of ``body``.

        Raises `TryAgain` for a temporary error, and a `ProbeError` for other errors.
        """
        async with self._request(url, body) as response:
            return await self.read_body(response)

    @asynccontextmanager
    async def open_events(self, url: str) -> AsyncGenerator[httpx.Response]:
        """Open an event stream. Raises the same errors as `fetch`."""
        async with self._request(url) as response:
            yield response

    async def post_answer(self, url: str, body: Any) -> None:
        """Send the answer to a question of the agent. Raises the same errors as `fetch`.

        HTTP 409, which means that the agent no longer waits, is not an error.
        """
        try:
            async with asyncio.timeout(self._settings.request_deadline_s):
                response = await self._client.post(url, json=body)
        except httpx.InvalidURL as error:
            raise PageNotUnderstood(
                f"{redact_url(url)!r} is not an address. Check the setting probe.job.answer_url"
            ) from error
        except (TimeoutError, httpx.HTTPError) as error:
            raise TryAgain(
                Unreachable(f"Lookout could not send the answer to {redact_url(url)}: {describe_http_error(error)}")
            ) from error
        if response.status_code != CONFLICT:
            self._raise_if_error_status(response)

    async def cancel(self, url: str) -> None:
        """Ask the app to cancel the job. Errors are ignored."""
        try:
            async with asyncio.timeout(self._settings.request_deadline_s):
                await self._client.post(url)
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL):
            return  # the caller reports the passed deadline instead

    async def read_body(self, response: httpx.Response) -> Body:
        """Return the complete text of a response. Raises `PageNotUnderstood` if the response is too large."""
        async with asyncio.timeout(self._settings.request_deadline_s):
            content = await self._read_bytes(response)
        text = self._headers.hide_secrets(content.decode("utf-8", "replace"))
        return Body(url=replace_surrogates(str(response.url)), text=replace_surrogates(text))

    async def _read_bytes(self, response: httpx.Response) -> bytes:
        max_bytes = self._settings.report_most_mb * MEGABYTE_BYTES
        content = bytearray()
        async for piece in response.aiter_bytes(CHUNK_BYTES):
            content += piece
            if len(content) > max_bytes:
                raise PageNotUnderstood(
                    f"{redact_url(str(response.url))} sent more than {self._settings.report_most_mb:g} MB, "
                    "the limit in probe.job.report_most_mb"
                )
        return bytes(content)

    @asynccontextmanager
    async def _request(self, url: str, body: Any = None) -> AsyncGenerator[httpx.Response]:
        try:
            async with asyncio.timeout(self._settings.request_deadline_s) as limit:
                method = "GET" if body is None else "POST"
                async with self._client.stream(method, url, json=body) as response:
                    if body is None or response.status_code not in REFUSED_QUERY_STATUSES:
                        self._raise_if_error_status(response)
                    limit.reschedule(None)  # the body has separate limits
                    yield response
        except httpx.InvalidURL as error:
            raise PageNotUnderstood(
                f"{redact_url(url)!r} is not an address. Check the settings in probe.job"
            ) from error
        except (TimeoutError, httpx.HTTPError) as error:
            raise TryAgain(
                Unreachable(f"{redact_url(url)} does not answer: {describe_http_error(error)}")
            ) from error

    def _raise_if_error_status(self, response: httpx.Response) -> None:
        status, where = response.status_code, redact_url(str(response.url))
        if status < MIN_ERROR_STATUS:
            return
        if status in REFUSED_STATUSES:
            raise AccessDenied(f"{where} answered {self._headers.explain_refusal(status)}")
        if status in WALL_STATUSES:
            raise AccessDenied(f"{where} answered HTTP {status}: it requires a login or a higher quota")
        if status == TOO_MANY_REQUESTS:
            raise TryAgain(
                AccessDenied(f"{where} answered HTTP 429: too many requests"), parse_retry_after_s(response.headers)
            )
        if status in GONE_STATUSES:
            raise TryAgain(AnswerIncomplete(f"the app lost the job: {where} answered HTTP {status}"))
        if status >= MIN_SERVER_ERROR:
            raise TryAgain(Unreachable(f"{where} answered HTTP {status}"), parse_retry_after_s(response.headers))
        raise PageNotUnderstood(f"{where} answered HTTP {status}. Check the request in probe.job")


def _list_configured_origins(settings: JobSettings) -> list[str]:
    """Return the scheme and host of each complete address in the settings."""
    addresses = (
        settings.status_url,
        settings.events_url,
        settings.report_url,
        settings.cancel_url,
        settings.answer_url,
    )
    return [
        "/".join(address.split("/")[:3])
        for address in addresses
        if address and address.startswith(("http://", "https://"))
    ]


def redact_url(url: str) -> str:
    """Return an address for an error message: short, and without user, query and fragment."""
    return replace_surrogates(
        re.sub(r"//[^/@]*@|[?#].*", lambda match: "//" if match[0].startswith("//") else "", url)
    )[:300]


CLOCK_TOLERANCE_S = 60.0
"""Maximum difference in seconds between the clocks of the app and of Lookout.

A job that the app created more than this time before Lookout started it is an old job.
"""
MAX_STEPS = 1000
MAX_EVENTS = 5 * MAX_STEPS
"""Maximum number of stored events of a job: five for each of `MAX_STEPS` steps.

A step has at most three events, so the events of all steps fit.
"""


@dataclass
class AgentJob:
    """The state of one job of an agent.

    - ``age_s`` is the age of the job when this process resumed it, or 0 if this process started it.
    - ``has_events`` is True if an event was read.
    - ``has_end_event`` is True if an event reported the end of the job.
    - ``start_reply_at`` is the time at which the app replied to the start request, by the clock of the app.
    - ``duration_s`` is the time from the start to the report, or ``None`` without a report.
    - ``find_answer_to_agent`` returns the suite's answer to a question of the agent.
    - ``earlier_questions`` are the questions that an earlier process answered.
    - ``delivered`` is True if the app has accepted the last answer.
    """

    settings: JobSettings
    start_url: str
    age_s: float = 0.0
    job_id: str = ""
    location: str = ""
    state: str = "started"
    last_document: Any = None
    steps: list[Step] = field(default_factory=list[Step])
    hops: int | None = None
    events: list[TimedEvent] = field(default_factory=list[TimedEvent])
    has_events: bool = False
    has_end_event: bool = False
    started_monotonic_s: float = field(default_factory=monotonic)
    start_reply_at: datetime | None = None
    duration_s: float | None = None
    last_trace_url: str = ""
    checked_trace_url: str = ""
    traced_hops: int | None = None
    has_all_steps: bool = True
    find_answer_to_agent: Callable[[str], str | None] = lambda _question: None
    earlier_questions: tuple[AgentQuestion, ...] = ()
    delivered: bool = True

    def __post_init__(self) -> None:
        self.questions = AgentQuestions(self.settings, self.earlier_questions, delivered=self.delivered)

    @property
    def is_started(self) -> bool:
        """Return whether the app has started the job, which means that it returned an id or a location."""
        return bool(self.job_id or self.location)

    @property
    def elapsed_s(self) -> float:
        """Return the number of seconds since this process or an earlier process started the job."""
        return self.age_s + monotonic() - self.started_monotonic_s

    @property
    def remaining_s(self) -> float:
        """Return the number of seconds until the deadline of the job."""
        return self.settings.deadline_s - self.elapsed_s

    def build_address(self, template: str) -> str:
        """Return an address in which the placeholders are replaced. The id of the job is escaped.

        Raises `PageNotUnderstood` if the app did not return the id or location that the address needs.
        """
        start = self.start_url.split("?")[0].rstrip("/")
        if "{job}" in template and not self.job_id:
            raise PageNotUnderstood(
                f"probe.job.id = {self.settings.id!r} matches nothing in the reply to the start request"
            )
        if "{location}" in template and not self.location:
            raise PageNotUnderstood(
                "an address in probe.job contains {location}, but the reply to the start request has no Location "
                "header"
            )
        path = template.format(start=start, job=quote(self.job_id, safe=""), location=self.location)
        return urljoin(f"{start}/", path)

    def store_location_on_same_host(self, location: str | None) -> None:
        """Store the ``Location`` of the reply. Raises `PageNotUnderstood` if the location is on another host."""
        if not location:
            return
        address = urljoin(self.start_url, location)
        if urlsplit(address)[:2] != urlsplit(self.start_url)[:2]:
            raise PageNotUnderstood(
                f"the Location header of the job contains another host: {replace_surrogates(address)[:200]!r}"
            )
        self.location = address

    def store_start_reply(self, headers: Mapping[str, str]) -> None:
        """Start the clock of the job, and store the location and the time in the reply to the start request."""
        self.started_monotonic_s = monotonic()
        self.store_location_on_same_host(headers.get("location"))
        try:
            self.start_reply_at = parsedate_to_datetime(headers.get("date", ""))
        except ValueError:
            self.start_reply_at = None

    def store_job_id(self, document: Any) -> None:
        """Store the id of the job, if ``document`` contains an id."""
        ids = [value for value in collect_items(document, self.settings.id) if isinstance(value, str | int)]
        if ids and not isinstance(ids[0], bool):
            self.job_id = replace_surrogates(str(ids[0]))

    def update_state(self, document: Any) -> None:
        """Store a new state of the job. Raises `OldJob` if the state belongs to an older job."""
        self._raise_if_old_job(document)
        self._store_state_or_event(document)

    def _store_state_or_event(self, document: Any, event: str | None = None) -> None:
        """Store a state, or the event named ``event``."""
        self.last_document = document
        states = [value for value in collect_items(document, self.settings.state) if isinstance(value, str)]
        if states:
            self.state = replace_surrogates(states[-1])
        self.questions.update_from(document, event)
        self.update_handoff_count(document)

    def _raise_if_old_job(self, document: Any) -> None:
        """Raise `OldJob` if the app created the job before Lookout started it, by the clock of the app."""
        created_at = next(
            filter(None, map(_parse_utc_time, collect_items(document, self.settings.created_at))), None
        )
        if (
            created_at is None
            or self.start_reply_at is None
            or (self.start_reply_at - created_at).total_seconds() <= CLOCK_TOLERANCE_S
        ):
            return
        raise build_old_job_error(
            f"a job of {created_at:%Y-%m-%d %H:%M} UTC, but Lookout started the job at "
            f"{self.start_reply_at:%Y-%m-%d %H:%M} UTC"
        )

    def update_handoff_count(self, document: Any) -> None:
        """Store how often one agent handed its work to another, if the app reports this number in ``document``."""
        hops = collect_items(document, self.settings.hops) if self.settings.hops else []
        counted = [n for n in hops if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
        self.hops = counted[-1] if counted else self.hops

    def update_steps_if_more(self, document: Any) -> None:
        """Store the agent's steps in ``document`` if there are more steps than stored so far.

        ``document`` is a state or a report.
        """
        path = self.settings.steps
        values = collect_items(document, path)[:MAX_STEPS] if path else []
        self.store_path_if_longer(
            read_trace(values) or AgentPath(tuple(self._build_step(value, None) for value in values))
        )

    def store_path_if_longer(self, path: AgentPath) -> None:
        """Store the steps and handoffs of ``path`` if it has more steps than stored so far."""
        if len(path.steps) > len(self.steps):
            self.steps, self.has_all_steps = list(path.steps[:MAX_STEPS]), len(path.steps) <= MAX_STEPS
            self.traced_hops = path.hops

    def apply_event(self, event: Event) -> None:
        """Store one event of the job. The name of the event may be an end state of the job.

        Data that is not JSON is ignored.
        """
        if event.name.casefold() in self._end_states:
            self.state, self.has_end_event = replace_surrogates(event.name), True
        try:
            document = json.loads(event.data)
        except (ValueError, RecursionError):  # deeply nested JSON exceeds the recursion limit
            return
        self.has_events = True
        for kind in collect_items(document, self.settings.event_type):
            if isinstance(kind, str) and kind.casefold().removeprefix("job.") in self._end_states:
                self.state, self.has_end_event = replace_surrogates(kind).removeprefix("job."), True
        if not self.job_id:
            self.store_job_id(document)
        self._store_state_or_event(document, event.name)
        at_ms, path = self.elapsed_s * 1000, self.settings.event_step
        if path is None and isinstance(document, dict):
            kind = next(iter(collect_items(document, self.settings.event_type)), None)
            if kind in STEP_EVENTS and len(self.events) < MAX_EVENTS:
                self.events.append(TimedEvent({**cast("dict[str, Any]", document), "type": kind}, at_ms))
        steps = [self._build_step(value, at_ms) for value in collect_items(document, path)] if path else []
        if steps:
            self.steps, self.has_all_steps = (self.steps + steps)[:MAX_STEPS], False

    def parse_status_or_try_again(self, body: str) -> Any:
        """Return the state of the job in a reply. Raises `TryAgain` if ``body`` contains no state.

        A body without a state may come from a proxy, so the next attempt may succeed.
        """
        try:
            document = parse_json(body)
        except PageNotUnderstood as error:
            raise TryAgain(error) from error
        if any(isinstance(value, str) for value in collect_items(document, self.settings.state)):
            return document
        excerpt = format_value(document)[:200]
        path = self.settings.state
        raise TryAgain(PageNotUnderstood(f"probe.job.state = {path!r} matches no state in the reply: {excerpt}"))

    @property
    def trace_url(self) -> str:
        """Return the address of the job's trace. The address is empty if no state contained an address."""
        addresses = [
            value for value in collect_items(self.last_document, self.settings.trace_url) if isinstance(value, str)
        ]
        self.last_trace_url = (
            replace_surrogates(addresses[0]) if addresses and addresses[0] else self.last_trace_url
        )
        return self.last_trace_url

    @property
    def _end_states(self) -> set[str]:
        return {name.casefold() for name in (*self.settings.finished, *self.settings.failed)}

    @property
    def is_finished_or_raise(self) -> bool:
        """Return whether the report is ready. Raises `AppErrorShown` if the job has failed."""
        state = self.state.casefold()
        if state in {name.casefold() for name in self.settings.failed}:
            errors = [value for value in collect_items(self.last_document, self.settings.error) if value]
            reason = format_value(errors[0])[:300] if errors else "the app gave no reason"
            raise AppErrorShown(
                f"the job failed with the state {self.state!r}: {reason}", partial_text=self._extract_partial_text()
            )
        return state in {name.casefold() for name in self.settings.finished}

    @property
    def evidence(self) -> Evidence:
        """Return the steps of the agent as evidence.

        The steps come from the list of steps in the app's replies, or from the events if these contain more steps.
        The events are used only if the event stream was complete, or if there is no complete list of steps.
        """
        path = build_path_from_events(self.events)
        events_say_more = len(path.steps) > len(self.steps) and (
            self.has_end_event or not (self.steps and self.has_all_steps)
        )
        steps, hops = (path.steps, path.hops) if events_say_more else (tuple(self.steps), self.traced_hops)
        is_complete = self.has_end_event or (self.has_all_steps and not events_say_more) or not steps
        return Evidence(
            steps=steps[:MAX_STEPS],
            steps_cut=not is_complete,
            hops=self.hops if self.hops is not None else hops,
            questions=self.questions.answered,
        )

    def build_timeout_error(self) -> ProbeError:
        """Build the error for a job that did not finish before its deadline."""
        hint = ""
        if "wait" in self.state.casefold() and not self.questions.answered:
            hint = ". If the agent waits for an answer, add this state to probe.job.asking"
        progress = f"its state is {self.state!r} after {plural(len(self.evidence.steps), 'step')}{hint}"
        message = f"the job did not finish within {self.settings.deadline_s:g} s: {progress}"
        partial = self._extract_partial_text()
        return AnswerIncomplete(message, partial_text=partial) if partial else AnswerTimeout(message)

    def _extract_partial_text(self) -> str:
        path = self.settings.text
        texts = (
            [value for value in collect_items(self.last_document, path) if isinstance(value, str)] if path else []
        )
        return replace_surrogates(texts[-1]) if texts else ""

    def _build_step(self, value: Any, at_ms: float | None) -> Step:
        names = [name for name in collect_items(value, self.settings.step_name) if isinstance(name, str)]
        if not isinstance(value, dict):
            return Step(name=format_value(value)[:MAX_DETAIL_LENGTH], at_ms=at_ms)
        step = build_step(cast("dict[str, Any]", value), names[0] if names else None)
        return step.with_name_and_detail(replace_surrogates(step.name), replace_surrogates(step.detail), at_ms)


def build_old_job_error(description: str) -> OldJob:
    """Build the error for a request that should start a new job but returned an old one.

    ``description`` identifies the returned job.
    """
    return OldJob(
        f"the app did not start a new job. It returned {description}. Ask as another user, or configure staging to "
        "forget old jobs"
    )


def _parse_utc_time(value: Any) -> datetime | None:
    """Return a time in UTC from seconds since 1970 or ISO 8601, or ``None`` if the time has no time zone."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None
    return time.astimezone(UTC) if time is not None and time.tzinfo is not None else None


def format_value(value: Any) -> str:
    """Return a text unchanged, and another value as JSON."""
    return replace_surrogates(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
