"""``lookout up``: run the whole monitor on one machine, with one log, until SIGTERM or SIGINT.

``lookout down`` stops the local Prefect server of a data folder, and lists the servers of other data folders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from deployments.cli.data_folder import claim_data_folder, find_data_folder
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, CopyOption, FolderOption, JsonOption, MovedOption
from deployments.receivers.slack_actions import PATH as ACTIONS_PATH
from deployments.receivers.slack_actions import SECRET_VARIABLE as SLACK_SECRET
from deployments.triggers.delivery import DELIVERY_PATH
from deployments.up.one_installation import LOCK_NAME, is_locked, lock_data_folder
from deployments.up.parts import (
    build_environment,
    build_parts,
    raise_for_incomplete_deploy_setup,
    raise_for_incomplete_installation,
)
from deployments.up.ports import MAX_RECEIVER_PORT, choose_site_port
from deployments.up.supervise import replace_process_with_supervisor, write_log_line
from deployments.up.supervisor import SUPERVISOR_NAME, SupervisedProcess
from flows.clock import utc_now
from flows.data_folder import PREFECT_FOLDER, RUNS_FOLDER
from flows.hallucination_log.follower import store_first_read_positions
from flows.runtime.secrets import get_environment
from flows.runtime.slack import TOKEN_VARIABLE, WEBHOOK_VARIABLE
from flows.server import prefect_server
from flows.server.prefect_server import LocalServer, ServerOnMachine
from flows.server.schedules import plan_deployments
from flows.terminal import print_text, write_json
from flows.waiting import show_waiting
from monitors.config.file import Config, load_config
from monitors.errors import ConfigError, WarehouseUnwritable
from monitors.records.base import Record
from warehouse.folder_identity import read_identity


def up_command(
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    host: Annotated[str, typer.Option(help="the address on which the receivers listen")] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            min=1,
            max=MAX_RECEIVER_PORT,
            help="the port for webhooks about deploys. Slack's buttons use the next port. Without site.port, the "
            "site uses the port after that",
        ),
    ] = 8066,
    moved: MovedOption = False,
    copy: CopyOption = False,
) -> NoReturn:
    """Run the whole monitor on this machine: server, schedules, receivers and site. Ctrl-C or SIGTERM stops it."""
    absolute = config.resolve()
    loaded = load_config(absolute)
    with ExitStack() as stack:
        try:
            lock = stack.enter_context(
                lock_data_folder(loaded.data_folder, utc_now)
            )  # check before the ports, which the other installation uses
            claim_data_folder(loaded.data_folder, loaded, moved=moved, copied=copy)
        except WarehouseUnwritable:
            raise_for_incomplete_installation(
                loaded, host=host, port=port, environment=get_environment()
            )  # this check lists it together with all other problems
            raise
        raise_for_incomplete_installation(loaded, host=host, port=port, environment=get_environment())
        store_first_read_positions(loaded)  # entries from now on are news, even before the first poll
        parts = build_parts(loaded, absolute, host=host, port=port, environment=get_environment())
        _log_parts(absolute, parts)
        for line in (*_list_addresses(loaded, host, port), *_explain_inactive_parts(loaded, get_environment())):
            write_log_line(SUPERVISOR_NAME, line)
        environment = build_environment(loaded, get_environment(), host=host, port=port)
        replace_process_with_supervisor(parts, absolute, lock, environment)


def _list_addresses(config: Config, host: str, port: int) -> Iterator[str]:
    """Yield the address of each web server, for the configuration of a reverse proxy."""
    if config.site.enabled:
        yield f"the site: {config.site.build_address(choose_site_port(config, port))}"
    for provider in sorted(config.deploys.providers):
        yield f"deploys from {provider}: http://{host}:{port}{DELIVERY_PATH}/{provider}"
    if config.alerts.slack_buttons:
        yield f"Slack's buttons: http://{host}:{port + 1}{ACTIONS_PATH}"


def _explain_inactive_parts(config: Config, variables: Mapping[str, str]) -> Iterator[str]:
    """Yield a note for each part that is off although the user may expect it to be on."""
    if not config.deploys.triggers:
        is_polled = any(target.space is not None for target in config.targets.values())
        polled = ". Instead, Lookout regularly checks the running commit of each Space" if is_polled else ""
        yield (
            f"the configuration has no [[deploys.triggers]], so Lookout receives no webhooks about deploys{polled}"
        )
    if config.judge is not None:
        missing = sorted(
            {
                model.key_variable_or_default
                for model in config.judge.models
                if not variables.get(model.key_variable_or_default)
            }
        )
        if missing:
            yield (
                f"the judge is off, so answers that rules cannot grade stay ungraded. To turn the judge on, set "
                f"{', '.join(missing)}"
            )
    if not variables.get(TOKEN_VARIABLE) and not variables.get(WEBHOOK_VARIABLE):
        yield f"alerts appear only in this log. To send them to Slack, set {WEBHOOK_VARIABLE} or {TOKEN_VARIABLE}"
    if variables.get(SLACK_SECRET) and not config.alerts.slack_buttons:
        yield (
            f"{SLACK_SECRET} is set, but messages have no buttons. To get buttons, set slack_buttons = true "
            "under [alerts]"
        )


def run_receiver_with_server(
    config: Config, config_path: Path, *, host: str, port: int, environment: Mapping[str, str]
) -> NoReturn:
    """Run the deploy receiver with a server and a runner until SIGTERM or SIGINT. The exit code is then 0.

    ``config_path`` is absolute. Raises `AlreadyRuns` if a ``lookout up`` process uses the data folder. Raises
    `ConfigError` if ``deploys.deployment`` is the user's own Prefect deployment, or if a port is in use.
    """
    planned = {deployment.full_name for deployment in plan_deployments(config, config_path, config.schedules)}
    if config.deploys.deployment not in planned:
        raise ConfigError(
            f"deploys.deployment = {config.deploys.deployment!r} is your own Prefect deployment, which Lookout "
            "cannot run. Set prefect.api_url to the Prefect server that serves it, or start `lookout receive "
            "--only` and run the deployment yourself"
        )
    with lock_data_folder(config.data_folder, utc_now) as lock:
        raise_for_incomplete_deploy_setup(config, host=host, port=port, environment=environment)
        parts = build_parts(config, config_path, host=host, port=port, environment=environment, only_deploys=True)
        _log_parts(config_path, parts)
        write_log_line(
            SUPERVISOR_NAME,
            "this command only verifies deploys. `lookout up` also runs the schedules and follows logs",
        )
        replace_process_with_supervisor(
            parts, config_path, lock, build_environment(config, environment, host=host, port=port)
        )


def _log_parts(config_path: Path, parts: Sequence[SupervisedProcess]) -> None:
    write_log_line(SUPERVISOR_NAME, f"{config_path}: {', '.join(part.name for part in parts)}")


class ShutdownReport(Record):
    """The result of ``lookout down``: the server that was stopped, and the servers that still run."""

    data_folder: Path
    ended: LocalServer | None
    running: tuple[ServerOnMachine, ...]


def down_command(
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    force: Annotated[bool, typer.Option("--force", help="stop the server even if a run needs it")] = False,
    moved: MovedOption = False,
    copy: CopyOption = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Stop the local Prefect server that earlier runs started. Also list the servers of other data folders."""
    folder = find_data_folder(config, data_folder).resolve()
    if moved or copy:
        claim_data_folder(folder, load_config(config) if config.exists() else None, moved=moved, copied=copy)
    read_identity(folder)  # raises an error for a copy
    home = folder / PREFECT_FOLDER
    own_process = next(
        (server for server in prefect_server.list_servers_on_machine() if server.home.resolve() == home), None
    )
    if not force:
        _require_unused_folder(folder)
    noted = prefect_server.find_server_process(home)
    with show_waiting("Stopping the Prefect server"):
        ended = noted if prefect_server.stop_server(home) else None
    report = ShutdownReport(data_folder=folder, ended=ended, running=prefect_server.list_servers_on_machine())
    if as_json:
        write_json(report.model_dump_json(indent=2) + "\n")
    else:
        # A Prefect server of the user is never stopped.
        configured = load_config(config).prefect.api_url if config.exists() else None
        for line in _format_shutdown(report, own_process, configured or get_environment().get("PREFECT_API_URL")):
            print_text(line)
    return ExitCode.PASS


