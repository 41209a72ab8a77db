"""``lookout receive``: serve the receiver of deploys."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Generator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

import uvicorn
from rich.console import Console
from starlette.applications import Starlette

from deployments.exit_codes import ExitCode
from deployments.triggers.delivery import TriggerParser
from deployments.triggers.github import GitHubParser
from deployments.triggers.huggingface import HuggingFaceParser
from deployments.triggers.secrets import VARIABLES, Secrets, secrets_for, unused_variables
from deployments.triggers.standard import StandardParser
from flows import prefect_server
from flows.kept_deploys import KeptDeploys
from flows.wiring import open_store, prefect_home, utc_now
from monitors.config import Config
from monitors.errors import ConfigError
from monitors.trigger_settings import DeploySettings, Provider

MOST_AT_ONCE: Final = 256
"""Connections at once; beyond it the answer is 503, and a sender comes again."""
STOP_S: Final = 5
"""For deliveries under way when it is told to stop: as long as a body may take."""


def receive_command(
    config: Config,
    settings: DeploySettings,
    config_path: Path,
    *,
    host: str,
    port: int,
    environment: MutableMapping[str, str],
) -> ExitCode:
    """Serve until told to stop. Raises `ConfigError` and `WarehouseUnwritable` before it listens.

    ``settings`` are the configuration's ``[deploys]``; ``config_path`` is what the runs read.
    """
    secrets = _secrets(config, settings, environment)
    KeptDeploys(config.data_folder).check_writable()
    _prepare_prefect(config, environment)
    app = receiver_of(config, settings, config_path, secrets=secrets, environment=environment)
    console = Console(stderr=True)
    _say_how_it_stands(console, settings, environment, f"http://{host}:{port}")
    logging.basicConfig(format="%(asctime)s %(message)s")
    with _stopped_by_term(), suppress(_Stopped):
        uvicorn.run(
            app,
            host=host,
            port=port,
            limit_concurrency=MOST_AT_ONCE,
            timeout_graceful_shutdown=STOP_S,
            log_level="warning",
            access_log=False,
            server_header=False,
        )
    return ExitCode.PASS


def receiver_of(
    config: Config,
    settings: DeploySettings,
    config_path: Path,
    *,
    secrets: Secrets,
    environment: Mapping[str, str],
) -> Starlette:
    """The receiver over the configuration's data folder. Raises `ConfigError` for a secret of the wrong form."""
    from deployments.webhook import application  # these bring Prefect's client, 3 s: after what can be refused
    from deployments.webhook_metrics import ReceiverMetrics
    from deployments.webhook_ready import Readiness
    from deployments.webhook_starter import Starter
    from flows.deploy_runs import RunPlan

    kept, metrics = KeptDeploys(config.data_folder), ReceiverMetrics()
    api = prefect_api(config, environment)
    starter = Starter(
        kept,
        open_store(config).journal,
        RunPlan(deployment=settings.deployment, config_path=config_path.resolve()),
        prefect_api=api,
        metrics=metrics,
        now=utc_now,
    )
    return application(parsers_of(secrets, settings), starter, metrics, Readiness(kept, api), now=utc_now)


def parsers_of(secrets: Secrets, settings: DeploySettings) -> list[TriggerParser]:
    """A parser for every sender that has a secret. Raises `ConfigError` naming the variable."""
    makers = {
        Provider.GITHUB: GitHubParser,
        Provider.HUGGINGFACE: HuggingFaceParser,
        Provider.STANDARD: StandardParser,
    }
    found: list[TriggerParser] = []
    for provider, values in secrets.items():
        try:
            found.append(makers[provider](values, settings.triggers))
        except ConfigError as error:
            raise ConfigError(f"{VARIABLES[provider]}: {error}") from None
    return found


def prefect_api(config: Config, environment: Mapping[str, str]) -> Callable[[], str | None]:
    """Tells where Prefect's API is: as configured, as the environment says, or the data folder's own server."""
    named = config.prefect.api_url or environment.get("PREFECT_API_URL")
    if named:
        return lambda: named

    def local() -> str | None:
        server = prefect_server.running_server(prefect_home(config))
        return server.api_url if server else None

    return local


def _secrets(config: Config, settings: DeploySettings, environment: Mapping[str, str]) -> Secrets:
    """Refuse half a configuration: a receiver that can start nothing looks alive to everybody else."""
    if not settings.triggers:
        raise ConfigError("[[deploys.triggers]]: there is none, so no delivery could start anything; add one")
    for trigger in settings.triggers:
        config.target(trigger.target)
    secrets = secrets_for(settings.providers, environment)
    parsers_of(secrets, settings)
    return secrets


def _prepare_prefect(config: Config, environment: MutableMapping[str, str]) -> None:
    """Prefect's client reads these at import; where the API is, it is told each time."""
    for name, value in prefect_server.settings_for("", prefect_home(config)).items():
        if name != "PREFECT_API_URL":
            environment.setdefault(name, value)


def _say_how_it_stands(
    console: Console, settings: DeploySettings, environment: Mapping[str, str], address: str
) -> None:
    for provider in sorted(settings.providers):
        rows = [row for row in settings.triggers if row.provider is provider]
        targets = ", ".join(sorted({row.target for row in rows}))
        console.print(f"Deploys of {targets} are received at {address}/deploys/{provider.value}", soft_wrap=True)
    for name in unused_variables(settings.providers, environment):
        console.print(f"[yellow]{name} is set, but no trigger listens to its sender[/]", soft_wrap=True)


class _Stopped(BaseException):
    """SIGTERM came, and everything was put down properly."""


@contextmanager
def _stopped_by_term() -> Generator[None]:
    """The server stops cleanly on SIGTERM, then raises it again for whoever had the signal before: that is us."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise _Stopped

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
