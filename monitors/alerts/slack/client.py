"""Delivers messages to Slack with a bot token or an incoming webhook. Only this module imports slack_sdk.

A request is retried only if it cannot have arrived: if there was no connection, or after the HTTP status 429, 500
or 503. By default, the SDK would also retry other requests, and could post a message twice. The SDK's default
logger writes the webhook's address, so the SDK gets a different logger.

Error messages contain no address and no token. The reply to a button is sent to the address in Slack's request.
This address needs no token and is valid for half an hour.
"""

from __future__ import annotations

import asyncio
import logging
import re
import tomllib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
from pydantic import BaseModel
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.async_handler import AsyncRetryHandler
from slack_sdk.http_retry.builtin_async_handlers import (
    AsyncConnectionErrorRetryHandler,
    AsyncRateLimitErrorRetryHandler,
    AsyncServerErrorRetryHandler,
)
from slack_sdk.http_retry.request import HttpRequest
from slack_sdk.http_retry.response import HttpResponse
from slack_sdk.http_retry.state import RetryState
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from monitors.alerts.digest import Digest
from monitors.alerts.redact import escape_for_slack
from monitors.alerts.sender import ARRIVED_BEFORE, choose_channel
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.render import Block, SlackText, render_alert, render_digest
from monitors.errors import ConfigError, NotifyError, NotifyRejected, NotifyTransient, NotifyUnsure
from monitors.records.base import Identifier, Record, UtcTime
from monitors.records.incidents import Alert, DeliveryStatus, NotifyReason, Receipt


class PostMessageResponse(BaseModel):
    """The response of chat.postMessage. ``channel`` is an id even if the request contained a name."""

    channel: str
    ts: str


class SlackMetadata(BaseModel):
    """The metadata that was posted together with a message."""

    event_payload: dict[str, object] = {}


class SlackMessage(BaseModel):
    """One message in the history of a channel or a thread."""

    ts: str
    metadata: SlackMetadata = SlackMetadata()


class SlackHistory(BaseModel):
    """The response of conversations.history and conversations.replies."""

    messages: tuple[SlackMessage, ...] = ()


class SlackErrorResponse(BaseModel):
    """A response that reports an error, with Slack's name for the error."""

    error: object = None


_ERRORS: Final[Mapping[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "errors.toml").read_text(encoding="utf-8")
)
ADVICE: Final[Mapping[str, str]] = {error: row["text"] for row in _ERRORS["advice"] for error in row["errors"]}
"""Advice for each error that Slack documents for chat.postMessage and incoming webhooks."""
TRANSIENT: Final = frozenset[str](_ERRORS["transient"])
LAYOUT_REFUSED: Final = frozenset[str](_ERRORS["layout_refused"])
"""Errors about the layout of a message. After such an error, Lookout sends the alert again as plain text."""

THREAD_GONE: Final = frozenset({"thread_not_found", "invalid_thread_ts", "cannot_reply_to_message"})
"""Errors about a deleted thread. After such an error, Lookout posts the message in the channel itself."""
UNREADABLE: Final = "unreadable"
_CODE: Final = re.compile(r"[a-z][a-z_]{1,59}")


def parse_slack_error_code(error: object) -> str:
    """Return Slack's name for the error, or `UNREADABLE` for any other text."""
    return error if isinstance(error, str) and _CODE.fullmatch(error) else UNREADABLE


def build_refusal_error(status: int, error: object) -> NotifyError:
    """Build the error for an unsuccessful response.

    ``status`` is the HTTP status, and ``error`` is Slack's name for the error.
    """
    code = parse_slack_error_code(error)
    if status == 429:  # noqa: PLR2004 - HTTP's "too many requests"
        return NotifyTransient(
            "Slack rate-limited the request (HTTP 429); the message is stored for the next delivery"
        )
    if code in TRANSIENT:
        return NotifyTransient(
            f"Slack reports a temporary error ({code}); the message is stored for the next delivery"
        )
    if status >= 500:  # noqa: PLR2004 - HTTP's server errors
        # Slack itself sends 500 and 503. After 502 or 504 of a gateway, the message may have arrived.
        text = f"Slack answers HTTP {status}; the message is stored for the next delivery"
        return NotifyTransient(text) if status in {500, 503} else NotifyUnsure(text)
    if code == UNREADABLE and status < 400:  # noqa: PLR2004 - HTTP's success and redirects
        return NotifyUnsure("The response is not from Slack. A proxy may have sent it. The message is stored")
    advice = ADVICE.get(code, "read Slack's documentation of this error")
    return NotifyRejected(f"Slack refuses the message (HTTP {status}, {code}): {advice}. The message is stored")


