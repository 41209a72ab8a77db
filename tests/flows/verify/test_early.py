"""Test a run that already asks questions while its Prefect server starts. If the start fails, no answer is lost."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from typing import Any

import httpx
import pytest

from flows.data_folder import open_store_in
from monitors.alerts.wording import FAILURE_TITLES, KIND_WORDS
from monitors.records.grades import FailureKind
from monitors.records.incidents import Capability, IncidentKind
from tests import fork_server
from tests.flows.chat import RIGHT, Chat, watched
from tests.polling import wait_until
from tests.prefect_home import with_tables
from tests.servers.slack import TOKEN, SlackServer

pytestmark = pytest.mark.prefect

CASES = 8
HELD = 5
WRONG = "The waiting period is 99 months. [Source: Gold, clause 4.2]"
MORE = """
[alerts]
slack_channel = "C0ALERTS"
slack_monitor_channel = "C0MONITOR"
slack_api_url = "{slack}"
[prefect]
start_timeout_s = 0.01
"""


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def chat():
    with Chat(WRONG, *[RIGHT] * CASES) as server:  # one question is asked twice
        server.held_from = HELD
        yield server
        server.released.set()


def started(folder, chat, slack, asked=HELD):
    """Start a verification whose Prefect server cannot start. Wait for ``asked`` questions and for an alert.

    Return the process, and the lock that prevents the start of the server.
    """
    watched(folder, chat, cases=CASES, more=MORE.format(slack=slack.api_url))
    home = with_tables(folder / "data" / "prefect")
    lock = (home / "server.lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    variables = bare | fork_server.WARM | {"SLACK_BOT_TOKEN": TOKEN}
    pipe = subprocess.PIPE
    run = fork_server.start("verify", "demo", cwd=folder, env=variables, stdout=pipe, stderr=pipe)
    assert chat.wait_for(asked), run.poll()
    assert slack.wait_for("chat.postMessage", 120)
    return run, lock


def goes_on(folder, chat, slack, lookout):
    """Repeat the command with a Prefect server.

    Check that the second command asks only the remaining cases and repeats no alert.
    """
    chat.released.set()
    done = lookout("verify", "demo", cwd=folder, SLACK_BOT_TOKEN=TOKEN)
    assert done.returncode == 1, done.stderr
    assert f"{HELD - 1} of {CASES}" in done.stderr
    assert chat.asked == CASES + 1, "one was under way"
    texts = [message.text.split(" · ")[1] for message in slack.messages if message.channel == "C0ALERTS"]
    assert texts == [FAILURE_TITLES[FailureKind.WRONG_FACT], KIND_WORDS[IncidentKind.GATE_FAIL]]


@pytest.mark.whole_only
def test_without_a_server_the_answers_are_stored_for_the_same_command(tmp_path, chat, slack, lookout):
    run, lock = started(tmp_path, chat, slack)
    lock.close()
    _, said = run.communicate()
    assert run.returncode == 4, said
    said = " ".join(said.split())
    assert f"{HELD - 1} of {CASES} results" in said
    assert "Prefect server" in said
    goes_on(tmp_path, chat, slack, lookout)


@pytest.mark.whole_only
def test_f91_without_a_server_severe_failures_and_the_missing_server_are_reported(tmp_path, slack):
    """If the Prefect server does not start, all severe failures and the missing server are still alerted."""
    with Chat(WRONG) as chat:
        run, lock = started(tmp_path, chat, slack, asked=CASES)
        store = open_store_in(tmp_path / "data")

        def count_results() -> int:
            store.load_pending(60)
            return int(str(store.query("select count(*) from results", wait_s=60).rows[0][0]))

        wait_until(lambda: count_results() == CASES, timeout_s=120, what="every answer is graded")
        lock.close()
        _, said = run.communicate()
    assert run.returncode == 4, said
    incidents = store.list_open_incidents("demo")
    reached = {incident.case_id for incident in incidents if incident.last_notified_at and incident.case_id}
    assert len(reached) == CASES
    faults = [incident for incident in incidents if incident.kind is IncidentKind.MONITOR_FAULT]
    assert [incident.owner for incident in faults] == [Capability.VERIFY]
    assert [message.channel for message in slack.messages].count("C0MONITOR") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.whole_only
def test_a_person_stops_a_run_that_waits_for_its_server(tmp_path, chat, slack, lookout, number):
    run, lock = started(tmp_path, chat, slack)
    os.kill(run.pid, number)
    _, said = run.communicate()
    lock.close()
    assert run.returncode == 3, said
    assert f"Stopped. Lookout stored {HELD - 1} of {CASES} results of run" in " ".join(said.split())
    goes_on(tmp_path, chat, slack, lookout)


@pytest.mark.whole_only
def test_the_flow_takes_the_run_over_with_all_that_it_has(tmp_path, chat, lookout, prefect_environment):
    """When the server has started, the flow continues the run: its progress includes the earlier answers."""
    watched(tmp_path, chat, cases=CASES)
    pipe = subprocess.PIPE
    variables = prefect_environment | fork_server.WARM
    command = ("verify", "demo", "--commit", "early77")
    run = fork_server.start(*command, cwd=tmp_path, env=variables, stdout=pipe, stderr=pipe)
    with httpx.Client(base_url=prefect_environment["PREFECT_API_URL"], trust_env=False) as server:

        def flow_runs() -> list[dict[str, Any]]:
            newest_first = server.post("/flow_runs/filter", json={"sort": "START_TIME_DESC"}).json()
            return [
                flow_run
                for flow_run in newest_first
                if flow_run["parameters"].get("request", {}).get("commit") == "early77"
            ]

        def has_progress() -> bool:
            assert run.poll() is None, run.communicate()
            ids = [flow_run["id"] for flow_run in flow_runs()]
            artifacts = server.post("/artifacts/filter", json={"flow_runs": {"id": {"any_": ids}}}).json()
            progress = [artifact["data"] for artifact in artifacts if artifact["type"] == "progress"]
            return progress == [100 * (HELD - 1) / CASES]

        try:
            wait_until(has_progress, what="the flow shows the progress of what was answered before")
        finally:
            chat.released.set()
            _, said = run.communicate()
        assert run.returncode == 1, said
        assert [flow_run["state_name"] for flow_run in flow_runs()] == ["Fail"]
    assert chat.asked == CASES
