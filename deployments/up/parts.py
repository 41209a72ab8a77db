"""The processes that ``lookout up`` runs for a configuration, and the checks before it starts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from deployments.cli.receive import build_parsers
from deployments.receivers.ports import check_port_free
from deployments.receivers.slack_actions import SECRET_VARIABLE as SLACK_SECRET
from deployments.receivers.slack_actions import parse_signing_secrets
from deployments.site.access import check_tokens
from deployments.site.tokens import TokenStore
from deployments.triggers.routes import load_secrets
from deployments.up.run_needs import check_variable_set, list_traffic_checks, list_verify_checks
from deployments.up.supervisor import SupervisedProcess
from flows.data_folder import get_prefect_home
from flows.deploys.queue import DeployQueue
from flows.drill.receiver import RECEIVER_VARIABLE
from flows.runtime.secrets import generate_key
from flows.runtime.slack import TOKEN_VARIABLE
from flows.server.prefect_server import build_client_settings, find_running_server
from monitors.config.file import Config
from monitors.errors import ConfigError, MonitorError
from monitors.goldset.load import load_suite

SERVER: Final = "server"
RUNNER: Final = "runner"
RECEIVER: Final = "receiver"
SLACK: Final = "slack"
SITE: Final = "site"
POLL_S: Final = "6"
"""Seconds between two polls of the runner for due runs. Prefect's own 10 is most of a deploy's way to its run, and
each poll costs an idle installation processor time: at 2 s, a sixth of all that it uses."""
OWN_MODULES: Final = {"PYTHONSAFEPATH": "1"}
"""A folder `flows` or `monitors` where `lookout up` is typed is not imported in the place of Lookout's."""
API_VARIABLE: Final = "PREFECT_API_URL"


def build_parts(
    config: Config,
    config_path: Path,
    *,
    host: str,
    port: int,
    environment: Mapping[str, str],
    only_deploys: bool = False,
) -> tuple[SupervisedProcess, ...]:
    """Return the processes of an installation. Slack's buttons use the next port, the site the one after.

    With ``only_deploys`` those that a deploy needs: nothing that has a schedule of its own is run.
    """
    variables = {
        RECEIVER_VARIABLE: f"http://{_to_reachable_host(host)}:{port}",
        **_build_environment(config, environment),
    }
    is_local = (config.prefect.api_url or environment.get(API_VARIABLE)) is None
    ready = (lambda: find_running_server(get_prefect_home(config)) is not None) if is_local else lambda: True
    python = (sys.executable, "-m")
    address_options = ("--config", str(config_path), "--host", host, "--port")
    for_runner = ("--deploys",) if only_deploys else ()
    parts: list[SupervisedProcess] = []
    if is_local:
        command = (*python, "flows.server.keep", str(config_path))
        parts.append(SupervisedProcess(SERVER, command, variables, stops_last=True))
    runner = (*python, "flows.server.serve", str(config_path), *for_runner)
    parts.append(SupervisedProcess(RUNNER, runner, variables, may_start=ready))
    if config.deploys.triggers:
        receive = (*python, "deployments.cli.app", "receive", "--only", *address_options, str(port))
        parts.append(SupervisedProcess(RECEIVER, receive, variables))
    if config.alerts.slack_buttons and not only_deploys:
        parts.append(
            SupervisedProcess(
                SLACK, (*python, "deployments.cli.app", "slack-actions", *address_options, str(port + 1)), variables
            )
        )
    if config.site.enabled and not only_deploys:
        serve = (*python, "deployments.cli.app", "site", "--config", str(config_path), "--port")
        parts.append(SupervisedProcess(SITE, (*serve, str(choose_site_port(config, port))), variables))
    return tuple(parts)


def _to_reachable_host(host: str) -> str:
    """Return the host by which this machine reaches a server that listens on ``host``."""
    if host in ("0.0.0.0", "::", ""):  # noqa: S104 - nothing is bound here
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


MAX_RECEIVER_PORT: Final = 65_533
"""The receiver's: Slack's buttons and the site have the two after it, and 65,535 is the last of all."""