def build_not_sent_error() -> NotifyTransient:
    """Build the error for a request that cannot have arrived, because there was no connection."""
    return NotifyTransient("Lookout cannot connect to Slack: check DNS, network and proxy. The message is stored")


def build_reply_missing_error() -> NotifyUnsure:
    """Build the error for a request that was sent but got no reply."""
    return NotifyUnsure("Slack's reply was lost. The message may have arrived. It is stored for the next delivery")


BROADCAST: Final = frozenset({NotifyReason.WORSE, NotifyReason.REMINDER})
"""Reasons for alerts that are posted both in their thread and in the channel.

People rarely read old threads.
"""


class Post(Record):
    """A message to post. ``channel`` is empty for a webhook, which always posts to the same channel."""

    id: Identifier
    content: SlackText
    made_at: UtcTime
    channel: str = ""
    thread: str | None = None
    broadcast: bool = False

    def move_out_of_thread(self) -> Post:
        """Return a copy of the message for the channel itself, for use if the thread was deleted."""
        return self.model_copy(update={"thread": None, "broadcast": False})

    def remove_layout(self) -> Post:
        """Return a copy of the message with plain text only, for use if Slack refuses the layout."""
        return self.model_copy(update={"content": SlackText(text=self.content.text, blocks=())})


def build_alert_post(alert: Alert, settings: AlertSettings, *, thread: str | None, channel: str | None) -> Post:
    """Build the post for ``alert``. See `AlertSender.send` for ``thread`` and ``channel``."""
    thread = thread or alert.thread
    reply_channel = (channel or alert.channel) if thread else None
    return Post(
        id=alert.id,
        content=render_alert(alert, settings),
        made_at=alert.created_at,
        channel=reply_channel or choose_channel(alert, settings) or "",
        thread=thread,
        broadcast=thread is not None and alert.reason in BROADCAST,
    )


def build_digest_post(digest: Digest, settings: AlertSettings) -> Post:
    """Build the post for ``digest``: a new message in the channel for alerts.

    ``made_at`` is the time when the digest was due, because an earlier attempt may have posted the digest since
    then.
    """
    return Post(
        id=digest.id, content=render_digest(digest), made_at=digest.due_at, channel=settings.slack_channel or ""
    )


SLACK_HOSTS: Final = frozenset({"hooks.slack.com", "hooks.slack-gov.com"})
"""Hosts of Slack's response URLs (docs.slack.dev, "Handling user interaction")."""


class SlackReply:
    """Replies to people who press a button. Requests are sent only to addresses of Slack."""

    def __init__(self, settings: AlertSettings) -> None:
        self._settings = settings

    def is_slack_address(self, url: str) -> bool:
        """Return whether ``url`` belongs to Slack or to the configured ``slack_api_url``."""
        try:
            address, configured = urlsplit(url), urlsplit(self._settings.slack_api_url)
            origin = address.scheme, address.hostname, address.port
            own_origin = configured.scheme, configured.hostname, configured.port
        except ValueError:
            return False
        if address.username is not None or address.password is not None:
            return False
        is_slack = address.scheme == "https" and address.hostname in SLACK_HOSTS and address.port in {None, 443}
        return is_slack or origin == own_origin

    async def replace_message(self, url: str, alert: Alert) -> None:
        """Replace the message of the pressed button with ``alert``. Raises `NotifyError`."""
        content = render_alert(alert, self._settings)
        await self._post(url, {"replace_original": True, "text": content.text, "blocks": list(content.blocks)})

    async def post_ephemeral(self, url: str, text: str) -> None:
        """Post ``text`` so that only the person who pressed the button can see it. Raises `NotifyError`."""
        await self._post(
            url, {"response_type": "ephemeral", "replace_original": False, "text": escape_for_slack(text)}
        )

    async def _post(self, url: str, message: Mapping[str, object]) -> None:
        if not self.is_slack_address(url):
            raise NotifyRejected("the reply address does not belong to Slack, so Lookout did not use this address")
        timeout = aiohttp.ClientTimeout(total=self._settings.send_timeout_s)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
                session.post(url, json=message, allow_redirects=False) as answer,
            ):
                status, body = answer.status, (await answer.text(errors="replace")).strip()
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            raise build_not_sent_error() from None
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError):
            raise build_reply_missing_error() from None
        if status != 200:  # noqa: PLR2004 - HTTP's OK
            raise build_refusal_error(status, body)


