"""Builds the objects that send alerts, from configuration and credentials: Slack, terminal, notifier, heartbeat."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from pydantic import SecretStr, ValidationError

from flows.alerting.notifier import Notifier, build_operator_actions
from flows.alerting.shared_server import SharedServer
from flows.clock import utc_now
from flows.data_folder import get_prefect_home, open_store
from flows.runtime.secrets import generate_nonce, generate_run_id
from flows.server.prefect_server import is_local_address, read_last_started_server
from flows.terminal import write_note
from flows.terminal_console import make_terminal_console
from monitors.alerts.liveness import Beat, Heartbeat, LastPing, build_heartbeat
from monitors.alerts.sender import AlertSender, DeliveryPath, FallbackSender
from monitors.alerts.slack.client import SlackBot, SlackWebhook
from monitors.alerts.terminal import TerminalSender
from monitors.config.file import Config, build_target_record
from monitors.errors import WarehouseError
from monitors.records.base import Record
from monitors.records.incidents import Capability
from monitors.records.targets import Environment
from monitors.storage import write_atomically
from warehouse.database.store import Store
from warehouse.folder_identity import create_or_check_identity, read_identity


class SlackEndpoint(Record):
    """The Slack URL, the headers and the channel for messages from Prefect's server."""

    url: SecretStr
    headers: Mapping[str, SecretStr] = {}
    channel: str | None = None


def build_bot_endpoint(*, token: str, api_url: str, channel: str) -> SlackEndpoint:
    """Build the Slack endpoint for a bot token."""
    return SlackEndpoint(
        url=SecretStr(f"{api_url.rstrip('/')}/chat.postMessage"),
        headers={"Authorization": SecretStr(f"Bearer {token}")},
        channel=channel,
    )


def build_webhook_endpoint(url: str) -> SlackEndpoint:
    """Build the Slack endpoint for an incoming webhook."""
    return SlackEndpoint(url=SecretStr(url))


TOKEN_VARIABLE = "SLACK_BOT_TOKEN"  # noqa: S105 - the variable's name


WEBHOOK_VARIABLE = "SLACK_WEBHOOK_URL"


FALLBACK_VARIABLE = "SLACK_FALLBACK_WEBHOOK_URL"


def build_delivery_paths(
    config: Config, environment: Mapping[str, str], *, now: Callable[[], datetime]
) -> tuple[DeliveryPath, ...]:
    """Build all delivery paths to Slack, with the main path first. Without credentials, there are no paths."""
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


def build_slack_endpoint(config: Config, environment: Mapping[str, str]) -> SlackEndpoint | None:
    """Build the Slack endpoint to which Prefect's server reports faults, or ``None`` without credentials."""
    token, webhook = environment.get(TOKEN_VARIABLE), environment.get(WEBHOOK_VARIABLE)
    channel = config.alerts.choose_monitor_channel()
    if token and channel:
        return build_bot_endpoint(token=token, api_url=config.alerts.slack_api_url, channel=channel)
    return build_webhook_endpoint(webhook) if webhook else None


HEARTBEAT_VARIABLE = "LOOKOUT_HEARTBEAT_URL"


console = make_terminal_console(stderr=True)
"""The console on which alerts are printed if Slack is not configured."""


def write_line_to_stderr(line: str) -> None:
    """Write one line to stderr, for the log of ``lookout up``."""
    write_note(f"{line}\n")


def build_alert_sender(config: Config, environment: Mapping[str, str]) -> FallbackSender:
    """Build the sender of alerts: a Slack bot or webhook, then its fallbacks. Without Slack, use the terminal."""
    return FallbackSender(
        build_delivery_paths(config, environment, now=utc_now)
        or (DeliveryPath("terminal", build_terminal_sender(config)),)
    )


def build_slack_bot(config: Config) -> SlackBot | None:
    """Build the client that can edit sent messages, or ``None`` without a bot token."""
    token = os.environ.get(TOKEN_VARIABLE)
    return SlackBot(config.alerts, token=token, now=utc_now) if token and config.alerts.slack_channel else None


