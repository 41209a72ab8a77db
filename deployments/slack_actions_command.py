"""``lookout slack-actions``: serve the receiver of Slack's buttons."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import uvicorn
from rich.console import Console
from starlette.applications import Starlette

from deployments.exit_codes import ExitCode
from deployments.slack_actions import PATH, SECRET_VARIABLE, application, signing_secrets
from deployments.slack_after import Aftermath
from flows.alert_wiring import TOKEN_VARIABLE
from flows.wiring import open_store, people_of, utc_now
from monitors.alerts.slack import SlackBot
from monitors.alerts.slack_reply import SlackReply
from monitors.config import Config, load_config

MOST_AT_ONCE = 100
"""Requests at once; beyond it the answer is 503. People press one button at a time."""


def slack_actions_command(config_path: Path, *, host: str, port: int, environment: Mapping[str, str]) -> ExitCode:
    """Serve until interrupted. Raises `ConfigError` when the signing secret is not set."""
    secrets = signing_secrets(environment.get(SECRET_VARIABLE))
    config = load_config(config_path)
    app = receiver_of(config, secrets=secrets, token=environment.get(TOKEN_VARIABLE))
    console = Console(stderr=True)
    _say_how_it_stands(console, config, environment, f"http://{host}:{port}{PATH}")
    uvicorn.run(app, host=host, port=port, limit_concurrency=MOST_AT_ONCE, log_level="warning", server_header=False)
    return ExitCode.PASS


def receiver_of(config: Config, *, secrets: tuple[str, ...], token: str | None) -> Starlette:
    """The receiver over the configuration's warehouse; with a bot token it edits messages itself."""
    people = people_of(config, open_store(config))
    sender = SlackBot(config.alerts, token=token, now=utc_now) if token else None
    aftermath = Aftermath(people, sender=sender, reply=SlackReply(config.alerts))
    return application(secrets=secrets, now=utc_now, aftermath=aftermath)


def _say_how_it_stands(console: Console, config: Config, environment: Mapping[str, str], address: str) -> None:
    console.print(f"Slack's buttons are received at {address} (pid {os.getpid()})", soft_wrap=True)
    if not config.alerts.slack_buttons:
        console.print("[yellow]alerts.slack_buttons is false: no message carries buttons yet[/]", soft_wrap=True)
    if not environment.get(TOKEN_VARIABLE):
        console.print(
            f"[yellow]{TOKEN_VARIABLE} is not set: messages are edited through the press's own address, which "
            "Slack forgets after 30 minutes[/]",
            soft_wrap=True,
        )
