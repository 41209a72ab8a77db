"""Watch a running local Prefect server: ``python -m flows.server.watch_server HOME PID PORT``.

When the server answers, this program replaces `flows.server.keep` in the same process. The program imports only a
small part of the standard library, because it runs as long as the server does. If the server stops answering, this
program kills the server and ends with exit code 4. On SIGTERM, it stops the server and ends with exit code 0.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from contextlib import suppress
from types import FrameType

POLL_S = 2.0
POLLS_PER_REQUEST = 5
"""Number of polls for each request to the server.

Requests are rarer than polls, because requests cost processor time.

A poll without a request only tests whether the server's process exists.
"""
MAX_SILENT_REQUESTS = 3
"""After this number of consecutive requests without an answer, the server is killed."""
REQUEST_TIMEOUT_S = 10.0
"""Timeout of a request in seconds. A server on an overloaded machine answers late."""
STOP_TIMEOUT_S = 30.0
STOP_POLL_S = 0.1
BROKEN_EXIT_CODE = 4
HEALTH_REQUEST = b"GET /api/health HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n"


class _StopRequested(BaseException):
    """Raised on SIGTERM."""


def main() -> int:
    """Watch the server until the server has ended or SIGTERM arrives. Return the exit code."""
    home, pid, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    try:
        signal.signal(signal.SIGTERM, _request_stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # `flows.server.keep` blocked the signal
        _wait_until_server_fails(pid, port)
    except _StopRequested:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _stop_server(pid, port)
        # A command may have stopped the server and deleted the server's note.
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(home, "server.json"))  # noqa: PTH108, PTH118 - pathlib takes memory
        return 0
    sys.stderr.write(f"Prefect's server at http://127.0.0.1:{port}/api no longer answers, so Lookout ends it\n")
    _signal_group(pid, signal.SIGKILL)
    return BROKEN_EXIT_CODE


def _request_stop(_number: int, _frame: FrameType | None) -> None:
    raise _StopRequested


def _wait_until_server_fails(pid: int, port: int) -> None:
    """Wait until the server's process has ended or the server no longer answers."""
    silent_requests, polls = 0, 0
    while silent_requests < MAX_SILENT_REQUESTS:
        # Only a child process sends an event when it ends, so the process is polled.
        time.sleep(POLL_S)
        polls += 1
        if not is_server_process(pid, port):
            return
        if silent_requests or polls % POLLS_PER_REQUEST == 0:
            silent_requests = 0 if is_server_healthy(port) else silent_requests + 1


def is_server_process(pid: int, port: int) -> bool:
    """Return whether the process is a Prefect server that listens on ``port``.

    If the process is a child that has ended, its exit code is collected.
    """
    try:
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    except ChildProcessError:  # an earlier command started the server
        pass
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123 - pathlib takes memory
            command = file.read()
    except OSError:
        if os.path.exists("/proc/self"):  # noqa: PTH110 - pathlib takes memory
            return False
        try:  # a system without /proc
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return b"prefect\0server\0" in command and f"--port\0{port}\0".encode() in command


def is_server_healthy(port: int) -> bool:
    """Return whether the server answers requests to its health route."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=REQUEST_TIMEOUT_S) as connection:
            connection.sendall(HEALTH_REQUEST)
            return b" 200 " in connection.recv(64)
    except OSError:
        return False


def _stop_server(pid: int, port: int) -> None:
    """Stop the server with SIGTERM. If the server does not end in time, use SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        _signal_group(pid, number)
        end = time.monotonic() + STOP_TIMEOUT_S
        while is_server_process(pid, port):
            if time.monotonic() > end:
                break
            # Only a child process sends an event when it ends, so the process is polled.
            time.sleep(STOP_POLL_S)
        else:
            return


def _signal_group(pid: int, number: signal.Signals) -> None:
    # These errors mean that the server has ended in the meantime, or that another user's process has its pid.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


if __name__ == "__main__":
    sys.exit(main())
