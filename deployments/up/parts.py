"""What ``lookout up`` runs for a configuration, and what stops it from starting."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from deployments.cli.receive import parsers_of
from deployments.receivers.ports import check_free
from deployments.receivers.slack_actions import SECRET_VARIABLE as SLACK_SECRET
from deployments.receivers.slack_actions import signing_secrets
from deployments.site.access import check_tokens
from deployments.site.tokens import TokenStore
from deployments.triggers.routes import secrets_for
from deployments.up.run_needs import check_set, traffic_checks, verify_checks
from deployments.up.supervisor import SupervisedProcess
from flows.data_folder import prefect_home
from flows.deploys.queue import DeployQueue
from flows.drill.receiver import RECEIVER_VARIABLE
from flows.runtime.secrets import fresh_key
from flows.runtime.slack import TOKEN_VARIABLE
from flows.server.prefect_server import running_server, settings_for
from monitors.config.file import Config
from monitors.errors import ConfigError, MonitorError
from monitors.goldset.load import load_suite

SERVER: Final = "server"
RUNNER: Final = "runner"
RECEIVER: Final = "receiver"
SLACK: Final = "slack"
SITE: Final = "site"
POLL_S: Final = "2"
"""Seconds between two polls of the runner for due runs; Prefect's own 10 is most of a deploy's way to its run."""
OWN_MODULES: Final = {"PYTHONSAFEPATH": "1"}
"""A folder `flows` or `monitors` where `lookout up` is typed is not imported in the place of Lookout's."""
API_VARIABLE: Final = "PREFECT_API_URL"


def parts_of(
    config: Config,
    config_path: Path,
    *,
    host: str,
    port: int,
    environment: Mapping[str, str],
    only_deploys: bool = False,
) -> tuple[SupervisedProcess, ...]:
    """The processes of an installation. Slack's buttons have the port after the receiver's, the site the next.

    With ``only_deploys`` those that a deploy needs: nothing that has a schedule of its own is run.
    """
    variables = {RECEIVER_VARIABLE: f"http://{_reached_at(host)}:{port}", **_variables(config, environment)}
    is_local = _server_of(config, environment) is None
    ready = _server_answers(config) if is_local else _always
    python = (sys.executable, "-m")
    where = ("--config", str(config_path), "--host", host, "--port")
    for_runner = ("--deploys",) if only_deploys else ()
    parts: list[SupervisedProcess] = []
    if is_local:
        command = (*python, "flows.server.keep", str(config_path))
        parts.append(SupervisedProcess(SERVER, command, variables, stops_last=True))
    runner = (*python, "flows.server.serve", str(config_path), *for_runner)
    parts.append(SupervisedProcess(RUNNER, runner, variables, may_start=ready))
    if config.deploys.triggers:
        receive = (*python, "deployments.cli.app", "receive", "--only", *where, str(port))
        parts.append(SupervisedProcess(RECEIVER, receive, variables))
    if config.alerts.slack_buttons and not only_deploys:
        parts.append(
            SupervisedProcess(
                SLACK, (*python, "deployments.cli.app", "slack-actions", *where, str(port + 1)), variables
            )
        )
    if config.site.enabled and not only_deploys:
        serve = (*python, "deployments.cli.app", "site", "--config", str(config_path), "--port")
        parts.append(SupervisedProcess(SITE, (*serve, str(site_port(config, port))), variables))
    return tuple(parts)


def _reached_at(host: str) -> str:
    """How this machine reaches what listens on ``host``."""
    if host in ("0.0.0.0", "::", ""):  # noqa: S104 - nothing is bound here
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


LAST_PORT: Final = 65_533
"""The receiver's: Slack's buttons and the site have the two after it, and 65,535 is the last of all."""


def site_port(config: Config, port: int) -> int:
    """Where the site listens when deploys are received at ``port``."""
    return config.site.port or port + 2


