"""The service of an installation, in one process: ``python -m deployments.up.service lookout.toml HOST PORT``.

    one thread    the deploy receiver, the Slack button receiver and the site, each on its own port
    main thread   the runner of Prefect's runs, and the watcher of logs, Spaces, deploys and traffic

If the Prefect server does not answer, the receivers and the site still work, and the runner waits for the server. A
part that fails is started again after a pause, while the other parts continue. If the part fails several times in a
row, an alert is sent.

If the runner fails after it has started, the process ends, and the supervisor starts the process again. With
``--deploys``, the service has only the parts that verify deploys.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

import uvicorn

from deployments.cli.receive import build_actions_server, build_receiver_server
from deployments.cli.site.serve import build_configured_site_server
from deployments.up.configuration_watch import report_configuration_changes
from deployments.up.memory import release_unused_memory_regularly
from deployments.up.part_alerts import send_crash_loop_alert, send_recovery_alert
from deployments.up.ports import ONLY_DEPLOYS, choose_site_port
from deployments.up.supervisor import RestartPolicy
from flows.alerting.faults import build_fault_from_error
from flows.runtime.secrets import get_environment
from flows.runtime.slack import write_line_to_stderr
from flows.server.serve import change_to_own_folder, has_local_server, prepare_runner, run_runner
from flows.terminal import configure_logging_to_stderr, escape_controls_in_output, write_note
from monitors.alerts.redact import redact
from monitors.config.file import Config, load_config
from monitors.errors import MonitorError

if TYPE_CHECKING:
    from prefect.runner import Runner

BROKEN_EXIT_CODE: Final = 4
RECEIVER: Final = "receiver"
SLACK: Final = "slack"
SITE: Final = "site"
RUNNER: Final = "runner"
STOP_S: Final = 15.0
"""Maximum time, in seconds, to wait until the servers have stopped. The servers' own limits are shorter."""
DEFAULT_POLICY: Final = RestartPolicy()


def main() -> int:
    """Run the service. Return exit code 0 after SIGTERM, and 4 if it cannot start or its runner has failed."""
    signal.signal(signal.SIGTERM, _exit)
    path, host, port = Path(sys.argv[1]).resolve(), sys.argv[2], int(sys.argv[3])
    configure_logging_to_stderr("%(message)s")
    try:
        config = load_config(path)
        _run(config, path, host, port, only_deploys=ONLY_DEPLOYS in sys.argv[4:])
    except MonitorError as error:
        write_note(f"{redact(str(error))}\n")
        return BROKEN_EXIT_CODE
    return 0


