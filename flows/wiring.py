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
from flows.alert_wiring import TOKEN_VARIABLE, delivery_paths
from flows.desk import Desk
from flows.judge_wiring import JudgePlan, plan_judge
from flows.people import People
from flows.request import VerifyRequest
from flows.run_folder import Begun, RunStart, begin, new_run_id, unfinished
from monitors.alerts.fallback_sender import DeliveryPath, FallbackSender
from monitors.alerts.heartbeat import Heartbeat, heartbeat_of
from monitors.alerts.sender import AlertSender
from monitors.alerts.slack import SlackBot
from monitors.alerts.terminal_sender import TerminalSender
from monitors.config import Config, TargetConfig, load_config, target_record
from monitors.goldset.load import load_suite
from monitors.graders.base import Grader
from monitors.graders.panel import default_panel
from monitors.probes.browser import BrowserDriver
from monitors.probes.choose import driver_for
from monitors.probes.driver import ChatDriver
from monitors.probes.pace import CpuTimes, Pace, pace_of
from monitors.probes.settings import ProbeSettings
from monitors.records.cases import Suite
from monitors.records.targets import Target
from warehouse.connection import Patience
from warehouse.journal import Journal
from warehouse.store import Store

HEARTBEAT_VARIABLE = "LOOKOUT_HEARTBEAT_URL"
BROWSER_VARIABLE = "CHROMIUM_PATH"
API_TOKEN_VARIABLE = "LOOKOUT_API_TOKEN"  # noqa: S105 - the variable's name

RUNS_FOLDER = "runs"
"""Inside the data folder: one folder a run."""

console = Console(stderr=True)
"""Where messages are printed when there are no credentials to send them with."""


def utc_now() -> datetime:
    """The real clock."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Wired:
    """All that one verification needs, alive."""

    config: Config
    target: Target
    configured: TargetConfig
    suite: Suite
    panel: tuple[Grader, ...]
    judge: JudgePlan
    store: Store
    journal: Journal
    sender: AlertSender
    begun: Begun
    request: VerifyRequest

    @property
    def start(self) -> RunStart:
        """What the run set out to do."""
        return self.begun.start

    @property
    def folder(self) -> Path:
        """Where its evidence and reports go."""
        return self.begun.folder

    @property
    def run_id(self) -> str:
        """The run that is going on."""
        return self.start.run_id

    @property
    def desk(self) -> Desk:
        """Where this run's messages are decided and sent."""
        return desk_of(self.config, self.store, self.sender, target=self.target.name, run_id=self.run_id)


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
    judge = plan_judge(config.judge, target, os.environ)
    suite = load_suite(configured.suite)
    sender = alert_sender(config, os.environ)
    store = open_store(config)
    return Wired(
        config=config,
        target=target,
        configured=configured,
        suite=suite,
        panel=default_panel(configured.graders),
        judge=judge,
        store=store,
        journal=store.journal,
        sender=sender,
        begun=_begun(request, config, target, suite),
        request=request,
    )


def _begun(request: VerifyRequest, config: Config, target: Target, suite: Suite) -> Begun:
    now = utc_now()
    start = RunStart(
        run_id=new_run_id(request.target, now, os.urandom(3)),
        target=target,
        suite_sha256=suite.sha256,
        commit=request.commit,
        started_at=now,
        pull_request=request.pull_request,
    )
    stopped = None if request.fresh else unfinished(runs_folder(config), start)
    return stopped or begin(runs_folder(config), start)


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


def runs_folder(config: Config) -> Path:
    """Where every run has a folder of its own: screenshots, reports."""
    return config.data_folder / RUNS_FOLDER


def prefect_home(config: Config) -> Path:
    """Where the local Prefect server keeps its database."""
    return config.data_folder / "prefect"


def open_store(config: Config) -> Store:
    """The warehouse of the configuration's data folder, with its journal there or in an object store."""
    return store_in(config.data_folder, config.warehouse.journal)


