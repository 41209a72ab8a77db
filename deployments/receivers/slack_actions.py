"""The receiver of Slack buttons: it verifies a request, stores its actions, answers, and then applies the actions.

An action is in the journal before Slack gets status 200. Therefore the action is not lost if the process is killed.
The answer does not wait for the warehouse, because Slack waits only three seconds. An unsigned request is not
parsed. The body is a form, and one of its fields contains the actions as JSON. After the answer, each action is
applied and shown in the message.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
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
from deployments.triggers.delivery import parse_strict_json
from flows.alerting.edits import (
    build_current_alert,
    edit_messages_after_actions,
    find_action_outcome,
    list_recent_action_outcomes,
)
from flows.alerting.notifier import OperatorActions, apply_waiting_actions, store_operator_action
from monitors.alerts.sender import AlertSender
from monitors.alerts.slack.client import SlackReply
from monitors.alerts.slack.render import ButtonAction, parse_button_action
from monitors.errors import ConfigError, MonitorError, NotifyError
from monitors.records.base import Record
from monitors.records.incidents import ActionVia
from monitors.records.operator_actions import ActionEffect, ActionOutcome, OperatorAction

MAX_FORM_FIELDS: Final = 10
MAX_ACTIONS: Final = 10
"""Maximum number of actions in one request. Slack sends only one."""
ID_CHARACTERS: Final = 24
"""Number of hexadecimal digits in an action's id. 24 digits are 96 bits."""


class Malformed(ValueError):
    """Raised if the request is not an action. The error message never contains parts of the request."""


class _User(BaseModel):
    id: Annotated[str, Field(pattern=r"^[UW][A-Z0-9]{2,20}$")]


class _Option(BaseModel):
    value: Annotated[str, Field(max_length=2_000)]


class _Button(BaseModel):
    action_id: Annotated[str, Field(max_length=255)]
    value: Annotated[str, Field(max_length=2_000)] = ""
    selected_option: _Option | None = None


class _Container(BaseModel):
    channel_id: Annotated[str, Field(pattern=r"^[CDG][A-Z0-9]{2,20}$")] | None = None
    message_ts: Annotated[str, Field(pattern=r"^[0-9]{1,12}\.[0-9]{1,8}$")] | None = None


class _Interaction(BaseModel):
    """The fields of a ``block_actions`` payload that are read. All other fields are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)

    type: Annotated[str, Field(max_length=100)]
    user: _User
    actions: Annotated[list[_Button], Field(max_length=MAX_ACTIONS)] = []
    container: _Container = _Container()
    response_url: Annotated[str, Field(max_length=2_000)] | None = None


class SlackAction(Record):
    """An action that a person chose with a button in a Slack message. The address for a reply is never stored."""

    action: OperatorAction
    response_url: str | None


def parse_slack_actions(body: bytes, *, at: datetime) -> tuple[SlackAction, ...]:
    """Return the actions for the clicks in ``body`` on Lookout's buttons. All other interactions are skipped.

    Raises `Malformed` for a body that Slack would not send.
    """
    try:
        interaction = _Interaction.model_validate(parse_strict_json(_extract_payload(body)))
        if interaction.type != "block_actions":
            return ()
        actions = (
            (button, parse_button_action(button.action_id, _get_button_value(button)))
            for button in interaction.actions
        )
        return tuple(
            _build_slack_action(interaction, button, action, at) for button, action in actions if action is not None
        )
    except ValidationError:
        raise Malformed("the payload is not a Slack action") from None
    except ValueError as error:
        raise Malformed(str(error)) from None


def _extract_payload(body: bytes) -> str:
    try:
        fields = parse_qsl(
            body.decode("ascii"),
            strict_parsing=True,
            max_num_fields=MAX_FORM_FIELDS,
            errors="strict",
            separator="&",
        )
    except ValueError:
        raise Malformed("the body is not a form") from None
    payloads = [value for name, value in fields if name == "payload"]
    if len(payloads) != 1:
        raise Malformed("the form must have exactly one payload")
    return payloads[0]


def _get_button_value(button: _Button) -> str:
    return button.selected_option.value if button.selected_option else button.value


def _build_slack_action(
    interaction: _Interaction, button: _Button, named: ButtonAction, at: datetime
) -> SlackAction:
    """Build the action. Its id depends only on the button, so a second click or a repeated delivery counts once."""
    canonical = f"{button.action_id}\n{_get_button_value(button)}".encode()
    action = OperatorAction(
        # Stored ids have this prefix: with another prefix, an action that Slack delivers again would count twice.
        id=f"click-{hashlib.sha256(canonical).hexdigest()[:ID_CHARACTERS]}",
        kind=named.kind,
        at=at,
        by=interaction.user.id,
        via=ActionVia.SLACK,
        alert_id=named.alert_id,
        fingerprints=named.fingerprints,
        channel=interaction.container.channel_id,
        message_ts=interaction.container.message_ts,
    )
    return SlackAction(action=action, response_url=interaction.response_url)


RETRY_PAUSE_S: Final = 5.0
"""Pause between two attempts while another process has locked the warehouse, in seconds."""
LOCK_TIMEOUT_S: Final = 5.0
"""Maximum wait for the warehouse's lock in seconds. After this time, the actions wait for the next attempt."""
MAX_WAITING: Final = 1_000
"""Maximum number of actions whose reply address is stored. Older actions are applied without a reply."""