def _exit(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


def _run(config: Config, config_path: Path, host: str, port: int, *, only_deploys: bool) -> None:
    change_to_own_folder(config)
    servers = ServerThread(list_server_builders(config, config_path, host, port, only_deploys=only_deploys), config)
    servers.start()
    try:
        asyncio.run(_run_flows(config, config_path, only_deploys=only_deploys))
    finally:
        servers.stop()


async def _run_flows(config: Config, config_path: Path, *, only_deploys: bool) -> None:
    """Start the runner and execute due runs until SIGTERM.

    If the runner fails to start, for example because the Prefect server does not answer, try again. If the runner
    fails later, the process ends.
    """
    is_local = has_local_server(config)
    runners: list[Runner] = []

    async def prepare(report_started: ReportStarted) -> None:
        runners.append(await prepare_runner(config, config_path, is_local=is_local, only_deploys=only_deploys))
        await report_started()

    async with asyncio.TaskGroup() as group:
        group.create_task(report_configuration_changes(config_path, write_line_to_stderr))
        group.create_task(release_unused_memory_regularly())
        await run_with_restarts(RUNNER, prepare, config)
        await run_runner(runners[0], config, config_path, is_local=is_local, only_deploys=only_deploys)


ReportStarted = Callable[[], Awaitable[None]]


async def run_with_restarts(
    name: str,
    run: Callable[[ReportStarted], Awaitable[None]],
    config: Config,
    policy: RestartPolicy = DEFAULT_POLICY,
) -> None:
    """Run a part until ``run`` returns without an error. After an error, start the part again.

    After several errors in a row, send an alert. ``run`` must call its argument when the part has started.
    """
    failures = 0

    async def report_started() -> None:
        nonlocal failures
        before, failures = failures, 0
        if before >= policy.deaths_before_alert:
            await _send_alert_and_log_error(send_recovery_alert(config, name))

    while True:
        try:
            await run(report_started)
        except Exception as error:  # noqa: BLE001 - a part that fails in any way must not end the others
            reason = redact(str(error) if isinstance(error, MonitorError) else build_fault_from_error(error).detail)
        else:
            return
        failures += 1
        pause_s = policy.compute_pause_s(failures)
        write_line_to_stderr(f"{name}: {reason}; restart in {pause_s:g} s")
        if failures == policy.deaths_before_alert:
            await _send_alert_and_log_error(
                send_crash_loop_alert(config, name, failures, f"last with this error: {reason}")
            )
        # Most causes, such as a server that does not answer, need time to go away.
        await asyncio.sleep(pause_s)


async def _send_alert_and_log_error(sending: Awaitable[None]) -> None:
    """Await ``sending``, which sends an alert. If no alert can be sent, only log the type of the error."""
    try:
        await sending
    except Exception as error:  # noqa: BLE001 - the part must run even if no alert can be sent
        write_line_to_stderr(f"the alert could not be sent: {type(error).__name__}")


class ServerThread(threading.Thread):
    """A thread that runs web servers in its own event loop.

    ``servers`` maps names to functions that build a server.
    """

    def __init__(self, servers: Mapping[str, Callable[[], uvicorn.Server]], config: Config) -> None:
        super().__init__(name="servers", daemon=True)
        self._builders, self._config = servers, config
        self._servers: dict[str, uvicorn.Server] = {}
        self._loop = asyncio.new_event_loop()
        self._stop_requested = asyncio.Event()

    def run(self) -> None:
        """Serve until `stop`. If serving fails, end the process; the supervisor starts it again."""
        try:
            self._loop.run_until_complete(self._serve_all())
        finally:
            self._loop.close()
            if not self._stop_requested.is_set():
                os.kill(os.getpid(), signal.SIGTERM)

    def stop(self) -> None:
        """End the servers after they have answered all requests that they received."""
        # The loop may have ended because of an error.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop_requested.set)
        self.join(STOP_S)

    async def _serve_all(self) -> None:
        tasks = {
            name: asyncio.create_task(run_with_restarts(name, partial(self._serve, name, build), self._config))
            for name, build in self._builders.items()
        }
        await self._stop_requested.wait()
        for name, task in tasks.items():
            if name in self._servers:
                self._servers[name].should_exit = True
            else:
                task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def _serve(self, name: str, build: Callable[[], uvicorn.Server], report_started: ReportStarted) -> None:
        server = await asyncio.to_thread(build)
        await report_started()
        self._servers[name] = server
        try:
            await server.serve()
        except SystemExit:  # uvicorn raises it, after it has logged the reason
            raise ServerNotStarted(f"the {name} server cannot listen on its port") from None
        finally:
            del self._servers[name]


class ServerNotStarted(MonitorError):
    """Raised if a web server could not start."""


def list_server_builders(
    config: Config, config_path: Path, host: str, port: int, *, only_deploys: bool
) -> dict[str, Callable[[], uvicorn.Server]]:
    """Return functions that build the configured web servers. The Slack button receiver uses ``port + 1``."""
    variables = get_environment()
    servers: dict[str, Callable[[], uvicorn.Server]] = {}
    if config.deploys.triggers:
        servers[RECEIVER] = lambda: build_receiver_server(config, config_path, host, port, variables)
    if config.alerts.slack_buttons and not only_deploys:
        servers[SLACK] = lambda: build_actions_server(config, host, port + 1, variables)
    if config.site.enabled and not only_deploys:
        servers[SITE] = lambda: build_configured_site_server(
            config, config.site.host, choose_site_port(config, port)
        )
    return servers


if __name__ == "__main__":
    with escape_controls_in_output():
        sys.exit(main())
