"""A process pool with two workers on a real server: `lookout prefect-yaml` is deployed, and each run runs once."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import uuid
from contextlib import ExitStack, contextmanager
from http import HTTPStatus

import httpx
import pytest

from monitors.config.file import PREFECT_TAG
from tests.conftest import ROOT
from tests.flows.few_cases import few_cases

AUTOMATIONS = f"{PREFECT_TAG}: "

pytestmark = pytest.mark.prefect

PREFECT = (sys.executable, "-m", "prefect", "--no-prompt")
RUNS = 6
SPEAKS = {"PREFECT_WORKER_QUERY_SECONDS": "2", "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO"}
ENDS_WITHIN_S = 60
PATIENCE_S = 240
ABORTED = re.compile(r"Aborted submission of flow run '([0-9a-f-]{36})'")
SUBMITTED = re.compile(r"submitting flow run '([0-9a-f-]{36})'")


@pytest.fixture
def api(prefect_environment):
    # A connection for each request: the server ends idle ones after seconds, at times just as the next one is sent.
    fresh = httpx.Limits(max_keepalive_connections=0)
    address = prefect_environment["PREFECT_API_URL"] + "/"
    with httpx.Client(base_url=address, timeout=60, trust_env=False, limits=fresh) as client:
        yield client


@pytest.fixture
def pool(api):
    """Yield a separate pool for the test. Remove it with its deployments and automations afterwards."""
    name = f"pool-{uuid.uuid4().hex[:8]}"
    yield name
    for one in deployed(api, name):
        api.delete(f"deployments/{one['id']}")
    api.delete(f"work_pools/{name}")
    for one in answered(api, "POST", "automations/filter", limit=200):
        if one["name"].startswith(AUTOMATIONS):
            api.delete(f"automations/{one['id']}")


def answered(api, method, path, **body):
    """Send a request, and return the server's response.

    Repeat the request if SQLite is busy (HTTP 503), as Prefect's own client does.
    """
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            answer = api.request(method, path, json=body or None)
        except httpx.ReadTimeout:
            assert time.monotonic() < end, f"{path}: no answer"
            continue
        if answer.status_code != HTTPStatus.SERVICE_UNAVAILABLE or time.monotonic() > end:
            assert answer.is_success, answer.text
            return answer.json()
        time.sleep(1)  # the server is busy; there is no event to wait for


def deployed(api, pool):
    return answered(api, "POST", "deployments/filter", work_pools={"name": {"any_": [pool]}})


def prefect(environment, folder, *arguments):
    done = subprocess.run(
        [*PREFECT, *arguments],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def worker(environment, folder, pool, name):
    """Run a worker that executes one run at a time as a process, and yield its log."""
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*PREFECT, "worker", "start", "--pool", pool, "--name", name, "--limit", "1"],
            cwd=folder,
            env=environment | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"} | SPEAKS,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield log
    finally:
        process.terminate()
        try:
            process.wait(ENDS_WITHIN_S)
        finally:
            process.kill()
            process.wait()


def until(holds, what, logs):
    end = time.monotonic() + PATIENCE_S
    while not holds():
        said = "\n".join(log.read_text(encoding="utf-8") for log in logs)
        assert time.monotonic() < end, f"not within {PATIENCE_S} s: {what}\n{said}"
        time.sleep(0.5)  # other processes run; there is no event to wait for


def taken(log):
    """Return the names of the runs that this worker executed, sorted.

    If two workers request the same run, the server gives it to one of them.
    """
    said = log.read_text(encoding="utf-8")
    return sorted(set(SUBMITTED.findall(said)) - set(ABORTED.findall(said)))


@pytest.mark.whole_only
def test_two_workers_share_the_runs_and_each_is_done_once(prefect_environment, lookout, tmp_path, api, pool):
    few_cases(tmp_path, severe=1, others=1)
    targets = [f'[targets.{name}]\nurl = "http://127.0.0.1:9"\nsuite = "few.jsonl"\n' for name in ("bot", "old")]
    configuration = tmp_path / "lookout.toml"
    configuration.write_text('data_folder = "data"\n' + "".join(targets), encoding="utf-8")
    made = lookout("prefect-yaml", "--pool", pool, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    (tmp_path / "prefect.yaml").write_text(made.stdout, encoding="utf-8")
    prefect(prefect_environment, tmp_path, "work-pool", "create", pool, "--type", "process")
    prefect(prefect_environment, tmp_path, "deploy", "--all")
    first = {row["name"]: row for row in deployed(api, pool)}
    api.post(f"deployments/{first['digest']['id']}/pause_deployment")
    schedule = first["fire-drill"]["schedules"][0]["id"]
    api.patch(f"deployments/{first['fire-drill']['id']}/schedules/{schedule}", json={"active": False})
    configuration.write_text('data_folder = "data"\n' + targets[0], encoding="utf-8")
    again = lookout("prefect-yaml", "--pool", pool, "--deploy", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert sum("no longer in the" in line for line in again.stdout.splitlines()) == 2

    names = {one["name"]: one for one in deployed(api, pool)}
    assert set(names) == {
        *("verify-deploy", "scheduled-verify-bot", "repeatability-bot", "load-warehouse", "digest", "fire-drill")
    }
    assert {name for name, row in names.items() if row["paused"]} == {"digest"}
    assert [row["active"] for row in names["fire-drill"]["schedules"]] == [False]
    assert [step for one in names.values() for step in one["pull_steps"]] == [
        {"prefect.deployments.steps.set_working_directory": {"directory": "/"}}
    ] * len(names)

    watched = lookout("automations", "--json", cwd=tmp_path, SLACK_WEBHOOK_URL="http://127.0.0.1:9/s")
    assert watched.returncode == 0, watched.stderr
    assert f"{AUTOMATIONS}no run of scheduled-verify-bot" in json.loads(watched.stdout)

    deployment = names["load-warehouse"]["id"]
    wanted = [
        answered(api, "POST", f"deployments/{deployment}/create_flow_run", idempotency_key=f"{pool}-{number}")["id"]
        for number in range(RUNS)
    ]

    def states():
        return [answered(api, "GET", f"flow_runs/{one}") for one in wanted]

    with ExitStack() as stack:
        logs = [
            stack.enter_context(worker(prefect_environment, tmp_path, pool, name)) for name in ("first", "second")
        ]
        until(
            lambda: all(run["state_type"] in {"COMPLETED", "FAILED", "CRASHED"} for run in states()),
            "all end",
            logs,
        )
        runs = states()
        shares = [taken(log) for log in logs]
    assert [(run["state_type"], run["run_count"]) for run in runs] == [("COMPLETED", 1)] * RUNS
    assert sorted(shares[0] + shares[1]) == sorted(wanted)
    assert all(shares), shares


@pytest.mark.whole_only
def test_a_drill_without_a_worker_names_the_command_that_starts_one(
    prefect_environment, lookout, tmp_path, api, pool
):
    few_cases(tmp_path, severe=1, others=1)
    (tmp_path / "lookout.toml").write_text(
        'data_folder = "data"\n[targets.bot]\nurl = "http://127.0.0.1:9"\nsuite = "few.jsonl"\n'
        "[drill]\nworker_wait_s = 5\n",
        encoding="utf-8",
    )
    prefect(prefect_environment, tmp_path, "work-pool", "create", pool, "--type", "process")
    deployed_files = lookout("prefect-yaml", "--pool", pool, "--deploy", cwd=tmp_path)
    assert deployed_files.returncode == 0, deployed_files.stderr
    done = lookout("drill", cwd=tmp_path)
    assert done.returncode != 0
    assert f"prefect worker start --pool {pool}" in " ".join(done.stdout.split())
