"""Keeps the local Prefect server of an installation alive: ``python -m flows.server.keep lookout.toml``.

It starts the server, or uses one that an earlier command left running. When the server stops answering, this
process ends, so that its supervisor starts it again; on SIGTERM it stops the server.
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

from flows.data_folder import get_prefect_home
from flows.runtime.secrets import get_environment
from flows.server import prefect_server
from flows.server.prefect_server import LocalServer
from flows.terminal import guard_output, write_note
from monitors.alerts.redact import redact
from monitors.config.file import load_config
from monitors.errors import MonitorError

POLL_S: Final = 2.0
ASK_EVERY: Final = 3
"""Of so many polls one asks the server, which costs the server processor time; the others look for its process."""
MAX_SILENT_POLLS: Final = 3
"""Polls in a row without an answer; each waits `prefect_server.HEALTH_TIMEOUT_S` if the server hangs."""
BROKEN_EXIT_CODE: Final = 4


def main() -> int:
    """Keep the server alive; return exit code 0 after SIGTERM, 4 when the server cannot start or has gone."""
    signal.signal(signal.SIGTERM, _stop)
    config = load_config(Path(sys.argv[1]))
    home = get_prefect_home(config)
    try:
        server = prefect_server.connect(
            None,
            home,
            environment=dict(get_environment()),
            start_timeout_s=config.prefect.start_timeout_s,
            write_line=_write_server_note,
            stays=False,
        )
        if server is not None:
            _write_server_note(f"Prefect's pages: {server.ui_url}")
            _wait_until_gone(home, server)
    except _ServerStopped:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        prefect_server.stop_server(home)
        return 0
    except MonitorError as error:
        _write_server_note(redact(str(error)))
    return BROKEN_EXIT_CODE


class _ServerStopped(BaseException):
    """Raised on SIGTERM."""


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise _ServerStopped


def _wait_until_gone(home: Path, server: LocalServer) -> None:
    """Wait until the server stops answering, then kill it."""
    silent, polls = 0, 0
    while silent < MAX_SILENT_POLLS:
        threading.Event().wait(POLL_S)
        polls += 1
        if prefect_server.find_server_process(home) is None:
            silent += 1
        elif polls % ASK_EVERY == 0:
            silent = 0 if prefect_server.find_running_server(home) else silent + 1
    _write_server_note(f"Prefect's server at {server.api_url} does not answer any more")
    # The server ended meanwhile, or its pid belongs to another process.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, signal.SIGKILL)


def _write_server_note(line: str) -> None:
    write_note(f"{line}\n")


if __name__ == "__main__":
    with guard_output():
        sys.exit(main())
