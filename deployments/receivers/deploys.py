"""The deploy receiver: it verifies a delivery, stores its deploys, answers, and then starts the run.

    POST /deploys/{provider}   202 stored, 200 already known or starts no run, 4xx refused, 503 not stored
    GET  /healthz              the process is alive
    GET  /readyz               deploys can be stored, and Prefect answers
    GET  /metrics              metrics for Prometheus

A deploy is stored on disk before the answer is sent. Therefore the deploy is not lost if the process is killed. The
answer does not wait for Prefect or the warehouse, because a background task starts the runs. The size of a
request's body, and the time to send it, are limited. Answers and log lines contain nothing from the request, and a
sender cannot create new time series of metrics.
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
    DELIVERY_PATH,
    Delivery,
    DeliveryRejected,
    Headers,
    IgnoreReason,
    NotForUs,
    RejectionReason,
    TriggerParser,
)
from flows.alerting.notifier import Notifier
from flows.deploys.queue import NOT_FOR_US_PREFIX, DeployQueue, QueuedDeploy
from flows.deploys.runs import (
    RunNotMade,
    RunPlan,
    StartReport,
    create_runs_of_waiting_deploys,
    restart_crashed_runs,
)
from monitors.config.sections import DeploySender
from monitors.errors import MonitorError
from warehouse.journal.journal import Journal

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 5.0)
"""Bucket bounds of the histogram in seconds. 99 % of answers should take at most 0.2 s, and all at most 1 s."""


class ReceiverMetrics:
    """The receiver's Prometheus metrics. Each application has its own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.accepted = self._build_counter("accepted", "deliveries with a new deploy", "provider")
        self.duplicate = self._build_counter("duplicate", "deliveries with only known deploys", "provider")
        self._ignored = self._build_counter(
            "ignored", "deliveries that start no run, by reason", "provider", "reason"
        )
        self._refused = self._build_counter("refused", "refused deliveries, by reason", "provider", "reason")
        self.runs = Counter("lookout_deploy_runs", "runs created for deploys", registry=self.registry)
        self._failures = Counter(
            "lookout_deploy_run_failures", "failed attempts to create a run", registry=self.registry
        )
        self._waiting = Gauge("lookout_deploys_waiting", "deploys without a run", registry=self.registry)
        self._oldest = Gauge(
            "lookout_oldest_waiting_deploy_seconds",
            "seconds that the oldest deploy without a run has waited; 0 if no deploy waits",
            registry=self.registry,
        )
        self.latency = Histogram(
            "lookout_webhook_acknowledgement_seconds",
            "seconds from a delivery's headers to its answer",
            ["provider"],
            buckets=BUCKETS_S,
            registry=self.registry,
        )

    def count_delivery_without_start(self, provider: DeploySender, why: IgnoreReason) -> None:
        """Count a delivery that starts no run."""
        self._ignored.labels(provider.value, why.value).inc()

    def count_refusal(self, provider: DeploySender, why: RejectionReason) -> None:
        """Count a delivery that was refused."""
        self._refused.labels(provider.value, why.value).inc()

    def count_run_starts(self, started: StartReport) -> None:
        """Count the runs that were started for waiting deploys, and the starts that failed."""
        self.runs.inc(len(started.runs))
        self._failures.inc(len(started.failed))

    def format_metrics(self, waiting: tuple[QueuedDeploy, ...], now: datetime) -> bytes:
        """Return all metrics in Prometheus' text format. ``waiting`` contains the waiting deploys, oldest first."""
        self._waiting.set(len(waiting))
        self._oldest.set(max(0.0, (now - waiting[0].stored_at).total_seconds()) if waiting else 0.0)
        return generate_latest(self.registry)

    def _build_counter(self, name: str, description: str, *labels: str) -> Counter:
        return Counter(f"lookout_webhook_{name}", description, labels, registry=self.registry)


MAX_BODY_BYTES: Final = 2 * 2**20
"""Maximum size of a delivery in bytes: a push of 2,048 commits (GitHub's limit) of about 1 kB each."""
SMALL_BODY_BYTES: Final = 2**16
"""Maximum size of a small body in bytes. The server buffers this much of any request.

Most deliveries have 10 to 30 kB.
"""
MAX_LARGE_BODIES: Final = 32
BODY_TIMEOUT_S: Final = 5.0
"""Maximum time for the body of a delivery in seconds. It is half of GitHub's limit."""


