"""The processes that ``lookout up`` runs for a configuration, and the checks before it starts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from deployments.cli.receive import build_trigger_parsers
from deployments.receivers.ports import require_free_port
from deployments.receivers.slack_actions import SECRET_VARIABLE as SLACK_SECRET
from deployments.receivers.slack_actions import parse_signing_secrets
from deployments.site.access import require_tokens_for_login
from deployments.site.tokens import TokenStore
from deployments.triggers.routes import load_secrets
from deployments.up.ports import MAX_RECEIVER_PORT, ONLY_DEPLOYS, choose_site_port
from deployments.up.run_needs import list_traffic_checks, list_verify_checks, require_variable_is_set
from deployments.up.supervisor import SupervisedProcess
from flows.data_folder import get_prefect_home
from flows.deploys.queue import DeployQueue
from flows.drill.receiver import RECEIVER_VARIABLE
from flows.runtime.secrets import generate_random_key
from flows.runtime.slack import TOKEN_VARIABLE
from flows.server.prefect_server import HEAP_LIMITS, build_client_settings
from monitors.config.file import Config
from monitors.errors import ConfigError, MonitorError
from monitors.goldset.load import load_suite

SERVER: Final = "server"
SERVICE: Final = "service"
POLL_S: Final = "8"
"""How often the runner polls for due runs, in seconds.

With Prefect's default of 10 s, polling is most of the delay between a deploy and its run. But each poll costs
processor time: at 2 s, polls would take a sixth of the processor time of an idle installation.
"""
OWN_MODULES: Final = {"PYTHONSAFEPATH": "1"}
"""Environment variables that prevent the import of folders named `flows` or `monitors` in the current folder."""
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
    """Return the processes of an installation: the service, and a Prefect server if none is configured.

    With ``only_deploys``, the service verifies deploys, but runs no schedules, site or other receivers.
    """
    python = (sys.executable, "-m")
    service = (*python, "deployments.up.service", str(config_path), host, str(port))
    parts = [SupervisedProcess(SERVICE, (*service, ONLY_DEPLOYS) if only_deploys else service)]
    if (config.prefect.api_url or environment.get(API_VARIABLE)) is None:
        command = (*python, "flows.server.keep", str(config_path))
        parts.insert(0, SupervisedProcess(SERVER, command, stops_last=True))
    return tuple(parts)


def _to_reachable_host(host: str) -> str:
    """Return a host name by which this machine can reach a server that listens on ``host``."""
    if host in ("0.0.0.0", "::", ""):  # noqa: S104 - nothing is bound here
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def raise_for_incomplete_installation(
    config: Config, *, host: str, port: int, environment: Mapping[str, str]
) -> None:
    """Raise a `ConfigError` that lists everything that is missing or wrong for `lookout up`."""
    _run_checks_and_raise_errors(_list_installation_checks(config, host, port, environment))


def raise_for_incomplete_deploy_setup(
    config: Config, *, host: str, port: int, environment: Mapping[str, str]
) -> None:
    """Raise a `ConfigError` that lists everything that is missing or wrong for runs after deploys."""
    _run_checks_and_raise_errors(_list_deploy_checks(config, host, port, environment))


def _run_checks_and_raise_errors(checks: Iterator[Callable[[], object]]) -> None:
    errors = [line for check in checks if (line := _run_check_and_return_error(check))]
    if errors:
        raise ConfigError("\n".join(dict.fromkeys(errors)))


def _list_deploy_checks(
    config: Config, host: str, port: int, environment: Mapping[str, str]
) -> Iterator[Callable[[], object]]:
    for name in dict.fromkeys(trigger.target for trigger in config.deploys.triggers):
        yield lambda target=name: load_suite(config.require_target(target).suite)
        if name in config.targets:
            yield from list_verify_checks(config, name, environment)
    yield lambda: require_free_port(host, port, "the deploy receiver")


def _list_installation_checks(
    config: Config, host: str, port: int, environment: Mapping[str, str]
) -> Iterator[Callable[[], object]]:
    yield DeployQueue(config.data_folder).require_writable
    for name, target in config.targets.items():
        yield lambda path=target.suite: load_suite(path)
        yield from list_verify_checks(config, name, environment)
        yield from list_traffic_checks(name, target, environment)
    for trigger in config.deploys.triggers:
        yield lambda target=trigger.target: config.require_target(target)
    for provider in sorted(config.deploys.providers):
        yield lambda one=provider: build_trigger_parsers(load_secrets([one], environment), config.deploys)
    if config.deploys.triggers:
        yield lambda: require_free_receiver_port(host, port)
    if config.alerts.slack_buttons:
        yield lambda: parse_signing_secrets(environment.get(SLACK_SECRET))
        yield lambda: require_variable_is_set(
            TOKEN_VARIABLE,
            environment,
            "alerts.slack_buttons needs a bot token, because buttons do not work with a webhook",
        )
        yield lambda: require_free_port(
            host, port + 1, "the Slack button receiver", f"--port {suggest_other_receiver_port(port)}"
        )
    if config.site.enabled:
        yield lambda: require_tokens_for_login(
            config.site, config.site.host, TokenStore(config.data_folder, generate_random_key)
        )
        yield lambda: require_free_port(
            config.site.host, choose_site_port(config, port), "the site", _format_another_port(config, port)
        )


def _format_another_port(config: Config, port: int) -> str:
    """Return which setting or option to change so that the site uses another port.

    This is the setting ``port`` if ``[site]`` contains it. Otherwise it is the option ``--port`` with another
    receiver port, because the site's port is the receiver's port plus 2.
    """
    if config.site.port:
        return "port under [site]"
    other = suggest_other_receiver_port(port)
    return f"--port {other} (the site then uses port {other + 2})"


def suggest_other_receiver_port(port: int) -> int:
    """Return another port to try if ``port`` or one of the next two ports is in use.

    The returned port is ``port`` plus 100. If this exceeds `MAX_RECEIVER_PORT`, it is ``port`` minus 100.
    """
    return port + 100 if port + 100 <= MAX_RECEIVER_PORT else port - 100


def require_free_receiver_port(host: str, port: int) -> None:
    """Raise `ConfigError` if the deploy receiver cannot listen on the port."""
    require_free_port(host, port, "the deploy receiver")


def _run_check_and_return_error(check: Callable[[], object]) -> str | None:
    """Run a check. Return the text of its error, or ``None`` if there is no error."""
    try:
        check()
    except MonitorError as error:
        return str(error)
    return None


def build_environment(config: Config, environment: Mapping[str, str], *, host: str, port: int) -> dict[str, str]:
    """Build the environment variables for the processes of an installation.

    The address of the local Prefect server is not included, because it may change.
    """
    own = build_client_settings("", get_prefect_home(config))
    del own[API_VARIABLE]
    receiver = {RECEIVER_VARIABLE: f"http://{_to_reachable_host(host)}:{port}"}
    ours = {**own, "PREFECT_RUNNER_POLL_FREQUENCY": POLL_S, "PYTHONUNBUFFERED": "1", **HEAP_LIMITS, **OWN_MODULES}
    return {**receiver, **ours, **environment}
