"""Builds the context of a verification run from a request and the environment.

Only `flows/runtime/` creates clients of providers and reads the real clock, random numbers and the environment.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
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
from flows.data_folder import get_prefect_home, get_runs_folder, open_store
from flows.runtime.judge import JudgePlan, build_judge_plan, refuse_rating_without_judge
from flows.runtime.probe import build_login, build_probe_headers, build_scripted_reply_finder, open_driver
from flows.runtime.secrets import HUB_VARIABLE, generate_nonce
from flows.runtime.slack import build_alert_sender, build_notifier, write_line_to_stderr
from flows.server import prefect_server
from flows.verify.progress import NO_LISTENER, ProgressListener
from flows.verify.run_folder import RunFolder, RunStart, VerifyRequest, begin_run, build_run_id, find_run_to_resume
from monitors.config.file import Config, TargetConfig, build_target_record, load_config
from monitors.config.isolation import refuse_production_settings
from monitors.errors import ConfigError
from monitors.goldset.load import load_suite
from monitors.graders.base import Grader
from monitors.graders.panel import build_rule_panel
from monitors.platforms.langfuse.client import load_langfuse_keys
from monitors.platforms.langfuse.platform import open_langfuse
from monitors.platforms.langsmith.project import open_langsmith
from monitors.platforms.langsmith.traces import load_tracing_key, open_traces
from monitors.platforms.platform import OpenPlatform
from monitors.platforms.settings import LangSmithSettings, PlatformScheme, parse_dataset_address
from monitors.probes.browser.driver import BrowserDriver
from monitors.probes.driver import ChatDriver
from monitors.probes.readiness import can_read_serving_commit, read_serving_commit
from monitors.probes.runner import iterate_questions_by_severity
from monitors.records.cases import Suite
from monitors.records.targets import Target
from warehouse.database.store import Store
from warehouse.folder_identity import read_identity
from warehouse.journal.journal import Journal

DISTRIBUTION: Final = "lookout-monitor"


@dataclass(frozen=True)
class TargetContext:
    """The context for asking a target the cases of its suite.

    ``nonce`` returns a random hexadecimal number.
    """

    config: Config
    target: Target
    configured: TargetConfig
    suite: Suite
    judge: JudgePlan
    store: Store
    now: Clock
    environment: Mapping[str, str]
    nonce: Callable[[], str]


@dataclass(frozen=True)
class RunContext(TargetContext):
    """The context of one verification run. ``listener`` receives the progress of the run."""

    panel: tuple[Grader, ...]
    journal: Journal
    notifier: Notifier
    run_folder: RunFolder
    request: VerifyRequest
    listener: ProgressListener

    @property
    def start(self) -> RunStart:
        """The start record of the run."""
        return self.run_folder.start

    @property
    def folder(self) -> Path:
        """The folder that contains the run's evidence and reports."""
        return self.run_folder.folder

    @property
    def run_id(self) -> str:
        """The id of the current run."""
        return self.start.run_id

    @property
    def hub_token(self) -> str | None:
        """The Hugging Face token that gives access to a private Space."""
        return self.environment.get(HUB_VARIABLE)


def load_request_config(request: VerifyRequest) -> Config:
    """Return the configuration of a request. If the request has only a path, load the file."""
    if request.config is not None:
        return request.config
    if request.config_path is None:
        raise AssertionError("internal error: a request must have a configuration")
    return load_config(request.config_path)


def require_valid_request(request: VerifyRequest) -> None:
    """Check a request before a server is started. Raises the same errors as `build_run_context`.

    Also raises `ConfigError` if the gate requires a rating and the judge has no key.
    """
    config = load_request_config(request)
    configured = config.require_target(request.target)
    refuse_production_settings(config, request.target, os.environ)
    tracing = config.find_tracing_settings_with_defaults(request.target)
    if tracing is not None:
        load_tracing_key(tracing, os.environ)
    if configured.experiments is not None:
        open_experiment_platform(config, parse_dataset_address(configured.experiments).scheme, os.environ)
    load_suite(configured.suite)
    judge = build_judge_plan(config.judge, build_target_record(request.target, configured), os.environ)
    refuse_rating_without_judge(config, judge)
    build_alert_sender(config, os.environ)
    build_rule_panel(configured.graders, configured.domain)
    if configured.probe.driver != "browser":
        build_probe_headers(configured.probe, os.environ)
    build_login(config, request.target, os.environ)


def build_run_context(request: VerifyRequest, listener: ProgressListener = NO_LISTENER) -> RunContext:
    """Build the context of the run that ``request`` describes. If a stopped run can be resumed, use its folder.

    Raises `ConfigError` and `WarehouseUnwritable` before any question is asked.
    """
    config = load_request_config(request)
    configured = config.require_target(request.target)
    refuse_production_settings(config, request.target, os.environ)
    target = build_target_record(request.target, configured)
    judge = build_judge_plan(config.judge, target, os.environ)
    suite = load_suite(configured.suite)
    sender = build_alert_sender(config, os.environ)
    store = open_store(config)
    panel = build_rule_panel(configured.graders, configured.domain)
    run_folder = _claim_run_folder(request, config, target, suite)  # last, so that an error leaves no lock
    return RunContext(
        config=config,
        target=target,
        configured=configured,
        suite=suite,
        panel=panel,
        judge=judge,
        store=store,
        journal=store.journal,
        notifier=build_notifier(config, store, sender, target=target.name, run_id=run_folder.start.run_id),
        run_folder=run_folder,
        request=request,
        now=utc_now,
        listener=listener,
        environment=os.environ,
        nonce=generate_nonce,
    )


