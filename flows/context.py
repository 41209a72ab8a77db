"""The composition root: turns a request and the environment into live objects.

Only here concrete classes and the providers' clients are named. The flows read the real clock, randomness and
environment here and nowhere else. A function that takes an ``environment`` reads no other, and a key goes straight
into the client that needs it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, assert_never
from urllib.parse import urlsplit

from pydantic import SecretStr, ValidationError

from flows.alerting.notifier import Notifier, people_of
from flows.clock import Clock, clock
from flows.data_folder import open_store, prefect_home, runs_folder
from flows.server import prefect_server
from flows.terminal import write_note
from flows.terminal_console import terminal_console
from flows.verify.run_folder import RunFolder, RunStart, VerifyRequest, begin, new_run_id, unfinished
from monitors.alerts.liveness import Beat, Heartbeat, LastPing, heartbeat_of
from monitors.alerts.sender import AlertSender, DeliveryPath, FallbackSender
from monitors.alerts.slack.client import SlackBot, SlackWebhook
from monitors.alerts.terminal import TerminalSender
from monitors.config.file import Config, TargetConfig, load_config, target_record
from monitors.config.isolation import refuse_production
from monitors.errors import ConfigError, WarehouseError
from monitors.goldset.load import load_suite
from monitors.graders.base import Grader
from monitors.graders.panel import default_panel
from monitors.judge import anthropic_client, openai_client
from monitors.judge.judge import Account, FamilyPolicy, Judge, PanelMember
from monitors.judge.model import price_of
from monitors.judge.settings import JudgeModelSettings, JudgeProvider, JudgeSettings
from monitors.judge.verdict import SCHEMA
from monitors.platforms.langfuse.client import langfuse_keys
from monitors.platforms.langfuse.platform import opened_langfuse
from monitors.platforms.langsmith.project import opened_langsmith
from monitors.platforms.langsmith.traces import opened_traces, tracing_key
from monitors.platforms.platform import OpenPlatform
from monitors.platforms.settings import LangSmithSettings, PlatformScheme, dataset_address
from monitors.probes.browser.driver import BrowserDriver
from monitors.probes.browser.login import Login
from monitors.probes.choose import driver_for
from monitors.probes.driver import ChatDriver
from monitors.probes.job.driver import JobTraces, Script, no_script
from monitors.probes.pace import CpuTimes, Pace, pace_of
from monitors.probes.runner import worst_first
from monitors.probes.settings import ProbeSettings
from monitors.records.base import Record
from monitors.records.cases import GoldCase, Suite
from monitors.records.incidents import Capability
from monitors.records.targets import Environment, Target
from monitors.request_headers import API_TOKEN_VARIABLE, RequestHeaders, headers_of
from monitors.storage import write_atomically
from warehouse.database.retention import SHORTEST_KEY
from warehouse.database.store import Store
from warehouse.journal.journal import Journal

DISTRIBUTION: Final = "lookout-monitor"
HUB_VARIABLE = "HF_TOKEN"
AGE_KEY_VARIABLE = "LOOKOUT_AGE_KEY"


def secret(variable: str) -> str:
    """A secret from the environment; `ConfigError` names the variable, never a value."""
    value = os.environ.get(variable)
    if not value:
        raise ConfigError(f"{variable} is not set: secrets come from the environment, never from lookout.toml")
    return value


def age_key() -> bytes:
    """The key that makes pseudonyms, always the same; `ConfigError` when it is missing or could be guessed."""
    key = secret(AGE_KEY_VARIABLE).encode()
    if len(key) < SHORTEST_KEY:
        raise ConfigError(
            f"{AGE_KEY_VARIABLE}: too short; at least {SHORTEST_KEY} characters, and the same every time"
        )
    return key


def fresh_key() -> bytes:
    """A key that nobody stores: its pseudonyms can never be matched to those of another nightly run."""
    return os.urandom(32)


def nonce() -> str:
    """A number that nobody can guess, for the fences of one prompt."""
    return os.urandom(16).hex()


def hub_token() -> str | None:
    """The token that opens a private Space, from the variable that the Hub's own tools read."""
    return os.environ.get(HUB_VARIABLE)


class SlackWay(Record):
    """Where Prefect's server posts: an address with headers, both secret, and the channel where one is needed."""

    url: SecretStr
    headers: Mapping[str, SecretStr] = {}
    channel: str | None = None


def bot_way(*, token: str, api_url: str, channel: str) -> SlackWay:
    """The way by bot token."""
    return SlackWay(
        url=SecretStr(f"{api_url.rstrip('/')}/chat.postMessage"),
        headers={"Authorization": SecretStr(f"Bearer {token}")},
        channel=channel,
    )