def store_in(data_folder: Path, journal_at: str | None = None) -> Store:
    """The warehouse of a data folder; its journal lies there too, or at this address."""
    journal = None
    if journal_at is not None:
        from warehouse.object_store import ObjectSegments  # fsspec, and only where it is configured

        journal = Journal(ObjectSegments(journal_at), clock=utc_now, entropy=os.urandom)
    patience = Patience(monotonic=time.monotonic, sleep=time.sleep)
    return Store(data_folder, clock=utc_now, entropy=os.urandom, patience=patience, journal=journal)


@asynccontextmanager
async def chat_driver(wired: Wired) -> AsyncGenerator[ChatDriver]:
    """What asks the target, as its ``probe.driver`` says. A machine without a browser is told here, once."""
    settings = wired.configured.probe
    if settings.browser_path is None and os.environ.get(BROWSER_VARIABLE):
        settings = settings.model_copy(update={"browser_path": os.environ[BROWSER_VARIABLE]})
    token = os.environ.get(API_TOKEN_VARIABLE)
    headers = {"Authorization": f"Bearer {token}"} if token else None
    make = driver_for(wired.target.address, settings, run_folder=wired.folder, clock=utc_now, headers=headers)
    async with make as driver:
        if isinstance(driver, BrowserDriver):
            await driver.chromium.browser()
        yield driver


def environment() -> Mapping[str, str]:
    """The real environment: keys go from here into the clients that need them."""
    return os.environ


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pace(settings: ProbeSettings) -> Pace:
    """How many questions are under way on this machine."""
    return pace_of(settings, cores(), CpuTimes())


def alert_sender(config: Config, environment: Mapping[str, str]) -> FallbackSender:
    """Slack by bot token or webhook, whichever the environment has, then its fallbacks; else the terminal."""
    return FallbackSender(
        delivery_paths(config, environment, now=utc_now) or (DeliveryPath("terminal", terminal_sender(config)),)
    )


def slack_bot(config: Config) -> SlackBot | None:
    """What edits messages that were sent: only a bot token can; ``None`` without one."""
    token = os.environ.get(TOKEN_VARIABLE)
    return SlackBot(config.alerts, token=token, now=utc_now) if token and config.alerts.slack_channel else None


def desk_of(config: Config, store: Store, sender: AlertSender, *, target: str, run_id: str) -> Desk:
    """Where the messages of one run about one target are decided and sent."""
    return Desk(
        target=target,
        run_id=run_id,
        settings=config.alerts,
        store=store,
        journal=store.journal,
        sender=sender,
        terminal=terminal_sender(config),
        people=people_of(config, store),
        now=utc_now,
    )


def people_of(config: Config, store: Store) -> People:
    """Where what people do is carried out."""

    def account_patterns(target: str) -> tuple[str, ...]:
        known = config.targets.get(target)
        return known.graders.account_patterns if known else ()

    return People(store=store, settings=config.alerts, account_patterns=account_patterns, now=utc_now)


def desk_without_run(config: Config, target: str) -> Desk:
    """The desk of something that is no run: a start that failed, a digest."""
    run_id = new_run_id(target, utc_now(), os.urandom(3))
    return desk_of(config, open_store(config), alert_sender(config, os.environ), target=target, run_id=run_id)


def heartbeat(target: str) -> Heartbeat:
    """The watchdog outside that is told of each run, by the address in the environment; nobody without one."""
    return heartbeat_in(os.environ, target)


def heartbeat_in(environment: Mapping[str, str], target: str) -> Heartbeat:
    """As `heartbeat`, by another environment."""
    return heartbeat_of(environment.get(HEARTBEAT_VARIABLE), target)


def stop_process(code: int) -> None:
    """End this process at once, whatever hangs in it."""
    os._exit(code)


def terminal_sender(config: Config) -> AlertSender:
    """Prints a message as a person would see it."""
    return TerminalSender(config.alerts, console=console, now=utc_now)
