"""Test that a run completes, and does nothing twice, if Prefect's server is killed or hangs during the run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from flows.data_folder import open_store_in
from flows.server import prefect_server
from monitors.alerts.wording import FAILURE_TITLES, KIND_WORDS
from monitors.records.grades import FailureKind
from monitors.records.incidents import IncidentKind
from tests import fork_server
from tests.conftest import ROOT
from tests.deployments.cli.test_nightly import UNTIL, question
from tests.flows.chat import RIGHT, Chat, watched
from tests.flows.demo_nightly_runs import SUITE
from tests.flows.followed_logs import entry
from tests.flows.nightly.test_night_kills import PASSAGE
from tests.flows.nightly_runs import PLAIN_REPLY
from tests.polling import wait_until
from tests.prefect_home import with_tables
from tests.servers.anthropic import KEY, AnthropicServer
from tests.servers.slack import TOKEN, SlackServer

pytestmark = pytest.mark.prefect

SAID = "The Prefect server stopped answering"
SLACK = """
[alerts]
slack_channel = "C0ALERTS"
slack_monitor_channel = "C0MONITOR"
slack_api_url = "{slack}"
"""
WRONG = "The waiting period is 99 months. [Source: Gold, clause 4.2]"
CASES = 8
LOOKS = 60
"""How often a batch of the judge is polled until it is ready, so that the judge takes a few seconds."""
COMES_WITHIN_S = 180
"""The time limit in seconds for each wait, long enough for a busy machine. It is not a performance goal."""


class Victim:
    """A Prefect server that only this file uses. It can be killed, suspended, and restarted at the same address."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def up(self) -> dict[str, str]:
        """Start the server if it is not running, and return the environment for its clients."""
        variables = dict(os.environ)
        prefect_server.connect_or_start(
            None, self._home, environment=variables, start_timeout_s=180, write_line=print
        )
        variables["PREFECT_CLIENT_MAX_RETRIES"] = "0"  # else its client tries for a minute before it says so
        return variables | {"PYTHONPATH": str(ROOT), "SLACK_BOT_TOKEN": TOKEN, "ANTHROPIC_API_KEY": KEY}

    def kill(self) -> None:
        """Kill the server with SIGKILL, as the kernel does when memory is short."""
        server = prefect_server.read_last_started_server(self._home)
        assert server is not None
        os.killpg(server.pid, signal.SIGKILL)

    def hang(self) -> None:
        """Suspend the server, so that it accepts connections but never responds."""
        server = prefect_server.find_running_server(self._home)
        assert server is not None
        os.killpg(server.pid, signal.SIGSTOP)

    def stop(self) -> None:
        """End the server, which may have ended already."""
        prefect_server.stop_server(self._home)


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Victim]:
    victim = Victim(with_tables(tmp_path_factory.mktemp("victim")))
    yield victim
    victim.stop()


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


def begun(folder: Path, environment: dict[str, str], program: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", program]
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)


def lookout(folder: Path, environment: dict[str, str], *arguments: str) -> fork_server.Process:
    pipe = subprocess.PIPE
    return fork_server.start(*arguments, cwd=folder, env=environment, stdout=pipe, stderr=pipe)


def wait_for_progress(condition: Callable[[], bool], working: fork_server.Process) -> None:
    """Wait until ``condition()`` is true. Raises `AssertionError` if the process ``working`` ends before."""

    def holds() -> bool:
        assert working.poll() is None, working.communicate()
        return condition()

    wait_until(holds, timeout_s=COMES_WITHIN_S, what="the process brings it about")


def is_in_flow(environment: dict[str, str]) -> bool:
    """Return whether a flow run is in progress on the server and has created an artifact."""
    with httpx.Client(base_url=environment["PREFECT_API_URL"], trust_env=False) as server:
        running = {"flow_runs": {"state": {"type": {"any_": ["RUNNING"]}}}}
        return bool(server.post("/artifacts/filter", json=running).json())


def said_once(slack: SlackServer) -> None:
    texts = Counter(message.text for message in slack.messages)
    assert set(texts.values()) <= {1}, texts


def counted(folder: Path, environment: dict[str, str], query: str) -> dict[str, int]:
    with lookout(folder, environment, "sql", query, "--json") as asked:
        return json.loads(asked.communicate()[0])


@pytest.mark.whole_only
def test_a_verification_comes_to_its_end_and_the_next_one_tells_nobody_again(tmp_path, server, slack):
    verify_twice(tmp_path, server, slack, to_the_end=False)


def verify_twice(folder: Path, server: Victim, slack: SlackServer, *, to_the_end: bool) -> None:
    """Run two verifications, and kill the server during the first. Check that the second repeats no message.

    If ``to_the_end`` is true, wait until the first verification ends, which takes minutes because Prefect's client
    retries. Otherwise, kill the first verification when its work is done.
    """
    with Chat(RIGHT, WRONG, *[RIGHT] * (CASES - 2)) as chat:
        chat.held_from = 3
        watched(folder, chat, cases=CASES, more=SLACK.format(slack=slack.api_url))
        environment = server.up()
        with lookout(folder, environment, "verify", "demo", "--json") as run:
            wait_for_progress(lambda: chat.asked >= 3 and is_in_flow(environment), run)
            server.kill()
            chat.released.set()
            if to_the_end:
                printed, said = run.communicate()
                assert run.returncode == 1, said
                assert SAID in " ".join(said.split())
                assert "EventsWorker" not in said
                assert json.loads(printed)["coverage"]["graded"] == CASES
            else:
                wait_for_progress(lambda: any(folder.glob("data/runs/*/done")), run)
                run.kill()
        assert chat.asked == CASES
        assert len([*folder.glob("data/runs/*/report.html")]) == 1
        sent = [(message.channel, message.text.split(" · ")[1]) for message in slack.messages]
        assert sent == [
            ("C0ALERTS", FAILURE_TITLES[FailureKind.WRONG_FACT]),
            ("C0ALERTS", KIND_WORDS[IncidentKind.GATE_FAIL]),
        ]

        with lookout(folder, server.up(), "verify", "demo", "--json") as run:
            printed, said = run.communicate()
    assert run.returncode == 1, said
    assert json.loads(printed)["resumed_cases"] == 0, "the run before was complete"
    assert len(slack.messages) == len(sent), "it is the same fault"
    rows = "select count(*) n, count(distinct (run_id, case_id)) d from results"
    assert counted(folder, environment, rows) == {"n": 2 * CASES, "d": 2 * CASES}


