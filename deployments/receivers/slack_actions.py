"""The receiver of Slack's buttons: checks a press, stores it, answers; it carries the press out after the answer.

A press is in the journal before Slack gets its 200, so that it survives a kill. Slack waits three seconds: nothing
here waits for the warehouse. Of a request that is not signed, nothing beyond the signature is read. The body is a
form with one JSON field that holds the presses. Once Slack has its answer, a press is carried out and shown in the
message.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Final
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from slack_sdk.signature import Clock as SdkClock
from slack_sdk.signature import SignatureVerifier
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from deployments.receivers.worker import Worker
from deployments.triggers.delivery import read_strict_json
from flows.alerting.edits import current_alert, outcome_of, recent_outcomes, update_alerts
from flows.alerting.notifier import OperatorActions, act, apply_actions
from monitors.alerts.sender import AlertSender
from monitors.alerts.slack.client import SlackReply
from monitors.alerts.slack.render import Press, pressed
from monitors.errors import ConfigError, MonitorError, NotifyError
from monitors.records.base import Record
from monitors.records.incidents import ActionVia
from monitors.records.operator_actions import ActionEffect, ActionOutcome, PersonAction

MOST_FIELDS: Final = 10
MOST_PRESSES: Final = 10
"""Slack sends one; a few more do no harm, a thousand would be no person."""
ID_CHARACTERS: Final = 24
"""Hexadecimal digits of a click's id: 96 bits."""


class Malformed(ValueError):
    """What was sent is no press of a button. The text never holds what was sent."""


class _User(BaseModel):
    id: Annotated[str, Field(pattern=r"^[UW][A-Z0-9]{2,20}$")]


class _Option(BaseModel):
    value: Annotated[str, Field(max_length=2_000)]


class _ButtonPress(BaseModel):
    action_id: Annotated[str, Field(max_length=255)]
    value: Annotated[str, Field(max_length=2_000)] = ""
    selected_option: _Option | None = None


class _Container(BaseModel):
    channel_id: Annotated[str, Field(pattern=r"^[CDG][A-Z0-9]{2,20}$")] | None = None
    message_ts: Annotated[str, Field(pattern=r"^[0-9]{1,12}\.[0-9]{1,8}$")] | None = None


class _Interaction(BaseModel):
    """The part of a ``block_actions`` payload that is read; everything else in it is ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)

    type: Annotated[str, Field(max_length=100)]
    user: _User
    actions: Annotated[list[_ButtonPress], Field(max_length=MOST_PRESSES)] = []
    container: _Container = _Container()
    response_url: Annotated[str, Field(max_length=2_000)] | None = None


class Click(Record):
    """A press as it is stored, and where to answer the one who pressed. The address is never stored."""

    action: PersonAction
    response_url: str | None


def clicks_in(body: bytes, *, at: datetime) -> tuple[Click, ...]:
    """The presses of our own buttons in ``body``; other apps' and other kinds of interaction give none.

    Raises `Malformed` for anything that Slack does not send.
    """
    try:
        interaction = _Interaction.model_validate(read_strict_json(_payload(body)))
        if interaction.type != "block_actions":
            return ()
        found = ((one, pressed(one.action_id, _value(one))) for one in interaction.actions)
        return tuple(_click(interaction, one, press, at) for one, press in found if press is not None)
    except ValidationError:
        raise Malformed("the payload has not the form of a press") from None
    except ValueError as error:
        raise Malformed(str(error)) from None


def _payload(body: bytes) -> str:
    try:
        fields = parse_qsl(
            body.decode("ascii"), strict_parsing=True, max_num_fields=MOST_FIELDS, errors="strict", separator="&"
        )
    except ValueError:
        raise Malformed("the body is not a form") from None
    payloads = [value for name, value in fields if name == "payload"]
    if len(payloads) != 1:
        raise Malformed("the form has not exactly one payload")
    return payloads[0]


def _value(one: _ButtonPress) -> str:
    return one.selected_option.value if one.selected_option else one.value


def _click(interaction: _Interaction, one: _ButtonPress, press: Press, at: datetime) -> Click:
    """The id follows from the button alone: pressed twice, or delivered twice, it is one action."""
    canonical = f"{one.action_id}\n{_value(one)}".encode()
    action = PersonAction(
        id=f"click-{hashlib.sha256(canonical).hexdigest()[:ID_CHARACTERS]}",
        kind=press.kind,
        at=at,
        by=interaction.user.id,
        via=ActionVia.SLACK,
        alert_id=press.alert_id,
        fingerprints=press.fingerprints,
        channel=interaction.container.channel_id,
        message_ts=interaction.container.message_ts,
    )
    return Click(action=action, response_url=interaction.response_url)


AGAIN_S: Final = 5.0
"""Between two tries while a writer has the warehouse."""
LOCK_WAIT_S: Final = 5.0
"""Short, so that the receiver can be stopped at any time: what is stored waits in the journal."""
MOST_WAITING: Final = 1_000
"""Presses that can be answered later; beyond that, the oldest is only carried out."""

Work = Callable[[], Awaitable[None]]

log = logging.getLogger(__name__)


class ActionWorker(Worker):
    """Carries out presses.

    ``sender`` edits messages with a bot token. Without one the press's own address must do, which Slack forgets
    after half an hour.
    """

    def __init__(
        self, people: OperatorActions, *, sender: AlertSender | None, reply: SlackReply, again_s: float = AGAIN_S
    ) -> None:
        super().__init__(first_pause_s=again_s, longest_pause_s=again_s)
        self._people = people
        self._sender = sender
        self._reply = reply
        self._waiting: OrderedDict[str, Click] = OrderedDict()

    def save(self, click: Click) -> None:
        """Make a press durable; may be called in a thread. `take` follows in the loop."""
        act(self._people, click.action)

    def take(self, clicks: Sequence[Click]) -> None:
        """``clicks`` are stored: carry them out."""
        self._waiting.update({click.action.id: click for click in clicks})
        while len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)
        self.wake()

    async def run(self) -> None:
        """Show what a killed receiver carried out and did not show, then work until cancelled."""
        await self._safely(self._show_what_was_left)
        await super().run()

    async def work(self) -> bool:
        """Carry out the presses that wait; whether none waits any more."""
        return await self._safely(self._carry_out)

    async def _safely(self, work: Work) -> bool:
        """Whether ``work`` was done. One failure must not end the receiver: what is stored is tried again."""
        try:
            await work()
        except MonitorError as error:
            log.warning("a press waits: %s", error)
            return False
        except Exception:  # logged; the receiver goes on and tries what is stored again
            log.exception("a press waits: this is a fault of Lookout itself")
            return False
        return True

    async def _show_what_was_left(self) -> None:
        """Show presses that a killed receiver may have carried out without showing them."""
        await asyncio.to_thread(apply_actions, self._people, wait_s=LOCK_WAIT_S)
        for outcome in await asyncio.to_thread(recent_outcomes, self._people):
            await self._show(outcome, None)

    async def _carry_out(self) -> None:
        carried = await asyncio.to_thread(apply_actions, self._people, wait_s=LOCK_WAIT_S)
        for failure in carried.failed:
            log.error("a press could not be carried out and waits: %s", failure)
        for action_id, click in list(self._waiting.items()):
            outcome = await asyncio.to_thread(outcome_of, self._people, action_id)
            if outcome is not None:
                await self._show(outcome, click.response_url)
                self._waiting.pop(action_id, None)

    async def _show(self, outcome: ActionOutcome, response_url: str | None) -> None:
        """Show it in the message for all, or in a whisper to the one whose press changed nothing."""
        try:
            if outcome.effect is not ActionEffect.DONE:
                if response_url:
                    await self._reply.whisper(response_url, outcome.text)
                return
            failed = await update_alerts(self._people, self._sender, [outcome]) if self._sender else ("no token",)
            if failed and response_url:
                await self._show_by_reply(outcome, response_url)
        except NotifyError as error:
            log.warning("what came of a press is not shown: %s", error)

    async def _show_by_reply(self, outcome: ActionOutcome, response_url: str) -> None:
        click = self._waiting.get(outcome.action_id)
        alert_id = click.action.alert_id if click else None
        alert = await asyncio.to_thread(current_alert, self._people, alert_id) if alert_id else None
        if alert is not None:
            await self._reply.replace(response_url, alert)


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


class ActionRejected(Exception):
    """A request that goes no further. ``str`` is the answer's body: it reveals nothing new."""

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