def webhook_way(url: str) -> SlackWay:
    """The way by incoming webhook."""
    return SlackWay(url=SecretStr(url))


TOKEN_VARIABLE = "SLACK_BOT_TOKEN"  # noqa: S105 - the variable's name
WEBHOOK_VARIABLE = "SLACK_WEBHOOK_URL"
FALLBACK_VARIABLE = "SLACK_FALLBACK_WEBHOOK_URL"


def delivery_paths(
    config: Config, environment: Mapping[str, str], *, now: Callable[[], datetime]
) -> tuple[DeliveryPath, ...]:
    """Every delivery path to Slack, the main one first; none without credentials."""
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
    """How Prefect's server reports the monitor's own trouble; ``None`` without credentials."""
    token, webhook = environment.get(TOKEN_VARIABLE), environment.get(WEBHOOK_VARIABLE)
    channel = config.alerts.channel_for_monitor()
    if token and channel:
        return bot_way(token=token, api_url=config.alerts.slack_api_url, channel=channel)
    return webhook_way(webhook) if webhook else None


NOT_CONFIGURED = "no [judge] is configured"


class JudgePlan(Record):
    """Whether a run has a judge. ``why_off`` is empty when it has one. Holds no key."""

    settings: JudgeSettings | None = None
    family_policy: FamilyPolicy
    why_off: str = ""

    @property
    def models(self) -> tuple[str, ...]:
        """The models of the judge, in the order in which they are asked."""
        return tuple(one.model for one in self.settings.models) if self.settings else ()


def plan_judge(settings: JudgeSettings | None, target: Target, environment: Mapping[str, str]) -> JudgePlan:
    """Whether ``target`` can be judged. `ConfigError` for a judge of its family, or one without a price.

    The families are checked even without a key, so that a wrong configuration shows before the key comes.
    """
    if settings is None:
        return JudgePlan(family_policy=FamilyPolicy(target=target.name), why_off=NOT_CONFIGURED)
    family_policy = FamilyPolicy(
        target=f"target {target.name!r}", family=target.model_family, additions=dict(settings.families)
    )
    for one in settings.models:
        family_policy.refuse(one.model)
        price_of(one.model, 0, settings.prices)
    missing = sorted({one.key_from for one in settings.models if not environment.get(one.key_from)})
    why = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set" if missing else ""
    return JudgePlan(settings=settings, family_policy=family_policy, why_off=why)


@asynccontextmanager
async def open_judge(
    plan: JudgePlan, environment: Mapping[str, str], account: Account, nonce: Callable[[], str]
) -> AsyncGenerator[Judge]:
    """The judge of a plan that has one, with its connections open."""
    settings = plan.settings
    if settings is None or plan.why_off:
        raise AssertionError("only a plan with a judge is opened")
    async with AsyncExitStack() as stack:
        members: list[PanelMember] = []
        for one in settings.models:
            client = client_of(one, settings, environment)
            members.append(
                PanelMember(
                    await stack.enter_async_context(client), account=account, family_policy=plan.family_policy
                )
            )
        yield Judge(members, settings, nonce=nonce)


def client_of(
    one: JudgeModelSettings,
    settings: JudgeSettings,
    environment: Mapping[str, str],
    schema: Mapping[str, Any] = SCHEMA,
) -> anthropic_client.AnthropicJudge | openai_client.OpenAIJudge:
    """The client of one configured model, not entered yet. `ConfigError` when its key is not set.

    ``schema`` is the form of its replies.
    """
    key = environment.get(one.key_from)
    if not key:
        raise ConfigError(f"{one.key_from} is not set: the model {one.model} has no key")
    match one.provider:
        case JudgeProvider.ANTHROPIC:
            return anthropic_client.AnthropicJudge(
                one.model,
                api_key=key,
                base_url=one.base_url or anthropic_client.ADDRESS,
                patience=settings.patience,
                effort=settings.effort,
                cache_ttl=settings.cache_ttl,
                schema=schema,
            )
        case JudgeProvider.OPENAI:
            return openai_client.OpenAIJudge(
                one.model,
                api_key=key,
                base_url=one.base_url or openai_client.ADDRESS,
                patience=settings.patience,
                schema=schema,
            )
        case _:
            assert_never(one.provider)


HEARTBEAT_VARIABLE = "LOOKOUT_HEARTBEAT_URL"
BROWSER_VARIABLE = "CHROMIUM_PATH"

