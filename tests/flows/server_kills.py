"""Repeatedly kill the process that starts a local Prefect server, at random moments."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from flows.server.prefect_server import connect_or_start, stop_server

ROOT = Path(__file__).parents[2]
STARTER = """
import os, sys
from pathlib import Path
from flows.server.prefect_server import connect_or_start
print("begun", flush=True)
connect_or_start(None, Path(sys.argv[1]), environment=dict(os.environ), start_timeout_s=180, write_line=lambda line: print(line, flush=True))
print("connected", flush=True)
"""
MAX_S = 3.0
"""The maximum time in seconds from the starter's first line about a server until the starter is killed."""


def servers_of(home: Path) -> list[int]:
    """Return the process ids of all Prefect servers on this machine whose ``PREFECT_HOME`` is ``home``."""
    processes = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables, command = (process / "environ").read_bytes(), (process / "cmdline").read_bytes()
        except OSError:  # ended since, or of another user
            continue
        if os.fsencode(f"PREFECT_HOME={home}") in variables.split(b"\0") and b"prefect\0server\0start" in command:
            processes.append(int(process.name))
    return processes


def kill_while_it_starts(home: Path, kills: int, seed: int) -> list[list[int]]:
    """Start a server ``kills`` times, and kill its starter at a random moment. Finally, connect to the server.

    Return the process ids of the servers after each kill and after the connection. The server is stopped at the
    end.
    """
    moments, after = random.Random(seed), []
    try:
        for _ in range(kills):
            command = [sys.executable, "-c", STARTER, str(home)]
            with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as starter:
                assert starter.stdout is not None
                assert starter.stdout.readline() == "begun\n"
                starter.stdout.readline()
                try:
                    starter.wait(timeout=moments.uniform(0, MAX_S))
                except subprocess.TimeoutExpired:
                    starter.kill()
            assert starter.returncode in {0, -signal.SIGKILL}, "the starter failed by itself"
            after.append(servers_of(home))
        server = connect_or_start(None, home, environment={}, start_timeout_s=180, write_line=lambda _line: None)
        assert server is not None
        after.append(servers_of(home))
        assert server.pid in after[-1]
    finally:
        stop_server(home)
    return after