def application(*, secrets: Sequence[str], now: Callable[[], datetime], aftermath: ActionWorker) -> Starlette:
    """The receiver as an ASGI application; its background work lives as long as it does."""
    verifiers = tuple(SignatureVerifier(secret, clock=_Clock(now)) for secret in secrets)

    async def receive(request: Request) -> Response:
        try:
            body = await _body(request)
            _check_signature(request, body, verifiers)
            clicks = clicks_in(body, at=now())
            await _save(clicks, aftermath)
        except ActionRejected as refusal:
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
        raise ActionRejected(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a form is accepted")
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:20]) > MOST_BODY_BYTES:
        raise ActionRejected(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too large")
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_DEADLINE_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MOST_BODY_BYTES:
                    raise ActionRejected(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too large")
    except TimeoutError:
        raise ActionRejected(HTTPStatus.REQUEST_TIMEOUT, "too slow") from None
    return bytes(body)


def _check_signature(request: Request, body: bytes, verifiers: Sequence[SignatureVerifier]) -> None:
    """Slack's signature over time and body, in constant time, at most 300 s old or ahead."""
    stamps = request.headers.getlist("x-slack-request-timestamp")
    signatures = request.headers.getlist("x-slack-signature")
    if len(stamps) != 1 or len(signatures) != 1:
        raise ActionRejected(HTTPStatus.UNAUTHORIZED, "not signed")
    if not (_TIMESTAMP.fullmatch(stamps[0]) and _SIGNATURE.fullmatch(signatures[0])):
        raise ActionRejected(HTTPStatus.UNAUTHORIZED, "not signed")
    try:
        valid = [one.is_valid(body, stamps[0], signatures[0]) for one in verifiers]
    except UnicodeDecodeError:
        raise ActionRejected(HTTPStatus.BAD_REQUEST, "the body is not UTF-8") from None
    if not any(valid):
        raise ActionRejected(HTTPStatus.UNAUTHORIZED, "not signed")


async def _save(clicks: Sequence[Click], aftermath: ActionWorker) -> None:
    """Make presses durable before the answer. If one cannot be stored, Slack shows that to whoever pressed."""
    try:
        for click in clicks:
            await asyncio.to_thread(aftermath.save, click)
    except MonitorError:
        raise ActionRejected(HTTPStatus.SERVICE_UNAVAILABLE, "it could not be stored; press again later") from None
    aftermath.take(clicks)
