"""The composition root: a request and the environment become live objects. Only here concrete classes are named.

The real clock, randomness and environment are read here and nowhere else in the flows.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from flows import prefect_server
from flows.request import VerifyRequest
from flows.run_folder import RunStart, begin, new_run_id, unfinished
from monitors.alerts.sender import AlertSender
from monitors.alerts.slack import SlackBot, SlackWebhook
from monitors.alerts.terminal_sender import TerminalSender
from monitors.config import Config, TargetConfig, load_config, target_record
from monitors.errors import ConfigError
from monitors.goldset.load import load_suite
from monitors.graders.base import Grader
from monitors.graders.panel import default_panel
from monitors.probes.browser import BrowserDriver
from monitors.probes.choose import driver_for
from monitors.probes.driver import ChatDriver
from monitors.records.cases import Suite
from monitors.records.targets import Target
from warehouse.connection import Patience
from warehouse.journal import Journal
from warehouse.store import Store

TOKEN_VARIABLE = "SLACK_BOT_TOKEN"  # noqa: S105 - the variable's name
WEBHOOK_VARIABLE = "SLACK_WEBHOOK_URL"
BROWSER_VARIABLE = "CHROMIUM_PATH"
HUB_VARIABLE = "HF_TOKEN"
API_TOKEN_VARIABLE = "LOOKOUT_API_TOKEN"  # noqa: S105 - the variable's name

console = Console(stderr=True)
"""Where messages are printed when there are no credentials to send them with."""


def utc_now() -> datetime:
    """The real clock."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Wired:
    """All that one verification needs, alive. ``resumed`` is true when it finishes a run that was stopped."""

    config: Config
    target: Target
    configured: TargetConfig
    suite: Suite
    panel: tuple[Grader, ...]
    store: Store
    journal: Journal
    sender: AlertSender
    start: RunStart
    folder: Path
    resumed: bool

    @property
    def run_id(self) -> str:
        """The run that is going on."""
        return self.start.run_id


def configuration(request: VerifyRequest) -> Config:
    """The request's configuration, read now when it came as a path."""
    if request.config is not None:
        return request.config
    if request.config_path is None:
        raise AssertionError("a request has a configuration, its validator says")
    return load_config(request.config_path)


def wire(request: VerifyRequest) -> Wired:
    """Everything for ``request``. `ConfigError` and `WarehouseUnwritable` before anything is asked."""
    config = configuration(request)
    configured = config.target(request.target)
    target = target_record(request.target, configured)
    suite = load_suite(configured.suite)
    sender = alert_sender(config, os.environ)
    store = open_store(config)
    start, resumed = _start(request, config, target, suite)
    return Wired(
        config=config,
        target=target,
        configured=configured,
        suite=suite,
        panel=default_panel(configured.graders),
        store=store,
        journal=store.journal,
        sender=sender,
        start=start,
        folder=begin(runs_folder(config), start),
        resumed=resumed,
    )


def _start(request: VerifyRequest, config: Config, target: Target, suite: Suite) -> tuple[RunStart, bool]:
    now = utc_now()
    start = RunStart(
        run_id=new_run_id(request.target, now, os.urandom(3)),
        target=target,
        suite_sha256=suite.sha256,
        commit=request.commit,
        started_at=now,
    )
    stopped = None if request.fresh else unfinished(runs_folder(config), start)
    return (stopped, True) if stopped else (start, False)


def connect_prefect(config: Config) -> str:
    """Make sure that a Prefect server answers, and point this process at it; returns where people look at runs."""
    prefect_server.connect(
        config.prefect.api_url,
        prefect_home(config),
        environment=os.environ,
        start_timeout_s=config.prefect.start_timeout_s,
        say=lambda line: console.print(f"[dim]{line}[/]"),
    )
    return os.environ["PREFECT_API_URL"].removesuffix("/api")


def secret(variable: str) -> str:
    """A secret from the environment; `ConfigError` names the variable, never a value."""
    value = os.environ.get(variable)
    if not value:
        raise ConfigError(f"{variable} is not set: secrets come from the environment, never from lookout.toml")
    return value


def runs_folder(config: Config) -> Path:
    """Where every run has a folder of its own: screenshots, reports."""
    return config.data_folder / "runs"


def prefect_home(config: Config) -> Path:
    """Where the local Prefect server keeps its database."""
    return config.data_folder / "prefect"


def open_store(config: Config) -> Store:
    """The warehouse of the configuration's data folder."""
    return store_in(config.data_folder)


def store_in(data_folder: Path) -> Store:
    """The warehouse of a data folder."""
    patience = Patience(monotonic=time.monotonic, sleep=time.sleep)
    return Store(data_folder, clock=utc_now, entropy=os.urandom, patience=patience)


@asynccontextmanager
async def chat_driver(wired: Wired) -> AsyncGenerator[ChatDriver]:
    """What asks the target, as its ``probe.driver`` says. A machine without a browser is told here, once."""
    settings = wired.configured.probe
    if settings.browser_path is None and os.environ.get(BROWSER_VARIABLE):
        settings = settings.model_copy(update={"browser_path": os.environ[BROWSER_VARIABLE]})
    token = os.environ.get(API_TOKEN_VARIABLE)
    headers = {"Authorization": f"Bearer {token}"} if token else None
    async with driver_for(wired.target.address, settings, run_folder=wired.folder, headers=headers) as driver:
        if isinstance(driver, BrowserDriver):
            await driver.chromium.browser()
        yield driver


def hub_token() -> str | None:
    """What opens a private Space, from the variable that the Hub's own tools read."""
    return os.environ.get(HUB_VARIABLE)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def alert_sender(config: Config, environment: Mapping[str, str]) -> AlertSender:
    """Slack by bot token or webhook, whichever the environment has; else the terminal."""
    token, webhook = environment.get(TOKEN_VARIABLE), environment.get(WEBHOOK_VARIABLE)
    if token:
        return SlackBot(config.alerts, token=token, now=utc_now)
    if webhook:
        return SlackWebhook(config.alerts, url=webhook, now=utc_now)
    return terminal_sender(config)


def terminal_sender(config: Config) -> AlertSender:
    """Prints a message as a person would see it."""
    return TerminalSender(config.alerts, console=console, now=utc_now)