Work = Callable[[], Awaitable[None]]

log = logging.getLogger(__name__)


class ActionWorker(Worker):
    """Applies operators' actions and shows their outcomes.

    ``sender`` edits messages with a bot token. Without ``sender``, the action's reply address is used, which is
    valid for half an hour.
    """

    def __init__(
        self,
        actions: OperatorActions,
        *,
        sender: AlertSender | None,
        reply: SlackReply,
        retry_pause_s: float = RETRY_PAUSE_S,
    ) -> None:
        super().__init__(first_pause_s=retry_pause_s, max_pause_s=retry_pause_s)
        self._actions = actions
        self._sender = sender
        self._reply = reply
        self._waiting: OrderedDict[str, SlackAction] = OrderedDict()

    def save(self, received: SlackAction) -> None:
        """Store an action so that it survives a crash.

        The method may run in a thread. After it returns, call `apply_in_background` to apply the action.
        """
        store_operator_action(self._actions, received.action)

    def apply_in_background(self, actions: Sequence[SlackAction]) -> None:
        """Apply the stored ``actions`` in the background."""
        self._waiting.update({received.action.id: received for received in actions})
        while len(self._waiting) > MAX_WAITING:
            self._waiting.popitem(last=False)
        self.wake()

    async def run(self) -> None:
        """Process the actions that a killed receiver left unprocessed. Then process new actions until cancelled.

        Also show the outcomes that the killed receiver may not have shown.
        """
        await self._run_and_log_errors(self._apply_and_show_after_restart)
        await super().run()

    async def work(self) -> bool:
        """Apply the waiting actions. Return whether all were applied."""
        return await self._run_and_log_errors(self._apply_actions_and_show_outcomes)

    async def _run_and_log_errors(self, work: Work) -> bool:
        """Run ``work``, and return whether it succeeded. An error is logged, and the caller tries again later."""
        try:
            await work()
        except MonitorError as error:
            log.warning("an action from Slack is waiting; Lookout tries again: %s", error)
            return False
        except Exception:  # logged; the receiver continues and tries the stored actions again
            log.exception("an action from Slack is waiting, because of an internal error of Lookout")
            return False
        return True

    async def _apply_and_show_after_restart(self) -> None:
        """Apply stored actions, and show recent outcomes that a killed receiver may not have shown."""
        await asyncio.to_thread(apply_waiting_actions, self._actions, wait_s=LOCK_TIMEOUT_S)
        for outcome in await asyncio.to_thread(list_recent_action_outcomes, self._actions):
            await self._show_outcome(outcome, None)

    async def _apply_actions_and_show_outcomes(self) -> None:
        applied = await asyncio.to_thread(apply_waiting_actions, self._actions, wait_s=LOCK_TIMEOUT_S)
        for failure in applied.failed:
            log.error("an action could not be applied; Lookout tries again: %s", failure)
        for action_id, received in list(self._waiting.items()):
            outcome = await asyncio.to_thread(find_action_outcome, self._actions, action_id)
            if outcome is not None:
                await self._show_outcome(outcome, received.response_url)
                self._waiting.pop(action_id, None)

    async def _show_outcome(self, outcome: ActionOutcome, response_url: str | None) -> None:
        """Show the outcome in the Slack message.

        If the action changed nothing, show the outcome only to the person who pressed the button.
        """
        try:
            if outcome.effect is not ActionEffect.DONE:
                if response_url:
                    await self._reply.post_ephemeral(response_url, outcome.text)
                return
            failed = (
                await edit_messages_after_actions(self._actions, self._sender, [outcome])
                if self._sender
                else ("no token",)
            )
            if failed and response_url:
                await self._replace_message_with_current_alert(outcome, response_url)
        except NotifyError as error:
            log.warning("the outcome of an action could not be shown in Slack: %s", error)

    async def _replace_message_with_current_alert(self, outcome: ActionOutcome, response_url: str) -> None:
        received = self._waiting.get(outcome.action_id)
        alert_id = received.action.alert_id if received else None
        alert = await asyncio.to_thread(build_current_alert, self._actions, alert_id) if alert_id else None
        if alert is not None:
            await self._reply.replace_message(response_url, alert)


