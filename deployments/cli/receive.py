"""``lookout receive``: receive webhooks about deploys, and run the verifications that the webhooks start.

The parts that the command starts depend on where the verifications run:

on this machine, without ``lookout up``   the receiver, a Prefect server and a runner, as ``lookout up`` does
on this machine, with ``lookout up``      only the receiver; ``lookout up`` runs the verifications
on the user's own Prefect server          only the receiver; its deployment must be registered at that server

``lookout slack-actions`` receives clicks on Slack buttons.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Generator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Annotated, Final

import httpx
import typer
import uvicorn
from rich.console import Console
from starlette.applications import Starlette

from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption
from deployments.receivers.connection_limits import (
    BoundedProtocol,
    PeerBoundedProtocol,
    build_bounded_server,
    serve_until_signal,
)
from deployments.receivers.ports import require_free_port
from deployments.receivers.slack_actions import (
    PATH,
    SECRET_VARIABLE,
    ActionWorker,
    build_application,
    parse_signing_secrets,
)
from deployments.triggers.delivery import DELIVERY_PATH, TriggerParser
from deployments.triggers.github import GitHubParser
from deployments.triggers.huggingface import HuggingFaceParser
from deployments.triggers.routes import SECRET_VARIABLES, Secrets, list_unused_secret_variables, load_secrets
from deployments.triggers.standard_webhooks import StandardParser
from flows.alerting.notifier import build_operator_actions
from flows.clock import utc_now
from flows.data_folder import get_prefect_home, open_store
from flows.deploys.queue import DeployQueue
from flows.runtime.secrets import get_environment
from flows.runtime.slack import TOKEN_VARIABLE, build_notifier_without_run
from flows.server import prefect_server
from flows.terminal import configure_logging_to_stderr
from flows.terminal_console import make_terminal_console
from monitors.alerts.slack.client import SlackBot, SlackReply
from monitors.config.file import Config, load_config
from monitors.config.sections import DeploySender, DeploySettings
from monitors.errors import AlreadyRuns, ConfigError
from monitors.records.incidents import Capability

BACKLOG: Final = 2_048
"""Maximum number of new connections that can wait until the server accepts them, for example in a burst."""
STOP_S: Final = 5
"""Maximum time in seconds to finish deliveries after SIGTERM. A single slow delivery can take this long."""

HostOption = Annotated[str, typer.Option(help="the address to listen on")]
PortOption = Annotated[int, typer.Option(min=1, max=65_535, help="the port to listen on")]


def receive_command(
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8066,
    only: Annotated[
        bool,
        typer.Option(
            "--only",
            help="start only the receiver, without a Prefect server and a runner, for use with a work pool",
        ),
    ] = False,
) -> ExitCode:
    """Receive webhooks about deploys from Hugging Face, GitHub and others. Verify each commit once."""
    loaded = load_config(config)
    return run_deploys_receiver(
        loaded, loaded.deploys, config, host=host, port=port, environment=get_environment(), receive_only=only
    )


def run_deploys_receiver(
    config: Config,
    settings: DeploySettings,
    config_path: Path,
    *,
    host: str,
    port: int,
    environment: MutableMapping[str, str],
    receive_only: bool = False,
) -> ExitCode:
    """Serve the receiver until SIGTERM or SIGINT.

    ``settings`` is the section ``[deploys]``. The runs read the configuration ``config_path``. With
    ``receive_only``, no Prefect server and no runner is started. Raises `ConfigError` and `WarehouseUnwritable`
    before the receiver starts.
    """
    secrets = _load_sender_secrets(config, settings, environment)
    DeployQueue(config.data_folder).require_writable()
    api_url = config.prefect.api_url or environment.get("PREFECT_API_URL")
    if api_url is None and not receive_only:
        from deployments.cli.up import run_receiver_with_server  # that module imports this one

        try:
            return run_receiver_with_server(
                config, config_path.resolve(), host=host, port=port, environment=environment
            )
        except AlreadyRuns:
            make_terminal_console(stderr=True).print(
                "Another `lookout up` or `lookout receive` uses this data folder. It verifies the received deploys."
            )
    # Prefect's client reads these at import. They do not include the API's address: each call passes it.
    for name, value in prefect_server.build_client_settings("", get_prefect_home(config)).items():
        if name != "PREFECT_API_URL":
            environment.setdefault(name, value)
    if api_url is not None and not receive_only:
        _require_registered_deployment(api_url, settings.deployment)
    require_free_port(host, port, "the deploy receiver")
    app = build_deploys_receiver(config, settings, config_path, secrets=secrets, environment=environment)
    server = _build_deploys_server(app, host, port)
    console = make_terminal_console(stderr=True)
    _print_deploys_status(console, settings, environment, f"http://{host}:{port}")
    configure_logging_to_stderr("%(asctime)s %(message)s")
    # SIGTERM is the normal way to stop a service, so the exit code is 0.
    with _raise_stopped_on_sigterm(), suppress(_ReceiverStopped):
        serve_until_signal(server)
    return ExitCode.PASS


def build_receiver_server(
    config: Config, config_path: Path, host: str, port: int, environment: Mapping[str, str]
) -> uvicorn.Server:
    """Build the server of the deploy receiver. Raises `ConfigError` and `WarehouseUnwritable`."""
    secrets = _load_sender_secrets(config, config.deploys, environment)
    DeployQueue(config.data_folder).require_writable()
    require_free_port(host, port, "the deploy receiver")
    app = build_deploys_receiver(config, config.deploys, config_path, secrets=secrets, environment=environment)
    return _build_deploys_server(app, host, port)


def _build_deploys_server(app: Starlette, host: str, port: int) -> uvicorn.Server:
    return build_bounded_server(
        app, host=host, port=port, protocol=BoundedProtocol, stop_timeout_s=STOP_S, backlog=BACKLOG
    )


def build_deploys_receiver(
    config: Config,
    settings: DeploySettings,
    config_path: Path,
    *,
    secrets: Secrets,
    environment: Mapping[str, str],
) -> Starlette:
    """Build the web application of the deploy receiver. Raises `ConfigError` for an invalid secret."""
    from deployments.receivers.deploys import (
        ReceiverMetrics,
        RunStarter,
        build_application,  # imports Prefect's client (3 s), so only after the checks
    )
    from deployments.receivers.readiness import Readiness
    from flows.deploys.runs import RunPlan

    deploys, metrics = DeployQueue(config.data_folder), ReceiverMetrics()
    api, journal = make_prefect_api_lookup(config, environment), open_store(config).journal
    readiness = Readiness(deploys, journal, api, settings.deployment)
    starter = RunStarter(
        deploys,
        journal,
        RunPlan(deployment=settings.deployment, config_path=config_path.resolve(), tag=config.prefect.tag),
        prefect_api=api,
        metrics=metrics,
        now=utc_now,
        build_notifier=lambda target: build_notifier_without_run(config, target, Capability.VERIFY),
    )
    return build_application(build_trigger_parsers(secrets, settings), starter, metrics, readiness, now=utc_now)


def build_trigger_parsers(secrets: Secrets, settings: DeploySettings) -> list[TriggerParser]:
    """Build a parser for every sender that has a secret.

    Raises a `ConfigError` with the name of the variable if a secret is invalid.
    """
    makers = {
        DeploySender.GITHUB: GitHubParser,
        DeploySender.HUGGINGFACE: HuggingFaceParser,
        DeploySender.STANDARD: StandardParser,
    }
    parsers: list[TriggerParser] = []
    for provider, values in secrets.items():
        try:
            parsers.append(makers[provider](values, settings.triggers))
        except ConfigError as error:
            raise ConfigError(f"{SECRET_VARIABLES[provider]}: {error}") from None
    return parsers


def make_prefect_api_lookup(config: Config, environment: Mapping[str, str]) -> Callable[[], str | None]:
    """Return a function that finds the address of the Prefect API.

    The function returns the configured address, the address in the environment, or the address of the running local
    server, in this order. If there is no address, the function returns ``None``.
    """
    api_url = config.prefect.api_url or environment.get("PREFECT_API_URL")
    if api_url:
        return lambda: api_url

    def find_local_api() -> str | None:
        server = prefect_server.find_running_server(get_prefect_home(config))
        return server.api_url if server else None

    return find_local_api


def _load_sender_secrets(config: Config, settings: DeploySettings, environment: Mapping[str, str]) -> Secrets:
    """Load the secrets of all senders. Raises `ConfigError` if no sender could start a run."""
    if not settings.triggers:
        raise ConfigError(
            "webhooks cannot start a run, because the configuration has no [[deploys.triggers]]. Add a trigger"
        )
    for trigger in settings.triggers:
        config.require_target(trigger.target)
    secrets = load_secrets(settings.providers, environment)
    build_trigger_parsers(secrets, settings)
    return secrets


def _require_registered_deployment(api: str, deployment: str) -> None:
    """Raise `ConfigError` if the server does not have this deployment.

    If the server does not answer, no error is raised.
    """
    from prefect.exceptions import PrefectException

    from deployments.receivers.readiness import find_prefect_deployment, is_prefect_up  # imports Prefect's client

    async def is_deployment_missing() -> bool:
        try:
            return await is_prefect_up(api) and await find_prefect_deployment(api, deployment) is None
        except (httpx.HTTPError, PrefectException, TimeoutError, OSError):
            return False

    if asyncio.run(is_deployment_missing()):
        raise ConfigError(
            f"the Prefect server at {api} has no deployment {deployment} (`deploys.deployment`), so received "
            "deploys cannot be verified. Start `lookout up`. For a work pool, run `lookout prefect-yaml`, then "
            "`prefect deploy --all`"
        )


def _print_deploys_status(
    console: Console, settings: DeploySettings, environment: Mapping[str, str], address: str
) -> None:
    for provider in sorted(settings.providers):
        rows = [row for row in settings.triggers if row.provider is provider]
        targets = ", ".join(sorted({row.target for row in rows}))
        console.print(
            f"Receiving deploys of {targets} at {address}{DELIVERY_PATH}/{provider.value}", soft_wrap=True
        )
    for name in list_unused_secret_variables(settings.providers, environment):
        console.print(
            f"[yellow]{name} is set but not used: [[deploys.triggers]] has no trigger for its sender[/]",
            soft_wrap=True,
        )


class _ReceiverStopped(BaseException):
    """Raised after SIGTERM, when the server has stopped and released all resources."""


@contextmanager
def _raise_stopped_on_sigterm() -> Generator[None]:
    """Raise `_ReceiverStopped` when the server raises SIGTERM again after its graceful shutdown."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise _ReceiverStopped

    previous_handler = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous_handler)


