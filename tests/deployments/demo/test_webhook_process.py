"""The receiver as a process: it refuses an incomplete configuration, and no delivery is lost if it is killed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import time
from contextlib import asynccontextmanager

import httpx
import pytest

from deployments.demo.configuration import find_free_port
from flows.deploys.queue import DeployQueue
from tests import fork_server
from tests.conftest import ROOT
from tests.deployments.triggers.senders import (
    COMMIT,
    GITHUB_SECRET,
    deployed,
    github_headers,
    raw,
)
from tests.flows.deploys.sample_deploys import commits, registered
from tests.stable_text import replace_volatile

START_S = 120
SECRETS = {"LOOKOUT_GITHUB_WEBHOOK_SECRET": GITHUB_SECRET}
TRIGGER = '[[triggers]]\nprovider = "github"\nrepository = "acme/helpdesk"\ntarget = "bot"\n'


WORKER = "tests.deployments.demo.receive_worker"


def environment(**variables):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("LOOKOUT_")}
    return inherited | fork_server.WARM | variables


def command(folder, deploys, port):
    (folder / "lookout.toml").write_text(
        'data_folder = "data"\n[targets.bot]\nurl = "http://127.0.0.1:1"\nsuite = "suite.jsonl"\n', encoding="utf-8"
    )
    (folder / "deploys.toml").write_text(deploys, encoding="utf-8")
    files = [str(folder / "lookout.toml"), str(folder / "deploys.toml")]
    return [*files, str(port)]


@pytest.mark.parametrize(
    ("deploys", "variables"),
    [
        (TRIGGER, {}),
        (TRIGGER, {"LOOKOUT_GITHUB_WEBHOOK_SECRET": "abc12"}),
        ("", SECRETS),
        (TRIGGER.replace('"bot"', '"bit"'), SECRETS),
        (TRIGGER.replace("github", "standard"), {"LOOKOUT_STANDARD_WEBHOOK_SECRET": "this is no base64!"}),
    ],
    ids=["no secret", "a short secret", "no trigger", "an unknown target", "a secret of another form"],
)
def test_f31_on_half_a_configuration_it_does_not_start(tmp_path, deploys, variables, snapshot):
    words = command(tmp_path, deploys, 1)
    done = fork_server.run(*words, module=WORKER, cwd=ROOT, env=environment(**variables), timeout_s=START_S)
    assert done.returncode == 2
    assert replace_volatile(done.stderr, tmp_path) == snapshot
    assert not any(value in done.stderr for value in variables.values())


class Process:
    """A receiver process that already answers requests."""

    def __init__(self, process, port):
        self.process = process
        self.url = f"http://127.0.0.1:{port}"

    async def deliver(self, client, commit):
        body = raw(deployed(sha=commit))
        answer = await client.post(f"{self.url}/deploys/github", content=body, headers=github_headers(body))
        return answer.status_code

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    async def has_made(self, client, runs):
        """Wait until the receiver reports that it has created ``runs`` runs."""
        wanted = f"lookout_deploy_runs_total {runs:.1f}"
        await until(lambda: client.get(f"{self.url}/metrics"), lambda answer: wanted in answer.text)


async def until(look, holds):
    end = time.monotonic() + START_S
    while True:
        try:
            if holds(await look()):
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < end, "it did not come about"
        await asyncio.sleep(0.2)  # another process runs; there is no event to wait for


def started(line, log, variables):
    with log.open("ab") as output:
        return fork_server.start(*line, module=WORKER, cwd=ROOT, env=variables, stdout=output, stderr=output)


@asynccontextmanager
async def receiving(folder, client, *, deployment, api):
    port = find_free_port("127.0.0.1", 0)
    line = command(folder, f'deployment = "{deployment}"\n{TRIGGER}', port)
    process = started(line, folder / "receiver.log", environment(PREFECT_API_URL=api, **SECRETS))
    try:
        running = Process(process, port)
        await until(lambda: client.get(f"{running.url}/healthz"), lambda answer: answer.text == "ok")
        yield running
    finally:
        process.kill()
        process.wait()


@pytest.fixture
async def prefect(prefect_environment):
    async with registered(prefect_environment["PREFECT_API_URL"]) as found:
        found.api = prefect_environment["PREFECT_API_URL"]
        yield found


@pytest.fixture
async def client():
    async with httpx.AsyncClient(timeout=60, trust_env=False) as opened:
        yield opened


@pytest.mark.prefect
async def test_f35_killed_after_its_202_the_run_happens_once_all_the_same(tmp_path, prefect, client):
    """If the receiver is killed after its 202 response, the run still happens once.

    Prefect is down when the delivery arrives, so only the stored delivery can start the run.
    """
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        away = f"http://127.0.0.1:{nobody.getsockname()[1]}/api"
    async with receiving(tmp_path, client, deployment=prefect.name, api=away) as first:
        assert await first.deliver(client, COMMIT) == 202
        first.kill()
    assert await prefect.commits() == []
    async with receiving(tmp_path, client, deployment=prefect.name, api=prefect.api) as second:
        await second.has_made(client, 1)
        assert await second.deliver(client, COMMIT) == 200
    assert await prefect.commits() == [COMMIT]
    assert DeployQueue(tmp_path / "data").list_waiting_deploys() == ()


@pytest.mark.prefect
@pytest.mark.whole_only
async def test_f35_killed_at_any_moment_what_was_acknowledged_is_run_once(tmp_path, prefect, client):
    """If the receiver is killed, each delivery that it acknowledged is run once.

    Deliveries arrive one after the other. The receiver gets SIGKILL after a random number of them, while it still
    creates the runs of earlier deliveries.
    """
    chance, acknowledged, sent = random.Random(35), [], iter(commits(30))
    for _ in range(2):
        async with receiving(tmp_path, client, deployment=prefect.name, api=prefect.api) as door:
            for _ in range(chance.randrange(3, 9)):
                commit = next(sent)
                if await door.deliver(client, commit) == 202:
                    acknowledged.append(commit)
            door.kill()
    left = DeployQueue(tmp_path / "data").list_waiting_deploys()
    async with receiving(tmp_path, client, deployment=prefect.name, api=prefect.api) as last:
        await last.has_made(client, len(left))
    assert await prefect.commits() == acknowledged
    assert len(acknowledged) >= 6


async def test_on_sigterm_it_answers_what_is_under_way_and_ends_well(tmp_path, client):
    async with receiving(tmp_path, client, deployment="a/b", api="http://127.0.0.1:1/api") as door:
        assert await door.deliver(client, COMMIT) == 202
        door.process.terminate()
        assert await asyncio.to_thread(door.process.wait, START_S) == 0
    (waiting,) = DeployQueue(tmp_path / "data").list_waiting_deploys()
    assert waiting.deploy.event.commit == COMMIT
    log = (tmp_path / "receiver.log").read_text(encoding="utf-8")
    assert door.url in log
    assert "Traceback" not in log
    assert GITHUB_SECRET not in log
    assert COMMIT not in log
