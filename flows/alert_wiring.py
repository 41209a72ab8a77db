"""The ways to Slack that an environment opens. A part of the composition root; it reads nothing by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from flows.slack_way import SlackWay, bot_way, webhook_way
from monitors.alerts.fallback_sender import DeliveryPath
from monitors.alerts.slack import SlackBot, SlackWebhook
from monitors.config import Config

TOKEN_VARIABLE = "SLACK_BOT_TOKEN"  # noqa: S105 - the variable's name
WEBHOOK_VARIABLE = "SLACK_WEBHOOK_URL"
FALLBACK_VARIABLE = "SLACK_FALLBACK_WEBHOOK_URL"


def delivery_paths(
    config: Config, environment: Mapping[str, str], *, now: Callable[[], datetime]
) -> tuple[DeliveryPath, ...]:
    """Every way to Slack there is, the main one first; none without credentials."""
    alerts = config.alerts
    token, webhook = environment.get(TOKEN_VARIABLE), environment.get(WEBHOOK_VARIABLE)
    paths: list[DeliveryPath] = []
    if token:
        paths.append(DeliveryPath("bot", SlackBot(alerts, token=token, now=now)))
        if alerts.slack_fallback_channel:
            place = {"slack_channel": alerts.slack_fallback_channel, "slack_monitor_channel": None}
            elsewhere = alerts.model_copy(update=place)
            paths.append(DeliveryPath("bot, fallback channel", SlackBot(elsewhere, token=token, now=now)))
    elif webhook:
        paths.append(DeliveryPath("webhook", SlackWebhook(alerts, url=webhook, now=now)))
    if fallback := environment.get(FALLBACK_VARIABLE):
        paths.append(DeliveryPath("fallback webhook", SlackWebhook(alerts, url=fallback, now=now)))
    return tuple(paths)


def slack_way(config: Config, environment: Mapping[str, str]) -> SlackWay | None:
    """How Prefect's server tells of the monitor's own trouble; ``None`` without credentials."""
    token, webhook = environment.get(TOKEN_VARIABLE), environment.get(WEBHOOK_VARIABLE)
    channel = config.alerts.channel_for_monitor()
    if token and channel:
        return bot_way(token=token, api_url=config.alerts.slack_api_url, channel=channel)
    return webhook_way(webhook) if webhook else None