def build_shared_prefect_server(config: Config, environment: Mapping[str, str]) -> SharedServer | None:
    """Build the client of a shared Prefect server. Return ``None`` if no other machine uses the server.

    A target at a loopback address is a different application on each machine. Therefore the address gets the name
    of the machine as a prefix.
    """
    url = config.prefect.api_url or environment.get("PREFECT_API_URL")
    own = read_last_started_server(get_prefect_home(config))
    if not url or (own is not None and own.api_url == url.rstrip("/")):
        return None
    identity, host = read_identity(config.data_folder), socket.gethostname()
    credentials = [environment.get(name) for name in (TOKEN_VARIABLE, WEBHOOK_VARIABLE)]
    place = [config.alerts.slack_api_url, config.alerts.slack_channel, *credentials]
    addresses = {name: build_target_record(name, target).address for name, target in config.targets.items()}
    return SharedServer(
        url,
        folder=identity.id if identity else f"{host}:{config.data_folder}",
        host=host,
        destination=hashlib.sha256(json.dumps(place).encode()).hexdigest(),
        addresses={name: f"{host} {url}" if is_local_address(url) else url for name, url in addresses.items()},
        nonce=generate_nonce,
        auth=environment.get("PREFECT_API_AUTH_STRING", ""),
    )


def build_notifier(
    config: Config,
    store: Store,
    sender: AlertSender,
    *,
    target: str,
    run_id: str,
    owner: Capability = Capability.VERIFY,
) -> Notifier:
    """Build the context for sending the alerts of one run about one target.

    If the data folder has no identity yet, it gets one. Raises `ConfigError` for a copied data folder, because the
    original folder sends the alerts.
    """
    if read_identity(config.data_folder) is None:
        with suppress(WarehouseError):  # the next write reports the error of the disk
            create_or_check_identity(config.data_folder, new_id=generate_nonce(), at=utc_now())
    configured = config.targets.get(target)
    return Notifier(
        target=target,
        run_id=run_id,
        settings=config.alerts,
        store=store,
        journal=store.journal,
        sender=sender,
        terminal=build_terminal_sender(config),
        actions=build_operator_actions(config, store, utc_now),
        now=utc_now,
        owner=owner,
        production=configured is not None and configured.environment is Environment.PRODUCTION,
        shared_server=build_shared_prefect_server(config, os.environ),
    )


def build_notifier_without_run(config: Config, target: str, owner: Capability) -> Notifier:
    """Build the context for alerts that do not belong to a run, for example about a run that could not start."""
    sender = build_alert_sender(config, os.environ)
    return build_notifier(
        config, open_store(config), sender, target=target, run_id=generate_run_id(target), owner=owner
    )


def build_recorded_heartbeat(config: Config, target: str) -> Heartbeat:
    """Build the external heartbeat of a target. Without a URL in the environment, the heartbeat does nothing.

    The result of the newest ping is stored in the data folder.
    """
    file = _build_ping_path(config, target)

    def note(beat: Beat, arrived: bool | None) -> None:
        ping = LastPing(at=utc_now(), beat=beat, arrived=arrived)
        with suppress(OSError, WarehouseError):  # a run continues without the stored result
            write_atomically(file, ping.model_dump_json(), within=config.data_folder)

    return build_heartbeat(os.environ.get(HEARTBEAT_VARIABLE), target, note)


def read_last_ping(config: Config, target: str) -> LastPing | None:
    """Read the result of the newest heartbeat ping of a target. Return ``None`` if there was no ping."""
    try:
        return LastPing.model_validate_json(_build_ping_path(config, target).read_bytes())
    except (OSError, ValidationError):
        return None


def _build_ping_path(config: Config, target: str) -> Path:
    return config.data_folder / "heartbeats" / f"{target}.json"


def build_heartbeat_from_environment(environment: Mapping[str, str], target: str) -> Heartbeat:
    """Build the external heartbeat of a target from the given environment. The heartbeat stores no results."""
    return build_heartbeat(environment.get(HEARTBEAT_VARIABLE), target)


def build_terminal_sender(config: Config) -> AlertSender:
    """Build the sender that prints messages to the terminal."""
    return TerminalSender(config.alerts, console=console, now=utc_now)
