"""Test the process that watches Prefect's server: it stops the server on SIGTERM, and ends if the server ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from deployments.demo.configuration import find_free_port
from flows.server.watch_server import is_server_healthy, is_server_process
from tests.conftest import ROOT
from tests.polling import wait_until

WAIT_S = 60
SERVER = """
import http.server, sys
class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/api/health" else 404)
        self.end_headers()
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[-1])), Health).serve_forever()
"""
"""A Python program that imitates Prefect's server: it serves the health route, at the port in its last argument."""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a process is recognised by /proc")


@contextmanager
def watched(home):
    """Start a server, and the process that watches it."""
    port = find_free_port("127.0.0.1", 0)
    (home / "server.json").write_text("{}")
    command = [sys.executable, "-c", SERVER, "prefect", "server", "start", "--port", str(port)]
    with subprocess.Popen(command, start_new_session=True) as server:
        try:
            wait_until(lambda: is_server_healthy(port), timeout_s=WAIT_S, what="the server answers")
            watch = [sys.executable, "-m", "flows.server.watch_server", str(home), str(server.pid), str(port)]
            with subprocess.Popen(watch, cwd=ROOT, stderr=subprocess.PIPE, text=True) as watcher:
                try:
                    yield server, watcher, port
                finally:
                    watcher.kill()
        finally:
            server.kill()


def test_on_sigterm_it_stops_the_server_and_removes_its_note(tmp_path):
    with watched(tmp_path) as (server, watcher, port):
        status = Path(f"/proc/{watcher.pid}/status")

        def handles_sigterm() -> bool:
            caught = status.read_text(encoding="ascii").partition("SigCgt:")[2].split()[0]
            return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)

        wait_until(handles_sigterm, timeout_s=WAIT_S, what="it handles SIGTERM")
        assert is_server_process(server.pid, port)
        watcher.terminate()
        assert server.wait(WAIT_S) == -signal.SIGTERM
        assert watcher.wait(WAIT_S) == 0
    assert not (tmp_path / "server.json").exists()


def test_it_ends_when_the_server_has_ended(tmp_path):
    with watched(tmp_path) as (server, watcher, port):
        server.kill()
        server.wait()
        assert watcher.wait(WAIT_S) == 4
        assert f"127.0.0.1:{port}" in watcher.stderr.read()
    assert (tmp_path / "server.json").exists(), "the next start uses its port again"


def test_a_process_with_another_command_is_not_the_server():
    assert not is_server_process(os.getpid(), 4200)
