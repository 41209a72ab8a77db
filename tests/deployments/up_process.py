"""Runs ``lookout up`` as a process, for tests that need a whole installation."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.conftest import ROOT
from tests.deployments.triggers.senders import GITHUB_SECRET, deployed, github_headers, raw
from tests.polling import wait_until
from tests.process_tree import descendants
from tests.tools.shape import PACKAGES

START_S = 180
SECRETS = {"LOOKOUT_GITHUB_WEBHOOK_SECRET": GITHUB_SECRET}
UP = (sys.executable, "-P", "-m", "deployments.cli.app", "up", "--config")


def find_free_ports_of_installation() -> int:
    """Return a free port whose next two ports are free too, because ``lookout up`` uses all three.

    The ports are outside the range from which systems take the ports of connections and of servers on port 0, so
    another test does not take one of them in the meantime.
    """
    chance = random.SystemRandom()  # the seed of the tests would give each worker the same ports
    for port in chance.sample(range(20_000, 32_000, 3), 100):
        with ExitStack() as servers:
            try:
                for used in range(port, port + 3):
                    servers.enter_context(socket.create_server(("127.0.0.1", used)))
            except OSError:
                continue
            return port
    raise AssertionError("no three free ports in a row")


def plant_packages(folder: Path) -> None:
    """Write packages with the same names as Lookout's into a folder. Prefect projects often use such names."""
    for package in PACKAGES:
        (folder / package).mkdir()
        (folder / package / "__init__.py").write_text("raise SystemExit('not Lookout')\n", encoding="utf-8")


def started(
    file: Path, port: int, *, environment: Mapping[str, str] = os.environ, **variables: str
) -> subprocess.Popen[bytes]:
    """Start the command with the configuration ``file``. Its output is in ``up.log`` in the same folder."""
    known = {name: value for name, value in environment.items() if not name.startswith(("LOOKOUT_", "PREFECT_API"))}
    with (file.parent / "up.log").open("wb") as log:
        return subprocess.Popen(
            [*UP, str(file), "--port", str(port)],
            cwd=file.parent,
            env=known | {"PYTHONPATH": str(ROOT)} | variables,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )


class Up:
    """The process of the started command, and its log."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process, self.url, self._log = process, f"http://127.0.0.1:{port}", log

    def said(self) -> str:
        """Return the text of the log so far."""
        return self._log.read_text(encoding="utf-8")

    def until(self, holds: Callable[[], bool], what: str, within_s: float = START_S) -> None:
        """Wait until ``holds()`` is true. Fail if the process ends before, or after ``within_s`` seconds."""

        def holds_or_ended() -> bool:
            assert self.process.poll() is None, self.said()
            return holds()

        wait_until(holds_or_ended, timeout_s=within_s, what=what)

    def receives(self) -> bool:
        """Return whether the deploy receiver answers."""
        try:
            return httpx.get(f"{self.url}/healthz", timeout=5, trust_env=False).text == "ok"
        except httpx.HTTPError:
            return False

    def serves(self) -> bool:
        """Return whether all deployments are registered, so that the runner polls for due runs."""
        return "deployments: verify-deploy/verify-deploy" in self.said()

    def deliver(self, commit: str) -> httpx.Response:
        """Send a signed delivery about ``commit``, as GitHub does."""
        body = raw(deployed(sha=commit))
        address = f"{self.url}/deploys/github"
        return httpx.post(address, content=body, headers=github_headers(body), timeout=60, trust_env=False)

    def pid_of(self, part: str) -> int:
        """Return the id of the process whose command line contains ``part``. Its guard process is ignored."""
        known = descendants(self.process.pid)
        return next(one.pid for one in known if part in one.command and "deployments.up.guard" not in one.command)


@contextmanager
def up(file: Path, *, environment: Mapping[str, str] = os.environ, **variables: str) -> Iterator[Up]:
    """Run ``lookout up`` during the ``with`` block."""
    port = find_free_ports_of_installation()
    process = started(file, port, environment=environment, **SECRETS, **variables)
    try:
        yield Up(process, port, file.parent / "up.log")
    finally:
        process.terminate()
        process.wait(START_S)


def runs_of_deploys(api: str, target: str) -> list[dict[str, Any]]:
    """Return the runs of this target that deploys created, in the format of Prefect's API."""
    query = {"flow_runs": {"tags": {"all_": ["deploy", f"target:{target}"]}}}
    found: list[dict[str, Any]] = httpx.post(
        f"{api}/flow_runs/filter", json=query, timeout=30, trust_env=False
    ).json()
    return found