PATH: Final = "/slack/actions"
HEALTH_PATH: Final = "/health"
SECRET_VARIABLE: Final = "SLACK_SIGNING_SECRET"  # noqa: S105 - the variable's name
MAX_BODY_BYTES: Final = 512 * 1024
"""Maximum size of a request in bytes.

A request contains its whole message of up to 13,000 characters. In a form, a Hindi character takes nine bytes, so
such a message has about 120 kB. The limit is four times that size.
"""
BUFFERED_BODY_BYTES: Final = 2**16
"""Maximum size of a small body in bytes. The server buffers this much of any request."""
MAX_LARGE_BODIES: Final = 16
"""Maximum number of large bodies that are read at the same time, for all senders. Together they need 8 MB."""
BODY_TIMEOUT_S: Final = 2.0
"""Maximum time for the body of a request in seconds. Slack waits three seconds for an answer."""
MIN_SECRET_CHARACTERS: Final = 16

_TIMESTAMP: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_SIGNATURE: Final = re.compile(r"v0=[0-9a-f]{64}", re.ASCII)


class ActionRejected(Exception):
    """Raised if a request is rejected. ``str(error)`` is the response body, which reveals nothing to the sender."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


def parse_signing_secrets(text: str | None) -> tuple[str, ...]:
    """Parse ``SLACK_SIGNING_SECRET``.

    The value is one secret or, during a rotation, the new and the old secret separated by a comma.
    """
    secrets = tuple(secret.strip() for secret in (text or "").split(",") if secret.strip())
    if not secrets:
        raise ConfigError(
            f"{SECRET_VARIABLE} is not set. Lookout needs it to check that a request comes from Slack. Find it in "
            "the Slack app's settings: Basic Information, Signing Secret"
        )
    if any(len(secret) < MIN_SECRET_CHARACTERS for secret in secrets):
        raise ConfigError(
            f"{SECRET_VARIABLE} contains a secret with fewer than 16 characters. Copy the whole signing "
            "secret, which has 32 characters"
        )
    return secrets


class _Clock(SdkClock):
    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now

    def now(self) -> float:
        return self._now().timestamp()


def build_application(*, secrets: Sequence[str], now: Callable[[], datetime], worker: ActionWorker) -> Starlette:
    """Build the receiver as an ASGI application. ``worker`` runs as long as the application."""
    verifiers = tuple(SignatureVerifier(secret, clock=_Clock(now)) for secret in secrets)

    large = asyncio.Semaphore(MAX_LARGE_BODIES)

    async def receive(request: Request) -> Response:
        try:
            stamp, signature = _require_time_and_signature(request)
            body = await _read_body(request, large)
            _check_signature(body, stamp, signature, verifiers)
            await _save_and_apply_actions(parse_slack_actions(body, at=now()), worker)
        except ActionRejected as refusal:
            return PlainTextResponse(str(refusal), status_code=refusal.status)
        except Malformed as error:
            return PlainTextResponse(str(error), status_code=HTTPStatus.BAD_REQUEST)
        except ClientDisconnect:
            return PlainTextResponse("the body is incomplete", status_code=HTTPStatus.BAD_REQUEST)
        return Response(status_code=HTTPStatus.OK)

    async def answer_health(_request: Request) -> Response:
        return PlainTextResponse("ok")

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        async with worker:
            yield

    routes = [Route(PATH, receive, methods=["POST"]), Route(HEALTH_PATH, answer_health, methods=["GET"])]
    return Starlette(routes=routes, lifespan=lifespan)


async def _read_body(request: Request, large: asyncio.Semaphore) -> bytes:
    """Read the whole body, with limits on size and time.

    To limit memory, at most `MAX_LARGE_BODIES` large bodies are read at the same time.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise ActionRejected(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the request must be a form (application/x-www-form-urlencoded)"
        )
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:20]) > MAX_BODY_BYTES:
        raise ActionRejected(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too large")
    small = "content-length" in request.headers and int(length) <= BUFFERED_BODY_BYTES
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S), nullcontext() if small else large:
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    raise ActionRejected(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too large")
    except TimeoutError:
        raise ActionRejected(HTTPStatus.REQUEST_TIMEOUT, "too slow") from None
    return bytes(body)


def _require_time_and_signature(request: Request) -> tuple[str, str]:
    """Return the timestamp and the signature from the headers. The body is not read.

    Raises `ActionRejected` if the timestamp or the signature is missing, invalid or sent twice.
    """
    stamps = request.headers.getlist("x-slack-request-timestamp")
    signatures = request.headers.getlist("x-slack-signature")
    if len(stamps) != 1 or len(signatures) != 1:
        raise ActionRejected(HTTPStatus.UNAUTHORIZED, "not signed")
    if not (_TIMESTAMP.fullmatch(stamps[0]) and _SIGNATURE.fullmatch(signatures[0])):
        raise ActionRejected(HTTPStatus.UNAUTHORIZED, "not signed")
    return stamps[0], signatures[0]


def _check_signature(body: bytes, stamp: str, signature: str, verifiers: Sequence[SignatureVerifier]) -> None:
    """Check Slack's signature of the timestamp and the body, in constant time. Raises `ActionRejected`.

    The timestamp may differ from this machine's clock by up to 300 s.
    """
    try:
        valid = [verifier.is_valid(body, stamp, signature) for verifier in verifiers]
    except UnicodeDecodeError:
        raise ActionRejected(HTTPStatus.BAD_REQUEST, "the body is not UTF-8") from None
    if not any(valid):
        raise ActionRejected(HTTPStatus.UNAUTHORIZED, "not signed")


async def _save_and_apply_actions(actions: Sequence[SlackAction], worker: ActionWorker) -> None:
    """Store actions, and let ``worker`` apply them in the background.

    If an action cannot be stored, Slack shows an error to the person who pressed the button.
    """
    try:
        for received in actions:
            await asyncio.to_thread(worker.save, received)
    except MonitorError:
        raise ActionRejected(
            HTTPStatus.SERVICE_UNAVAILABLE, "Lookout could not store your action; press the button again later"
        ) from None
    worker.apply_in_background(actions)