console = terminal_console(stderr=True)
"""Where messages are printed when there are no credentials to send them with."""


def log_line(line: str) -> None:
    """One plain line on stderr, as the log of ``lookout up`` has it."""
    write_note(f"{line}\n")


@dataclass(frozen=True)
class RunContext:
    """All that one verification needs, alive: ``now`` is its clock, ``nonce`` its source of chance."""

    config: Config
    target: Target
    configured: TargetConfig
    suite: Suite
    panel: tuple[Grader, ...]
    judge: JudgePlan
    store: Store
    journal: Journal
    sender: AlertSender
    run_folder: RunFolder
    request: VerifyRequest
    now: Clock
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

    @property
    def notifier(self) -> Notifier:
        """The notifier that decides and sends this run's messages."""
        return notifier_for(self.config, self.store, self.sender, target=self.target.name, run_id=self.run_id)


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


def refuse_rating_without_judge(config: Config, judge: JudgePlan) -> None:
    """Raise `ConfigError` where a rating is asked for that only a judge gives, and its key is not set."""
    if config.gate.rating_needed and judge.settings is not None and judge.why_off:
        raise ConfigError(
            f"{judge.why_off}, so the judge is off, and an average rating of {config.gate.min_rubric:g} is asked "
            "for (--min-score above 1, or gate.rating_needed), which a judge gives"
        )


def build_run_context(request: VerifyRequest) -> RunContext:
    """Everything for ``request``. `ConfigError` and `WarehouseUnwritable` before anything is asked."""
    config = configuration(request)
    configured = config.target(request.target)
    refuse_production(config, request.target, os.environ)
    target = target_record(request.target, configured)
    judge = plan_judge(config.judge, target, os.environ)
    suite = load_suite(configured.suite)
    sender = alert_sender(config, os.environ)
    store = open_store(config)
    return RunContext(
        config=config,
        target=target,
        configured=configured,
        suite=suite,
        panel=default_panel(configured.graders, configured.domain),
        judge=judge,
        store=store,
        journal=store.journal,
        sender=sender,
        run_folder=_claim_run_folder(request, config, target, suite),
        request=request,
        now=clock.get(),
        environment=os.environ,
        nonce=nonce,
    )


def _claim_run_folder(request: VerifyRequest, config: Config, target: Target, suite: Suite) -> RunFolder:
    now, repeats = clock.get()(), config.target(request.target).probe.repeats_severity_3
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
    return opened_langfuse(settings, langfuse_keys(settings, environment), clock.get())


PLATFORMS: Mapping[PlatformScheme, Callable[[Config, Mapping[str, str]], OpenPlatform]] = {
    PlatformScheme.LANGSMITH: _langsmith,
    PlatformScheme.LANGFUSE: _langfuse,
}
"""How each platform that an address such as ``langsmith:DATASET`` names is opened."""


def open_platform(config: Config, scheme: PlatformScheme, environment: Mapping[str, str]) -> OpenPlatform:
    """A platform for a ``with`` block. `ConfigError` names the variable that should hold its key, at once."""
    return PLATFORMS[scheme](config, environment)


def browser_of(driver: ChatDriver) -> str | None:
    """The browser that a driver asks with, and its version; ``None`` where it needs none."""
    version = driver.chromium.version if isinstance(driver, BrowserDriver) else None
    return f"Chromium {version}" if version else None


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


def browser_settings(settings: ProbeSettings, environment: Mapping[str, str]) -> ProbeSettings:
    """The settings with the browser that the environment names, where they name none."""
    named = environment.get(BROWSER_VARIABLE)
    return settings if settings.browser_path or not named else settings.model_copy(update={"browser_path": named})


def driver_at(
    address: str,
    settings: ProbeSettings,
    *,
    folder: Path,
    environment: Mapping[str, str],
    login: Login | None = None,
    traces: JobTraces | None = None,
    script: Script = no_script,
) -> AbstractAsyncContextManager[ChatDriver]:
    """The driver that asks at an address and authenticates there. `ConfigError` for a header without a value."""
    headers = probe_headers(settings, environment)
    return driver_for(
        address,
        settings,
        run_folder=folder,
        clock=clock.get(),
        headers=headers,
        login=login,
        traces=traces,
        script=script,
    )


def script_of(cases: Sequence[GoldCase]) -> Script:
    """What these cases answer an agent that stops to ask: each case knows its own turns."""
    scripted = {case.turns: case for case in cases if case.when_asked}

    def answer(turns: tuple[str, ...], question: str) -> str | None:
        case = scripted.get(turns)
        return case.answer_to(question) if case else None

    return answer


