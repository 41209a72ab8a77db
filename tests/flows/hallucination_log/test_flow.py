"""Test that a new line of a log is alerted in Slack by the scheduled flow and by `lookout watch`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flows.data_folder import open_store_in
from monitors.records.incidents import Alert, Capability, IncidentKind
from tests import fork_server
from tests.conftest import ROOT
from tests.deployments.up_process import up
from tests.flows.followed_logs import entry
from tests.polling import wait_until
from tests.servers.ranges import RangeServer
from tests.servers.slack import TOKEN, SlackServer

ARRIVES_WITHIN_S = 180
"""The time limit in seconds for an alert, long enough for a busy machine.

The soak test measures the real duration.
"""


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def config(tmp_path, slack) -> Path:
    """Write a configuration with one target, and a log of this target with one line."""
    (tmp_path / "suite.jsonl").touch()
    (tmp_path / "hallucinations.jsonl").write_text(entry(-1), encoding="utf-8")
    file = tmp_path / "lookout.toml"
    file.write_text(
        f"""
[targets.demo]
url = "http://127.0.0.1:9"
suite = "suite.jsonl"

[targets.demo.hallucination_log]
at = "hallucinations.jsonl"
poll_s = 1

[alerts]
slack_channel = "C0ALERTS"
slack_api_url = "{slack.api_url}"
""",
        encoding="utf-8",
    )
    return file


@contextmanager
def served(config: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    name = f"follow-{config.parent.name}"
    command = [sys.executable, "-m", "tests.flows.hallucination_log.log_server", str(config), name, "15", "10"]
    variables = environment | {"PYTHONPATH": str(ROOT), "SLACK_BOT_TOKEN": TOKEN}
    with (
        (config.parent / "server.log").open("ab") as log,
        subprocess.Popen(
            command, cwd=ROOT, env=variables, stdout=log, stderr=log, start_new_session=True
        ) as process,
    ):
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def count_entries(config: Path) -> int:
    return int(
        str(open_store_in(config.parent / ".lookout").query("select count(*) from hallucinations").rows[0][0])
    )


def count_alerted(config: Path) -> int:
    """Return the number of items in all stored alerts."""
    alerts = open_store_in(config.parent / ".lookout").query("select record from alerts").rows
    return sum(len(Alert.model_validate_json(str(record)).items) for (record,) in alerts)


@pytest.mark.whole_only
@pytest.mark.prefect
@pytest.mark.a_slice(1)  # always in the quick tier, whatever slice of the file it takes
def test_a_line_reaches_slack_by_the_schedule_also_after_a_kill(prefect_environment, config, slack):
    with served(config, prefect_environment):
        wait_until(
            (config.parent / ".lookout" / "warehouse.duckdb").exists,
            timeout_s=ARRIVES_WITHIN_S,
            what="the first look",
        )
        wait_until(
            lambda: count_entries(config) == 1, timeout_s=ARRIVES_WITHIN_S, what="the first lines are stored"
        )
        append(config, entry(1))
        wait_until(lambda: len(slack.messages) == 1, timeout_s=ARRIVES_WITHIN_S, what="the first line alerts")
    append(config, entry(2))
    with served(config, prefect_environment):
        wait_until(
            lambda: "Question 2" in str(slack.messages),
            timeout_s=ARRIVES_WITHIN_S,
            what="the second line alerts after the kill",
        )
    assert count_entries(config) == 3
    assert count_alerted(config) == 2, "each once"


def append(config: Path, line: str) -> None:
    with config.with_name("hallucinations.jsonl").open("a", encoding="utf-8") as log:
        log.write(line)


@pytest.mark.whole_only
def test_a_log_that_is_created_after_lookout_up_began_alerts_once_for_all_its_entries(config, slack):
    """If a log is created after `lookout up` began, all its entries are new and cause one alert.

    Another target's log existed before. Its entries are history and cause no alert.
    """
    text = config.read_text(encoding="utf-8")
    target = text.split("[alerts]")[0]
    late = target.replace("targets.demo", "targets.late").replace("hallucinations.jsonl", "late.jsonl")
    config.write_text(text + late + "may_be_missing = true\n", encoding="utf-8")
    case = {"id": "wait", "question": "How long is the wait?", "gold": "2 days", "severity": 2}
    (config.parent / "suite.jsonl").write_text(f"{json.dumps(case)}\n", encoding="utf-8")
    log = config.parent / "late.jsonl"
    with up(config, SLACK_BOT_TOKEN=TOKEN) as monitor:
        monitor.until(lambda: "lookout.toml: " in monitor.said(), "the parts are named")
        assert not slack.messages
        log.write_text(entry(1) + entry(2), encoding="utf-8")
        monitor.until(lambda: count_entries(config) == 3, "all entries are stored")
        monitor.until(lambda: bool(slack.messages), "a message came")
    assert count_alerted(config) == 2
    alerts = [str(message.blocks) for message in slack.messages if message.channel == "C0ALERTS"]
    assert len(alerts) == 1, alerts
    assert "late" in alerts[0]


@pytest.mark.a_slice(1)  # always in the quick tier, whatever slice of the file it takes
def test_the_command_looks_once_and_says_what_it_found(lookout, config, slack):
    first = lookout("watch", "demo", "--once", "--json", cwd=config.parent, SLACK_BOT_TOKEN=TOKEN)
    assert first.returncode == 0, first.stderr
    looked = json.loads(first.stdout)["found"]
    assert (looked["entries"], looked["history"]) == (0, 1)
    append(config, entry(1))
    second = lookout("watch", "demo", "--once", "--json", cwd=config.parent, SLACK_BOT_TOKEN=TOKEN)
    found = json.loads(second.stdout)
    assert found["found"]["entries"] == 1
    (message,) = slack.messages
    assert found["alerts"][0] in message.text + str(message.blocks)


def test_lines_without_a_text_are_put_aside_and_end_with_code_4(lookout, config, slack):
    """A log line without the text of a reply is set aside and reported, and the command exits with code 4.

    A heartbeat and a reply that is marked as right are ignored.
    """
    lookout("watch", "--once", cwd=config.parent, SLACK_BOT_TOKEN=TOKEN)
    no_entries = [{}, {"event": "heartbeat"}, {"question": "Q?", "answer": "No.", "hallucinated": False}]
    append(config, "".join(json.dumps(line) + "\n" for line in no_entries))
    quiet = lookout("watch", "--once", "--json", cwd=config.parent, SLACK_BOT_TOKEN=TOKEN)
    looked = json.loads(quiet.stdout)["found"]
    assert (quiet.returncode, looked["entries"], looked["aside_count"], slack.messages) == (0, 0, 0, [])
    append(config, json.dumps({"level": "info", "msg": "guard loaded"}) + "\n")
    aside = lookout("watch", "--once", "--json", cwd=config.parent, SLACK_BOT_TOKEN=TOKEN)
    looked = json.loads(aside.stdout)["found"]
    assert (aside.returncode, looked["entries"], looked["aside_count"]) == (4, 0, 1)
    assert looked["aside"][0]["reason"] == "no_text"
    assert count_alerted(config) == 1
    assert "that Lookout could not read" in str(slack.messages)


@pytest.mark.whole_only
@pytest.mark.a_slice(1)  # always in the quick tier, whatever slice of the file it takes
def test_f95_a_log_that_redirects_to_data_does_not_end_the_other(lookout, config, slack, tmp_path):
    with RangeServer(tmp_path) as server:
        server.fault, server.other = "elsewhere", "data:text/plain"
        with config.open("a", encoding="utf-8") as file:
            file.write(REMOTE_TARGET.format(at=f"{server.url}/hallucinations.jsonl"))
        lookout("watch", "demo", "--once", cwd=config.parent, SLACK_BOT_TOKEN=TOKEN)
        append(config, entry(1))
        polled = lookout("watch", "--once", "--json", cwd=config.parent, SLACK_BOT_TOKEN=TOKEN)
        assert polled.returncode == 4, polled.stderr
        polls = {poll["target"]: poll for poll in map(json.loads, polled.stdout.splitlines())}
        assert polls["demo"]["found"]["entries"] == 1
        assert polls["away"]["unreadable"]
        store = open_store_in(config.parent / ".lookout")
        (incident,) = store.list_open_incidents("away")
        assert (incident.kind, incident.owner) == (IncidentKind.MONITOR_FAULT, Capability.HALLUCINATION_LOG)
        assert any("Question 1" in str(message.blocks) for message in slack.messages)
        server.fault = None
        again = lookout("watch", "--once", cwd=config.parent, SLACK_BOT_TOKEN=TOKEN)
        assert again.returncode == 0, again.stderr
        assert store.list_open_incidents("away") == ()


REMOTE_TARGET = """
[targets.away]
url = "http://127.0.0.1:9"
suite = "suite.jsonl"

