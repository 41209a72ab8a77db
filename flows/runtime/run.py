"""Turns a request and the environment into the live objects of one verification.

Only `flows/runtime/` names concrete classes and the providers' clients, and reads the real clock, randomness and
environment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from flows.alerting.notifier import Notifier
from flows.clock import Clock, utc_now
from flows.data_folder import open_store, prefect_home, runs_folder
from flows.runtime.judge import JudgePlan, plan_judge, refuse_rating_without_judge
from flows.runtime.probe import browser_settings, driver_at, login_of, probe_headers, script_of
from flows.runtime.secrets import HUB_VARIABLE, nonce
from flows.runtime.slack import alert_sender, log_line, notifier_for
from flows.server import prefect_server
from flows.verify.progress import NO_LISTENER, ProgressListener
from flows.verify.run_folder import RunFolder, RunStart, VerifyRequest, begin, new_run_id, unfinished
from monitors.config.file import Config, TargetConfig, load_config, target_record
from monitors.config.isolation import refuse_production
from monitors.errors import ConfigError
from monitors.goldset.load import load_suite
from monitors.graders.base import Grader
from monitors.graders.panel import default_panel
from monitors.platforms.langfuse.client import langfuse_keys
from monitors.platforms.langfuse.platform import opened_langfuse
from monitors.platforms.langsmith.project import opened_langsmith
from monitors.platforms.langsmith.traces import opened_traces, tracing_key
from monitors.platforms.platform import OpenPlatform
from monitors.platforms.settings import LangSmithSettings, PlatformScheme, dataset_address
from monitors.probes.browser.driver import BrowserDriver
from monitors.probes.driver import ChatDriver
from monitors.probes.runner import worst_first
from monitors.records.cases import Suite
from monitors.records.targets import Target
from warehouse.database.store import Store
from warehouse.journal.journal import Journal

DISTRIBUTION: Final = "lookout-monitor"


@dataclass(frozen=True)
class RunContext:
    """All that one verification needs, alive.

    ``now`` is its clock, ``nonce`` its source of chance; ``listener`` gets its progress.
    """

    config: Config
    target: Target
    configured: TargetConfig
    suite: Suite
    panel: tuple[Grader, ...]
    judge: JudgePlan
    store: Store
    journal: Journal
    notifier: Notifier
    run_folder: RunFolder
    request: VerifyRequest
    now: Clock
    listener: ProgressListener
    environment: Mapping[str, str]
    nonce: Callable[[], str]

    @property
    def start(self) -> RunStart:
        """What the run set out to do."""
        return self.run_folder.start

    @property
    def folder(self) -> Path:
        """Where its evidence and reports go."""
        return self.run_folder.folder

    @property
    def run_id(self) -> str:
        """The run that is going on."""
        return self.start.run_id

    @property
    def hub_token(self) -> str | None:
        """The token that opens a private Space."""
        return self.environment.get(HUB_VARIABLE)


def configuration(request: VerifyRequest) -> Config:
    """The request's configuration, read now when it came as a path."""
    if request.config is not None:
        return request.config
    if request.config_path is None:
        raise AssertionError("a request has a configuration, its validator says")
    return load_config(request.config_path)


def check_request(request: VerifyRequest) -> None:
    """Refuse in a second what `build_run_context` would refuse after a server has been started: raises as it does.

    It refuses here a rating threshold without a judge's key, too: the run could reach no verdict.
    """
    config = configuration(request)
    configured = config.target(request.target)
    refuse_production(config, request.target, os.environ)
    tracing = config.tracing(request.target)
    if tracing is not None:
        tracing_key(tracing, os.environ)
    if configured.experiments is not None:
        open_platform(config, dataset_address(configured.experiments).scheme, os.environ)
    load_suite(configured.suite)
    judge = plan_judge(config.judge, target_record(request.target, configured), os.environ)
    refuse_rating_without_judge(config, judge)
    alert_sender(config, os.environ)
    default_panel(configured.graders, configured.domain)
    if configured.probe.driver != "browser":
        probe_headers(configured.probe, os.environ)
    login_of(config, request.target, os.environ)