# The SDK types its bodies and answers as bare dicts; the models above validate the fields that are read.
# pyright: reportUnknownMemberType=false

CONNECT_TIMEOUT_S: Final = 5.0
"""Timeout for connecting in seconds. If the timeout expires, the request was certainly not sent."""
METADATA_EVENT: Final = "lookout_alert"
SEARCH_MARGIN: Final = timedelta(hours=1)
"""The search for an earlier message starts this long before the alert's creation, because clocks differ."""
SEARCH_AFTER: Final = timedelta(seconds=5)
"""If an alert is older than this, Lookout searches for its message before it posts one.

A worker that has died may have posted the message.
"""

_sdk_logger = logging.getLogger("monitors.alerts.slack.client.sdk")
_sdk_logger.setLevel(logging.WARNING)


class _RateLimitHandler(AsyncRateLimitErrorRetryHandler):
    """Waits as long as Slack requests, and then retries the request.

    The handler gives up if the wait is longer than ``max_wait_s``.

    The SDK's own handler could wait for hours.
    """

    def __init__(self, *, max_retry_count: int, max_wait_s: float) -> None:
        super().__init__(max_retry_count=max_retry_count)
        self._max_wait_s = max_wait_s

    async def _can_retry_async(
        self,
        *,
        state: RetryState,
        request: HttpRequest,
        response: HttpResponse | None = None,
        error: Exception | None = None,
    ) -> bool:
        limited = await super()._can_retry_async(state=state, request=request, response=response, error=error)
        return limited and _read_retry_after_s(response) <= self._max_wait_s

    async def prepare_for_next_attempt_async(
        self,
        *,
        state: RetryState,
        request: HttpRequest,
        response: HttpResponse | None = None,
        error: Exception | None = None,
    ) -> None:
        """Sleep for the number of seconds that Slack requests. If Slack states no number, sleep for one second."""
        del request, error
        state.next_attempt_requested = True
        await asyncio.sleep(_read_retry_after_s(response))  # an earlier request would be refused
        state.increment_current_attempt()


def _read_retry_after_s(response: HttpResponse | None) -> float:
    headers = response.headers if response is not None else {}
    wait = next((value[0] for name, value in headers.items() if name.lower() == "retry-after"), "")
    return float(wait) if wait.isdecimal() else 1.0