[targets.away.hallucination_log]
at = "{at}"
poll_s = 1
"""


@contextmanager
def watching(config: Path) -> Iterator[fork_server.Process]:
    """Run `lookout watch` until the ``with`` block ends."""
    variables = fork_server.bare(SLACK_BOT_TOKEN=TOKEN)
    with (
        (config.parent / "watch.log").open("ab") as log,
        fork_server.start("watch", cwd=config.parent, env=variables, stdout=log, stderr=log) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(("group_minutes", "messages"), [(30, [3]), (0, [1, 1, 1])])
@pytest.mark.whole_only
def test_left_running_a_new_burst_is_a_new_message_and_one_burst_is_one(config, slack, group_minutes, messages):
    """While `lookout watch` runs, entries within ``group_minutes`` share one message. Others get a new message."""
    config.write_text(
        config.read_text("utf-8").replace("poll_s = 1", f"poll_s = 1\ngroup_minutes = {group_minutes}"), "utf-8"
    )
    with watching(config):
        wait_until(
            (config.parent / ".lookout" / "warehouse.duckdb").exists,
            timeout_s=ARRIVES_WITHIN_S,
            what="the first look",
        )
        wait_until(
            lambda: count_entries(config) == 1, timeout_s=ARRIVES_WITHIN_S, what="the first lines are stored"
        )
        for number in (1, 2, 3):
            append(config, entry(number))
            wait_until(
                lambda n=number: f"Question {n}:" in str(slack.messages),
                timeout_s=ARRIVES_WITHIN_S,
                what="the line alerts",
            )
    said = [sum(f"Question {n}:" in str(one.blocks) for n in (1, 2, 3)) for one in slack.messages]
    assert said == messages
    assert sum(one.edits for one in slack.messages) == 3 - len(messages)
    assert {one.thread_ts for one in slack.messages} == {None}, "a message of its own, which rings"


def test_without_credentials_the_message_is_printed(lookout, config):
    lookout("watch", "--once", cwd=config.parent)
    append(config, entry(1))
    said = re.sub(r"\s+", " ", lookout("watch", "--once", cwd=config.parent).stderr)
    assert "Question 1: " in said
    assert "alerts sent: LK-" in said


def test_a_target_without_a_log_says_what_to_add(lookout, config):
    text = config.read_text(encoding="utf-8")
    config.write_text(re.sub(r"\[targets.demo.hall.*?\n\n", "", text, flags=re.DOTALL), encoding="utf-8")
    said = lookout("watch", cwd=config.parent)
    assert said.returncode == 2
    assert "[targets.NAME.hallucination_log]" in said.stderr


@pytest.mark.whole_only
@pytest.mark.prefect
def test_a_run_beside_another_run_of_lookout_is_skipped_without_an_alert(config, slack, prefect_environment):
    """If another run uses the warehouse for too long, the poll is skipped without an alert.

    The next poll reads the new log entry.
    """
    code = (
        "import sys; from pathlib import Path; from flows.hallucination_log.flow import follow_log; import asyncio; "
        "state = asyncio.run(follow_log(Path(sys.argv[1]), return_state=True)); print(state.type.value, state.name)"
    )

    def follow() -> str:
        command = [sys.executable, "-c", code, str(config)]
        done = subprocess.run(
            command, cwd=ROOT, env=prefect_environment, capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()[-1]

    assert follow() == "COMPLETED Quiet"
    with (config.parent / "hallucinations.jsonl").open("a", encoding="utf-8") as log:
        log.write(entry(1))
    with open_store_in(config.parent / ".lookout").database.hold_lock(5):
        assert follow() == "CANCELLED Busy"
    assert count_alerted(config) == 0
    assert follow() == "COMPLETED Notified"
    assert slack.messages == []  # the process has no token
