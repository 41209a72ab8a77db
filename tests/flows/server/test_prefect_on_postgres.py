"""Test Prefect's server with Postgres: a flow of Lookout is scheduled, executed and recorded there."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import httpx
import pytest

from deployments.demo.configuration import find_free_port
from flows.server import prefect_server
from tests.conftest import ROOT
from tests.flows.few_cases import few_cases
from tests.polling import wait_until

PLAIN_USERS = ("postgres", "nobody")
"""Users that can run Postgres if the tests run as root, because Postgres refuses to run as root."""
PATIENCE_S = 480


def plain_user():
    """Return arguments for `subprocess` that run a process as a normal user.

    They are empty if the tests do not run as root. Return ``None`` if the system has no suitable user.
    """
    if os.geteuid() != 0:
        return {}
    known = {one.pw_name: one for one in pwd.getpwall()}
    found = next((known[name] for name in PLAIN_USERS if name in known), None)
    return found and {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}


pytestmark = [
    pytest.mark.prefect,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        shutil.which("initdb") is None or shutil.which("postgres") is None, reason="no Postgres on this machine"
    ),
    pytest.mark.skipif(plain_user() is None, reason="root, and no plain user to run Postgres as"),
]


@pytest.fixture(scope="module")
def database():
    """Start a temporary Postgres cluster, and yield the address of an empty database in it."""
    who = plain_user()
    folder = Path(tempfile.mkdtemp(prefix="lookout-postgres-", dir="/tmp"))
    try:
        if who:
            os.chown(folder, who["user"], who["group"])
        with _cluster(folder, who) as port:
            yield f"postgresql://lookout@127.0.0.1:{port}/postgres"
    finally:
        shutil.rmtree(folder)


@contextmanager
def _cluster(folder, who):
    data, port = folder / "data", find_free_port("127.0.0.1", 0)
    made = subprocess.run(
        ["initdb", "--pgdata", data, "--username", "lookout", "--auth", "trust", "--no-sync"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        **who,
    )
    assert made.returncode == 0, made.stderr
    options = ("-p", str(port), "-c", "listen_addresses=127.0.0.1", "-k", str(folder), "-c", "fsync=off")
    with (folder / "postgres.log").open("wb") as log:
        server = subprocess.Popen(["postgres", "-D", data, *options], cwd=folder, stdout=log, stderr=log, **who)
    try:
        wait_until(lambda: _listens(folder, port), timeout_s=PATIENCE_S, what="Postgres answers", every_s=0.5)
        yield port
    finally:
        server.terminate()
        server.wait(60)


def _listens(folder, port):
    done = subprocess.run(
        ["pg_isready", "--host", "127.0.0.1", "--port", str(port)], cwd=folder, capture_output=True, check=False
    )
    return done.returncode == 0


@contextmanager
def served(home, address):
    """Run Prefect's server with the database at ``address``, and yield the environment for its clients."""
    url = address.replace("postgresql://", "postgresql+asyncpg://")
    variables = dict(os.environ) | {"PREFECT_SERVER_DATABASE_CONNECTION_URL": url}
    prefect_server.connect_or_start(None, home, environment=variables, start_timeout_s=PATIENCE_S, write_line=print)
    try:
        yield variables
    finally:
        prefect_server.stop_server(home)


@contextmanager
def runner(config, environment):
    """Run the service process of `lookout up`, which runs all deployments in a configuration."""
    with (config.parent / "runner.log").open("wb") as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "deployments.up.service",
                str(config),
                "127.0.0.1",
                str(find_free_port("127.0.0.1", 0)),
            ],
            cwd=config.parent,
            env=environment | {"PYTHONPATH": str(ROOT), "PREFECT_RUNNER_POLL_FREQUENCY": "2"},
            stdout=log,
            stderr=log,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        finally:  # one that does not end is this test's failure alone
            process.kill()
            process.wait()


def ended_runs(api):
    """Return the runs of the deployment `follow-log` that have ended."""
    query = {
        "flow_runs": {"state": {"type": {"any_": ["COMPLETED", "FAILED", "CRASHED"]}}},
        "deployments": {"name": {"any_": ["follow-log"]}},
    }
    return httpx.post(f"{api}/flow_runs/filter", json=query, timeout=60, trust_env=False).json()


async def in_the_database(address, question, *values):
    connection = await asyncpg.connect(address)
    try:
        return await connection.fetchval(question, *values)
    finally:
        await connection.close()


@pytest.mark.whole_only
def test_a_scheduled_flow_runs_and_postgres_has_it(database, tmp_path):
    few_cases(tmp_path, severe=1, others=1)
    (tmp_path / "log.jsonl").write_text(
        json.dumps({"user_text": "q", "blocked_reply": "r"}) + "\n", encoding="utf-8"
    )
    config = tmp_path / "lookout.toml"
    config.write_text(
        'data_folder = "data"\n[targets.bot]\nurl = "http://127.0.0.1:9"\nsuite = "few.jsonl"\n'
        '[targets.bot.hallucination_log]\nat = "log.jsonl"\n',
        encoding="utf-8",
    )
    with served(tmp_path / "prefect", database) as environment, runner(config, environment):
        api = environment["PREFECT_API_URL"]
        wait_until(lambda: ended_runs(api), timeout_s=PATIENCE_S, what="a run ends", every_s=0.5)
        (run, *_) = ended_runs(api)
    assert run["state_type"] == "COMPLETED", run["state"]
    stored_state = asyncio.run(
        in_the_database(database, "select state_type::text from flow_run where id = $1", run["id"])
    )
    assert stored_state == "COMPLETED"
    assert not list((tmp_path / "prefect").glob("*.db")), "nothing is in SQLite"