class SlackBot:
    """Posts messages with a bot token (scope chat:write).

    With the scope channels:history, the bot searches for the message of an earlier attempt, to avoid duplicates.
    """

    def __init__(self, settings: AlertSettings, *, token: str, now: Callable[[], datetime]) -> None:
        if not settings.slack_channel:
            raise ConfigError(
                'lookout.toml: set alerts.slack_channel, such as "#alerts". A bot token requires a channel'
            )
        self._settings = settings
        self._token = token
        self._now = now

    @property
    def notifies(self) -> bool:
        """Return True, because messages in Slack reach people."""
        return True

    async def send(
        self, alert: Alert, *, thread: str | None = None, channel: str | None = None, again: bool = False
    ) -> Receipt:
        """Post ``alert``, in the thread of its incident if there is a thread. See `AlertSender.send`."""
        return await self.post(build_alert_post(alert, self._settings, thread=thread, channel=channel), again=again)

    async def send_digest(self, digest: Digest, *, again: bool = False) -> Receipt:
        """Post the nightly digest. Raises the errors of `send`."""
        return await self.post(build_digest_post(digest, self._settings), again=again)

    async def post(self, post: Post, *, again: bool = False) -> Receipt:
        """Post the message, unless an earlier attempt has posted it.

        Return the receipt of the message in the channel.
        """
        may_have_arrived = again or self._now() - post.made_at > SEARCH_AFTER
        async with _open_session(self._settings) as session:
            client = self._build_client(session)
            earlier = await self._find_earlier_post(client, post) if may_have_arrived else None
            posted = earlier or await self._post(client, post)
        return Receipt(
            alert_id=post.id,
            status=DeliveryStatus.SENT,
            at=self._now(),
            channel=posted.channel,
            thread=post.thread or posted.ts,
            detail=ARRIVED_BEFORE if earlier else "",
        )

    async def update(self, alert: Alert, *, channel: str, ts: str) -> None:
        """Replace the message that has the timestamp ``ts`` in ``channel`` with ``alert``."""
        content = render_alert(alert, self._settings)
        async with _open_session(self._settings) as session:
            await self._build_client(session).chat_update(
                channel=channel,
                ts=ts,
                text=content.text,
                blocks=_get_sdk_blocks(content),
                metadata=_build_metadata(alert.id),
            )

    def _build_client(self, session: aiohttp.ClientSession) -> AsyncWebClient:
        client = AsyncWebClient(
            token=self._token,
            base_url=self._settings.slack_api_url,
            session=session,
            retry_handlers=_build_retry_handlers(self._settings),
            logger=_sdk_logger,
        )
        client.proxy = None  # the session reads the environment's proxy and NO_PROXY, which the SDK ignores
        return client

    async def _post(self, client: AsyncWebClient, post: Post) -> PostMessageResponse:
        """Post the message.

        If Slack refuses the layout, post plain text. If the thread was deleted, post in the channel.
        """
        try:
            return await self._post_once(client, post)
        except SlackApiError as error:
            code = parse_slack_error_code(_read_slack_error(error))
            if code in LAYOUT_REFUSED:
                return await self._post_once(client, post.remove_layout())
            if code in THREAD_GONE and post.thread:
                return await self._post_once(client, post.move_out_of_thread())
            raise

    async def _post_once(self, client: AsyncWebClient, post: Post) -> PostMessageResponse:
        answer = await client.chat_postMessage(
            channel=post.channel,
            text=post.content.text,
            blocks=_get_sdk_blocks(post.content),
            thread_ts=post.thread,
            reply_broadcast=post.broadcast or None,
            unfurl_links=False,
            unfurl_media=False,
            link_names=False,
            parse="none",
            metadata=_build_metadata(post.id),
        )
        return PostMessageResponse.model_validate(answer.data)

    async def _find_earlier_post(self, client: AsyncWebClient, post: Post) -> PostMessageResponse | None:
        """Find the message of an earlier attempt.

        Return ``None`` if there is no such message, or if the bot may not read the channel.
        """
        oldest = str((min(post.made_at, self._now()) - SEARCH_MARGIN).timestamp())
        method = "conversations.replies" if post.thread else "conversations.history"
        wanted = {"channel": post.channel, "ts": post.thread, "oldest": oldest, "limit": 200}
        params = {name: value for name, value in wanted.items() if value is not None}
        try:
            answer = await client.api_call(method, params={**params, "include_all_metadata": 1})
        except SlackApiError as error:
            if isinstance(build_refusal_error(_read_http_status(error), _read_slack_error(error)), NotifyRejected):
                return None
            raise
        messages = SlackHistory.model_validate(answer.data).messages
        mine = (message.ts for message in messages if message.metadata.event_payload.get("id") == post.id)
        return next((PostMessageResponse(channel=post.channel, ts=ts) for ts in mine), None)