def _claim_run_folder(request: VerifyRequest, config: Config, target: Target, suite: Suite) -> RunFolder:
    now, repeats = utc_now(), config.require_target(request.target).probe.repeats_severity_3
    planned = sum(1 for _ in iterate_questions_by_severity(suite.cases, repeats_severity_3=repeats))
    configured = config.require_target(request.target)
    start = RunStart(
        run_id=build_run_id(request.target, now, os.urandom(3)),
        target=target,
        suite_sha256=suite.sha256,
        commit=request.commit,
        started_at=now,
        pull_request=request.pull_request,
        planned=planned,
        change=request.change,
        settings_sha256=_hash_asking_settings(config, configured),
    )

    def is_same_build(stopped: RunStart) -> bool:
        """Return whether the target serves the build that the stopped run was testing.

        - False if the stopped run began before the data folder was copied. It then belongs to the original folder.
        - True if the request contains a commit, because the run waits until the target serves this commit.
        - True if the target cannot report its commit.
        - Otherwise, true if the target reports the commit that the stopped run was testing.
        """
        identity = read_identity(config.data_folder)
        if identity is not None and identity.copied_at is not None and stopped.started_at < identity.copied_at:
            return False
        if request.commit is not None or not can_read_serving_commit(target, configured.probe.readiness):
            return True
        token = os.environ.get(HUB_VARIABLE)
        serving = asyncio.run(read_serving_commit(target, configured.probe, hub_token=token))
        return serving is not None and serving == stopped.serving

    stopped = None if request.fresh else find_run_to_resume(get_runs_folder(config), start, is_same_build)
    return stopped or begin_run(get_runs_folder(config), start)


def _hash_asking_settings(config: Config, configured: TargetConfig) -> str:
    """Hash the settings that affect answers and grades, except the suite."""
    target = configured.model_dump(mode="json", exclude={"suite": True, "probe": {"concurrency"}})
    judge = config.judge.model_dump(mode="json") if config.judge else None
    return hashlib.sha256(json.dumps([target, judge], sort_keys=True).encode()).hexdigest()


def start_or_connect_to_prefect(config: Config) -> str:
    """Find or start a Prefect server, configure this process to use the server, and return the URL of its UI.

    Raises `AssertionError` if ``prefect`` was imported before, because Prefect reads its settings at import and
    would use another server.
    """
    url_before = os.environ.get("PREFECT_API_URL")
    prefect_server.connect_or_start(
        config.prefect.api_url,
        get_prefect_home(config),
        environment=os.environ,
        start_timeout_s=config.prefect.start_timeout_s,
        write_line=write_line_to_stderr,
    )
    if "prefect" in sys.modules and os.environ["PREFECT_API_URL"] != url_before:
        raise AssertionError(
            "internal error: Prefect was imported before Lookout knew the server's address; please report this"
        )
    return os.environ["PREFECT_API_URL"].removesuffix("/api")


def _open_langsmith(config: Config, environment: Mapping[str, str]) -> OpenPlatform:
    settings = config.langsmith or LangSmithSettings()
    return open_langsmith(settings, load_tracing_key(settings, environment))


def _open_langfuse(config: Config, environment: Mapping[str, str]) -> OpenPlatform:
    settings = config.langfuse
    if settings is None:
        raise ConfigError('to use langfuse:DATASET, add the table [langfuse] with project = "NAME" to lookout.toml')
    return open_langfuse(settings, load_langfuse_keys(settings, environment), utc_now)


PLATFORMS: Mapping[PlatformScheme, Callable[[Config, Mapping[str, str]], OpenPlatform]] = {
    PlatformScheme.LANGSMITH: _open_langsmith,
    PlatformScheme.LANGFUSE: _open_langfuse,
}
"""Maps the scheme of an address such as ``langsmith:DATASET`` to the function that opens the platform."""


def open_experiment_platform(
    config: Config, scheme: PlatformScheme, environment: Mapping[str, str]
) -> OpenPlatform:
    """Open a platform for a ``with`` block. Raises `ConfigError` if the platform's key is missing."""
    return PLATFORMS[scheme](config, environment)


def get_lookout_version() -> str:
    """Return the installed version of Lookout."""
    return version(DISTRIBUTION)


@asynccontextmanager
async def open_chat_driver(context: RunContext) -> AsyncGenerator[ChatDriver]:
    """Open the driver that asks the target, according to ``probe.driver``.

    Raises an error if the browser is missing.
    """
    settings = context.configured.probe.with_browser_from_environment(os.environ)
    login = build_login(context.config, context.target.name, os.environ)
    address, folder = context.target.address, context.folder
    script = build_scripted_reply_finder(context.suite.cases)
    async with AsyncExitStack() as stack:
        tracing = context.config.find_tracing_settings_with_defaults(context.target.name)
        traces = await stack.enter_async_context(open_traces(tracing, os.environ)) if tracing else None
        opening = open_driver(
            address, settings, folder=folder, environment=os.environ, login=login, traces=traces, script=script
        )
        driver = await stack.enter_async_context(opening)
        if isinstance(driver, BrowserDriver):
            await driver.chromium.start_if_needed()
        yield driver


def end_process_immediately(code: int) -> None:
    """End this process immediately, without cleanup."""
    os._exit(code)
