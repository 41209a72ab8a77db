"""Delivery to Slack, by bot token or incoming webhook: the only home of slack_sdk.

The SDK repeats a request on a broken connection by default, which posts twice when Slack had accepted the first;
here only what cannot have arrived is repeated (no connection, 429, 500 and 503). It also logs the webhook's address
when its logger is left alone: it gets one of its own that is quiet.
"""
# The SDK types its bodies and answers as bare dicts; what is read of them goes through slack_answers.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import aiohttp
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

from monitors.alerts.compose import channel_of, thread_of
from monitors.alerts.sender import channel_for
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack_answers import Posted, PostedMessages, Refusal
from monitors.alerts.slack_blocks import Block, SlackText, slack_text
from monitors.alerts.slack_errors import LAYOUT_REFUSED, error_code, not_sent, refused, reply_lost
from monitors.errors import ConfigError, NotifyRejected
from monitors.records.incidents import Alert, DeliveryStatus, NotifyReason, Receipt

CONNECT_TIMEOUT_S: Final = 5.0
"""Far above any healthy handshake; a connection that is not there then has carried nothing."""
METADATA_EVENT: Final = "lookout_alert"
LOOK_BACK: Final = timedelta(hours=1)
"""How far before an alert's making it is looked for: Slack's clock and ours may differ."""
FRESH: Final = timedelta(seconds=5)
"""A message this old may have been tried by a worker that died: it is looked for even when nobody says so."""
BROADCAST: Final = frozenset({NotifyReason.WORSE, NotifyReason.REMINDER})
"""Said in the thread and shown in the channel too: nobody watches an old thread."""


class _Place(NamedTuple):
    """A channel, and a thread in it or a message's own ``ts``."""

    channel: str
    thread: str | None


_quiet = logging.getLogger("monitors.alerts.slack.sdk")
_quiet.setLevel(logging.WARNING)


class _RateLimitWithin(AsyncRateLimitErrorRetryHandler):
    """Waits as long as Slack asks, when that leaves time to send; the SDK's own would sleep for hours."""

    def __init__(self, *, max_retry_count: int, longest_wait_s: float) -> None:
        super().__init__(max_retry_count=max_retry_count)
        self._longest_wait_s = longest_wait_s

    async def _can_retry_async(
        self,
        *,
        state: RetryState,
        request: HttpRequest,
        response: HttpResponse | None = None,
        error: Exception | None = None,
    ) -> bool:
        limited = await super()._can_retry_async(state=state, request=request, response=response, error=error)
        return limited and _asked_wait_s(response) <= self._longest_wait_s

    async def prepare_for_next_attempt_async(
        self,
        *,
        state: RetryState,
        request: HttpRequest,
        response: HttpResponse | None = None,
        error: Exception | None = None,
    ) -> None:
        """Sleep for the seconds that Slack names; a second where it names none."""
        del request, error
        state.next_attempt_requested = True
        await asyncio.sleep(_asked_wait_s(response))
        state.increment_current_attempt()


def _asked_wait_s(response: HttpResponse | None) -> float:
    headers = response.headers if response is not None else {}
    said = next((value[0] for name, value in headers.items() if name.lower() == "retry-after"), "")
    return float(said) if said.isdecimal() else 1.0


class SlackBot:
    """Posts with a bot token (scope chat:write; with channels:history it finds what an earlier try posted)."""

    def __init__(self, settings: AlertSettings, *, token: str, now: Callable[[], datetime]) -> None:
        if not settings.slack_channel:
            raise ConfigError("lookout.toml, alerts.slack_channel: a bot token needs a channel, such as #alerts")
        self._settings = settings
        self._token = token
        self._now = now

    async def send(
        self, alert: Alert, *, thread: str | None = None, channel: str | None = None, again: bool = False
    ) -> Receipt:
        """Post ``alert``, in its incident's thread where it belongs to one. See `AlertSender.send`."""
        thread = thread or thread_of(alert)
        where = (channel or channel_of(alert) if thread else None) or channel_for(alert, self._settings)
        place = _Place(where or "", thread)
        async with _deadline(self._settings) as session:
            client = self._client(session)
            look = again or self._now() - alert.created_at > FRESH
            found = await self._find(client, alert, place) if look else None
            posted = found or await self._post(client, alert, place)
        detail = "found: an earlier try had arrived" if found else ""
        return _sent(alert, self._now(), channel=posted.channel, thread=thread or posted.thread, detail=detail)

    async def update(self, alert: Alert, *, channel: str, ts: str) -> None:
        """Show ``alert`` in place of the message ``ts`` of ``channel`` (an id, as its receipt has it)."""
        said = slack_text(alert, self._settings)
        async with _deadline(self._settings) as session:
            await self._client(session).chat_update(
                channel=channel, ts=ts, text=said.text, blocks=_sdk_blocks(said), metadata=_metadata(alert)
            )

    async def check(self) -> str:
        """Ask Slack who the token is; returns the bot's name and team, posts nothing."""
        async with _deadline(self._settings) as session:
            answer = await self._client(session).auth_test()
        return f"{answer.get('user')} in {answer.get('team')}"

    def _client(self, session: aiohttp.ClientSession) -> AsyncWebClient:
        client = AsyncWebClient(
            token=self._token,
            base_url=self._settings.slack_api_url,
            session=session,
            retry_handlers=_retry_handlers(self._settings),
            logger=_quiet,
        )
        client.proxy = None  # the session reads the proxy's environment, and NO_PROXY, which the SDK ignores
        return client

    async def _post(self, client: AsyncWebClient, alert: Alert, place: _Place) -> _Place:
        said = slack_text(alert, self._settings)
        try:
            return await self._post_once(client, alert, place, said)
        except SlackApiError as error:
            if error_code(_answered(error)) not in LAYOUT_REFUSED:
                raise
        return await self._post_once(client, alert, place, SlackText(text=said.text, blocks=()))

    async def _post_once(self, client: AsyncWebClient, alert: Alert, place: _Place, said: SlackText) -> _Place:
        answer = await client.chat_postMessage(
            channel=place.channel,
            text=said.text,
            blocks=_sdk_blocks(said),
            thread_ts=place.thread,
            reply_broadcast=True if place.thread and alert.reason in BROADCAST else None,
            unfurl_links=False,
            unfurl_media=False,
            link_names=False,
            parse="none",
            metadata=_metadata(alert),
        )
        posted = Posted.model_validate(answer.data)
        return _Place(posted.channel, posted.ts)

    async def _find(self, client: AsyncWebClient, alert: Alert, place: _Place) -> _Place | None:
        """Look for what an earlier try posted: nothing without the right to look; trouble is passed on."""
        oldest = str((alert.created_at - LOOK_BACK).timestamp())
        method = "conversations.replies" if place.thread else "conversations.history"
        wanted = {"channel": place.channel, "ts": place.thread, "oldest": oldest, "limit": 200}
        params = {name: value for name, value in wanted.items() if value is not None}
        try:
            answer = await client.api_call(method, params={**params, "include_all_metadata": 1})
        except SlackApiError as error:
            if isinstance(refused(_status(error), _answered(error)), NotifyRejected):
                return None
            raise
        messages = PostedMessages.model_validate(answer.data).messages
        mine = (message.ts for message in messages if message.metadata.event_payload.get("id") == alert.id)
        return next((_Place(place.channel, ts) for ts in mine), None)


