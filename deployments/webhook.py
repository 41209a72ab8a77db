"""The receiver of deploys: proven, kept, answered; the run follows after the answer.

    POST /deploys/{provider}   202 kept, 200 known already or not for us, 4xx refused
    GET  /healthz              the process lives
    GET  /readyz               deploys can be kept, and Prefect answers
    GET  /metrics              figures for Prometheus

A deploy is on disk before the answer, so that it survives a kill. Answering waits neither for Prefect nor for the
warehouse. No answer and no log line holds anything of what was sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from http import HTTPStatus
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from deployments.triggers.delivery import Delivery, NotForUs, Refusal, Refused, TriggerParser
from deployments.webhook_body import headers_of, read_body
from deployments.webhook_metrics import CONTENT_TYPE, ReceiverMetrics
from deployments.webhook_ready import Readiness
from deployments.webhook_starter import Starter
from flows.kept_deploys import KeptDeploy
from monitors.errors import MonitorError

PATH: Final = "/deploys"

log = logging.getLogger(__name__)


class Receiver:
    """Answers deliveries. ``parsers`` are those of the senders that a trigger listens to; others are not there."""

    def __init__(
        self,
        parsers: Sequence[TriggerParser],
        starter: Starter,
        metrics: ReceiverMetrics,
        *,
        now: Callable[[], datetime],
    ) -> None:
        self._parsers: Mapping[str, TriggerParser] = {parser.provider.value: parser for parser in parsers}
        self._starter = starter
        self._metrics = metrics
        self._now = now

    async def receive(self, request: Request) -> Response:
        """One delivery."""
        parser = self._parsers.get(request.path_params["provider"])
        if parser is None:
            return PlainTextResponse("no such sender is configured", status_code=HTTPStatus.NOT_FOUND)
        with self._metrics.latency.labels(parser.provider.value).time():
            try:
                return await self._answer(parser, request)
            except Refused as refusal:
                return self._refused(parser, refusal)
            except Exception as error:  # noqa: BLE001 - its text may hold what was sent, so its kind is all that is logged
                log.error("this is a fault of Lookout itself: %s", type(error).__name__)  # noqa: TRY400 - no trace, as above
                return self._refused(
                    parser, Refused(Refusal.NOT_KEPT, "it could not be taken; send it again later")
                )

    async def _answer(self, parser: TriggerParser, request: Request) -> Response:
        headers = headers_of(request)
        parser.admit(headers)
        delivery = Delivery(headers, await read_body(request), self._now())
        try:
            answer = await asyncio.to_thread(self._take, parser, delivery)
        except MonitorError as error:
            log.error("a deploy could not be kept: %s", error)  # noqa: TRY400 - says it all
            raise Refused(Refusal.NOT_KEPT, "it could not be kept; send it again later") from None
        if answer.status_code == HTTPStatus.ACCEPTED:
            self._starter.wake()
        return answer

    def _take(self, parser: TriggerParser, delivery: Delivery) -> Response:
        """In a thread: signatures, JSON and the disk take milliseconds, which other answers need not wait."""
        parsed = parser.parse(delivery)
        if isinstance(parsed, NotForUs):
            self._metrics.ignored(parser.provider, parsed.why)
            return PlainTextResponse(f"not for us: {parsed.why.value}", status_code=HTTPStatus.OK)
        kept = [KeptDeploy(deploy=deploy, kept_at=delivery.received_at) for deploy in parsed.deploys]
        if any([self._starter.kept.keep(one) for one in kept]):  # noqa: C419 - each is kept
            self._metrics.accepted.labels(parser.provider.value).inc()
            return PlainTextResponse("accepted", status_code=HTTPStatus.ACCEPTED)
        self._metrics.duplicate.labels(parser.provider.value).inc()
        return PlainTextResponse("known already", status_code=HTTPStatus.OK)

    def _refused(self, parser: TriggerParser, refusal: Refused) -> Response:
        self._metrics.refused(parser.provider, refusal.reason)
        return PlainTextResponse(str(refusal), status_code=refusal.status)


def application(
    parsers: Sequence[TriggerParser],
    starter: Starter,
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
        standing = await readiness.look()
        status = HTTPStatus.OK if standing.ready else HTTPStatus.SERVICE_UNAVAILABLE
        return JSONResponse(standing.model_dump(), status_code=status)

    async def figures(_request: Request) -> Response:
        waiting = await asyncio.to_thread(starter.kept.waiting)
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
