"""What Slack answers → what it means for a message, in words that hold no address and no token."""

from __future__ import annotations

import re
from typing import Final

from monitors.errors import NotifyError, NotifyRejected, NotifyTransient, NotifyUnsure

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
"""Slack takes the message, but not its layout: the plain text goes instead, since no page may be lost to layout."""

THREAD_GONE: Final = frozenset({"thread_not_found", "invalid_thread_ts", "cannot_reply_to_message"})
"""Somebody deleted the first message: what belongs below it goes to the channel instead."""
UNREADABLE: Final = "unreadable"
_CODE: Final = re.compile(r"[a-z][a-z_]{1,59}")


def error_code(said: object) -> str:
    """Slack's own name of the error, or `UNREADABLE` for anything that is not one."""
    return said if isinstance(said, str) and _CODE.fullmatch(said) else UNREADABLE


def refused(status: int, said: object) -> NotifyError:
    """The error for an answer that is not a yes. ``status`` is HTTP's, ``said`` Slack's name for what is wrong."""
    code = error_code(said)
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


def reply_lost() -> NotifyUnsure:
    """The request went out and no answer came back."""
    return NotifyUnsure("Slack's reply was lost; the message may have arrived and is kept for the next delivery")
