"""How Prefect's server itself reaches Slack, when nothing of ours is left to do it."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import SecretStr

from monitors.records.base import Record


class SlackWay(Record):
    """Where Prefect's server posts: an address with headers, both secret, and the channel where one is needed."""

    url: SecretStr
    headers: Mapping[str, SecretStr] = {}
    channel: str | None = None


def bot_way(*, token: str, api_url: str, channel: str) -> SlackWay:
    """By bot token."""
    return SlackWay(
        url=SecretStr(f"{api_url.rstrip('/')}/chat.postMessage"),
        headers={"Authorization": SecretStr(f"Bearer {token}")},
        channel=channel,
    )


def webhook_way(url: str) -> SlackWay:
    """By incoming webhook."""
    return SlackWay(url=SecretStr(url))