@pytest.mark.whole_only
def test_f91_a_hung_server_holds_up_no_severe_failure(tmp_path, server, slack):
    """If the Prefect server stops responding during a run, all severe failures are still alerted, each once."""
    with Chat(WRONG) as chat:
        chat.held_from = 3
        watched(tmp_path, chat, cases=CASES, more=SLACK.format(slack=slack.api_url))
        environment = server.up() | {"PREFECT_API_REQUEST_TIMEOUT": "3600"}
        store = open_store_in(tmp_path / "data")

        def count_notified() -> int:
            incidents = store.list_open_incidents("demo", wait_s=60)
            return sum(incident.last_notified_at is not None for incident in incidents if incident.case_id)

        with lookout(tmp_path, environment, "verify", "demo", "--json") as run:
            try:
                wait_for_progress(lambda: chat.asked >= 3, run)
                server.hang()
                chat.released.set()
                wait_for_progress(lambda: count_notified() == CASES, run)
            finally:
                run.kill()
                server.kill()
    said_once(slack)


def test_a_nightly_run_comes_to_its_report_and_is_not_graded_twice(tmp_path, server, slack):
    (tmp_path / "suite.jsonl").write_bytes(SUITE.read_bytes())
    rows = [question(number, answer=PLAIN_REPLY, context=[PASSAGE]) for number in range(20)]
    (tmp_path / "turns.jsonl").write_text("".join(rows), encoding="utf-8")
    with AnthropicServer() as provider:
        provider.batch_looks = LOOKS
        (tmp_path / "lookout.toml").write_text(
            'data_folder = "data"\n[targets.demo]\nurl = "http://127.0.0.1:9"\nsuite = "suite.jsonl"\n'
            'model_family = "gpt"\n[targets.demo.traffic.sources.turns]\nkind = "file"\nat = "turns.jsonl"\n'
            f'[judge]\nbudget_usd = 2\nbatch_poll_s = 0.05\n[[judge.models]]\nmodel = "claude-sonnet-5-5"\n'
            f'base_url = "{provider.url}"\n' + SLACK.format(slack=slack.api_url),
            encoding="utf-8",
        )
        with lookout(tmp_path, server.up(), "nightly", "--json", *UNTIL) as run:
            wait_for_progress(lambda: bool(provider.batches), run)
            server.kill()
            printed, said = run.communicate()
        assert SAID in " ".join(said.split()), said
        report = json.loads(printed)
        assert (report["read"], report["sampled"]) == (20, 10)
        asked, message_count = len(provider.batches), len(slack.messages)

        with lookout(tmp_path, server.up(), "nightly", "--json", *UNTIL) as again:
            printed, said = again.communicate()
        assert json.loads(printed) == report, said
        assert again.returncode == run.returncode
        assert (len(provider.batches), len(slack.messages)) == (asked, message_count)
    said_once(slack)


@pytest.mark.whole_only
def test_the_log_is_still_followed_and_each_entry_alerted_once(tmp_path, server, slack):
    """If Prefect's server is killed, the flow still follows the log, and each entry is alerted once.

    The same is true after the server and the flow are restarted.
    """
    log, config = tmp_path / "guard.jsonl", tmp_path / "lookout.toml"
    log.write_text(entry(0), encoding="utf-8")
    (tmp_path / "suite.jsonl").touch()
    config.write_text(
        'data_folder = "data"\n[targets.demo]\nurl = "http://127.0.0.1:9"\nsuite = "suite.jsonl"\n'
        '[targets.demo.hallucination_log]\nat = "guard.jsonl"\npoll_s = 1\ngroup_minutes = 0\n'
        + SLACK.format(slack=slack.api_url),
        encoding="utf-8",
    )
    flow = (
        "import asyncio, pathlib; from flows.hallucination_log.flow import follow_log; "
        "asyncio.run(follow_log(pathlib.Path('lookout.toml'), for_s=3600))"
    )

    def stored() -> int:
        rows = open_store_in(tmp_path / "data").query("select count(*) from hallucinations").rows
        return int(str(rows[0][0]))

    def append_and_wait(number: int) -> None:
        with log.open("a", encoding="utf-8") as file:
            file.write(entry(number))
        wait_for_progress(lambda: f"Question {number}" in str(slack.messages), following)

    with begun(tmp_path, server.up(), flow) as following:
        wait_for_progress(lambda: (tmp_path / "data" / "warehouse.duckdb").exists() and stored() == 1, following)
        append_and_wait(1)
        server.kill()
        append_and_wait(2)
        following.kill()
    with begun(tmp_path, server.up(), flow) as following:
        append_and_wait(3)
        following.kill()
    assert stored() == 4
    said_once(slack)
    for number in (1, 2, 3):
        assert sum(f"Question {number}" in str(message.blocks) for message in slack.messages) == 1
