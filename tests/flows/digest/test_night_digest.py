"""Test the daily digest from a real warehouse: its content, one message a day, and the fallback channel."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from flows.alerting.pipeline import notify
from flows.digest.flow import (
    DigestSettings,
    build_digest,
    build_digest_id,
    digest,
    load_journal_and_send_alerts,
    send_digest,
)
from flows.nightly.format import format_rate_text
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack.render import format_digest_as_plain_text
from monitors.config.sections import DrillSettings, ScheduleSettings
from monitors.records.incidents import IncidentKind, IncidentState
from tests.conftest import ROOT
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.messages import format_stable_messages
from tests.flows.nightly_runs import LEAK, PLAIN_REPLY, Nights, talk
from tests.monitors.alerts.sample_observations import NIGHT, observation, scope
from tests.servers.slack import TOKEN, SlackServer
from tests.warehouse.sample_repeats import session as repeats_session
from tests.warehouse.sample_repeats import some_figures
from tests.warehouse.sample_rows import run_report
from warehouse.journal.rows import RepeatabilityRow, RunRow


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def testbed(tmp_path, slack):
    return AlertingTestbed(tmp_path, slack)


def finished(testbed: AlertingTestbed, run_id: str, hours_ago: float) -> None:
    """Store a run of the target that finished ``hours_ago`` hours ago."""
    report = run_report(run_id)
    ended = {
        "started_at": testbed.now,
        "finished_at": testbed.now,
        "target": report.target.model_copy(update={"name": "demo"}),
    }
    testbed.skip(hours=-hours_ago)
    ended["finished_at"] = ended["started_at"] = testbed.now
    testbed.store.journal.append([RunRow(row=report.model_copy(update=ended))], run_id=run_id)
    testbed.skip(hours=hours_ago)


RUNS_ALONE = DigestSettings(ScheduleSettings(), None, AlertSettings(), DrillSettings())


def made(testbed: AlertingTestbed, folder, setup: DigestSettings = RUNS_ALONE):
    testbed.store.load_pending(5)
    return build_digest(testbed.store, "demo", setup, now=testbed.now, due_at=NIGHT, run_id="digest-1", runs=folder)


async def test_the_digest_reports_the_day_and_open_incidents(testbed, slack, tmp_path, snapshot):
    await notify(testbed.notifier(), [observation("leak-1"), observation("leak-2")])
    ended = scope("run-2", "leak-2", began_at=testbed.now, ended_at=testbed.now)
    await notify(testbed.notifier("run-2"), [], scope=ended)
    finished(testbed, "run-old", 40)
    finished(testbed, "run-a", 20)
    finished(testbed, "run-b", 1)
    day = made(testbed, tmp_path)
    states = {one.case_id: one.state for one in day.incidents}
    assert states == {"leak-1": IncidentState.OPEN, "leak-2": IncidentState.RESOLVED}
    assert day.recovered == 1
    said = format_digest_as_plain_text(day)
    assert said.replace(str(tmp_path), "FOLDER") == snapshot
    assert said.count("run run-b") == 1
    assert "runs: 2 " in said
    assert str(tmp_path / "run-b" / "report.html") in said


def test_a_night_without_a_run_says_so(testbed, tmp_path, snapshot):
    day = made(testbed, tmp_path)
    assert day.incidents == ()
    assert format_digest_as_plain_text(day) == snapshot


@pytest.mark.parametrize(
    "changes", [{}, {"void": "a deploy came in between"}, {"days": 8}], ids=["usual", "void", "over a week ago"]
)
def test_the_digest_reports_answer_flips_for_a_week(testbed, tmp_path, changes, snapshot):
    """For a week after a repeatability session, the digest reports how often two answers to a case differed.

    The digest also reports a void session.
    """
    at = testbed.now - timedelta(days=changes.get("days", 0), hours=1)
    times = {"started_at": at, "finished_at": at, "target": "demo", "figures": some_figures()}
    session = repeats_session(**times, **{name: value for name, value in changes.items() if name != "days"})
    testbed.store.journal.append([RepeatabilityRow(row=session)], run_id=session.run_id)
    figures = [f"{one.label}: {one.value}" for one in made(testbed, tmp_path).figures]
    flips = [one for one in figures if one.startswith("repeatability")]
    assert len(flips) == (0 if "days" in changes else 1)
    assert flips == snapshot


def test_the_digest_omits_runs_without_a_daily_schedule(testbed, tmp_path):
    for cron in ("", "0 1 * * 1"):
        setup = RUNS_ALONE._replace(schedules=ScheduleSettings(verify_cron=cron))
        assert "runs" not in format_digest_as_plain_text(made(testbed, tmp_path, setup))


@pytest.fixture
def nights(tmp_path, slack):
    (tmp_path / "data").mkdir()
    return Nights(tmp_path, AlertingTestbed(tmp_path / "data", slack))


def morning(nights: Nights, folder, *, alerts: AlertSettings | None = None) -> str:
    """Return the text of the digest of an installation that has only live traffic."""
    setup = DigestSettings(ScheduleSettings(), nights.settings, alerts or AlertSettings(), DrillSettings())
    return format_digest_as_plain_text(made(nights.testbed, folder, setup))


async def test_an_owner_of_traffic_alone_gets_the_nights_figures(nights, tmp_path, snapshot):
    asks = [{"question": "Is it covered?", "answer": "Which plan do you have?", "feedback": "up"}]
    nights.append(
        *(talk(number, LEAK if number % 4 == 0 else PLAIN_REPLY) for number in range(40)), talk(99, turns=asks)
    )
    report = await nights.grade()
    nights.testbed.skip(hours=5)
    said = morning(nights, tmp_path)
    assert "runs" not in said
    assert "schedule" not in said
    assert (report.read, report.sampled) == (41, 41)
    assert f"severity-3 rate: {format_rate_text(report.severe)}" in said
    assert f"any failure: {format_rate_text(report.failed)}" in said
    assert "10 of 41" in said
    assert said == snapshot


async def test_a_night_that_is_missing_is_named_and_one_under_way_is_not_called_missing(nights, tmp_path, snapshot):
    assert get_night_line(morning(nights, tmp_path)) == snapshot(name="before the first")
    nights.append(talk(1))
    await nights.grade()
    nights.testbed.now = NIGHT + timedelta(hours=25)
    assert get_night_line(morning(nights, tmp_path)) == snapshot(name="under way")
    nights.testbed.skip(hours=5)
    assert get_night_line(morning(nights, tmp_path)) == snapshot(name="missing")


def get_night_line(digest: str) -> str:
    (line,) = [line for line in digest.splitlines() if line.startswith("night:")]
    return line


async def test_faults_of_the_monitor_are_the_business_of_its_owners(nights, slack, tmp_path, snapshot):
    nights.append("{no json\n", talk(1))
    await nights.grade()
    nights.testbed.skip(hours=5)
    apart = AlertSettings(slack_channel="C0ALERTS", slack_monitor_channel="C0MONITOR")
    said = morning(nights, tmp_path, alerts=apart)
    assert "No open incidents" in said
    assert "onitor" not in said
    assert morning(nights, tmp_path) == snapshot


async def test_unsent_messages_are_counted_and_then_sent(testbed, slack, tmp_path):
    slack.always = "500"
    await notify(testbed.notifier(), [observation()])
    assert str(made(testbed, tmp_path).note).startswith("1 message ")
    slack.always = None
    testbed.skip(minutes=2)
    await load_journal_and_send_alerts(testbed.notifier("digest-1"))
    assert len(slack.messages) == 1


async def test_a_digest_is_one_message_a_day_however_often_it_is_sent(testbed, slack, tmp_path):
    for _ in range(2):
        receipt = await send_digest.fn(testbed.notifier("digest-1"), made(testbed, tmp_path))
        testbed.skip(minutes=3)
    (message,) = slack.messages
    assert receipt.alert_id == build_digest_id("demo", NIGHT)
    assert build_digest_id("demo", NIGHT) in json.dumps(message.blocks)
    assert build_digest_id("other", NIGHT) != build_digest_id("demo", NIGHT)


async def test_a_digest_that_is_refused_is_printed_and_alerts(testbed, slack, tmp_path):
    slack.misbehave("ok", "channel_not_found")
    await send_digest.fn(testbed.notifier("digest-1"), made(testbed, tmp_path))
    assert build_digest_id("demo", NIGHT) in testbed.printed.getvalue()
    (alert,) = testbed.alerts()
    assert alert.kind is IncidentKind.MONITOR_FAULT
    assert alert.id in slack.messages[0].text


@pytest.mark.prefect
def test_a_digest_that_is_due_while_slack_is_down_is_sent_once_when_slack_is_back(
    tmp_path, prefect_environment, slack
):
    path = tmp_path / "lookout.toml"
    path.write_text(
        f'data_folder = "data"\n[targets.one]\nurl = "http://127.0.0.1:9"\nsuite = "s.jsonl"\n'
        f'[targets.two]\nurl = "http://127.0.0.1:9"\nsuite = "s.jsonl"\n[prefect]\nprefix = "outage"\n'
        f'[alerts]\nslack_channel = "C0ALERTS"\nslack_api_url = "{slack.api_url}"\n',
        encoding="utf-8",
    )
    due_at = datetime.now(UTC)
    worker = subprocess.Popen(
        [sys.executable, "-m", "tests.flows.digest.due_digest_worker", str(path)],
        cwd=ROOT,
        env=prefect_environment | {"SLACK_BOT_TOKEN": TOKEN},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdin is not None
    assert worker.stdout is not None

    def execute_due_runs(hours: float) -> list[list[str]]:
        worker.stdin.write(f"{(due_at + timedelta(hours=hours)).isoformat()}\n")
        worker.stdin.flush()
        while not (line := worker.stdout.readline()).startswith("["):  # notes about the run's progress
            assert worker.poll() is None
        return json.loads(line)

    with worker:
        slack.always = "internal_error"
        states = execute_due_runs(0)
        assert [name for name, _ in states] == ["Waiting"]
        assert execute_due_runs(0.01) == []  # the next attempt is not due
        states = execute_due_runs(5)
        assert [name for name, _ in states] == ["Waiting", "Waiting"]  # one run for each target
        slack.always = None
        states = execute_due_runs(7)
        assert [name for name, _ in states] == ["Completed", "Completed"]
        assert execute_due_runs(40) == []
        worker.stdin.close()
    for target in ("one", "two"):
        assert (
            sum(
                build_digest_id(target, due_at.replace(microsecond=0)) in str(message) for message in slack.messages
            )
            == 1
        )


FAULT_AND_DIGEST = """
import asyncio, pathlib
from flows.alerting.faults import Fault, notify_fault
from flows.digest.flow import digest
from flows.runtime.slack import build_notifier_without_run
from monitors.config.file import load_config
from monitors.records.incidents import Capability