def probe_headers(settings: ProbeSettings, environment: Mapping[str, str]) -> RequestHeaders:
    """The headers for a target that is asked through an API. `ConfigError` names what is missing."""
    return headers_of(settings.headers, environment, key="probe.headers", token_variable=API_TOKEN_VARIABLE)


def login_of(config: Config, name: str, environment: Mapping[str, str]) -> Login | None:
    """The login that opens a target's pages, ``None`` where it has none.

    `ConfigError` names the variable that is missing.
    """
    return login_at(config, name, target_record(name, config.target(name)).address, environment)


def login_at(config: Config, name: str, address: str, environment: Mapping[str, str]) -> Login | None:
    """Like `login_of`, at another address of the target.

    A session opens one origin: at another one a target has a session of its own, which a form or headers make.
    `ConfigError` where only a person can sign in there.
    """
    configured = config.target(name)
    if configured.login is None:
        return None
    own = target_record(name, configured).address
    elsewhere = urlsplit(own)[:2] != urlsplit(address)[:2]
    if elsewhere and configured.login.needs_person:
        raise ConfigError(f"{address} cannot be asked: only a person can sign in to {name}, and did so at {own}")
    return Login(
        configured.login,
        target=f"{name}@{urlsplit(address).netloc}" if elsewhere else name,
        address=address,
        data_folder=config.data_folder,
        environment=environment,
        now=clock.get(),
    )


def environment() -> MutableMapping[str, str]:
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
        delivery_paths(config, environment, now=clock.get()) or (DeliveryPath("terminal", terminal_sender(config)),)
    )


def slack_bot(config: Config) -> SlackBot | None:
    """The client that edits messages that were sent: only a bot token can; ``None`` without one."""
    token = os.environ.get(TOKEN_VARIABLE)
    return SlackBot(config.alerts, token=token, now=clock.get()) if token and config.alerts.slack_channel else None


def notifier_for(
    config: Config,
    store: Store,
    sender: AlertSender,
    *,
    target: str,
    run_id: str,
    owner: Capability = Capability.VERIFY,
) -> Notifier:
    """The notifier that decides and sends the messages of one run about one target."""
    configured = config.targets.get(target)
    return Notifier(
        target=target,
        run_id=run_id,
        settings=config.alerts,
        store=store,
        journal=store.journal,
        sender=sender,
        terminal=terminal_sender(config),
        people=people_of(config, store, clock.get()),
        now=clock.get(),
        owner=owner,
        production=configured is not None and configured.environment is Environment.PRODUCTION,
    )


def notifier_without_run(config: Config, target: str, owner: Capability) -> Notifier:
    """The notifier of something that is no run: a start that failed, a digest."""
    sender = alert_sender(config, os.environ)
    return notifier_for(
        config, open_store(config), sender, target=target, run_id=run_id_of_now(target), owner=owner
    )


def run_id_of_now(target: str) -> str:
    """A new run's id, by the real clock and chance."""
    return new_run_id(target, clock.get()(), os.urandom(3))


def heartbeat(config: Config, target: str) -> Heartbeat:
    """The watchdog outside that gets a ping for each run, by the address in the environment; nobody without one.

    What came of the newest ping is noted in the data folder, for `last_ping`.
    """
    file = _ping_file(config, target)

    def note(beat: Beat, arrived: bool | None) -> None:
        ping = LastPing(at=clock.get()(), beat=beat, arrived=arrived)
        with suppress(OSError, WarehouseError):  # a run goes on without the note
            write_atomically(file, ping.model_dump_json(), within=config.data_folder)

    return heartbeat_of(os.environ.get(HEARTBEAT_VARIABLE), target, note)


def last_ping(config: Config, target: str) -> LastPing | None:
    """The newest ping about a target; ``None`` where none is noted in this data folder."""
    try:
        return LastPing.model_validate_json(_ping_file(config, target).read_bytes())
    except (OSError, ValidationError):
        return None


def _ping_file(config: Config, target: str) -> Path:
    return config.data_folder / "heartbeats" / f"{target}.json"


def heartbeat_in(environment: Mapping[str, str], target: str) -> Heartbeat:
    """Like `heartbeat`, by another environment."""
    return heartbeat_of(environment.get(HEARTBEAT_VARIABLE), target)


def stop_process(code: int) -> None:
    """End this process at once, whatever hangs in it."""
    os._exit(code)


def terminal_sender(config: Config) -> AlertSender:
    """Prints a message as a person would see it."""
    return TerminalSender(config.alerts, console=console, now=clock.get())
