"""Test that the service's parts fail and restart independently, and that idle processes import very little."""

from __future__ import annotations

import socket
import subprocess
import sys

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from deployments.receivers.connection_limits import BoundedProtocol, build_bounded_server
from deployments.receivers.ports import require_free_port
from deployments.up import service
from deployments.up.service import ServerThread, run_with_restarts
from deployments.up.supervisor import RestartPolicy
from monitors.config.file import parse_config
from monitors.errors import ConfigError
from tests.conftest import ROOT
from tests.polling import wait_until

HASTY = RestartPolicy(first_pause_s=0.01, max_pause_s=0.01, deaths_before_alert=3)
WAIT_S = 60


@pytest.fixture
def config():
    return parse_config({"targets": {"bot": {"url": "http://127.0.0.1:9", "suite": "suite.jsonl"}}}, "a test")


@pytest.fixture
def reports(monkeypatch):
    """Return a list that collects the alerts about crashed or recovered parts instead of sending them."""
    sent = []

    async def send_crash_loop_alert(_config, name, deaths, last_end):
        sent.append((name, deaths, last_end))

    async def send_recovery_alert(_config, name):
        sent.append((name, "recovered"))

    monkeypatch.setattr(service, "send_crash_loop_alert", send_crash_loop_alert)
    monkeypatch.setattr(service, "send_recovery_alert", send_recovery_alert)
    return sent


async def test_a_part_that_keeps_failing_is_reported_once_and_its_recovery_too(config, reports):
    tries = 0

    async def run(report_started):
        nonlocal tries
        tries += 1
        if tries <= 5:
            raise ConfigError("Prefect is away")
        await report_started()

    await run_with_restarts("runner", run, config, HASTY)
    assert tries == 6
    assert reports == [("runner", 3, "last with this error: Prefect is away"), ("runner", "recovered")]


async def test_a_failure_that_passes_at_once_is_not_reported(config, reports):
    tries = 0

    async def run(report_started):
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ConfigError("Prefect is away")
        await report_started()

    await run_with_restarts("runner", run, config, HASTY)
    assert reports == []


def test_a_server_whose_port_is_taken_starts_later_while_the_other_one_answers(config, reports):
    def builder(port):
        def build():
            require_free_port("127.0.0.1", port, "the site")
            app = Starlette(routes=[Route("/healthz", lambda _request: PlainTextResponse("ok"))])
            return build_bounded_server(
                app, host="127.0.0.1", port=port, protocol=BoundedProtocol, stop_timeout_s=1
            )

        return build

    def answers(port):
        try:
            return httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).text == "ok"
        except httpx.HTTPError:
            return False

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as blocker:
        taken = blocker.getsockname()[1]
        thread = ServerThread({"receiver": builder(free), "site": builder(taken)}, config)
        thread.start()
        wait_until(lambda: answers(free), timeout_s=WAIT_S, what="the receiver answers")
    wait_until(lambda: answers(taken), timeout_s=WAIT_S, what="the site answers once its port is free")
    assert answers(free)
    thread.stop()
    assert not thread.is_alive()
    assert not answers(free)


def test_the_processes_that_only_wait_import_the_standard_library():
    program = (
        "import sys, deployments.up.guard, deployments.up.supervise, flows.server.watch_server\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    ours = {"deployments", "flows"}
    others = {name for name in done.stdout.split() if not name.startswith("_")} - ours
    assert others & {"prefect", "pydantic", "httpx", "duckdb", "rich", "typer", "monitors", "warehouse"} == set()
