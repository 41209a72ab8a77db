"""The runner of an installation, as a process: ``python -m flows.serve_flows lookout.toml``.

Every deployment of the configuration is registered, and its runs are done here, until SIGTERM.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Final

from flows.alert_wiring import slack_way
from flows.prefect_server import running_server
from flows.schedules import planned_deployments
from flows.wiring import connect_prefect, environment, prefect_home
from monitors.alerts.redact import redact
from monitors.config import Config, load_config
from monitors.errors import MonitorError

LOOK_S: Final = 10.0
"""How often it is looked whether the local server has moved."""
BROKEN: Final = 4


def main() -> int:
    """Exit code 0 when it was told to stop, 4 when it could not begin."""
    try:
        _serve(Path(sys.argv[1]).resolve())
    except MonitorError as error:
        sys.stderr.write(f"{redact(str(error))}\n")
        return BROKEN
    return 0


def _serve(config_path: Path) -> None:
    config = load_config(config_path)
    is_local = config.prefect.api_url is None and "PREFECT_API_URL" not in environment()
    connect_prefect(config)
    if is_local:
        threading.Thread(target=_end_when_moved, args=(config,), name="moved-server", daemon=True).start()
    from flows.registration import serve_all  # Prefect reads its settings at import, so it must be connected

    planned = planned_deployments(config, config_path, config.schedules)
    sys.stderr.write(f"{len(planned)} deployments: {', '.join(one.full_name for one in planned)}\n")
    asyncio.run(serve_all(planned, slack_way(config, environment())))


def _end_when_moved(config: Config) -> None:
    """A local server that came back on another port is asked at the old one for ever: begin anew instead."""
    connected = environment()["PREFECT_API_URL"]
    while True:
        threading.Event().wait(LOOK_S)
        server = running_server(prefect_home(config))
        if server is not None and server.api_url != connected:
            sys.stderr.write(f"Prefect's server is at {server.api_url} now\n")
            os.kill(os.getpid(), signal.SIGTERM)
            return


if __name__ == "__main__":
    sys.exit(main())
