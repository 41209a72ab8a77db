"""The receiver of deploys: proves a delivery, stores its deploys, answers; the run follows after the answer.

    POST /deploys/{provider}   202 stored, 200 known already or not for us, 4xx refused
    GET  /healthz              the process lives
    GET  /readyz               deploys can be stored, and Prefect answers
    GET  /metrics              figures for Prometheus

A deploy is on disk before the answer, so that it survives a kill. Answering waits neither for Prefect nor for the
warehouse: a task beside it makes the runs. A request's body is bounded in size and time before anybody reads it. No
answer and no log line holds anything of what was sent, and no sender can make a new series of the figures.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from http import HTTPStatus
from typing import Final

from prefect.client.orchestration import PrefectClient
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from deployments.receivers.readiness import Readiness
from deployments.receivers.worker import Worker
from deployments.triggers.delivery import (
    Delivery,
    DeliveryRejected,
    Headers,
    Ignored,
    NotForUs,
    RejectionReason,
    TriggerParser,
)
from flows.deploys.queue import DeployQueue, QueuedDeploy
from flows.deploys.runs import RunNotMade, RunPlan, StartReport, start_waiting
from monitors.config.sections import DeploySender
from monitors.errors import MonitorError
from warehouse.journal.journal import Journal

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 5.0)
"""With a bound at the 0.2 s that 99 of 100 must be below, and one at the second that a sender is promised."""


class ReceiverMetrics:
    """Counted per application, so that two in one process do not share their figures."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.accepted = self._counter("accepted", "deliveries with a deploy that was new", "provider")
        self.duplicate = self._counter("duplicate", "deliveries whose deploys were known", "provider")
        self._ignored = self._counter("ignored", "deliveries that start nothing, by why", "provider", "reason")
        self._refused = self._counter("refused", "deliveries refused, by why", "provider", "reason")
        self.runs = Counter("lookout_deploy_runs", "runs made for deploys", registry=self.registry)
        self._failures = Counter(
            "lookout_deploy_run_failures", "tries to make a run that failed", registry=self.registry
        )
        self._waiting = Gauge("lookout_deploys_waiting", "deploys that have no run yet", registry=self.registry)
        self._oldest = Gauge(
            "lookout_oldest_waiting_deploy_seconds",
            "how long the oldest of them has waited; 0 without any",
            registry=self.registry,
        )
        self.latency = Histogram(
            "lookout_webhook_acknowledgement_seconds",
            "from a delivery's headers to its answer",
            ["provider"],
            buckets=BUCKETS_S,
            registry=self.registry,
        )

    def ignored(self, provider: DeploySender, why: Ignored) -> None:
        """Count a delivery that starts nothing."""
        self._ignored.labels(provider.value, why.value).inc()

    def refused(self, provider: DeploySender, why: RejectionReason) -> None:
        """Count a delivery that was refused."""
        self._refused.labels(provider.value, why.value).inc()

    def started(self, started: StartReport) -> None:
        """Count what became of the deploys that waited."""
        self.runs.inc(len(started.runs))
        self._failures.inc(len(started.failed))

    def text(self, waiting: tuple[QueuedDeploy, ...], now: datetime) -> bytes:
        """All figures as Prometheus reads them; ``waiting`` has the oldest first."""
        self._waiting.set(len(waiting))
        self._oldest.set(max(0.0, (now - waiting[0].stored_at).total_seconds()) if waiting else 0.0)
        return generate_latest(self.registry)

    def _counter(self, name: str, what: str, *labels: str) -> Counter:
        return Counter(f"lookout_webhook_{name}", what, labels, registry=self.registry)


MOST_BODY_BYTES: Final = 2 * 2**20
"""A push of 2,048 commits, the most that GitHub lists, has about 1 kB for each."""
SMALL_BODY_BYTES: Final = 2**16
"""As much as the server buffers of any request; most deliveries have 10 to 30 kB."""
LARGE_AT_ONCE: Final = 32
BODY_DEADLINE_S: Final = 5.0
"""Half of what GitHub gives a receiver for everything; two megabytes take less on any line a server has."""


