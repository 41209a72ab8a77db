"""The receiver of Slack's buttons: checked, kept, answered; what comes of a press follows after the answer.

A press is in the journal before Slack gets its 200, so that it survives a kill. Slack waits three seconds: nothing
here waits for the warehouse. Nothing that is not signed is read further than its signature.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from http import HTTPStatus
from typing import Final

from slack_sdk.signature import Clock as SdkClock
from slack_sdk.signature import SignatureVerifier
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from deployments.slack_after import Aftermath
from deployments.slack_payload import Click, Malformed, clicks_in
from monitors.errors import ConfigError, MonitorError

PATH: Final = "/slack/actions"
HEALTH_PATH: Final = "/health"
SECRET_VARIABLE: Final = "SLACK_SIGNING_SECRET"  # noqa: S105 - the variable's name
MOST_BODY_BYTES: Final = 512 * 1024
"""A press brings its whole message along: 13,000 characters at most, nine bytes each where they are Hindi in a
form, so 120 kB. Four times that."""
BODY_DEADLINE_S: Final = 2.0
"""Slack gives up after three seconds."""
SHORTEST_SECRET: Final = 16

_TIMESTAMP: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_SIGNATURE: Final = re.compile(r"v0=[0-9a-f]{64}", re.ASCII)


class Refused(Exception):
    """A request that goes no further. ``str`` is the answer's body: it tells nothing that was not known."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


def signing_secrets(text: str | None) -> tuple[str, ...]:
    """The secrets of ``SLACK_SIGNING_SECRET``: one, or the new and the old one with a comma while it is changed."""
    secrets = tuple(secret.strip() for secret in (text or "").split(",") if secret.strip())
    if not secrets:
        raise ConfigError(
            f"{SECRET_VARIABLE} is not set: without it nobody can tell Slack's presses from anybody's. "
            "It is in the Slack app's settings under Basic Information, Signing Secret"
        )
    if any(len(secret) < SHORTEST_SECRET for secret in secrets):
        raise ConfigError(f"{SECRET_VARIABLE}: a signing secret has 32 characters, this one fewer than 16")
    return secrets


class _Clock(SdkClock):
    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    def now(self) -> float:
        return self._now().timestamp()


def application(*, secrets: Sequence[str], now: Callable[[], datetime], aftermath: Aftermath) -> Starlette:
    """The receiver as an ASGI application; its background work lives as long as it does."""
    verifiers = tuple(SignatureVerifier(secret, clock=_Clock(now)) for secret in secrets)

    async def receive(request: Request) -> Response:
        try:
            body = await _body(request)
            _check_signature(request, body, verifiers)
            clicks = clicks_in(body, at=now())
            await _keep(clicks, aftermath)
        except Refused as refusal:
            return PlainTextResponse(str(refusal), status_code=refusal.status)
        except Malformed as error:
            return PlainTextResponse(str(error), status_code=HTTPStatus.BAD_REQUEST)
        except ClientDisconnect:
            return PlainTextResponse("the body was cut off", status_code=HTTPStatus.BAD_REQUEST)
        return Response(status_code=HTTPStatus.OK)

    async def healthy(_request: Request) -> Response:
        return PlainTextResponse("ok")

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        async with aftermath:
            yield

    routes = [Route(PATH, receive, methods=["POST"]), Route(HEALTH_PATH, healthy, methods=["GET"])]
    return Starlette(routes=routes, lifespan=lifespan)


async def _body(request: Request) -> bytes:
    """The whole body, bounded in size and time."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a form is accepted")
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:20]) > MOST_BODY_BYTES:
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too large")
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_DEADLINE_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MOST_BODY_BYTES:
                    raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too large")
    except TimeoutError:
        raise Refused(HTTPStatus.REQUEST_TIMEOUT, "too slow") from None
    return bytes(body)


def _check_signature(request: Request, body: bytes, verifiers: Sequence[SignatureVerifier]) -> None:
    """Slack's signature over time and body, in constant time, at most 300 s old or ahead."""
    stamps = request.headers.getlist("x-slack-request-timestamp")
    signatures = request.headers.getlist("x-slack-signature")
    if len(stamps) != 1 or len(signatures) != 1:
        raise Refused(HTTPStatus.UNAUTHORIZED, "not signed")
    if not (_TIMESTAMP.fullmatch(stamps[0]) and _SIGNATURE.fullmatch(signatures[0])):
        raise Refused(HTTPStatus.UNAUTHORIZED, "not signed")
    try:
        valid = [one.is_valid(body, stamps[0], signatures[0]) for one in verifiers]
    except UnicodeDecodeError:
        raise Refused(HTTPStatus.BAD_REQUEST, "the body is not UTF-8") from None
    if not any(valid):
        raise Refused(HTTPStatus.UNAUTHORIZED, "not signed")


async def _keep(clicks: Sequence[Click], aftermath: Aftermath) -> None:
    """Durable before the answer. When it cannot be kept Slack is told so, and shows it to the one who pressed."""
    try:
        for click in clicks:
            await asyncio.to_thread(aftermath.keep, click)
    except MonitorError:
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "it could not be kept; press again later") from None
    aftermath.wake(clicks)
