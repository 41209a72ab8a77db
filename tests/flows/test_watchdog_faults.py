"""Test the faults f19 to f24, which are faults of Lookout itself, with an external watchdog."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from flows.clock import utc_now
from flows.watching.polls import WatchPoll, write_polls
from monitors.alerts.liveness import compute_ping_id
from monitors.records.incidents import IncidentKind
from tests import fork_server
from tests.conftest import ROOT
from tests.flows.chat import Chat, watched
from tests.flows.messages import load_alerts_in
from tests.servers.slack import TOKEN, SlackServer
from tests.servers.watchdog import Watchdog

DAY_S = 24 * 3600.0
HOUR_S = 3600.0
UNGRADABLE = (
    "The insurer listens to its customers patiently, explains the circumstances with empathy and offers alternatives "
    "wherever that is possible at all."
)
"""A gold that contains nothing that a rule could check."""


@pytest.fixture
def dog():
    with Watchdog() as server:
        yield server


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


def paging(slack: SlackServer) -> str:
    """Return Slack settings with a separate channel for faults of the monitor itself."""
    return f'[alerts]\nslack_channel = "C0ALERTS"\nslack_monitor_channel = "C0MONITOR"\nslack_api_url = "{slack.api_url}"\n'


def channels(slack: SlackServer) -> list[str]:
    """Return the Slack channel of every message."""
    return [message.channel for message in slack.messages]


def fault_kinds(folder: Path) -> list[IncidentKind]:
    """Return the kind of each stored alert of an installation."""
    return [alert.kind for alert in load_alerts_in(folder)]


def worker(folder: Path, *arguments: str, **variables: str) -> fork_server.Process:
    environment = os.environ | fork_server.WARM | variables
    return fork_server.start(
        str(folder), *arguments, module="tests.flows.pulsing_worker", cwd=ROOT, env=environment, stderr=2
    )


def test_f19_a_dead_scheduler_stops_the_heartbeat_and_the_outside_check_fires(tmp_path, dog):
    """If the scheduler is killed, its heartbeats stop, and the external watchdog raises an alarm.

    The alarm comes after the watchdog's period of a day and its grace time of an hour.
    """
    with worker(tmp_path, LOOKOUT_HEARTBEAT_URL=dog.check) as scheduler:
        assert dog.wait_for("", count=2)
        scheduler.kill()
        assert scheduler.wait() == -signal.SIGKILL
    last = dog.pings[-1].at_s
    assert dog.kinds[:3] == ["/start", "", "/start"]
    assert not dog.alarm(last + DAY_S, period_s=DAY_S, grace_s=HOUR_S)
    assert dog.alarm(last + DAY_S + HOUR_S + 1, period_s=DAY_S, grace_s=HOUR_S)


@pytest.mark.prefect
@pytest.mark.whole_only
def test_f20_a_run_beyond_its_deadline_is_stopped_and_alerts_once(tmp_path, lookout, slack, dog):
    """If the application never answers, the run stops at its deadline, and the monitor's owners get one alert."""
    with Chat(None) as chat:
        watched(tmp_path, chat, more=paging(slack) + "[watchdog]\nrun_deadline_s = 1.5\n")
        variables = {"SLACK_BOT_TOKEN": TOKEN, "LOOKOUT_HEARTBEAT_URL": dog.check}
        done = lookout("verify", "demo", "--json", cwd=tmp_path, **variables)
    assert done.returncode == 3, done.stderr
    report = json.loads(done.stdout)
    assert (report["verdict"], report["interrupted"], report["coverage"]["graded"]) == ("INCONCLUSIVE", True, 0)
    assert channels(slack) == ["C0MONITOR"]
    assert fault_kinds(tmp_path) == [IncidentKind.MONITOR_FAULT]
    assert "Lookout stopped asking" in json.dumps(slack.messages[0].blocks)
    assert dog.kinds == ["/start", "/fail"]
    assert dog.alarm(dog.pings[-1].at_s, period_s=DAY_S, grace_s=HOUR_S)


def test_f20_a_process_that_does_not_react_is_ended_by_its_guard(tmp_path, slack, dog):
    """If the event loop of a run is blocked, the guard sends an alert and ends the process with exit code 4.

    It also reports the failure to the external watchdog.
    """
    variables = {"SLACK_BOT_TOKEN": TOKEN, "LOOKOUT_HEARTBEAT_URL": dog.check}
    with worker(tmp_path, slack.api_url, **variables) as hung:
        assert hung.wait(timeout=120) == 4
    assert channels(slack) == ["C0ALERTS"]
    assert "did not end within" in json.dumps(slack.messages[0].blocks)
    assert dog.kinds == ["/start", "/fail"]


