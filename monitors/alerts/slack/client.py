"""Delivery to Slack, by bot token or incoming webhook: the only home of slack_sdk.

The SDK repeats a request on a broken connection by default, which posts twice when Slack had accepted the first.
This client repeats only what cannot have arrived (no connection, 429, 500 and 503). The SDK also logs the webhook's
address when its logger is left alone, so it gets a quiet logger of its own.

Of Slack's answers a few fields are read and everything else is ignored. Errors say what Slack's answer means for a
message, in words that hold no address and no token. An answer to a press of a button goes through the address that
Slack sends with it: it needs no token and lasts half an hour.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
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
from monitors.alerts.redact import escape
from monitors.alerts.sender import channel_for
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.render import Block, SlackText, digest_text, slack_text
from monitors.errors import ConfigError, NotifyError, NotifyRejected, NotifyTransient, NotifyUnsure
from monitors.records.base import Identifier, Record, UtcTime
from monitors.records.incidents import Alert, DeliveryStatus, NotifyReason, Receipt


class PostMessageResponse(BaseModel):
    """chat.postMessage: where the message is now. ``channel`` is an id even when a name was asked for."""

    channel: str
    ts: str


class SlackMetadata(BaseModel):
    """The metadata that was posted with a message."""

    event_payload: dict[str, object] = {}


class SlackMessage(BaseModel):
    """One message of a channel's or a thread's history."""

    ts: str
    metadata: SlackMetadata = SlackMetadata()


class SlackHistory(BaseModel):
    """conversations.history and conversations.replies."""

    messages: tuple[SlackMessage, ...] = ()


class SlackErrorResponse(BaseModel):
    """Any answer that is not a yes: Slack's name for what is wrong."""

    error: object = None


_TOKEN = "make a new bot token in the Slack app's settings and set SLACK_BOT_TOKEN"  # noqa: S105 - advice, not a token
_CHANNEL = "check `slack_channel` in lookout.toml (a private channel is only found once the bot is in it)"
_WEBHOOK = "make a new incoming webhook in the Slack app's settings and set SLACK_WEBHOOK_URL"
_REPORT = "this is a fault of Lookout: please report it with the error's name"

ADVICE: Final[dict[str, str]] = {
    "invalid_auth": _TOKEN,
    "not_authed": _TOKEN,
    "account_inactive": _TOKEN,
    "token_revoked": _TOKEN,
    "token_expired": _TOKEN,
    "no_permission": _TOKEN,
    "missing_scope": "give the Slack app the scope chat:write and install it again",
    "not_allowed_token_type": "use a bot token (it begins with xoxb)",
    "channel_not_found": _CHANNEL,
    "not_in_channel": "invite the bot: /invite it in the channel",
    "is_archived": "unarchive the channel or choose another one as `slack_channel`",
    "channel_is_archived": "unarchive the webhook's channel or make a webhook for another one",
    "restricted_action": "a workspace setting forbids posting there: ask an owner or choose another channel",
    "action_prohibited": "a workspace setting forbids the webhook: ask an owner",
    "posting_to_general_channel_denied": "choose another channel than the general one",
    "invalid_token": _WEBHOOK,
    "no_service": _WEBHOOK,
    "no_service_id": _WEBHOOK,
    "no_active_hooks": _WEBHOOK,
    "no_team": _WEBHOOK,
    "team_disabled": "the workspace is disabled: ask an owner",
    "user_not_found": _WEBHOOK,
    "invalid_payload": _REPORT,
    "invalid_blocks": _REPORT,
    "invalid_blocks_format": _REPORT,
    "msg_too_long": _REPORT,
    "msg_blocks_too_long": _REPORT,
    "no_text": _REPORT,
}
"""What a person can do about each error Slack documents for chat.postMessage and for incoming webhooks."""