def check_whole(config: Config, *, host: str, port: int, environment: Mapping[str, str]) -> None:
    """Raise `ConfigError` with a line for all that is missing or wrong: half a monitor passes for a whole one."""
    _refuse_all(_checks(config, host, port, environment))


def check_deploys(config: Config, *, host: str, port: int, environment: Mapping[str, str]) -> None:
    """The same for what runs after deploys need, and nothing else."""
    _refuse_all(_checks_of_deploys(config, host, port, environment))


def _refuse_all(checks: Iterator[Callable[[], object]]) -> None:
    found = [line for check in checks if (line := _refusal(check))]
    if found:
        raise ConfigError("\n".join(dict.fromkeys(found)))


def _checks_of_deploys(
    config: Config, host: str, port: int, environment: Mapping[str, str]
) -> Iterator[Callable[[], object]]:
    for name in dict.fromkeys(trigger.target for trigger in config.deploys.triggers):
        yield lambda named=name: load_suite(config.target(named).suite)
        if name in config.targets:
            yield from verify_checks(config, name, environment)
    yield lambda: check_free(host, port, "the receiver of deploys")


def _checks(config: Config, host: str, port: int, environment: Mapping[str, str]) -> Iterator[Callable[[], object]]:
    yield DeployQueue(config.data_folder).check_writable
    for name, target in config.targets.items():
        yield lambda path=target.suite: load_suite(path)
        yield from verify_checks(config, name, environment)
        yield from traffic_checks(name, target, environment)
    for trigger in config.deploys.triggers:
        yield lambda target=trigger.target: config.target(target)
    for provider in sorted(config.deploys.providers):
        yield lambda one=provider: parsers_of(secrets_for([one], environment), config.deploys)
    if config.deploys.triggers:
        yield lambda: check_port(host, port)
    if config.alerts.slack_buttons:
        yield lambda: signing_secrets(environment.get(SLACK_SECRET))
        yield lambda: check_set(
            TOKEN_VARIABLE, environment, "alerts.slack_buttons needs a bot: a webhook has no buttons"
        )
        yield lambda: check_free(host, port + 1, "the receiver of Slack's buttons", f"--port {another_port(port)}")
    if config.site.enabled:
        yield lambda: check_tokens(config.site, config.site.host, TokenStore(config.data_folder, fresh_key))
        yield lambda: check_free(
            config.site.host, site_port(config, port), "the site", _format_another_port(config, port)
        )


def _format_another_port(config: Config, port: int) -> str:
    """How the site gets another port: its own, or two above the receiver's."""
    if config.site.port:
        return "port under [site]"
    other = another_port(port)
    return f"--port {other}, and the site has {other + 2}"


def another_port(port: int) -> int:
    """One worth trying where ``port`` or one of the two above it is taken: a hundred on, or back."""
    return port + 100 if port + 100 <= LAST_PORT else port - 100


def check_port(host: str, port: int) -> None:
    """Raise `ConfigError` when the receiver of deploys cannot listen there."""
    check_free(host, port, "the receiver of deploys")


def _refusal(check: Callable[[], object]) -> str | None:
    try:
        check()
    except MonitorError as error:
        return str(error)
    return None


def _server_of(config: Config, environment: Mapping[str, str]) -> str | None:
    """Somebody's own Prefect server; ``None`` for ours."""
    return config.prefect.api_url or environment.get(API_VARIABLE)


def _variables(config: Config, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of a part, without an address of the local server: it may change, so the part finds it."""
    own = settings_for("", prefect_home(config))
    del own[API_VARIABLE]
    ours = {**own, "PREFECT_RUNNER_POLL_FREQUENCY": POLL_S, "PYTHONUNBUFFERED": "1", **OWN_MODULES}
    return {**ours, **environment}


def _server_answers(config: Config) -> Callable[[], bool]:
    return lambda: running_server(prefect_home(config)) is not None


def _always() -> bool:
    return True