@pytest.mark.whole_only
@pytest.mark.prefect
def test_f21_a_run_that_graded_nothing_alerts_and_earns_no_heartbeat(tmp_path, lookout, slack, dog, snapshot):
    """If no answer could be graded, the run sends an alert and reports no success to the watchdog."""
    with Chat("It depends on many things, as so often. [Source: Gold, clause 4.2]") as chat:
        watched(tmp_path, chat, gold=UNGRADABLE, more=paging(slack))
        variables = {"SLACK_BOT_TOKEN": TOKEN, "LOOKOUT_HEARTBEAT_URL": dog.check}
        done = lookout("verify", "demo", "--json", cwd=tmp_path, **variables)
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stdout)["coverage"] == {"asked": 4, "graded": 0, "floor": 0.95}
    assert channels(slack) == ["C0MONITOR"]
    (alert,) = load_alerts_in(tmp_path)
    assert alert.kind is IncidentKind.MONITOR_FAULT
    assert alert.items[0].observation.reason == snapshot
    assert dog.kinds == ["/start"]
    assert dog.alarm(dog.pings[-1].at_s + DAY_S, period_s=DAY_S, grace_s=HOUR_S)


@pytest.mark.prefect
@pytest.mark.whole_only
def test_a_run_says_to_the_outside_check_that_the_watcher_is_down(tmp_path, lookout, dog):
    """If the watcher of the logs has stopped, a run reports a failure to the external watchdog."""
    poll = WatchPoll(name="the log of demo", target="demo", at=utc_now() - timedelta(minutes=5), every_s=15)
    with Chat() as chat:
        watched(tmp_path, chat)
        write_polls(tmp_path / "data", [poll])
        done = lookout("verify", "demo", "--json", cwd=tmp_path, LOOKOUT_HEARTBEAT_URL=dog.check)
    assert json.loads(done.stdout)["coverage"]["graded"] > 0, done.stderr
    assert dog.kinds == ["/start", "/fail"]
    assert poll.name in dog.pings[-1].body


@pytest.mark.prefect
@pytest.mark.whole_only
def test_f22_a_full_disk_alerts_and_loses_nothing(tmp_path, lookout, prefect_environment, slack, dog):
    """If no file can grow after the third answer, as on a full disk, the run stops and sends one alert.

    The next run, with free space, resumes the stopped run without loss.
    """
    asked_twice = 8
    with Chat() as chat:
        watched(tmp_path, chat, cases=asked_twice, more=paging(slack))
        variables = fork_server.WARM | {"SLACK_BOT_TOKEN": TOKEN, "LOOKOUT_HEARTBEAT_URL": dog.check}
        environment = prefect_environment | variables
        with fork_server.start("verify", "demo", cwd=tmp_path, env=environment, stderr=subprocess.PIPE) as process:
            full = chat.wait_for(3)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            _, said = process.communicate(timeout=240)
        assert full
        assert process.returncode == 4, said
        assert "cannot write" in said
        assert channels(slack) == ["C0MONITOR"]
        assert "cannot write" in json.dumps(slack.messages[0].blocks)
        assert dog.kinds == ["/start", "/fail"]

        done = lookout("verify", "demo", "--json", cwd=tmp_path, **variables)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["resumed_cases"] >= 2
    assert report["coverage"]["graded"] == asked_twice
    counted = lookout("sql", "select count(*) n, count(distinct case_id) d from results", "--json", cwd=tmp_path)
    assert json.loads(counted.stdout) == {"n": asked_twice, "d": asked_twice}
    assert dog.kinds == ["/start", "/fail", "/start", ""]
    assert {ping.rid for ping in dog.pings} == {compute_ping_id(report["run_id"])}


@pytest.mark.prefect
@pytest.mark.whole_only
def test_f24_a_heartbeat_sink_that_is_down_does_not_touch_the_run(tmp_path, lookout):
    with Chat() as chat:
        watched(tmp_path, chat, cases=2)
        done = lookout("verify", "demo", cwd=tmp_path, LOOKOUT_HEARTBEAT_URL="http://127.0.0.1:9/a-secret-check")
    assert done.returncode == 0, done.stderr
    assert "a-secret-check" not in done.stdout + done.stderr
