"""The Space: a Gradio chat page for the bot, on loopback.

Run it with ``python -m deployments.demo.space --port 7860``. The option ``--faults`` plants the faults of
``faults.py``.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import socket
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from flows.terminal import print_text

HOST = "127.0.0.1"
DEFAULT_PORT = 7860
"""The default port of the demo, which is also Gradio's default port."""
EXIT_USAGE = 2


def _parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m deployments.demo.space", description="Serve the demo Space.")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="port on 127.0.0.1; 0 for a free port")
    parser.add_argument("--faults", action="store_true", help="plant the faults")
    parser.add_argument("--log-folder", type=Path, help="folder for turns.jsonl and hallucinations.jsonl")
    parser.add_argument("--delay-s", type=float, default=0.2, help="duration of an answer in seconds (default 0.2)")
    parser.add_argument("--commit", default="demo", help="the commit hash to return at /version")
    return parser.parse_args(argv)


def listen_or_exit(port: int) -> socket.socket:
    """Return a listening socket. If the port cannot be used, exit with a message."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()  # with SO_REUSEADDR, a port is in use only after a process listens on it
    except (OSError, OverflowError) as error:
        listener.close()
        raise SystemExit(_format_port_error(port, error)) from error
    return listener


def _format_port_error(port: int, error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} on {HOST} is in use. Choose another port with --port N (--port 0 for a free port), or "
            f"find and stop the program that uses the port: ss -ltnp 'sport = :{port}'"
        )
    return f"Port {port} on {HOST} cannot be used: {error}. Choose a port from 1024 to 65535 with --port N."


def _create_log_folder(folder: Path | None) -> Path | None:
    if folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "turns.jsonl").touch()
    except OSError as error:
        raise SystemExit(
            f"Log folder {folder} cannot be written: {error}. Choose another folder with --log-folder."
        ) from error
    return folder


def main(argv: list[str] | None = None) -> int:
    """Serve until interrupted. Return 0, or 2 if the port or the log folder cannot be used."""
    arguments = _parse_arguments(argv)
    try:
        listener = listen_or_exit(arguments.port)
        folder = _create_log_folder(arguments.log_folder)
    except SystemExit as error:
        print_text(f"error: {error}", err=True)
        return EXIT_USAGE
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # gradio reads this at import
    from deployments.demo.page import PageOptions, serve  # gradio's import takes seconds, so only after the checks

    options = PageOptions(
        faults=arguments.faults, log_folder=folder, delay_s=arguments.delay_s, commit=arguments.commit
    )
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C ends the Space
        serve(listener, options, now=lambda: datetime.now(UTC), monotonic=time.monotonic)
    return 0


if __name__ == "__main__":
    sys.exit(main())