def slack_actions_command(
    *, config: ConfigOption = DEFAULT_CONFIG, host: HostOption = "127.0.0.1", port: PortOption = 8067
) -> None:
    """Receive clicks on the buttons of Slack messages. Set SLACK_SIGNING_SECRET in the environment."""
    variables = get_environment()
    parse_signing_secrets(variables.get(SECRET_VARIABLE))
    loaded = load_config(config)
    server = build_actions_server(loaded, host, port, variables)
    console = make_terminal_console(stderr=True)
    _print_slack_actions_status(console, loaded, variables, f"http://{host}:{port}{PATH}")
    serve_until_signal(server)


def build_actions_server(config: Config, host: str, port: int, environment: Mapping[str, str]) -> uvicorn.Server:
    """Build the server of the Slack action receiver. Raises `ConfigError`."""
    secrets = parse_signing_secrets(environment.get(SECRET_VARIABLE))
    require_free_port(host, port, "the receiver of Slack buttons")
    app = build_slack_actions_receiver(config, secrets=secrets, token=environment.get(TOKEN_VARIABLE))
    return build_bounded_server(app, host=host, port=port, protocol=PeerBoundedProtocol, stop_timeout_s=STOP_S)


def build_slack_actions_receiver(config: Config, *, secrets: tuple[str, ...], token: str | None) -> Starlette:
    """Build the web application that receives clicks on Slack buttons. It needs ``token`` to edit messages."""
    actions = build_operator_actions(config, open_store(config), utc_now)
    sender = SlackBot(config.alerts, token=token, now=utc_now) if token else None
    aftermath = ActionWorker(actions, sender=sender, reply=SlackReply(config.alerts))
    return build_application(secrets=secrets, now=utc_now, worker=aftermath)


def _print_slack_actions_status(
    console: Console, config: Config, environment: Mapping[str, str], address: str
) -> None:
    console.print(f"Receiving clicks on Slack buttons at {address} (pid {os.getpid()})", soft_wrap=True)
    if not config.alerts.slack_buttons:
        console.print("[yellow]Messages have no buttons, because alerts.slack_buttons is false.[/]", soft_wrap=True)
    if not environment.get(TOKEN_VARIABLE):
        console.print(
            f"[yellow]{TOKEN_VARIABLE} is not set, so Lookout can edit a message only within 30 minutes after a "
            "click.[/]",
            soft_wrap=True,
        )
