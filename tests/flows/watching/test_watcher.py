"""Test the watcher: it polls in its own process, starts a run for new data, and loses or repeats no entry."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from deployments.cli.doctor.checks import CHECKS, run_checks
from deployments.cli.doctor.services import Health
from flows.clock import utc_now
from flows.data_folder import open_store_in
from flows.watching.polls import WatchPoll, list_late_polls, read_polls, write_polls
from monitors.config.file import load_config
from monitors.records.incidents import Alert
from tests import fork_server
from tests.deployments.up_process import runs_of_deploys, up
from tests.flows.few_cases import few_cases
from tests.flows.followed_logs import entry
from tests.in_process import run_in_process
from tests.prefect_home import with_tables
from tests.process_tree import descendants
from tests.servers.hub import Hub
from tests.servers.slack import TOKEN, SlackServer

OLD, NEW = "a" * 40, "b" * 40
IDLE_S = 20.0
WAIT_S = 180.0


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def hub():
    server = Hub({"stage": "RUNNING", "sha": OLD})
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def config(tmp_path, slack, hub) -> Path:
    """Write a configuration with a Space and a log, which already has one line."""
    few_cases(tmp_path, severe=1, others=1)
    (tmp_path / "log.jsonl").write_text(entry(0), encoding="utf-8")
    file = tmp_path / "lookout.toml"
    file.write_text(
        f"""
