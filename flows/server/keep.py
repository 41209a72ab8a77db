"""Keeps the local Prefect server of an installation alive: ``python -m flows.server.keep lookout.toml``.

It starts the server, or takes over one that an earlier command left running. When the server stops answering this
process ends, so that whoever started it starts it again; on SIGTERM it stops the server.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Final

from flows.data_folder import prefect_home
from flows.runtime.secrets import environment
from flows.server import prefect_server
from flows.server.prefect_server import LocalServer
from flows.terminal import guarded_output, write_note
from monitors.alerts.redact import redact
from monitors.config.file import load_config
from monitors.errors import MonitorError

POLL_S: Final = 2.0
SILENCES: Final = 3
"""Polls in a row without an answer; each waits `prefect_server.HEALTH_TIMEOUT_S` where a server only hangs."""
BROKEN: Final = 4


def main() -> int:
    """Exit code 0 after SIGTERM, 4 when there is no server, or no more."""
    signal.signal(signal.SIGTERM, _stop)
    config = load_config(Path(sys.argv[1]))
    home = prefect_home(config)
    try:
        server = prefect_server.connect(
            None,
            home,
            environment=dict(environment()),
            start_timeout_s=config.prefect.start_timeout_s,
            say=_say,
            stays=False,
        )
        if server is not None:
            _say(f"Prefect's pages: {server.ui_url}")
            _watch(home, server)
    except _ServerStopped:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        prefect_server.stop_server(home)
        return 0
    except MonitorError as error:
        _say(redact(str(error)))
    return BROKEN


class _ServerStopped(BaseException):
    """SIGTERM came."""


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise _ServerStopped


def _watch(home: Path, server: LocalServer) -> None:
    """Return when the server is gone; end one that hangs."""
    silent = 0
    while silent < SILENCES:
        threading.Event().wait(POLL_S)
        silent = 0 if prefect_server.running_server(home) else silent + 1
    _say(f"Prefect's server at {server.api_url} answers no more")
    # It ended meanwhile, or its number belongs to another process.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, signal.SIGKILL)


def _say(line: str) -> None:
    write_note(f"{line}\n")


if __name__ == "__main__":
    with guarded_output():
        sys.exit(main())