def headers_of(request: Request) -> Headers:
    """All values of every header, by lower-case name."""
    return {name: tuple(request.headers.getlist(name)) for name in request.headers}


async def read_body(request: Request, large: asyncio.Semaphore) -> bytes:
    """The whole body. Raises `DeliveryRejected` when it is too large, too slow, or cut off; what came is dropped.

    One that is not known to be small waits for its turn among the ``large`` ones: all together take little memory.
    """
    length = request.headers.get("content-length", "0")
    if not (length.isascii() and length.isdecimal()) or int(length[:20]) > MOST_BODY_BYTES:
        raise DeliveryRejected(RejectionReason.TOO_LARGE, "too large")
    small = "content-length" in request.headers and int(length) <= SMALL_BODY_BYTES
    try:
        async with asyncio.timeout(BODY_DEADLINE_S):
            if small:
                return await _read(request)
            async with large:
                return await _read(request)
    except TimeoutError:
        raise DeliveryRejected(RejectionReason.TOO_SLOW, "too slow") from None
    except ClientDisconnect:
        raise DeliveryRejected(RejectionReason.CUT_OFF, "the body was cut off") from None


async def _read(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY_BYTES:
            raise DeliveryRejected(RejectionReason.TOO_LARGE, "too large")
    return bytes(body)


FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
"""Between two tries while Prefect is away, doubled each time up to this: a restart of its server takes 15 s."""

log = logging.getLogger(__name__)


class RunStarter(Worker):
    """Starts the run of every deploy that waits for one.

    ``prefect_api`` finds where Prefect's API answers now, ``None`` when nowhere: it may be started later.
    """

    def __init__(
        self,
        deploys: DeployQueue,
        journal: Journal,
        plan: RunPlan,
        *,
        prefect_api: Callable[[], str | None],
        metrics: ReceiverMetrics,
        now: Callable[[], datetime],
        first_pause_s: float = FIRST_PAUSE_S,
    ) -> None:
        super().__init__(first_pause_s=first_pause_s, longest_pause_s=LONGEST_PAUSE_S)
        self.deploys = deploys
        self.prefect_api = prefect_api
        self._journal = journal
        self._plan = plan
        self._metrics = metrics
        self._now = now
        self._said: tuple[str, ...] = ()

    async def work(self) -> bool:
        """Start what waits; whether nothing waits any more."""
        try:
            started = await self._start()
        except MonitorError as error:
            started = StartReport((), (RunNotMade(str(error)),))
        except Exception as error:  # noqa: BLE001 - the text of an error that nobody foresaw may hold a secret
            started = StartReport((), (RunNotMade(f"this is a fault of Lookout itself: {type(error).__name__}"),))
        self._metrics.started(started)
        self._log(tuple(dict.fromkeys(str(failure) for failure in started.failed)))
        return not started.failed

    def _log(self, why: tuple[str, ...]) -> None:
        """Log why deploys wait, once for as long as it stays the same, and that none waits any more."""
        if why == self._said:
            return
        for one in why:
            log.warning("a deploy waits for its run, which is tried again: %s", one)
        if not why:
            log.warning("every deploy that waited has its run")
        self._said = why

    async def _start(self) -> StartReport:
        if not await asyncio.to_thread(self.deploys.anything_waits):
            return StartReport((), ())
        api = await asyncio.to_thread(self.prefect_api)
        if api is None:
            raise RunNotMade(
                "no Prefect server is running; `prefect.api_url` or PREFECT_API_URL names one of yours"
            )
        async with PrefectClient(api) as client:
            return await start_waiting(client, self.deploys, self._journal, self._plan, now=self._now)


PATH: Final = "/deploys"


class Receiver:
    """Answers deliveries. ``parsers`` are those of the senders that a trigger listens to; there are no others."""

    def __init__(
        self,
        parsers: Sequence[TriggerParser],
        starter: RunStarter,
        metrics: ReceiverMetrics,
        *,
        now: Callable[[], datetime],
    ) -> None:
        self._parsers: Mapping[str, TriggerParser] = {parser.provider.value: parser for parser in parsers}
        self._starter = starter
        self._metrics = metrics
        self._now = now
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)

    async def receive(self, request: Request) -> Response:
        """Answer one delivery."""
        parser = self._parsers.get(request.path_params["provider"])
        if parser is None:
            return PlainTextResponse("no such sender is configured", status_code=HTTPStatus.NOT_FOUND)
        with self._metrics.latency.labels(parser.provider.value).time():
            try:
                return await self._answer(parser, request)
            except DeliveryRejected as refusal:
                return self._refused(parser, refusal)
            except Exception as error:  # noqa: BLE001 - its text may hold what was sent, so its kind is all that is logged
                log.error("this is a fault of Lookout itself: %s", type(error).__name__)  # noqa: TRY400 - no trace, as above
                return self._refused(
                    parser,
                    DeliveryRejected(RejectionReason.NOT_STORED, "it could not be taken; send it again later"),
                )

    async def _answer(self, parser: TriggerParser, request: Request) -> Response:
        headers = headers_of(request)
        parser.admit(headers)
        delivery = Delivery(headers, await read_body(request, self._large), self._now())
        try:
            answer = await asyncio.to_thread(self._take, parser, delivery)
        except MonitorError as error:
            log.error("a deploy could not be stored: %s", error)  # noqa: TRY400 - says it all
            raise DeliveryRejected(
                RejectionReason.NOT_STORED, "it could not be stored; send it again later"
            ) from None
        if answer.status_code == HTTPStatus.ACCEPTED:
            self._starter.wake()
        return answer

    def _take(self, parser: TriggerParser, delivery: Delivery) -> Response:
        """Read one delivery, in a thread: signatures, JSON and disk take milliseconds; other answers go on."""
        parsed = parser.parse(delivery)
        if isinstance(parsed, NotForUs):
            self._metrics.ignored(parser.provider, parsed.why)
            return PlainTextResponse(f"not for us: {parsed.why.value}", status_code=HTTPStatus.OK)
        stored = [QueuedDeploy(deploy=deploy, stored_at=delivery.received_at) for deploy in parsed.deploys]
        if any([self._starter.deploys.save(one) for one in stored]):  # noqa: C419 - each is stored
            self._metrics.accepted.labels(parser.provider.value).inc()
            return PlainTextResponse("accepted", status_code=HTTPStatus.ACCEPTED)
        self._metrics.duplicate.labels(parser.provider.value).inc()
        return PlainTextResponse("known already", status_code=HTTPStatus.OK)

    def _refused(self, parser: TriggerParser, refusal: DeliveryRejected) -> Response:
        self._metrics.refused(parser.provider, refusal.reason)
        return PlainTextResponse(str(refusal), status_code=refusal.status)


def application(
    parsers: Sequence[TriggerParser],
    starter: RunStarter,
    metrics: ReceiverMetrics,
    readiness: Readiness,
    *,
    now: Callable[[], datetime],
) -> Starlette:
    """The receiver as an ASGI application; runs are made as long as it lives."""
    receiver = Receiver(parsers, starter, metrics, now=now)

    async def healthy(_request: Request) -> Response:
        return PlainTextResponse("ok")

    async def ready(_request: Request) -> Response:
        standing = await readiness.poll()
        status = HTTPStatus.OK if standing.ready else HTTPStatus.SERVICE_UNAVAILABLE
        return JSONResponse(standing.model_dump(), status_code=status)

    async def figures(_request: Request) -> Response:
        waiting = await asyncio.to_thread(starter.deploys.waiting)
        return Response(metrics.text(waiting, now()), media_type=CONTENT_TYPE)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        async with starter:
            yield

    return Starlette(
        routes=[
            Route(PATH + "/{provider}", receiver.receive, methods=["POST"]),
            Route("/healthz", healthy, methods=["GET"]),
            Route("/readyz", ready, methods=["GET"]),
            Route("/metrics", figures, methods=["GET"]),
        ],
        lifespan=lifespan,
    )
