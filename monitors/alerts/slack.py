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
from typing import Any, Final

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

from monitors.alerts.digest import Digest
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack_answers import Posted, PostedMessages, Refusal
from monitors.alerts.slack_blocks import SlackText, slack_text
from monitors.alerts.slack_buttons import Block
from monitors.alerts.slack_errors import LAYOUT_REFUSED, THREAD_GONE, error_code, not_sent, refused, reply_lost
from monitors.alerts.slack_post import Post, alert_post, digest_post
from monitors.errors import ConfigError, NotifyRejected
from monitors.records.incidents import Alert, DeliveryStatus, Receipt

CONNECT_TIMEOUT_S: Final = 5.0
"""Far above any healthy handshake; a connection that is not there then has carried nothing."""
METADATA_EVENT: Final = "lookout_alert"
LOOK_BACK: Final = timedelta(hours=1)
"""How far before an alert's making it is looked for: Slack's clock and ours may differ."""
FRESH: Final = timedelta(seconds=5)
"""A message this old may have been tried by a worker that died: it is looked for even when nobody says so."""

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
        return await self.post(alert_post(alert, self._settings, thread=thread, channel=channel), again=again)

    async def send_digest(self, digest: Digest, *, again: bool = False) -> Receipt:
        """Post the nightly digest; fails as `send` does."""
        return await self.post(digest_post(digest, self._settings), again=again)

    async def post(self, post: Post, *, again: bool = False) -> Receipt:
        """Post what is ready, unless ``again`` or its age makes us look and it is there."""
        look = again or self._now() - post.made_at > FRESH
        async with _deadline(self._settings) as session:
            client = self._client(session)
            found = await self._find(client, post) if look else None
            posted = found or await self._post(client, post)
        return Receipt(
            alert_id=post.id,
            status=DeliveryStatus.SENT,
            at=self._now(),
            channel=posted.channel,
            thread=post.thread or posted.ts,
            detail="found: an earlier try had arrived" if found else "",
        )

    async def update(self, alert: Alert, *, channel: str, ts: str) -> None:
        """Show ``alert`` in place of the message ``ts`` of ``channel`` (an id, as its receipt has it)."""
        said = slack_text(alert, self._settings)
        async with _deadline(self._settings) as session:
            await self._client(session).chat_update(
                channel=channel, ts=ts, text=said.text, blocks=_sdk_blocks(said), metadata=_metadata(alert.id)
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

    async def _post(self, client: AsyncWebClient, post: Post) -> Posted:
        """Post; once more where only the layout or the thread is refused: no page is lost to those."""
        try:
            return await self._post_once(client, post)
        except SlackApiError as error:
            code = error_code(_answered(error))
            if code in LAYOUT_REFUSED:
                return await self._post_once(client, post.without_layout())
            if code in THREAD_GONE and post.thread:
                return await self._post_once(client, post.outside_its_thread())
            raise

    async def _post_once(self, client: AsyncWebClient, post: Post) -> Posted:
        answer = await client.chat_postMessage(
            channel=post.channel,
            text=post.said.text,
            blocks=_sdk_blocks(post.said),
            thread_ts=post.thread,
            reply_broadcast=post.broadcast or None,
            unfurl_links=False,
            unfurl_media=False,
            link_names=False,
            parse="none",
            metadata=_metadata(post.id),
        )
        return Posted.model_validate(answer.data)

    async def _find(self, client: AsyncWebClient, post: Post) -> Posted | None:
        """Look for what an earlier try posted: nothing without the right to look; trouble is passed on."""
        oldest = str((post.made_at - LOOK_BACK).timestamp())
        method = "conversations.replies" if post.thread else "conversations.history"
        wanted = {"channel": post.channel, "ts": post.thread, "oldest": oldest, "limit": 200}
        params = {name: value for name, value in wanted.items() if value is not None}
        try:
            answer = await client.api_call(method, params={**params, "include_all_metadata": 1})
        except SlackApiError as error:
            if isinstance(refused(_status(error), _answered(error)), NotifyRejected):
                return None
            raise
        messages = PostedMessages.model_validate(answer.data).messages
        mine = (message.ts for message in messages if message.metadata.event_payload.get("id") == post.id)
        return next((Posted(channel=post.channel, ts=ts) for ts in mine), None)


class SlackWebhook:
    """Posts to an incoming webhook: its channel only, no threads, no way to find what an earlier try posted."""

    def __init__(self, settings: AlertSettings, *, url: str, now: Callable[[], datetime]) -> None:
        self._settings = settings.model_copy(update={"slack_buttons": False})
        self._url = url
        self._now = now

    async def send(
        self, alert: Alert, *, thread: str | None = None, channel: str | None = None, again: bool = False
    ) -> Receipt:
        """Post ``alert``. See `AlertSender.send`; a webhook knows neither thread nor channel."""
        del again
        return await self._deliver(alert_post(alert, self._settings, thread=thread, channel=channel))

    async def send_digest(self, digest: Digest, *, again: bool = False) -> Receipt:
        """Post the nightly digest; fails as `send` does."""
        del again
        return await self._deliver(digest_post(digest, self._settings))

    async def update(self, alert: Alert, *, channel: str, ts: str) -> None:
        """Nothing: what a webhook has posted it cannot edit."""
        del alert, channel, ts
        raise NotifyRejected("an incoming webhook cannot edit what it has posted")

    async def _deliver(self, post: Post) -> Receipt:
        async with _deadline(self._settings) as session:
            status, body = await self._post(session, post.said)
            if body in LAYOUT_REFUSED:
                status, body = await self._post(session, post.without_layout().said)
        if status != 200 or body != "ok":  # noqa: PLR2004 - HTTP's OK
            raise refused(status, body)
        return Receipt(alert_id=post.id, status=DeliveryStatus.SENT, at=self._now())

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


def _metadata(alert_id: str) -> dict[str, Any]:
    return {"event_type": METADATA_EVENT, "event_payload": {"id": alert_id}}


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