TRANSIENT: Final = frozenset(
    {"ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable", "request_timeout",
     "team_added_to_org", "rollup_error", "accesslimited"}
)  # fmt: skip
LAYOUT_REFUSED: Final = frozenset(
    {"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "invalid_payload", "msg_too_long"}
)
"""Slack takes the message, but not its layout: the plain text goes instead, since layout must not cost an alert."""

THREAD_GONE: Final = frozenset({"thread_not_found", "invalid_thread_ts", "cannot_reply_to_message"})
"""Somebody deleted the first message: what belongs below it goes to the channel instead."""
UNREADABLE: Final = "unreadable"
_CODE: Final = re.compile(r"[a-z][a-z_]{1,59}")


def error_code(error: object) -> str:
    """Slack's own name of the error, or `UNREADABLE` for anything that is not one."""
    return error if isinstance(error, str) and _CODE.fullmatch(error) else UNREADABLE


def refused(status: int, error: object) -> NotifyError:
    """The error for an answer that is not a yes. ``status`` is HTTP's, ``error`` Slack's name for what is wrong."""
    code = error_code(error)
    if status == 429:  # noqa: PLR2004 - HTTP's "too many requests"
        return NotifyTransient("Slack limits the rate (429); the message is kept for the next delivery")
    if code in TRANSIENT:
        return NotifyTransient(f"Slack has trouble ({code}); the message is kept for the next delivery")
    if status >= 500:  # noqa: PLR2004 - HTTP's server errors
        return _server_error(status)
    if code == UNREADABLE and status < 400:  # noqa: PLR2004 - HTTP's success and redirects
        return NotifyUnsure("What answered is not Slack (a proxy's page?); the message is kept")
    advice = ADVICE.get(code, "see Slack's documentation of this error")
    return NotifyRejected(f"Slack refuses the message (HTTP {status}, {code}): {advice}. The message is kept")


def _server_error(status: int) -> NotifyError:
    """500 and 503 are Slack's own no; a gateway's 502 or 504 does not say what became of the message."""
    text = f"Slack answers HTTP {status}; the message is kept for the next delivery"
    return NotifyTransient(text) if status in {500, 503} else NotifyUnsure(text)


def not_sent() -> NotifyTransient:
    """No connection was made: nothing can have arrived."""
    return NotifyTransient("Slack cannot be connected to (name, network or proxy); the message is kept")


def reply_missing() -> NotifyUnsure:
    """The request went out and no answer came back."""
    return NotifyUnsure("Slack's reply was lost; the message may have arrived and is kept for the next delivery")


BROADCAST: Final = frozenset({NotifyReason.WORSE, NotifyReason.REMINDER})
"""Posted in the thread and shown in the channel too: nobody watches an old thread."""


class Post(Record):
    """One message, ready. ``id`` is the visible one; ``channel`` is empty for a webhook, which has its own."""

    id: Identifier
    content: SlackText
    made_at: UtcTime
    channel: str = ""
    thread: str | None = None
    broadcast: bool = False

    def outside_its_thread(self) -> Post:
        """The same for the channel itself: for when its thread is gone."""
        return self.model_copy(update={"thread": None, "broadcast": False})

    def without_layout(self) -> Post:
        """The same as plain text: for when Slack refuses the layout."""
        return self.model_copy(update={"content": SlackText(text=self.content.text, blocks=())})


def alert_post(alert: Alert, settings: AlertSettings, *, thread: str | None, channel: str | None) -> Post:
    """Make ``alert`` ready; ``thread`` and ``channel`` as `AlertSender.send` has them."""
    thread = thread or alert.thread
    home = (channel or alert.channel) if thread else None
    return Post(
        id=alert.id,
        content=slack_text(alert, settings),
        made_at=alert.created_at,
        channel=home or channel_for(alert, settings) or "",
        thread=thread,
        broadcast=thread is not None and alert.reason in BROADCAST,
    )


def digest_post(digest: Digest, settings: AlertSettings) -> Post:
    """Make ``digest`` ready: a message of its own in the alerts' channel."""
    return Post(
        id=digest.id, content=digest_text(digest), made_at=digest.made_at, channel=settings.slack_channel or ""
    )


SLACK_HOSTS: Final = frozenset({"hooks.slack.com", "hooks.slack-gov.com"})
"""Where Slack's own answer addresses point (docs.slack.dev, "Handling user interaction")."""


class SlackReply:
    """Answers presses. It never calls an address that is not Slack's, whoever sent it."""

    def __init__(self, settings: AlertSettings) -> None:
        self._settings = settings

    def leads_to_slack(self, url: str) -> bool:
        """Whether ``url`` is Slack's, or belongs to the configured ``slack_api_url`` (a proxy, a test server)."""
        try:
            address, configured = urlsplit(url), urlsplit(self._settings.slack_api_url)
            place = address.scheme, address.hostname, address.port
            own_place = configured.scheme, configured.hostname, configured.port
        except ValueError:
            return False
        if address.username is not None or address.password is not None:
            return False
        is_slack = address.scheme == "https" and address.hostname in SLACK_HOSTS and address.port in {None, 443}
        return is_slack or place == own_place

    async def replace(self, url: str, alert: Alert) -> None:
        """Show ``alert`` in place of the message whose button was pressed. Raises `NotifyError`."""
        content = slack_text(alert, self._settings)
        await self._post(url, {"replace_original": True, "text": content.text, "blocks": list(content.blocks)})

    async def whisper(self, url: str, text: str) -> None:
        """Post ``text`` to the one who pressed, and to nobody else. Raises `NotifyError`."""
        await self._post(url, {"response_type": "ephemeral", "replace_original": False, "text": escape(text)})

    async def _post(self, url: str, message: Mapping[str, object]) -> None:
        if not self.leads_to_slack(url):
            raise NotifyRejected("the address for the answer is not Slack's; it was not asked")
        timeout = aiohttp.ClientTimeout(total=self._settings.send_timeout_s)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
                session.post(url, json=message, allow_redirects=False) as answer,
            ):
                status, body = answer.status, (await answer.text(errors="replace")).strip()
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            raise not_sent() from None
        except (TimeoutError, aiohttp.ClientError, OSError, ValueError):
            raise reply_missing() from None
        if status != 200:  # noqa: PLR2004 - HTTP's OK
            raise refused(status, body)