data_folder = "data"
[targets.bot]
space = "acme/helpdesk"
suite = "few.jsonl"
probe = {{ readiness = {{ hub_url = "{hub.address}" }} }}
hallucination_log = {{ at = "log.jsonl", poll_s = 1, group_minutes = 0 }}
[alerts]
slack_channel = "C0ALERTS"
slack_api_url = "{slack.api_url}"
""",
        encoding="utf-8",
    )
    return file


def append(config: Path, *numbers: int) -> None:
    with config.with_name("log.jsonl").open("a", encoding="utf-8") as log:
        log.writelines(entry(number) for number in numbers)


def count_messages(slack: SlackServer, number: int) -> int:
    return sum(f"Question {number}:" in str(message.blocks) for message in slack.messages)


def count_stored(config: Path) -> tuple[int, int]:
    """Return the number of log entries in the warehouse, and the number of items in all alerts about the target."""
    store = open_store_in(config.parent / "data")
    alerts = [Alert.model_validate_json(str(row[0])) for row in store.query("select record from alerts").rows]
    rows = store.query("select count(*) from hallucinations").rows
    return int(str(rows[0][0])), sum(len(alert.items) for alert in alerts if alert.target == "bot")


@pytest.mark.prefect
@pytest.mark.browser
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
@pytest.mark.whole_only
def test_what_is_new_starts_a_run_and_idle_polls_start_no_process(config, slack, hub):
    with_tables(config.parent / "data" / "prefect")
    with up(config, environment=fork_server.bare(), SLACK_BOT_TOKEN=TOKEN) as monitor:

        def list_runs_of_logs() -> list[int]:
            return [
                process.pid for process in descendants(monitor.process.pid) if "prefect.engine" in process.command
            ]

        monitor.until(lambda: len(read_polls(config.parent / "data")) == 2, "log and Space are watched")
        monitor.until(lambda: "has changed: Prefect's run" in monitor.said(), "the log is read after the start")
        monitor.until(lambda: count_stored(config) == (1, 0), "the line from before is stored")
        monitor.until(lambda: not list_runs_of_logs(), "the run of the log has ended")

        before = {process.pid for process in descendants(monitor.process.pid)}
        polled_at, looks = read_polls(config.parent / "data")[0].at, hub.looks
        started: dict[int, str] = {}
        end = time.monotonic() + IDLE_S
        while time.monotonic() < end:
            started |= {process.pid: process.command for process in descendants(monitor.process.pid)}
            time.sleep(0.1)  # processes are polled, since nothing announces their start
        assert {pid: command for pid, command in started.items() if pid not in before} == {}
        monitor.until(lambda: read_polls(config.parent / "data")[0].at > polled_at, "the log is polled")
        monitor.until(lambda: hub.looks > looks, "the Space is polled")

        hub.runtimes.append({"stage": "RUNNING", "sha": NEW})
        append(config, 1)
        monitor.until(lambda: count_messages(slack, 1) == 1, "the entry is alerted")
        server = next(line for line in monitor.said().splitlines() if "Prefect's pages: " in line)
        api = server.partition("Prefect's pages: ")[2].strip().removesuffix("/") + "/api"
        monitor.until(
            lambda: any(NEW[:12] in run["name"] for run in runs_of_deploys(api, "bot")), "the deploy's run"
        )

        os.kill(monitor.pid_of("deployments.up.service"), signal.SIGKILL)
        append(config, 2)
        monitor.until(lambda: count_messages(slack, 2) == 1, "the entry of the absence is alerted")
        monitor.until(lambda: not list_late_polls(config.parent / "data", utc_now()), "it watches again")
    assert count_stored(config) == (3, 2)


@asynccontextmanager
async def watching(config: Path, api_url: str) -> AsyncIterator[list[str]]:
    """Run a watcher in this process, and yield the lines that it prints."""
    from prefect.settings import PREFECT_API_URL, temporary_settings  # seconds to import

    from flows.watching.watcher import Watcher

    lines: list[str] = []
    loaded = await asyncio.to_thread(load_config, config)
    with temporary_settings({PREFECT_API_URL: api_url}):
        watcher = Watcher(loaded, config, now=utc_now, write_line=lines.append)
        task = asyncio.create_task(watcher.run())
        try:
            yield lines
        finally:
            task.cancel()
            await asyncio.wait({task})


async def until(condition) -> None:
    async with asyncio.timeout(WAIT_S):
        while not await condition():  # noqa: ASYNC110 - a server and a file are polled
            await asyncio.sleep(0.1)


@pytest.mark.whole_only
async def test_without_prefect_the_watcher_reads_the_log_itself(config, slack, monkeypatch):
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    data = config.parent / "data"

    async def is_stored() -> bool:
        return (data / "warehouse.duckdb").exists() and count_stored(config)[0] == 1

    async def is_alerted() -> bool:
        return count_messages(slack, 1) == 1

    async with watching(config, "http://127.0.0.1:9/api") as lines:
        await until(is_stored)
        append(config, 1)
        await until(is_alerted)
        assert any("this process reads the logs itself" in line for line in lines)
    assert count_stored(config) == (2, 1)


@pytest.mark.prefect
@pytest.mark.whole_only
async def test_a_crashed_run_is_followed_by_another_and_a_pause_is_a_pause(config, prefect_environment):
    from prefect.client.orchestration import PrefectClient  # seconds to import
    from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId
    from prefect.states import Completed, Crashed

    from flows.server.registration import build_runner_deployment
    from flows.server.schedules import plan_deployments

    api = prefect_environment["PREFECT_API_URL"]
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace('space = "acme/helpdesk"', 'url = "http://127.0.0.1:9"'), encoding="utf-8")
    loaded = load_config(config)
    planned = next(row for row in plan_deployments(loaded, config, loaded.schedules) if row.flow == "follow-log")
    async with (
        PrefectClient(api) as client,
        watching_registered(build_runner_deployment(planned), api) as deployment,
    ):

        async def list_runs():
            """Return the runs that the watcher started, oldest first."""
            only = DeploymentFilter(id=DeploymentFilterId(any_=[deployment]))
            runs = await client.read_flow_runs(deployment_filter=only)
            return sorted((run for run in runs if not run.auto_scheduled), key=lambda run: run.created or utc_now())

        async def end_newest(state) -> None:
            await client.set_flow_run_state((await list_runs())[-1].id, state, force=True)

        def has_runs(count: int):
            async def check() -> bool:
                return len(await list_runs()) >= count

            return check

        async with watching(config, api):
            await until(has_runs(1))
            await end_newest(Crashed())
            await until(has_runs(2))
            assert (await list_runs())[-1].parameters["target"] == "bot"
            await end_newest(Completed())
            await client.pause_deployment(deployment)
            append(config, 1)
            await asyncio.sleep(10)  # ten polls that must start nothing
            assert len(await list_runs()) == 2
            await client.resume_deployment(deployment)
            await until(has_runs(3))


@asynccontextmanager
async def watching_registered(building, api: str):
    """Register a deployment on the server during the ``async with`` block, and yield its id."""
    from prefect.client.orchestration import PrefectClient
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: api}):
        deployment = await (await building).aapply()
    try:
        yield deployment
    finally:
        async with PrefectClient(api) as client:
            await client.delete_deployment(deployment)


@pytest.mark.parametrize(("age_s", "health"), [(30, Health.GOOD), (300, Health.BROKEN)])
def test_the_doctor_shows_a_watcher_that_is_down(config, age_s, health, monkeypatch):
    poll = WatchPoll(name="the log of bot", target="bot", at=utc_now() - timedelta(seconds=age_s), every_s=15)
    write_polls(config.parent / "data", [poll])
    only = next(check for check in CHECKS if check.__name__ == "check_watching")
    monkeypatch.setattr("deployments.cli.doctor.checks.CHECKS", (only,))
    (health_check,) = run_checks(config, environment={}, now=utc_now())[1:]
    assert (health_check.name, health_check.health) == ("watching", health)
    assert "lookout up" in health_check.to_do or health is Health.GOOD


def test_lookout_watch_with_runs_takes_no_target(config):
    done = run_in_process(
        "watch", "bot", "--runs", "--config", str(config), cwd=config.parent, env=fork_server.bare()
    )
    assert done.returncode == 2
    assert "--runs watches all targets" in done.stderr


def test_a_poll_is_late_after_three_intervals(tmp_path):
    now = utc_now()
    polls = [
        WatchPoll(name="the log of bot", target="bot", at=now - timedelta(seconds=seconds), every_s=15)
        for seconds in (64, 66)
    ]
    assert list_late_polls(tmp_path, now) == ()
    write_polls(tmp_path, polls)
    assert list_late_polls(tmp_path, now) == (polls[1],)
    assert list_late_polls(tmp_path, now, "bot") == (polls[1],)
    assert list_late_polls(tmp_path, now, "another") == ()
