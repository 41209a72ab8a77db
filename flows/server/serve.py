"""The runner of an installation, as a process: ``python -m flows.server.serve lookout.toml [--deploys]``.

It registers every deployment of the configuration, executes their runs and watches logs, Spaces and deploys, until
SIGTERM. With ``--deploys`` it only serves the deployment that is started after a deploy.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Final

from flows.alerting.pipeline import send_alerts_again
from flows.clock import utc_now
from flows.data_folder import get_prefect_home, open_store
from flows.runtime.run import connect_to_prefect
from flows.runtime.secrets import get_environment
from flows.runtime.slack import build_notifier_without_run, build_slack_endpoint, log_line
from flows.server.prefect_server import find_running_server
from flows.server.schedules import plan_deployments
from flows.terminal import guard_output, write_note
from monitors.alerts.redact import redact
from monitors.config.file import Config, load_config
from monitors.errors import MonitorError
from monitors.plural import plural
from monitors.records.incidents import Capability
from warehouse.queries.incidents import list_targets_with_open_incidents

POLL_S: Final = 10.0
"""Seconds between two checks whether the local server has moved."""
BROKEN_EXIT_CODE: Final = 4
ONLY_DEPLOYS: Final = "--deploys"


def main() -> int:
    """Serve the deployments; return exit code 0 after SIGTERM, 4 if serving could not begin."""
    try:
        _serve(Path(sys.argv[1]).resolve(), only_deploys=ONLY_DEPLOYS in sys.argv[2:])
    except MonitorError as error:
        write_note(f"{redact(str(error))}\n")
        return BROKEN_EXIT_CODE
    return 0


def _serve(config_path: Path, *, only_deploys: bool) -> None:
    config = load_config(config_path)
    is_local = config.prefect.api_url is None and "PREFECT_API_URL" not in get_environment()
    connect_to_prefect(config)
    # Prefect first imports flows from the current folder.
    own = next((folder for folder in (get_prefect_home(config), config.data_folder) if folder.is_dir()), None)
    if own is not None:
        os.chdir(own)
    if is_local:
        threading.Thread(target=_end_when_moved, args=(config,), name="moved-server", daemon=True).start()
    # Prefect reads its settings at import, so it must be connected.
    from flows.server.registration import serve_all
    from flows.watching.watcher import Watcher

    asyncio.run(_send_alerts_again_at_start(config))
    planned = plan_deployments(config, config_path, config.schedules)
    if only_deploys:
        planned = tuple(deployment for deployment in planned if deployment.full_name == config.deploys.deployment)
    write_note(
        f"{plural(len(planned), 'deployment')}: {', '.join(deployment.full_name for deployment in planned)}\n"
    )
    endpoint = build_slack_endpoint(config, get_environment())
    tag = config.prefect.tag
    if only_deploys:
        asyncio.run(serve_all(planned, endpoint, utc_now, log_line, tag=tag))
        return
    watcher = Watcher(config, config_path, now=utc_now, write_line=log_line)
    serving = serve_all(planned, endpoint, utc_now, log_line, config_path=config_path, tag=tag, watch=watcher.run)
    asyncio.run(serving)


async def _send_alerts_again_at_start(config: Config) -> None:
    """Send the alerts that were only printed so far, if there is a delivery path to people."""
    try:
        for target in await asyncio.to_thread(list_targets_with_open_incidents, open_store(config)):
            await send_alerts_again(build_notifier_without_run(config, target, Capability.UP))
    except MonitorError as error:
        write_note(f"Lookout could not send the earlier open alerts yet: {redact(str(error))}\n")


def _end_when_moved(config: Config) -> None:
    """End this process when the local server has moved to another port."""
    connected = get_environment()["PREFECT_API_URL"]
    while True:
        threading.Event().wait(POLL_S)
        server = find_running_server(get_prefect_home(config))
        if server is not None and server.api_url != connected:
            write_note(f"Prefect's server is now at {server.api_url}\n")
            os.kill(os.getpid(), signal.SIGTERM)
            return


if __name__ == "__main__":
    with guard_output():
        sys.exit(main())
