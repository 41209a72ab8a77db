"""Read a running job's states, events and report from parsed JSON.

Requests are limited in time and size. Each failure becomes an error that names its meaning.
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
    build_step,
    read_events,
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
"""HTTP statuses of a GraphQL server for a query that it cannot run; the body has the errors."""
CONFLICT, TOO_MANY_REQUESTS, MIN_ERROR_STATUS, MIN_SERVER_ERROR = 409, 429, 400, 500
MAX_EVENTS_BYTES = 200 * MEGABYTE_BYTES
"""Limit of the bytes in a job's event stream. Other bodies have the limit of the settings."""
CHUNK_BYTES = 65_536


class Body(Record):
    """The reply to a request."""

    url: str
    text: str


class JobHttp:
    """Send requests to one app. Messages show an address without its query, because the query may hold a key.

    ``headers`` are sent only to the hosts of ``start`` and of the settings.
    """

    def __init__(self, settings: JobSettings, headers: RequestHeaders, start: str, guard: AddressGuard) -> None:
        self._settings = settings
        self._headers = headers
        self._client = GuardedClient(
            guard,
            deadline_s=settings.deadline_s + settings.request_deadline_s,  # the job's time begins at its start
            max_bytes=MAX_EVENTS_BYTES,
            headers=headers,
            addresses=[start, *_list_configured_origins(settings)],
            timeout=httpx.Timeout(settings.request_deadline_s, read=None),  # reading the body has separate limits
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def post_start(self, url: str, body: Any, key: str) -> AsyncGenerator[httpx.Response]:
        """Post a start and yield the reply with its body unread. ``key`` is the same for each repeated start.

        Raises `Unreachable` or `AccessDenied`; the start is not repeated here, because it may have worked. Raises
        `TryAgain` if the app has too many jobs (HTTP 429): this job was then not started.
        """
        try:
            async with asyncio.timeout(self._settings.request_deadline_s) as limit:
                sending = self._client.stream("POST", url, json=body, headers={"Idempotency-Key": key})
                async with sending as response:
                    self._check_start(response)
                    limit.reschedule(None)  # the body has separate limits
                    yield response
        except TryAgain as stumble:
            if isinstance(stumble.error, AccessDenied):
                raise
            raise stumble.error from stumble
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL) as error:
            raise Unreachable(
                f"the job could not be started: {describe_http_error(error)} at {redact_url(url)}"
            ) from error

    async def poll(self, url: str, body: Any = None) -> Body:
        """Return the reply to a GET, or to a POST of ``body``.

        Raises `TryAgain` for temporary errors and a `ProbeError` for others.
        """
        async with self._request(url, body) as response:
            return await self.read_body(response)

    @asynccontextmanager
    async def open_events(self, url: str) -> AsyncGenerator[httpx.Response]:
        """Open an event stream; raises the errors of `poll`."""
        async with self._request(url) as response:
            yield response

    async def post_answer(self, url: str, body: Any) -> None:
        """Post the answer to an agent's question.

        HTTP 409 counts as done: the agent no longer waits. Raises the errors of `poll`.
        """
        try:
            async with asyncio.timeout(self._settings.request_deadline_s):
                response = await self._client.post(url, json=body)
        except httpx.InvalidURL as error:
            raise PageNotUnderstood(f"{redact_url(url)!r} is not an address; check probe.job.answer_url") from error
        except (TimeoutError, httpx.HTTPError) as error:
            raise TryAgain(
                Unreachable(f"{redact_url(url)} does not accept the answer: {describe_http_error(error)}")
            ) from error
        if response.status_code != CONFLICT:
            self._check_status(response)

    async def cancel(self, url: str) -> None:
        """Ask the app to cancel the job. Errors are ignored."""
        try:
            async with asyncio.timeout(self._settings.request_deadline_s):
                await self._client.post(url)
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL):
            return  # the caller reports the passed deadline instead

    async def read_body(self, response: httpx.Response) -> Body:
        """Read the complete body. Raise `PageNotUnderstood` if it is longer than the settings allow."""
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
                    f"{redact_url(str(response.url))} sent more than probe.job.report_most_mb = "
                    f"{self._settings.report_most_mb:g} MB"
                )
        return bytes(content)

    @asynccontextmanager
    async def _request(self, url: str, body: Any = None) -> AsyncGenerator[httpx.Response]:
        try:
            async with asyncio.timeout(self._settings.request_deadline_s) as limit:
                method = "GET" if body is None else "POST"
                async with self._client.stream(method, url, json=body) as response:
                    if body is None or response.status_code not in REFUSED_QUERY_STATUSES:
                        self._check_status(response)
                    limit.reschedule(None)  # the body has separate limits
                    yield response
        except httpx.InvalidURL as error:
            raise PageNotUnderstood(f"{redact_url(url)!r} is not an address; check probe.job") from error
        except (TimeoutError, httpx.HTTPError) as error:
            raise TryAgain(
                Unreachable(f"{redact_url(url)} does not answer: {describe_http_error(error)}")
            ) from error

    def _check_start(self, response: httpx.Response) -> None:
        status = response.status_code
        if status in GONE_STATUSES:
            raise Unreachable(
                f"{redact_url(str(response.url))} answered HTTP {status}: the server does not accept jobs at this "
                "path"
            )
        self._check_status(response)

    def _check_status(self, response: httpx.Response) -> None:
        status, where = response.status_code, redact_url(str(response.url))
        if status < MIN_ERROR_STATUS:
            return
        if status in REFUSED_STATUSES:
            raise AccessDenied(f"{where} answered {self._headers.explain_refusal(status)}")
        if status in WALL_STATUSES:
            raise AccessDenied(f"{where} answered HTTP {status}: a login or quota wall")
        if status == TOO_MANY_REQUESTS:
            raise TryAgain(
                AccessDenied(f"{where} answered HTTP 429: a quota wall"), parse_retry_after_s(response.headers)
            )
        if status in GONE_STATUSES:
            raise TryAgain(AnswerIncomplete(f"the app lost the job: {where} answered HTTP {status}"))
        if status >= MIN_SERVER_ERROR:
            raise TryAgain(Unreachable(f"{where} answered HTTP {status}"), parse_retry_after_s(response.headers))
        raise PageNotUnderstood(f"{where} answered HTTP {status}: check the request under probe.job")