# The SDK types its bodies and answers as bare dicts; what is read of them goes through the models above.
# pyright: reportUnknownMemberType=false

CONNECT_TIMEOUT_S: Final = 5.0
"""Far above any healthy handshake; a connection that is not there then has carried nothing."""
METADATA_EVENT: Final = "lookout_alert"
LOOK_BACK: Final = timedelta(hours=1)
"""How far before an alert's making the search for it starts: Slack's clock and ours may differ. For one that was
made in the future, by a clock that was set back since, it starts that long before now."""
FRESH: Final = timedelta(seconds=5)
"""A worker that died may have tried a message this old: it is searched for even when nobody says so."""

_quiet = logging.getLogger("monitors.alerts.slack.client.sdk")
_quiet.setLevel(logging.WARNING)


class _RateLimitWithin(AsyncRateLimitErrorRetryHandler):
    """Waits as long as Slack asks, when that leaves time to send; the SDK's own handler would sleep for hours."""

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
        await asyncio.sleep(_asked_wait_s(response))  # Slack says how long it refuses: sooner is refused again
        state.increment_current_attempt()


def _asked_wait_s(response: HttpResponse | None) -> float:
    headers = response.headers if response is not None else {}
    wait = next((value[0] for name, value in headers.items() if name.lower() == "retry-after"), "")
    return float(wait) if wait.isdecimal() else 1.0


