"""A job while it runs: what its states, events and report say, read from parsed JSON.

The requests of the job driver are bounded in time and size, and each failure is classified by what it means.
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
    LONGEST_DETAIL,
    STEP_EVENTS,
    AgentPath,
    SeenEvent,
    read_events,
    read_trace,
    step_of,
)
from monitors.json_path import items_at
from monitors.plural import plural
from monitors.probes.address_guard import AddressGuard
from monitors.probes.api.driver import Event, parsed
from monitors.probes.browser.inpage import clean
from monitors.probes.job.questions import AgentQuestions
from monitors.probes.settings import JobSettings
from monitors.records.base import Record
from monitors.records.exchanges import AgentQuestion, Evidence, Step
from monitors.request_headers import RequestHeaders
from monitors.retry import TryAgain, retry_after_s

GONE = (404, 410)
REFUSED = (401, 403)
WALLS = (402, 407)
QUERY_REFUSED = (400, 422)
"""How GraphQL over HTTP may answer a query that it cannot run; its body says what is wrong with it."""
CONFLICT, TOO_MANY, ERRORS_FROM, APP_ERRORS_FROM = 409, 429, 400, 500
MEGABYTE = 1_000_000
CHUNK = 65_536


class Body(Record):
    """What a request brought."""

    url: str
    text: str


class JobHttp:
    """Speaks to one app. Messages name an address without its query, which may hold a key.

    ``headers`` go to the hosts that ``start`` and the settings name, and to no other.
    """

    def __init__(
        self, settings: JobSettings, headers: RequestHeaders, start: str, guard: AddressGuard | None = None
    ) -> None:
        self._settings = settings
        self._headers = headers
        self._client = httpx.AsyncClient(
            headers=dict(headers.values),
            timeout=httpx.Timeout(settings.request_deadline_s, read=None),  # reading has limits of its own
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
            follow_redirects=True,
            event_hooks=headers.hooks([start, *_hosts(settings)], guard.hooks() if guard else None),
        )

    async def close(self) -> None:
        """Closes its connections."""
        await self._client.aclose()

    @asynccontextmanager
    async def posted(self, url: str, body: Any, key: str) -> AsyncGenerator[httpx.Response]:
        """The reply to a start, its body unread. ``key`` is the same when the same start is sent again.

        Raises `Unreachable` or `AccessDenied`: a start is not repeated here, it may have worked. `TryAgain` where
        too many jobs are under way (HTTP 429): then it was not started.
        """
        try:
            async with asyncio.timeout(self._settings.request_deadline_s) as limit:
                sending = self._client.stream("POST", url, json=body, headers={"Idempotency-Key": key})
                async with sending as response:
                    self._check_start(response)
                    limit.reschedule(None)  # what comes after the head has limits of its own
                    yield response
        except TryAgain as stumble:
            if isinstance(stumble.error, AccessDenied):
                raise
            raise stumble.error from stumble
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL) as error:
            raise Unreachable(f"the job could not be started: {_why(error)} at {bare(url)}") from error

    async def poll(self, url: str, body: Any = None) -> Body:
        """What stands at an address, or what it answers to a ``body`` that it is posted.

        Raises `TryAgain` for what may pass, a `ProbeError` for what will not.
        """
        async with self._got(url, body) as response:
            return await self.body_of(response)

    @asynccontextmanager
    async def events(self, url: str) -> AsyncGenerator[httpx.Response]:
        """An event stream that has started; raises as `poll` does."""
        async with self._got(url) as response:
            yield response

    async def answer(self, url: str, body: Any) -> None:
        """Posts the answer to an agent's question.

        HTTP 409 is taken as done: the agent does not wait any more. Raises as `poll` does.
        """
        try:
            async with asyncio.timeout(self._settings.request_deadline_s):
                response = await self._client.post(url, json=body)
        except httpx.InvalidURL as error:
            raise PageNotUnderstood(f"no address: {bare(url)!r}; see probe.job.answer_url") from error
        except (TimeoutError, httpx.HTTPError) as error:
            raise TryAgain(Unreachable(f"{bare(url)} does not take the answer: {_why(error)}")) from error
        if response.status_code != CONFLICT:
            self._check(response)

    async def cancel(self, url: str) -> None:
        """Asks the app to stop; whether it does is its own affair."""
        try:
            async with asyncio.timeout(self._settings.request_deadline_s):
                await self._client.post(url)
        except (TimeoutError, httpx.HTTPError, httpx.InvalidURL):
            return  # the deadline has passed all the same, and that is what is reported

    async def body_of(self, response: httpx.Response) -> Body:
        """The whole body; `PageNotUnderstood` when it is longer than the settings want to read."""
        async with asyncio.timeout(self._settings.request_deadline_s):
            read = await self._bytes_of(response)
        text = self._headers.hidden(read.decode("utf-8", "replace"))
        return Body(url=clean(str(response.url)), text=clean(text))

    async def _bytes_of(self, response: httpx.Response) -> bytes:
        most = self._settings.report_most_mb * MEGABYTE
        read = bytearray()
        async for piece in response.aiter_bytes(CHUNK):
            read += piece
            if len(read) > most:
                raise PageNotUnderstood(
                    f"{bare(str(response.url))} sent more than probe.job.report_most_mb = "
                    f"{self._settings.report_most_mb:g} MB"
                )
        return bytes(read)

    @asynccontextmanager
    async def _got(self, url: str, body: Any = None) -> AsyncGenerator[httpx.Response]:
        try:
            async with asyncio.timeout(self._settings.request_deadline_s) as limit:
                method = "GET" if body is None else "POST"
                async with self._client.stream(method, url, json=body) as response:
                    if body is None or response.status_code not in QUERY_REFUSED:
                        self._check(response)
                    limit.reschedule(None)  # what comes after the head has limits of its own
                    yield response
        except httpx.InvalidURL as error:
            raise PageNotUnderstood(f"no address: {bare(url)!r}; see probe.job") from error
        except (TimeoutError, httpx.HTTPError) as error:
            raise TryAgain(Unreachable(f"{bare(url)} does not answer: {_why(error)}")) from error

    def _check_start(self, response: httpx.Response) -> None:
        status = response.status_code
        if status in GONE:
            raise Unreachable(f"{bare(str(response.url))} answered HTTP {status}: no jobs are taken there")
        self._check(response)

    def _check(self, response: httpx.Response) -> None:
        status, where = response.status_code, bare(str(response.url))
        if status < ERRORS_FROM:
            return
        if status in REFUSED:
            raise AccessDenied(f"{where} answered {self._headers.refused(status)}")
        if status in WALLS:
            raise AccessDenied(f"{where} answered HTTP {status}: a login or quota wall")
        if status == TOO_MANY:
            raise TryAgain(
                AccessDenied(f"{where} answered HTTP 429: a quota wall"), retry_after_s(response.headers)
            )
        if status in GONE:
            raise TryAgain(AnswerIncomplete(f"the app lost the job: {where} answered HTTP {status}"))
        if status >= APP_ERRORS_FROM:
            raise TryAgain(Unreachable(f"{where} answered HTTP {status}"), retry_after_s(response.headers))
        raise PageNotUnderstood(
            f"{where} answered HTTP {status}: does it want another request than probe.job says?"
        )


def _hosts(settings: JobSettings) -> list[str]:
    """The addresses on hosts of their own that the configuration names."""
    named = (
        settings.status_url,
        settings.events_url,
        settings.report_url,
        settings.cancel_url,
        settings.answer_url,
    )
    return ["/".join(one.split("/")[:3]) for one in named if one and one.startswith(("http://", "https://"))]


def bare(url: str) -> str:
    """The address without user, query and fragment, as far as a message may show it."""
    return clean(re.sub(r"//[^/@]*@|[?#].*", lambda part: "//" if part[0].startswith("//") else "", url))[:300]


def _why(error: Exception) -> str:
    return "it took too long" if isinstance(error, TimeoutError) else type(error).__name__


CLOCKS_DIFFER_S = 60.0
"""A job that is older than its start by more is an old one; the parts of an app may have clocks of their own."""
STEPS_AT_MOST = 1000
EVENTS_AT_MOST = 5 * STEPS_AT_MOST
"""A step is announced, done, and its node with it; more is an agent that goes round in a circle."""


def _no_script(_question: str) -> str | None:
    return None


@dataclass
class AgentJob:
    """One job. ``age_s`` is how old it was when this process took it up; 0 for one that it started itself.

    ``heard``: an event announced it. ``heard_end``: an event said that it is over. ``app_time`` is when the start
    was answered, by the app's own clock. ``took_s`` is how long it took, once its report is there. ``answer_to``
    gives the suite's answer to a question of the agent's, ``noted`` the questions that an earlier process answered,
    ``delivered`` whether the last answer surely arrived.
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
    events: list[SeenEvent] = field(default_factory=list[SeenEvent])
    heard: bool = False
    heard_end: bool = False
    began: float = field(default_factory=monotonic)
    app_time: datetime | None = None
    took_s: float | None = None
    known_trace: str = ""
    checked_trace: str = ""
    traced_hops: int | None = None
    steps_are_whole: bool = True
    answer_to: Callable[[str], str | None] = _no_script
    noted: tuple[AgentQuestion, ...] = ()
    delivered: bool = True

    def __post_init__(self) -> None:
        self.asked = AgentQuestions(self.settings, self.noted, delivered=self.delivered)

    @property
    def known(self) -> bool:
        """Whether the app has said where it is: it was started."""
        return bool(self.job or self.location)

    @property
    def elapsed_s(self) -> float:
        """Since it was started, by whichever process."""
        return self.age_s + monotonic() - self.began

    @property
    def left_s(self) -> float:
        """The time until its deadline."""
        return self.settings.deadline_s - self.elapsed_s

    def address(self, template: str) -> str:
        """An address of the job. What the app sent cannot lead to another host, nor out of its place in a path."""
        start = self.start_url.split("?")[0].rstrip("/")
        if "{job}" in template and not self.job:
            raise PageNotUnderstood(f"probe.job.id = {self.settings.id!r} leads nowhere in the reply to the start")
        if "{location}" in template and not self.location:
            raise PageNotUnderstood("probe.job speaks of {location}, and the reply to the start had none")
        made = template.format(start=start, job=quote(self.job, safe=""), location=self.location)
        return urljoin(f"{start}/", made)

    def located(self, location: str | None) -> None:
        """Takes the reply's ``Location``; `PageNotUnderstood` when it leads to another host: our key stays here."""
        if not location:
            return
        there = urljoin(self.start_url, location)
        if urlsplit(there)[:2] != urlsplit(self.start_url)[:2]:
            raise PageNotUnderstood(f"the app sends us to another host for the job: {clean(there)[:200]!r}")
        self.location = there

    def accepted(self, headers: Mapping[str, str]) -> None:
        """Takes the head of the reply to the start. What it took to be let in is no time of the job."""
        self.began = monotonic()
        self.located(headers.get("location"))
        try:
            self.app_time = parsedate_to_datetime(headers.get("date", ""))
        except ValueError:
            self.app_time = None

    def named(self, document: Any) -> None:
        """Takes the job's id from the reply to the start."""
        found = [value for value in items_at(document, self.settings.id) if isinstance(value, str | int)]
        if found and not isinstance(found[0], bool):
            self.job = clean(str(found[0]))

    def sees(self, document: Any) -> None:
        """Takes a state as the newest word; `OldJob` where it is that of a job from before."""
        self._refuse_old(document)
        self._takes(document)

    def _takes(self, document: Any, event: str | None = None) -> None:
        """Takes a state, or an event with its name, as the newest word."""
        self.last = document
        states = [value for value in items_at(document, self.settings.state) if isinstance(value, str)]
        if states:
            self.state = clean(states[-1])
        self.asked.sees(document, event)
        self.counts(document)

    def _refuse_old(self, document: Any) -> None:
        """`OldJob` where the app says that the job is older than its start, both by the app's clock."""
        made = next(filter(None, map(_time_in, items_at(document, self.settings.created_at))), None)
        if made is None or self.app_time is None or (self.app_time - made).total_seconds() <= CLOCKS_DIFFER_S:
            return
        raise old_job(f"a job of {made:%Y-%m-%d %H:%M} UTC, and it was {self.app_time:%Y-%m-%d %H:%M} UTC")

    def counts(self, document: Any) -> None:
        """Takes the app's own number of hops."""
        hops = items_at(document, self.settings.hops) if self.settings.hops else []
        counted = [n for n in hops if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
        self.hops = counted[-1] if counted else self.hops

    def lists(self, document: Any) -> None:
        """Takes the steps that a state or a report lists from the first on, if it lists more than are known."""
        path = self.settings.steps
        found = items_at(document, path)[:STEPS_AT_MOST] if path else []
        self.traces(read_trace(found) or AgentPath(tuple(self._step(value, None) for value in found)))

    def traces(self, path: AgentPath) -> None:
        """Takes the whole way of the agent, if that is more than is known of it."""
        if len(path.steps) > len(self.steps):
            self.steps, self.steps_are_whole = list(path.steps[:STEPS_AT_MOST]), len(path.steps) <= STEPS_AT_MOST
            self.traced_hops = path.hops

    def hears(self, event: Event) -> None:
        """Takes one event; its name may be the state. What is no JSON shows only that the job lives."""
        if event.name.casefold() in self._ends:
            self.state, self.heard_end = clean(event.name), True
        try:
            document = json.loads(event.data)
        except (ValueError, RecursionError):  # deep input recurses
            return
        self.heard = True
        for kind in items_at(document, self.settings.event_type):
            if isinstance(kind, str) and kind.casefold().removeprefix("job.") in self._ends:
                self.state, self.heard_end = clean(kind).removeprefix("job."), True
        if not self.job:
            self.named(document)
        self._takes(document, event.name)
        at_ms, path = self.elapsed_s * 1000, self.settings.event_step
        if path is None and isinstance(document, dict):
            self._hears_step(SeenEvent(cast("dict[str, Any]", document), at_ms))
        new = [self._step(value, at_ms) for value in items_at(document, path)] if path else []
        if new:
            self.steps, self.steps_are_whole = (self.steps + new)[:STEPS_AT_MOST], False

    def _hears_step(self, event: SeenEvent) -> None:
        kind = next(iter(items_at(event.fields, self.settings.event_type)), None)
        if kind in STEP_EVENTS and len(self.events) < EVENTS_AT_MOST:
            self.events.append(event._replace(fields={**event.fields, "type": kind}))

    def state_in(self, body: str) -> Any:
        """A state that was asked for. `TryAgain` when it is none: a proxy's page comes and goes."""
        try:
            document = parsed(body)
        except PageNotUnderstood as error:
            raise TryAgain(error) from error
        if any(isinstance(value, str) for value in items_at(document, self.settings.state)):
            return document
        seen = as_text(document)[:200]
        path = self.settings.state
        raise TryAgain(PageNotUnderstood(f"probe.job.state = {path!r} leads to no state in the reply {seen}"))

    @property
    def trace_url(self) -> str:
        """The address of its trace, as its newest state has it; empty where it has none."""
        found = [value for value in items_at(self.last, self.settings.trace_url) if isinstance(value, str)]
        self.known_trace = clean(found[0]) if found and found[0] else self.known_trace
        return self.known_trace

    @property
    def _ends(self) -> set[str]:
        return {name.casefold() for name in (*self.settings.finished, *self.settings.failed)}

    @property
    def finished(self) -> bool:
        """Whether the report is there. Raises `AppErrorShown` when there will be none."""
        state = self.state.casefold()
        if state in {name.casefold() for name in self.settings.failed}:
            why = self._error() or "it does not say why"
            raise AppErrorShown(f"the job ended as {self.state!r}: {why}", partial_text=self._partial())
        return state in {name.casefold() for name in self.settings.finished}

    @property
    def evidence(self) -> Evidence:
        """What the agent did on the way: as it was listed, or as its events say where they say more.

        Events that broke off say less than a whole list, however many there were.
        """
        path = read_events(self.events)
        more = len(path.steps) > len(self.steps) and (self.heard_end or not (self.steps and self.steps_are_whole))
        steps, hops = (path.steps, path.hops) if more else (tuple(self.steps), self.traced_hops)
        whole = self.heard_end or (self.steps_are_whole and not more) or not steps
        return Evidence(
            steps=steps[:STEPS_AT_MOST],
            steps_cut=not whole,
            hops=self.hops if self.hops is not None else hops,
            questions=self.asked.answered,
        )

    def late(self) -> ProbeError:
        """The deadline has passed."""
        got = f"{self.state!r} after {plural(len(self.evidence.steps), 'step')}{self._hint()}"
        seen = f"the job did not finish within {self.settings.deadline_s:g} s: {got}"
        partial = self._partial()
        return AnswerIncomplete(seen, partial_text=partial) if partial else AnswerTimeout(seen)

    def _hint(self) -> str:
        """A state that may mean that the agent asks, though the configuration does not say so."""
        if "wait" not in self.state.casefold() or self.asked.answered:
            return ""
        return "; if it waits for an answer to a question, add this state to probe.job.asking"

    def _partial(self) -> str:
        path = self.settings.text
        texts = [value for value in items_at(self.last, path) if isinstance(value, str)] if path else []
        return clean(texts[-1]) if texts else ""

    def _error(self) -> str:
        found = [value for value in items_at(self.last, self.settings.error) if value]
        return as_text(found[0])[:300] if found else ""

    def _step(self, value: Any, at_ms: float | None) -> Step:
        names = [one for one in items_at(value, self.settings.step_name) if isinstance(one, str)]
        if not isinstance(value, dict):
            return Step(name=as_text(value)[:LONGEST_DETAIL], at_ms=at_ms)
        made = step_of(cast("dict[str, Any]", value), names[0] if names else None)
        return made.model_copy(update={"name": clean(made.name), "detail": clean(made.detail), "at_ms": at_ms})


def old_job(what: str) -> OldJob:
    """The error of a start that brought an old job: ``what`` says what it was answered with."""
    return OldJob(
        f"the start was answered with {what}: nothing new was measured. Does the app give one job for the same "
        "question again? Ask it as another user, or let its staging forget old jobs"
    )


def _time_in(value: Any) -> datetime | None:
    """A point in time: seconds since 1970, or ISO 8601 with a zone. Without one nobody can say when it was."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None
    return time.astimezone(UTC) if time is not None and time.tzinfo is not None else None


def as_text(value: Any) -> str:
    """A value as text."""
    return clean(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
