"""``lookout receive`` on its own, as the documentation of webhooks describes it.

Acknowledged deploys are verified, and the receiver reports its state.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager

import httpx
import pytest

from deployments.demo.configuration import find_free_port
from deployments.up.guard import find_descendants
from flows.server.prefect_server import find_running_server
from tests.conftest import ROOT
from tests.deployments.cli.test_up_command import configured, states
from tests.deployments.triggers.senders import COMMIT
from tests.deployments.up.test_guard import wait_until_gone
from tests.deployments.up_process import SECRETS, START_S, Up
from tests.prefect_home import with_tables

SLOW_S = 900
"""Timeout in seconds within which a server and a browser must start, even on a busy machine."""

ALL_TRUE = {
    "keeps_deploys": True,
    "journal_writable": True,
    "prefect_answers": True,
    "deployment_registered": True,
    "runner_alive": True,
    "secrets": True,
}


def bare_environment(**variables):
    """Return the environment of a plain shell: without the address of a Prefect server and without keys."""
    outside = ("LOOKOUT_", "PREFECT_", "SLACK_")
    known = {name: value for name, value in os.environ.items() if not name.startswith(outside)}
    return known | {"PYTHONPATH": str(ROOT)} | SECRETS | variables


@contextmanager
def receive(file, **variables):
    """Run the command with the configuration ``file`` during the ``with`` block."""
    port = find_free_port("127.0.0.1", 0)
    log = file.parent / "receive.log"
    line = [sys.executable, "-m", "deployments.cli.app", "receive", "--config", str(file), "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            line, env=bare_environment(**variables), stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield Up(process, port, log)
    finally:
        process.terminate()
        process.wait(START_S)


def readiness(running):
    try:
        return httpx.get(f"{running.url}/readyz", timeout=30, trust_env=False).json()
    except httpx.TransportError:
        return {}


@pytest.mark.prefect
@pytest.mark.browser
@pytest.mark.whole_only
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
def test_alone_it_verifies_what_it_acknowledges_and_is_ready_only_once_it_can(tmp_path):
    with_tables(tmp_path / "data" / "prefect")
    with receive(configured(tmp_path)) as running:
        running.until(running.receives, "the receiver answers")
        assert readiness(running)["runner_alive"] is False
        assert running.deliver(COMMIT).status_code == 202
        running.until(lambda: readiness(running) == ALL_TRUE, "it is ready", SLOW_S)
        api = find_running_server(tmp_path / "data" / "prefect").api_url
        name = f"bot {COMMIT[:12]}"
        running.until(lambda: states(api).get(name) == "Inconclusive", "the deploy is verified", SLOW_S)
        said = running.said()
        assert said.count("could not yet start the run for a deploy") <= 3, said
        family = find_descendants(running.process.pid)
        running.process.terminate()
        assert running.process.wait(START_S) == 0
        wait_until_gone(*family)


@pytest.mark.whole_only
@pytest.mark.prefect
def test_a_server_without_the_deployment_is_refused_with_the_commands_that_register_it(
    tmp_path, prefect_environment
):
    file = configured(tmp_path)
    file.write_text(
        file.read_text(encoding="utf-8") + '[deploys]\ndeployment = "verify-deploy/nobody-registered"\n',
        encoding="utf-8",
    )
    with receive(file, PREFECT_API_URL=prefect_environment["PREFECT_API_URL"]) as running:
        assert running.process.wait(START_S) == 2
    said = " ".join(running.said().split())
    assert "has no deployment verify-deploy/nobody-registered" in said
    assert "`lookout up`" in said
    assert "prefect deploy" in said