path = pathlib.Path({path!r})
notifier = build_notifier_without_run(load_config(path), "one", Capability.DIGEST)
asyncio.run(notify_fault(notifier, Fault("WarehouseBusy", "another process uses")))
print(asyncio.run(digest(path)))
"""


@pytest.mark.whole_only
@pytest.mark.prefect
@pytest.mark.a_slice(1)  # always in the quick tier, whatever slice of the file it takes
def test_the_flow_sends_one_for_each_target_and_ends_what_stopped_it(
    tmp_path, prefect_environment, slack, snapshot
):
    path = tmp_path / "lookout.toml"
    path.write_text(
        f'data_folder = "data"\n[targets.one]\nurl = "http://127.0.0.1:9"\nsuite = "s.jsonl"\n'
        f'[targets.two]\nurl = "http://127.0.0.1:9"\nsuite = "s.jsonl"\n'
        f'[alerts]\nslack_channel = "C0ALERTS"\nslack_api_url = "{slack.api_url}"\n',
        encoding="utf-8",
    )
    program = FAULT_AND_DIGEST.format(path=str(path))
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=prefect_environment | {"PYTHONPATH": str(ROOT), "SLACK_BOT_TOKEN": TOKEN},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert digest.name == "digest"
    fault, *_, ended = [
        message for message in slack.messages if "another process uses" in str(message) or message.thread_ts
    ]
    assert ended.thread_ts == fault.ts
    assert format_stable_messages([fault, ended]) == snapshot
    targets = {message.text.split(" · ")[1] for message in slack.messages if message not in (fault, ended)}
    assert targets == {"one", "two"}