def choose_site_port(config: Config, port: int) -> int:
    """Return the site's port when deploys are received at ``port``."""
    return config.site.port or port + 2


def check_installation(config: Config, *, host: str, port: int, environment: Mapping[str, str]) -> None:
    """Raise `ConfigError` with a line for all that is missing or wrong: half a monitor passes for a whole one."""
    _run_checks(_list_checks(config, host, port, environment))


def check_deploys(config: Config, *, host: str, port: int, environment: Mapping[str, str]) -> None:
    """Raise `ConfigError` for what runs after deploys lack; nothing else is checked."""
    _run_checks(_list_deploy_checks(config, host, port, environment))


def _run_checks(checks: Iterator[Callable[[], object]]) -> None:
    errors = [line for check in checks if (line := _run_check(check))]
    if errors:
        raise ConfigError("\n".join(dict.fromkeys(errors)))


def _list_deploy_checks(
    config: Config, host: str, port: int, environment: Mapping[str, str]
) -> Iterator[Callable[[], object]]:
    for name in dict.fromkeys(trigger.target for trigger in config.deploys.triggers):
        yield lambda target=name: load_suite(config.require_target(target).suite)
        if name in config.targets:
            yield from list_verify_checks(config, name, environment)
    yield lambda: check_port_free(host, port, "the receiver of deploys")


def _list_checks(
    config: Config, host: str, port: int, environment: Mapping[str, str]
) -> Iterator[Callable[[], object]]:
    yield DeployQueue(config.data_folder).check_writable
    for name, target in config.targets.items():
        yield lambda path=target.suite: load_suite(path)
        yield from list_verify_checks(config, name, environment)
        yield from list_traffic_checks(name, target, environment)
    for trigger in config.deploys.triggers:
        yield lambda target=trigger.target: config.require_target(target)
    for provider in sorted(config.deploys.providers):
        yield lambda one=provider: build_parsers(load_secrets([one], environment), config.deploys)
    if config.deploys.triggers:
        yield lambda: check_port(host, port)
    if config.alerts.slack_buttons:
        yield lambda: parse_signing_secrets(environment.get(SLACK_SECRET))
        yield lambda: check_variable_set(
            TOKEN_VARIABLE, environment, "alerts.slack_buttons needs a bot token, because a webhook has no buttons"
        )
        yield lambda: check_port_free(
            host, port + 1, "the receiver of Slack's buttons", f"--port {suggest_port(port)}"
        )
    if config.site.enabled:
        yield lambda: check_tokens(config.site, config.site.host, TokenStore(config.data_folder, generate_key))
        yield lambda: check_port_free(
            config.site.host, choose_site_port(config, port), "the site", _format_another_port(config, port)
        )


def _format_another_port(config: Config, port: int) -> str:
    """Return how to give the site another port: its own setting, or two above the receiver's."""
    if config.site.port:
        return "port under [site]"
    other = suggest_port(port)
    return f"--port {other}; the site then uses {other + 2}"


def suggest_port(port: int) -> int:
    """Return another port to try where ``port`` or one of the two above it is taken: 100 higher, or lower."""
    return port + 100 if port + 100 <= MAX_RECEIVER_PORT else port - 100


def check_port(host: str, port: int) -> None:
    """Raise `ConfigError` when the receiver of deploys cannot listen there."""
    check_port_free(host, port, "the receiver of deploys")


def _run_check(check: Callable[[], object]) -> str | None:
    try:
        check()
    except MonitorError as error:
        return str(error)
    return None


def _build_environment(config: Config, environment: Mapping[str, str]) -> dict[str, str]:
    """Build a process's environment, without the local server's address, which may change."""
    own = build_client_settings("", get_prefect_home(config))
    del own[API_VARIABLE]
    ours = {**own, "PREFECT_RUNNER_POLL_FREQUENCY": POLL_S, "PYTHONUNBUFFERED": "1", **OWN_MODULES}
    return {**ours, **environment}
