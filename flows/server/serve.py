"""Runs the runner of an installation, which registers the configured deployments and executes their runs.

Prefect is imported only when its server is known, because Prefect reads the server's address at import.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flows.alerting.pipeline import send_undelivered_alerts_again
from flows.clock import utc_now
from flows.data_folder import get_prefect_home, open_store
from flows.runtime.secrets import get_environment
from flows.runtime.slack import build_notifier_without_run, build_slack_endpoint, write_line_to_stderr
from flows.server import prefect_server
from flows.server.schedules import plan_deployments
from monitors.alerts.redact import redact
from monitors.config.file import Config
from monitors.errors import MonitorError
from monitors.plural import plural
from monitors.records.incidents import Capability
from warehouse.queries.incidents import list_targets_with_open_incidents

if TYPE_CHECKING:
    from prefect.runner import Runner

MOVED_POLL_S: Final = 10.0
"""Interval in seconds at which the runner checks whether the local server has moved to another port."""
START_POLL_S: Final = 0.5


class RunnerEnded(MonitorError):
    """Raised if the runner has stopped executing runs."""


def change_to_own_folder(config: Config) -> None:
    """Change to Lookout's own folder, because Prefect imports flows from the current folder first."""
    own = next((folder for folder in (get_prefect_home(config), config.data_folder) if folder.is_dir()), None)
    if own is not None:
        os.chdir(own)


def has_local_server(config: Config) -> bool:
    """Return whether the data folder has its own Prefect server, whose address may change."""
    return config.prefect.api_url is None and "PREFECT_API_URL" not in get_environment()


async def prepare_runner(config: Config, config_path: Path, *, is_local: bool, only_deploys: bool) -> Runner:
    """Connect to Prefect's server and register the deployments. Return their runner without starting it.

    With ``is_local``, wait for the local server, which another process starts. With ``only_deploys``, register only
    the deployment that verifies deploys. Raises `MonitorError`, and errors of Prefect's client.
    """
    if is_local:
        get_environment().pop("PREFECT_API_URL", None)  # set by an earlier attempt
        home = get_prefect_home(config)
        while not await asyncio.to_thread(prefect_server.find_running_server, home):  # noqa: ASYNC110 - it sends no event
            # A starting server sends no event, so it is polled.
            await asyncio.sleep(START_POLL_S)
    await asyncio.to_thread(
        prefect_server.connect_or_start,
        config.prefect.api_url,
        get_prefect_home(config),
        environment=get_environment(),
        start_timeout_s=config.prefect.start_timeout_s,
        write_line=write_line_to_stderr,
    )
    from prefect.context import refresh_global_settings_context

    from flows.server.registration import register_deployments_and_automations

    refresh_global_settings_context()
    await _send_alerts_again_at_start(config)
    planned = plan_deployments(config, config_path, config.schedules)
    if only_deploys:
        planned = tuple(deployment for deployment in planned if deployment.full_name == config.deploys.deployment)
    write_line_to_stderr(
        f"{plural(len(planned), 'deployment')}: {', '.join(deployment.full_name for deployment in planned)}"
    )
    return await register_deployments_and_automations(
        planned,
        build_slack_endpoint(config, get_environment()),
        utc_now,
        write_line_to_stderr,
        config_path=None if only_deploys else config_path,
        tag=config.prefect.tag,
    )


async def run_runner(
    runner: Runner, config: Config, config_path: Path, *, is_local: bool, only_deploys: bool
) -> None:
    """Execute due runs until SIGTERM, which also ends the runs. Unless ``only_deploys``, also run the watcher."""
    from flows.watching.watcher import Watcher

    async def execute_runs() -> None:
        await runner.start()
        raise RunnerEnded("Prefect's runner has ended")

    async with asyncio.TaskGroup() as group:
        group.create_task(execute_runs())
        if not only_deploys:
            watcher = Watcher(config, config_path, now=utc_now, write_line=write_line_to_stderr)
            group.create_task(watcher.run())
        if is_local:
            group.create_task(_end_process_when_server_moves(config))


async def _send_alerts_again_at_start(config: Config) -> None:
    """Resend the alerts that were only printed so far, if alerts can now be delivered to people."""
    try:
        for target in await asyncio.to_thread(list_targets_with_open_incidents, open_store(config)):
            await send_undelivered_alerts_again(build_notifier_without_run(config, target, Capability.UP))
    except MonitorError as error:
        write_line_to_stderr(
            f"Lookout could not yet send the earlier alerts that are still open: {redact(str(error))}"
        )


async def _end_process_when_server_moves(config: Config) -> None:
    """End this process if the local server has moved to another port."""
    connected = get_environment()["PREFECT_API_URL"]
    while True:
        # A server that moves sends no event, so its note is polled.
        await asyncio.sleep(MOVED_POLL_S)
        server = await asyncio.to_thread(prefect_server.find_server_process, get_prefect_home(config))
        if server is not None and server.api_url != connected:
            write_line_to_stderr(f"Prefect's server is now at {server.api_url}, so this process ends")
            os.kill(os.getpid(), signal.SIGTERM)
            return