def collect_headers(request: Request) -> Headers:
    """Collect all values of each header. The keys of the result are header names in lower case."""
    return {name: tuple(request.headers.getlist(name)) for name in request.headers}


async def read_body(request: Request, large: asyncio.Semaphore) -> bytes:
    """Read the whole body. Raises `DeliveryRejected` if the body is too large, too slow or incomplete.

    Unless the ``Content-Length`` header states that the body is small, the function first waits for the semaphore
    ``large``, which limits the memory of all large bodies together.
    """
    length = request.headers.get("content-length", "0")
    if not (length.isascii() and length.isdecimal()) or int(length[:20]) > MAX_BODY_BYTES:
        raise DeliveryRejected(RejectionReason.TOO_LARGE, "too large")
    small = "content-length" in request.headers and int(length) <= SMALL_BODY_BYTES
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            if small:
                return await _read_bounded(request)
            async with large:
                return await _read_bounded(request)
    except TimeoutError:
        raise DeliveryRejected(RejectionReason.TOO_SLOW, "too slow") from None
    except ClientDisconnect:
        raise DeliveryRejected(RejectionReason.CUT_OFF, "the body is incomplete") from None


async def _read_bounded(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise DeliveryRejected(RejectionReason.TOO_LARGE, "too large")
    return bytes(body)


FIRST_PAUSE_S: Final = 1.0
CRASH_CHECK_INTERVAL_S: Final = 15.0
"""The interval in seconds at which Prefect is asked whether the run of a deploy has crashed."""
MAX_PAUSE_S: Final = 60.0
"""Maximum pause in seconds between two attempts while Prefect is down. The Prefect server needs 15 s to restart."""

log = logging.getLogger(__name__)


class RunStarter(Worker):
    """A task that starts the runs of all waiting deploys, and restarts runs that crashed.

    ``prefect_api`` returns the current address of Prefect's API, or ``None`` if Prefect is not running yet.
    ``build_notifier`` builds the notifier of a target, which sends an alert if a crashed run is not started again.
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
        build_notifier: Callable[[str], Notifier],
        first_pause_s: float = FIRST_PAUSE_S,
    ) -> None:
        super().__init__(first_pause_s=first_pause_s, max_pause_s=MAX_PAUSE_S, interval_s=CRASH_CHECK_INTERVAL_S)
        self.deploys = deploys
        self.prefect_api = prefect_api
        self._journal = journal
        self._plan = plan
        self._metrics = metrics
        self._now = now
        self._build_notifier = build_notifier
        self._logged_reasons: tuple[str, ...] = ()

    async def work(self) -> bool:
        """Start the runs of waiting deploys. Return whether all were started."""
        try:
            started = await self._start_waiting_and_crashed_runs()
        except MonitorError as error:
            started = StartReport((), (RunNotMade(str(error)),))
        except Exception as error:  # noqa: BLE001 - the text of an unexpected error may hold a secret
            started = StartReport((), (RunNotMade(f"internal error of Lookout: {type(error).__name__}"),))
        self._metrics.count_run_starts(started)
        self._log(tuple(dict.fromkeys(str(failure) for failure in started.failed)))
        return not started.failed

    def _log(self, reasons: tuple[str, ...]) -> None:
        """Log why deploys wait, or that no deploy waits any more, if this has changed since the last call."""
        if reasons == self._logged_reasons:
            return
        for reason in reasons:
            log.warning("the run of a deploy could not be started. Lookout tries again. Reason: %s", reason)
        if not reasons:
            log.warning("the runs of all waiting deploys were created")
        self._logged_reasons = reasons

    async def _start_waiting_and_crashed_runs(self) -> StartReport:
        has_waiting_deploys = await asyncio.to_thread(self.deploys.has_waiting_deploys)
        if not has_waiting_deploys and not await asyncio.to_thread(self.deploys.has_unfinished_attempts):
            return StartReport((), ())
        api = await asyncio.to_thread(self.prefect_api)
        if api is None:
            raise RunNotMade(
                "no Prefect server is running. To use your own server, set `prefect.api_url` or PREFECT_API_URL"
            )
        async with PrefectClient(api) as client:
            restarted = await restart_crashed_runs(
                client, self.deploys, self._plan, build_notifier=self._build_notifier
            )
            started = await create_runs_of_waiting_deploys(
                client, self.deploys, self._journal, self._plan, now=self._now
            )
        return StartReport((*restarted.runs, *started.runs), (*restarted.failed, *started.failed))


class Receiver:
    """Answers deliveries. ``parsers`` contains a parser for each sender in the configured triggers."""

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
        self._large = asyncio.Semaphore(MAX_LARGE_BODIES)

    async def receive(self, request: Request) -> Response:
        """Answer one delivery."""
        parser = self._parsers.get(request.path_params["provider"])
        if parser is None:
            return PlainTextResponse("this sender is not configured", status_code=HTTPStatus.NOT_FOUND)
        with self._metrics.latency.labels(parser.provider.value).time():
            try:
                return await self._answer_delivery(parser, request)
            except DeliveryRejected as refusal:
                return self._answer_refusal(parser, refusal)
            except Exception as error:  # noqa: BLE001 - its text may hold parts of the request, so only its type is logged
                log.error("internal error of Lookout: %s", type(error).__name__)  # noqa: TRY400 - without a traceback, as above
                return self._answer_refusal(
                    parser,
                    DeliveryRejected(
                        RejectionReason.NOT_STORED, ("Lookout could not accept this delivery; send it again later")
                    ),
                )

    async def _answer_delivery(self, parser: TriggerParser, request: Request) -> Response:
        headers = collect_headers(request)
        parser.check_headers(headers)
        delivery = Delivery(headers, await read_body(request, self._large), self._now())
        try:
            answer = await asyncio.to_thread(self._verify_and_store_delivery, parser, delivery)
        except MonitorError as error:
            log.error("a deploy could not be stored: %s", error)  # noqa: TRY400 - the text suffices
            raise DeliveryRejected(
                RejectionReason.NOT_STORED, "Lookout could not store this delivery; send it again later"
            ) from None
        if answer.status_code == HTTPStatus.ACCEPTED:
            self._starter.wake()
        return answer

    def _verify_and_store_delivery(self, parser: TriggerParser, delivery: Delivery) -> Response:
        """Verify and store one delivery.

        Runs in a thread, because signatures, JSON and disk access take milliseconds.
        """
        parsed = parser.verify_and_parse(delivery)
        if isinstance(parsed, NotForUs):
            self._metrics.count_delivery_without_start(parser.provider, parsed.reason)
            return PlainTextResponse(f"{NOT_FOR_US_PREFIX}: {parsed.reason.value}", status_code=HTTPStatus.OK)
        stored = [QueuedDeploy(deploy=deploy, stored_at=delivery.received_at) for deploy in parsed.deploys]
        if any([self._starter.deploys.save_if_new(deploy) for deploy in stored]):  # noqa: C419 - each is stored
            self._metrics.accepted.labels(parser.provider.value).inc()
            return PlainTextResponse("accepted", status_code=HTTPStatus.ACCEPTED)
        self._metrics.duplicate.labels(parser.provider.value).inc()
        return PlainTextResponse("already known", status_code=HTTPStatus.OK)

    def _answer_refusal(self, parser: TriggerParser, refusal: DeliveryRejected) -> Response:
        """Count the refusal, and return its response."""
        self._metrics.count_refusal(parser.provider, refusal.reason)
        return PlainTextResponse(str(refusal), status_code=refusal.status)


def build_application(
    parsers: Sequence[TriggerParser],
    starter: RunStarter,
    metrics: ReceiverMetrics,
    readiness: Readiness,
    *,
    now: Callable[[], datetime],
) -> Starlette:
    """Build the receiver as an ASGI application.

    While the application runs, it also starts the runs of waiting deploys.
    """
    receiver = Receiver(parsers, starter, metrics, now=now)

    async def answer_health(_request: Request) -> Response:
        return PlainTextResponse("ok")

    async def answer_readiness(_request: Request) -> Response:
        readiness_status = await readiness.get_recent_readiness_status()
        status = HTTPStatus.OK if readiness_status.ready else HTTPStatus.SERVICE_UNAVAILABLE
        return JSONResponse(readiness_status.model_dump(), status_code=status)

    async def answer_metrics(_request: Request) -> Response:
        waiting = await asyncio.to_thread(starter.deploys.list_waiting_deploys)
        return Response(metrics.format_metrics(waiting, now()), media_type=CONTENT_TYPE)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        async with starter:
            yield

    return Starlette(
        routes=[
            Route(DELIVERY_PATH + "/{provider}", receiver.receive, methods=["POST"]),
            Route("/healthz", answer_health, methods=["GET"]),
            Route("/readyz", answer_readiness, methods=["GET"]),
            Route("/metrics", answer_metrics, methods=["GET"]),
        ],
        lifespan=lifespan,
    )