class SlackWebhook:
    """Posts to an incoming webhook. A webhook has one channel, no threads, and no search for earlier messages."""

    def __init__(self, settings: AlertSettings, *, url: str, now: Callable[[], datetime]) -> None:
        self._settings = settings.model_copy(update={"slack_buttons": False})
        self._url = url
        self._now = now

    @property
    def notifies(self) -> bool:
        """Return True, because messages in Slack reach people."""
        return True

    async def send(
        self, alert: Alert, *, thread: str | None = None, channel: str | None = None, again: bool = False
    ) -> Receipt:
        """Post ``alert``. See `AlertSender.send`. A webhook ignores ``thread`` and ``channel``."""
        del again
        return await self._deliver(build_alert_post(alert, self._settings, thread=thread, channel=channel))

    async def send_digest(self, digest: Digest, *, again: bool = False) -> Receipt:
        """Post the nightly digest. Raises the errors of `send`."""
        del again
        return await self._deliver(build_digest_post(digest, self._settings))

    async def update(self, alert: Alert, *, channel: str, ts: str) -> None:
        """Raise `NotifyRejected`, because a webhook cannot edit its messages."""
        del alert, channel, ts
        raise NotifyRejected("an incoming webhook cannot edit its messages")

    async def _deliver(self, post: Post) -> Receipt:
        async with _open_session(self._settings) as session:
            status, body = await self._post(session, post.content)
            if body in LAYOUT_REFUSED:
                status, body = await self._post(session, post.remove_layout().content)
        if status != 200 or body != "ok":  # noqa: PLR2004 - HTTP's OK
            raise build_refusal_error(status, body)
        return Receipt(alert_id=post.id, status=DeliveryStatus.SENT, at=self._now())

    async def _post(self, session: aiohttp.ClientSession, content: SlackText) -> tuple[int, str]:
        client = AsyncWebhookClient(
            self._url, session=session, retry_handlers=_build_retry_handlers(self._settings), logger=_sdk_logger
        )
        client.proxy = None  # as for the bot
        answer = await client.send(
            text=content.text, blocks=_get_sdk_blocks(content), unfurl_links=False, unfurl_media=False
        )
        return answer.status_code, answer.body.strip()


@asynccontextmanager
async def _open_session(settings: AlertSettings) -> AsyncGenerator[aiohttp.ClientSession]:
    """Open a session that converts every failure to a `NotifyError`.

    The library's own error texts may contain the address.
    """
    timeout = aiohttp.ClientTimeout(total=settings.send_timeout_s, connect=CONNECT_TIMEOUT_S)
    watch_redirects = aiohttp.TraceConfig()
    watch_redirects.on_request_redirect.append(_refuse_redirect)
    try:
        async with (
            asyncio.timeout(settings.send_timeout_s),
            aiohttp.ClientSession(timeout=timeout, trust_env=True, trace_configs=[watch_redirects]) as session,
        ):
            yield session
    except SlackApiError as error:
        raise build_refusal_error(_read_http_status(error), _read_slack_error(error)) from None
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
        raise build_not_sent_error() from None
    except (aiohttp.InvalidURL, UnicodeError):
        raise NotifyRejected("the Slack address (`slack_api_url` or the webhook) is not valid") from None
    except (aiohttp.ClientError, TimeoutError, OSError):
        raise build_reply_missing_error() from None
    except (AttributeError, KeyError, TypeError, ValueError):
        # The SDK raises an error for an answer that is not JSON in Slack's format. The request itself was sent.
        raise build_refusal_error(200, None) from None


async def _refuse_redirect(*_event: object) -> None:
    """Refuse a redirect, because otherwise the SDK would send the message to the new address."""
    raise NotifyRejected(
        "the Slack address (`slack_api_url` or the webhook) redirects, but Lookout does not follow redirects"
    )


def _build_retry_handlers(settings: AlertSettings) -> list[AsyncRetryHandler]:
    tries = settings.send_retries
    return [
        _RateLimitHandler(max_retry_count=tries, max_wait_s=settings.send_timeout_s / 2),
        AsyncServerErrorRetryHandler(max_retry_count=tries),
        AsyncConnectionErrorRetryHandler(
            max_retry_count=tries, error_types=[aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError]
        ),
    ]


def _build_metadata(alert_id: str) -> dict[str, Any]:
    return {"event_type": METADATA_EVENT, "event_payload": {"id": alert_id}}


def _get_sdk_blocks(content: SlackText) -> list[Block] | None:
    return list(content.blocks) or None


def _read_slack_error(error: SlackApiError) -> object:
    response: Any = error.response
    data: object = getattr(response, "data", None)
    fields = data if isinstance(data, dict) else {}  # pyright: ignore[reportUnknownVariableType] - validated next
    return SlackErrorResponse.model_validate(fields).error


def _read_http_status(error: SlackApiError) -> int:
    """Read the HTTP status from the SDK's response. If the body was not JSON, read it from aiohttp's response."""
    response: Any = error.response
    return int(getattr(response, "status_code", None) or getattr(response, "status", None) or 200)