class SlackBot:
    """Posts with a bot token (scope chat:write; with channels:history it finds what an earlier try posted)."""

    def __init__(self, settings: AlertSettings, *, token: str, now: Callable[[], datetime]) -> None:
        if not settings.slack_channel:
            raise ConfigError("lookout.toml, alerts.slack_channel: a bot token needs a channel, such as #alerts")
        self._settings = settings
        self._token = token
        self._now = now

    @property
    def notifies(self) -> bool:
        """Yes: what Slack takes reaches people."""
        return True

    async def send(
        self, alert: Alert, *, thread: str | None = None, channel: str | None = None, again: bool = False
    ) -> Receipt:
        """Post ``alert``, in its incident's thread where it belongs to one. See `AlertSender.send`."""
        return await self.post(alert_post(alert, self._settings, thread=thread, channel=channel), again=again)

    async def send_digest(self, digest: Digest, *, again: bool = False) -> Receipt:
        """Post the nightly digest; fails as `send` does."""
        return await self.post(digest_post(digest, self._settings), again=again)

    async def post(self, post: Post, *, again: bool = False) -> Receipt:
        """Post what is ready, unless ``again`` or its age makes us search and it is there."""
        may_have_arrived = again or self._now() - post.made_at > FRESH
        async with _deadline(self._settings) as session:
            client = self._client(session)
            earlier = await self._find(client, post) if may_have_arrived else None
            posted = earlier or await self._post(client, post)
        return Receipt(
            alert_id=post.id,
            status=DeliveryStatus.SENT,
            at=self._now(),
            channel=posted.channel,
            thread=post.thread or posted.ts,
            detail="found: an earlier try had arrived" if earlier else "",
        )

    async def update(self, alert: Alert, *, channel: str, ts: str) -> None:
        """Show ``alert`` in place of the message ``ts`` of ``channel`` (an id, as its receipt has it)."""
        content = slack_text(alert, self._settings)
        async with _deadline(self._settings) as session:
            await self._client(session).chat_update(
                channel=channel, ts=ts, text=content.text, blocks=_sdk_blocks(content), metadata=_metadata(alert.id)
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

    async def _post(self, client: AsyncWebClient, post: Post) -> PostMessageResponse:
        """Post; once more where Slack refuses only the layout or the thread: neither may cost an alert."""
        try:
            return await self._post_once(client, post)
        except SlackApiError as error:
            code = error_code(_answered(error))
            if code in LAYOUT_REFUSED:
                return await self._post_once(client, post.without_layout())
            if code in THREAD_GONE and post.thread:
                return await self._post_once(client, post.outside_its_thread())
            raise

    async def _post_once(self, client: AsyncWebClient, post: Post) -> PostMessageResponse:
        answer = await client.chat_postMessage(
            channel=post.channel,
            text=post.content.text,
            blocks=_sdk_blocks(post.content),
            thread_ts=post.thread,
            reply_broadcast=post.broadcast or None,
            unfurl_links=False,
            unfurl_media=False,
            link_names=False,
            parse="none",
            metadata=_metadata(post.id),
        )
        return PostMessageResponse.model_validate(answer.data)

    async def _find(self, client: AsyncWebClient, post: Post) -> PostMessageResponse | None:
        """Search for what an earlier try posted: nothing without the right to read; trouble is passed on."""
        oldest = str((min(post.made_at, self._now()) - LOOK_BACK).timestamp())
        method = "conversations.replies" if post.thread else "conversations.history"
        wanted = {"channel": post.channel, "ts": post.thread, "oldest": oldest, "limit": 200}
        params = {name: value for name, value in wanted.items() if value is not None}
        try:
            answer = await client.api_call(method, params={**params, "include_all_metadata": 1})
        except SlackApiError as error:
            if isinstance(refused(_status(error), _answered(error)), NotifyRejected):
                return None
            raise
        messages = SlackHistory.model_validate(answer.data).messages
        mine = (message.ts for message in messages if message.metadata.event_payload.get("id") == post.id)
        return next((PostMessageResponse(channel=post.channel, ts=ts) for ts in mine), None)


class SlackWebhook:
    """Posts to an incoming webhook: its channel only, no threads, no way to find what an earlier try posted."""

    def __init__(self, settings: AlertSettings, *, url: str, now: Callable[[], datetime]) -> None:
        self._settings = settings.model_copy(update={"slack_buttons": False})
        self._url = url
        self._now = now

    @property
    def notifies(self) -> bool:
        """Yes: what Slack takes reaches people."""
        return True

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
            status, body = await self._post(session, post.content)
            if body in LAYOUT_REFUSED:
                status, body = await self._post(session, post.without_layout().content)
        if status != 200 or body != "ok":  # noqa: PLR2004 - HTTP's OK
            raise refused(status, body)
        return Receipt(alert_id=post.id, status=DeliveryStatus.SENT, at=self._now())

    async def _post(self, session: aiohttp.ClientSession, content: SlackText) -> tuple[int, str]:
        client = AsyncWebhookClient(
            self._url, session=session, retry_handlers=_retry_handlers(self._settings), logger=_quiet
        )
        client.proxy = None  # as for the bot
        answer = await client.send(
            text=content.text, blocks=_sdk_blocks(content), unfurl_links=False, unfurl_media=False
        )
        return answer.status_code, answer.body.strip()


@asynccontextmanager
async def _deadline(settings: AlertSettings) -> AsyncGenerator[aiohttp.ClientSession]:
    """A session whose every failure leaves as one of ours, without a word of what the library content."""
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
        raise reply_missing() from None
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


def _sdk_blocks(content: SlackText) -> list[Block] | None:
    return list(content.blocks) or None


def _answered(error: SlackApiError) -> object:
    return SlackErrorResponse.model_validate(_data_of(error)).error


def _status(error: SlackApiError) -> int:
    """HTTP's status: the SDK hands over its own response, or aiohttp's when the body was not JSON."""
    response: Any = error.response
    return int(getattr(response, "status_code", None) or getattr(response, "status", None) or 200)


def _data_of(error: SlackApiError) -> object:
    response: Any = error.response
    data: object = getattr(response, "data", None)
    return data if isinstance(data, dict) else {}  # pyright: ignore[reportUnknownVariableType] - validated next