class SlackWebhook:
    """Posts to an incoming webhook: its channel only, no threads, no way to find what an earlier try posted."""

    def __init__(self, settings: AlertSettings, *, url: str, now: Callable[[], datetime]) -> None:
        self._settings = settings
        self._url = url
        self._now = now

    async def send(
        self, alert: Alert, *, thread: str | None = None, channel: str | None = None, again: bool = False
    ) -> Receipt:
        """Post ``alert``. See `AlertSender.send`; a webhook knows neither thread nor channel."""
        del thread, channel, again
        said = slack_text(alert, self._settings)
        async with _deadline(self._settings) as session:
            status, body = await self._post(session, said)
            if body in LAYOUT_REFUSED:
                status, body = await self._post(session, SlackText(text=said.text, blocks=()))
        if status != 200 or body != "ok":  # noqa: PLR2004 - HTTP's OK
            raise refused(status, body)
        return _sent(alert, self._now(), channel=None, thread=None)

    async def _post(self, session: aiohttp.ClientSession, said: SlackText) -> tuple[int, str]:
        client = AsyncWebhookClient(
            self._url, session=session, retry_handlers=_retry_handlers(self._settings), logger=_quiet
        )
        client.proxy = None  # as for the bot
        answer = await client.send(text=said.text, blocks=_sdk_blocks(said), unfurl_links=False, unfurl_media=False)
        return answer.status_code, answer.body.strip()


@asynccontextmanager
async def _deadline(settings: AlertSettings) -> AsyncGenerator[aiohttp.ClientSession]:
    """A session whose every failure leaves as one of ours, without a word of what the library said."""
    timeout = aiohttp.ClientTimeout(total=settings.send_timeout_s, connect=CONNECT_TIMEOUT_S)
    try:
        async with (
            asyncio.timeout(settings.send_timeout_s),
            aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
        ):
            yield session
    except SlackApiError as error:
        raise refused(_status(error), _answered(error)) from None
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
        raise not_sent() from None
    except (aiohttp.InvalidURL, UnicodeError):
        raise NotifyRejected("the configured Slack address is no address; see `slack_api_url`") from None
    except (aiohttp.ClientError, TimeoutError, OSError):
        raise reply_lost() from None
    except (AttributeError, KeyError, TypeError, ValueError):
        # The SDK trips over an answer that is not JSON of Slack's shape; the request itself went out.
        raise refused(200, None) from None


def _retry_handlers(settings: AlertSettings) -> list[AsyncRetryHandler]:
    tries = settings.send_retries
    return [
        _RateLimitWithin(max_retry_count=tries, longest_wait_s=settings.send_timeout_s / 2),
        AsyncServerErrorRetryHandler(max_retry_count=tries),
        AsyncConnectionErrorRetryHandler(
            max_retry_count=tries, error_types=[aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError]
        ),
    ]


def _metadata(alert: Alert) -> dict[str, Any]:
    return {"event_type": METADATA_EVENT, "event_payload": {"id": alert.id}}


def _sdk_blocks(said: SlackText) -> list[Block] | None:
    return list(said.blocks) or None


def _answered(error: SlackApiError) -> object:
    return Refusal.model_validate(_data_of(error)).error


def _status(error: SlackApiError) -> int:
    """HTTP's status: the SDK hands over its own response, or aiohttp's when the body was not JSON."""
    response: Any = error.response
    return int(getattr(response, "status_code", None) or getattr(response, "status", None) or 200)


def _data_of(error: SlackApiError) -> object:
    response: Any = error.response
    data: object = getattr(response, "data", None)
    return data if isinstance(data, dict) else {}  # pyright: ignore[reportUnknownVariableType] - validated next


def _sent(alert: Alert, at: datetime, *, channel: str | None, thread: str | None, detail: str = "") -> Receipt:
    return Receipt(
        alert_id=alert.id, status=DeliveryStatus.SENT, at=at, channel=channel, thread=thread, detail=detail
    )