def build_run_context(request: VerifyRequest, listener: ProgressListener = NO_LISTENER) -> RunContext:
    """Everything for ``request``. `ConfigError` and `WarehouseUnwritable` before anything is asked."""
    config = configuration(request)
    configured = config.target(request.target)
    refuse_production(config, request.target, os.environ)
    target = target_record(request.target, configured)
    judge = plan_judge(config.judge, target, os.environ)
    suite = load_suite(configured.suite)
    sender = alert_sender(config, os.environ)
    store = open_store(config)
    panel = default_panel(configured.graders, configured.domain)
    run_folder = _claim_run_folder(request, config, target, suite)  # last: what is refused claims nothing
    return RunContext(
        config=config,
        target=target,
        configured=configured,
        suite=suite,
        panel=panel,
        judge=judge,
        store=store,
        journal=store.journal,
        notifier=notifier_for(config, store, sender, target=target.name, run_id=run_folder.start.run_id),
        run_folder=run_folder,
        request=request,
        now=utc_now,
        listener=listener,
        environment=os.environ,
        nonce=nonce,
    )


def _claim_run_folder(request: VerifyRequest, config: Config, target: Target, suite: Suite) -> RunFolder:
    now, repeats = utc_now(), config.target(request.target).probe.repeats_severity_3
    planned = sum(1 for _ in worst_first(suite.cases, repeats_severity_3=repeats))
    start = RunStart(
        run_id=new_run_id(request.target, now, os.urandom(3)),
        target=target,
        suite_sha256=suite.sha256,
        commit=request.commit,
        started_at=now,
        pull_request=request.pull_request,
        planned=planned,
    )
    stopped = None if request.fresh else unfinished(runs_folder(config), start)
    return stopped or begin(runs_folder(config), start)


def connect_prefect(config: Config) -> str:
    """Make sure that a Prefect server answers, and point this process at it; returns the address of its UI.

    `AssertionError` where ``prefect`` was imported before its server was known: it read its settings then, and
    would start a server of its own in the user's home, or wait a minute for one.
    """
    known = os.environ.get("PREFECT_API_URL")
    prefect_server.connect(
        config.prefect.api_url,
        prefect_home(config),
        environment=os.environ,
        start_timeout_s=config.prefect.start_timeout_s,
        say=log_line,
    )
    if "prefect" in sys.modules and os.environ["PREFECT_API_URL"] != known:
        raise AssertionError("prefect was imported before the address of its server was known")
    return os.environ["PREFECT_API_URL"].removesuffix("/api")


def _langsmith(config: Config, environment: Mapping[str, str]) -> OpenPlatform:
    settings = config.langsmith or LangSmithSettings()
    return opened_langsmith(settings, tracing_key(settings, environment))


def _langfuse(config: Config, environment: Mapping[str, str]) -> OpenPlatform:
    settings = config.langfuse
    if settings is None:
        raise ConfigError('langfuse:DATASET needs the table [langfuse] with project = "NAME", in lookout.toml')
    return opened_langfuse(settings, langfuse_keys(settings, environment), utc_now)


PLATFORMS: Mapping[PlatformScheme, Callable[[Config, Mapping[str, str]], OpenPlatform]] = {
    PlatformScheme.LANGSMITH: _langsmith,
    PlatformScheme.LANGFUSE: _langfuse,
}
"""How each platform that an address such as ``langsmith:DATASET`` names is opened."""


def open_platform(config: Config, scheme: PlatformScheme, environment: Mapping[str, str]) -> OpenPlatform:
    """A platform for a ``with`` block. `ConfigError` names the variable that should hold its key, at once."""
    return PLATFORMS[scheme](config, environment)


def lookout_version() -> str:
    """The version of Lookout that runs."""
    return version(DISTRIBUTION)


@asynccontextmanager
async def chat_driver(context: RunContext) -> AsyncGenerator[ChatDriver]:
    """The driver that asks the target, as ``probe.driver`` says. Raises here, once, where there is no browser."""
    settings = browser_settings(context.configured.probe, os.environ)
    login = login_of(context.config, context.target.name, os.environ)
    address, folder = context.target.address, context.folder
    script = script_of(context.suite.cases)
    async with AsyncExitStack() as stack:
        tracing = context.config.tracing(context.target.name)
        traces = await stack.enter_async_context(opened_traces(tracing, os.environ)) if tracing else None
        opening = driver_at(
            address, settings, folder=folder, environment=os.environ, login=login, traces=traces, script=script
        )
        driver = await stack.enter_async_context(opening)
        if isinstance(driver, BrowserDriver):
            await driver.chromium.browser()
        yield driver


def stop_process(code: int) -> None:
    """End this process at once, whatever hangs in it."""
    os._exit(code)