def _list_configured_origins(settings: JobSettings) -> list[str]:
    """Return scheme and host of the configured absolute addresses."""
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
    """Return the address without user, query and fragment, shortened for messages."""
    return replace_surrogates(
        re.sub(r"//[^/@]*@|[?#].*", lambda match: "//" if match[0].startswith("//") else "", url)
    )[:300]


CLOCK_TOLERANCE_S = 60.0
"""A job that is older than its start by more than this is an old job. An app's clocks may differ."""
MAX_STEPS = 1000
MAX_EVENTS = 5 * MAX_STEPS
"""Limit of events. A step has up to three: announced, done, its node done. More repeats mean a looping agent."""


def _answer_no_question(_question: str) -> str | None:
    return None


@dataclass
class AgentJob:
    """One job. ``age_s`` is its age when this process resumed it; 0 for a job that this process started.

    ``has_events``: an event was read. ``has_end_event``: an event reported the end of the job. ``answered_at`` is
    the time of the reply to the start, by the app's own clock. ``duration_s`` is how long the job took, once its
    report exists. ``find_scripted_answer`` returns the suite's answer to a question of the agent. ``noted`` are
    questions that an earlier process answered. ``delivered``: the last answer surely arrived.
    """

    settings: JobSettings
    start_url: str
    age_s: float = 0.0
    job: str = ""
    location: str = ""
    state: str = "started"
    last: Any = None
    steps: list[Step] = field(default_factory=list[Step])
    hops: int | None = None
    events: list[TimedEvent] = field(default_factory=list[TimedEvent])
    has_events: bool = False
    has_end_event: bool = False
    began: float = field(default_factory=monotonic)
    answered_at: datetime | None = None
    duration_s: float | None = None
    last_trace_url: str = ""
    checked_trace_url: str = ""
    traced_hops: int | None = None
    steps_are_whole: bool = True
    find_scripted_answer: Callable[[str], str | None] = _answer_no_question
    noted: tuple[AgentQuestion, ...] = ()
    delivered: bool = True

    def __post_init__(self) -> None:
        self.questions = AgentQuestions(self.settings, self.noted, delivered=self.delivered)

    @property
    def is_started(self) -> bool:
        """Whether the app has started the job: it returned the job's id or location."""
        return bool(self.job or self.location)

    @property
    def elapsed_s(self) -> float:
        """Seconds since this or an earlier process started the job."""
        return self.age_s + monotonic() - self.began

    @property
    def left_s(self) -> float:
        """Seconds until its deadline."""
        return self.settings.deadline_s - self.elapsed_s

    def build_address(self, template: str) -> str:
        """Fill in an address of the job. Values from the app cannot change the host or other path segments."""
        start = self.start_url.split("?")[0].rstrip("/")
        if "{job}" in template and not self.job:
            raise PageNotUnderstood(
                f"probe.job.id = {self.settings.id!r} matches nothing in the reply to the start"
            )
        if "{location}" in template and not self.location:
            raise PageNotUnderstood("probe.job uses {location}, but the reply to the start has no Location header")
        path = template.format(start=start, job=quote(self.job, safe=""), location=self.location)
        return urljoin(f"{start}/", path)

    def set_location(self, location: str | None) -> None:
        """Store the reply's ``Location``. Raise `PageNotUnderstood` for a foreign host: it must not get the key."""
        if not location:
            return
        address = urljoin(self.start_url, location)
        if urlsplit(address)[:2] != urlsplit(self.start_url)[:2]:
            raise PageNotUnderstood(
                f"the app redirects the job to another host: {replace_surrogates(address)[:200]!r}"
            )
        self.location = address

    def record_start_reply(self, headers: Mapping[str, str]) -> None:
        """Store the headers of the reply to the start. The job's time starts now, without earlier retries."""
        self.began = monotonic()
        self.set_location(headers.get("location"))
        try:
            self.answered_at = parsedate_to_datetime(headers.get("date", ""))
        except ValueError:
            self.answered_at = None

    def set_id(self, document: Any) -> None:
        """Store the job's id from the reply to the start."""
        ids = [value for value in collect_items(document, self.settings.id) if isinstance(value, str | int)]
        if ids and not isinstance(ids[0], bool):
            self.job = replace_surrogates(str(ids[0]))

    def update_state(self, document: Any) -> None:
        """Update from a new state. Raise `OldJob` if the state belongs to an earlier job."""
        self._refuse_old(document)
        self._apply_document(document)

    def _apply_document(self, document: Any, event: str | None = None) -> None:
        """Update from a state, or from an event with its name."""
        self.last = document
        states = [value for value in collect_items(document, self.settings.state) if isinstance(value, str)]
        if states:
            self.state = replace_surrogates(states[-1])
        self.questions.update_from(document, event)
        self.update_hops(document)

    def _refuse_old(self, document: Any) -> None:
        """Raise `OldJob` if the job is older than its start, both by the app's clock."""
        created_at = next(filter(None, map(_parse_time, collect_items(document, self.settings.created_at))), None)
        if (
            created_at is None
            or self.answered_at is None
            or (self.answered_at - created_at).total_seconds() <= CLOCK_TOLERANCE_S
        ):
            return
        raise build_old_job_error(
            f"a job of {created_at:%Y-%m-%d %H:%M} UTC; the start was at {self.answered_at:%Y-%m-%d %H:%M} UTC"
        )

    def update_hops(self, document: Any) -> None:
        """Store the app's own number of hops."""
        hops = collect_items(document, self.settings.hops) if self.settings.hops else []
        counted = [n for n in hops if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
        self.hops = counted[-1] if counted else self.hops

    def update_steps(self, document: Any) -> None:
        """Store the steps that a state or report lists, if it lists more than are known."""
        path = self.settings.steps
        values = collect_items(document, path)[:MAX_STEPS] if path else []
        self.set_path(read_trace(values) or AgentPath(tuple(self._build_step(value, None) for value in values)))

    def set_path(self, path: AgentPath) -> None:
        """Store the agent's complete path, if it has more steps than are known."""
        if len(path.steps) > len(self.steps):
            self.steps, self.steps_are_whole = list(path.steps[:MAX_STEPS]), len(path.steps) <= MAX_STEPS
            self.traced_hops = path.hops

    def apply_event(self, event: Event) -> None:
        """Apply one event; its name may be the state. An event without JSON only shows that the job is alive."""
        if event.name.casefold() in self._ends:
            self.state, self.has_end_event = replace_surrogates(event.name), True
        try:
            document = json.loads(event.data)
        except (ValueError, RecursionError):  # deeply nested JSON exceeds the recursion limit
            return
        self.has_events = True
        for kind in collect_items(document, self.settings.event_type):
            if isinstance(kind, str) and kind.casefold().removeprefix("job.") in self._ends:
                self.state, self.has_end_event = replace_surrogates(kind).removeprefix("job."), True
        if not self.job:
            self.set_id(document)
        self._apply_document(document, event.name)
        at_ms, path = self.elapsed_s * 1000, self.settings.event_step
        if path is None and isinstance(document, dict):
            self._record_step_event(TimedEvent(cast("dict[str, Any]", document), at_ms))
        steps = [self._build_step(value, at_ms) for value in collect_items(document, path)] if path else []
        if steps:
            self.steps, self.steps_are_whole = (self.steps + steps)[:MAX_STEPS], False

    def _record_step_event(self, event: TimedEvent) -> None:
        kind = next(iter(collect_items(event.fields, self.settings.event_type)), None)
        if kind in STEP_EVENTS and len(self.events) < MAX_EVENTS:
            self.events.append(event._replace(fields={**event.fields, "type": kind}))

    def parse_status_reply(self, body: str) -> Any:
        """Parse a polled state. Raise `TryAgain` if it is not a state: it may be a proxy's temporary page."""
        try:
            document = parse_json(body)
        except PageNotUnderstood as error:
            raise TryAgain(error) from error
        if any(isinstance(value, str) for value in collect_items(document, self.settings.state)):
            return document
        excerpt = format_value(document)[:200]
        path = self.settings.state
        raise TryAgain(PageNotUnderstood(f"probe.job.state = {path!r} matches no state in the reply {excerpt}"))

    @property
    def trace_url(self) -> str:
        """The address of the job's trace in the newest state; empty if the state has none."""
        addresses = [value for value in collect_items(self.last, self.settings.trace_url) if isinstance(value, str)]
        self.last_trace_url = (
            replace_surrogates(addresses[0]) if addresses and addresses[0] else self.last_trace_url
        )
        return self.last_trace_url

    @property
    def _ends(self) -> set[str]:
        return {name.casefold() for name in (*self.settings.finished, *self.settings.failed)}

    @property
    def finished(self) -> bool:
        """Whether the report is ready. Raise `AppErrorShown` if the job has failed."""
        state = self.state.casefold()
        if state in {name.casefold() for name in self.settings.failed}:
            reason = self._extract_error() or "the job gave no reason"
            raise AppErrorShown(
                f"the job ended as {self.state!r}: {reason}", partial_text=self._extract_partial_text()
            )
        return state in {name.casefold() for name in self.settings.finished}

    @property
    def evidence(self) -> Evidence:
        """The agent's steps from its list, or from its events if those have more.

        An incomplete event stream counts less than a complete list, even with more events.
        """
        path = read_events(self.events)
        events_say_more = len(path.steps) > len(self.steps) and (
            self.has_end_event or not (self.steps and self.steps_are_whole)
        )
        steps, hops = (path.steps, path.hops) if events_say_more else (tuple(self.steps), self.traced_hops)
        is_complete = self.has_end_event or (self.steps_are_whole and not events_say_more) or not steps
        return Evidence(
            steps=steps[:MAX_STEPS],
            steps_cut=not is_complete,
            hops=self.hops if self.hops is not None else hops,
            questions=self.questions.answered,
        )

    def build_timeout_error(self) -> ProbeError:
        """Build the error for a passed deadline."""
        progress = f"{self.state!r} after {plural(len(self.evidence.steps), 'step')}{self._format_waiting_hint()}"
        message = f"the job did not finish within {self.settings.deadline_s:g} s: {progress}"
        partial = self._extract_partial_text()
        return AnswerIncomplete(message, partial_text=partial) if partial else AnswerTimeout(message)

    def _format_waiting_hint(self) -> str:
        """Return a hint if the state may mean that the agent waits for an answer but is not configured so."""
        if "wait" not in self.state.casefold() or self.questions.answered:
            return ""
        return "; if it waits for an answer to a question, add this state to probe.job.asking"

    def _extract_partial_text(self) -> str:
        path = self.settings.text
        texts = [value for value in collect_items(self.last, path) if isinstance(value, str)] if path else []
        return replace_surrogates(texts[-1]) if texts else ""

    def _extract_error(self) -> str:
        errors = [value for value in collect_items(self.last, self.settings.error) if value]
        return format_value(errors[0])[:300] if errors else ""

    def _build_step(self, value: Any, at_ms: float | None) -> Step:
        names = [name for name in collect_items(value, self.settings.step_name) if isinstance(name, str)]
        if not isinstance(value, dict):
            return Step(name=format_value(value)[:MAX_DETAIL_LENGTH], at_ms=at_ms)
        step = build_step(cast("dict[str, Any]", value), names[0] if names else None)
        return step.model_copy(
            update={
                "name": replace_surrogates(step.name),
                "detail": replace_surrogates(step.detail),
                "at_ms": at_ms,
            }
        )


def build_old_job_error(description: str) -> OldJob:
    """Build the error for a start that returned an old job. ``description`` is the returned object."""
    return OldJob(
        f"the reply to the start was {description}, so there is no new result. The app may return an old job for "
        "the same question. Ask as another user, or configure staging to forget old jobs"
    )


def _parse_time(value: Any) -> datetime | None:
    """Parse a time: seconds since 1970, or ISO 8601 with a zone. Return ``None`` without a zone."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None
    return time.astimezone(UTC) if time is not None and time.tzinfo is not None else None


def format_value(value: Any) -> str:
    """Format a value as text."""
    return replace_surrogates(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
