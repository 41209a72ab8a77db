"""Runs the local Prefect server of an installation: ``python -m flows.server.keep lookout.toml``.

This program starts the server, or uses a server that an earlier command left running. Then
`flows.server.watch_server` replaces this program in the same process. The process ends when the server stops
answering, and a supervisor starts the program again. On SIGTERM, the process stops the server.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Final

from flows.data_folder import get_prefect_home
from flows.runtime.secrets import get_environment
from flows.server import prefect_server
from flows.terminal import escape_controls_in_output, write_note
from monitors.alerts.redact import redact
from monitors.config.file import load_config
from monitors.errors import MonitorError

BROKEN_EXIT_CODE: Final = 4


def main() -> int:
    """Start the server and watch the server. Return exit code 0 after SIGTERM, and 4 if it cannot start."""
    signal.signal(signal.SIGTERM, _raise_server_stopped)
    config = load_config(Path(sys.argv[1]))
    home = get_prefect_home(config)
    try:
        server = prefect_server.connect_or_start(
            None,
            home,
            environment=dict(get_environment()),
            start_timeout_s=config.prefect.start_timeout_s,
            write_line=_write_server_note,
            outlives=False,
        )
        if server is not None:
            _write_server_note(f"Prefect's pages: {server.ui_url}")
            # From here on, a SIGTERM waits until the new program handles it.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            watch = (
                sys.executable,
                "-m",
                "flows.server.watch_server",
                str(home),
                str(server.pid),
                str(server.port),
            )
            os.execv(sys.executable, watch)  # noqa: S606 - our own interpreter
    except _ServerStopped:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        prefect_server.stop_server(home)
        return 0
    except MonitorError as error:
        _write_server_note(redact(str(error)))
    return BROKEN_EXIT_CODE


class _ServerStopped(BaseException):
    """Raised on SIGTERM."""


def _raise_server_stopped(_number: int, _frame: FrameType | None) -> None:
    raise _ServerStopped


def _write_server_note(line: str) -> None:
    write_note(f"{line}\n")


if __name__ == "__main__":
    with escape_controls_in_output():
        sys.exit(main())