def _require_unused_folder(folder: Path) -> None:
    if is_locked(folder / LOCK_NAME):
        raise ConfigError(
            f"`lookout up` uses {folder} and restarts a stopped server. First stop `lookout up` with Ctrl-C or "
            "`systemctl stop lookout`"
        )
    runs = folder / RUNS_FOLDER
    locks = [lock for pattern in ("*/*.lock", ".*.lock") for lock in runs.glob(pattern) if is_locked(lock)]
    if locks:
        run_name = locks[0].parent.name if locks[0].parent != runs else "a nightly run"
        raise ConfigError(
            f"{folder}: {run_name} is running and needs the server. Wait until the run ends, or use --force"
        )


def _format_shutdown(
    report: ShutdownReport, own_process: ServerOnMachine | None, configured_server: str | None
) -> Iterator[str]:
    if report.ended is not None:
        memory = f", {own_process.memory_mb:.0f} MB" if own_process and own_process.memory_mb else ""
        yield f"Stopped the Prefect server of {report.data_folder} ({report.ended.ui_url}{memory})."
    else:
        yield f"No local Prefect server of {report.data_folder} is running."
    if configured_server is not None:
        yield f"Lookout did not stop {configured_server}, because it is your own Prefect server."
    if report.running:
        yield "These servers of other data folders are still running. Stop only servers that are yours:"
    for process in report.running:
        yield f"  {process.server.ui_url}  {process.memory_mb:.0f} MB  {process.home.parent}"
    if report.running:
        yield "To stop one of them, run `lookout down --data-folder FOLDER`."
