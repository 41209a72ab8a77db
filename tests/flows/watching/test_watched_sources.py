"""Test the hourly check of the sources of live traffic, which finds an unreadable source before the nightly run."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest

from deployments.cli.doctor.services import Health
from flows.clock import utc_now
from flows.data_folder import open_store_in
from flows.nightly.alerts import SOURCE_UNREAD
from flows.watching.polls import WatchPoll, list_late_polls, read_polls, write_polls
from monitors.alerts.observe import compute_fingerprint
from monitors.config.file import load_config
from monitors.records.incidents import IncidentKind
from tests import fork_server
from tests.deployments.up.moved_clock import Clock
from tests.deployments.up_process import up
from tests.flows.few_cases import few_cases
from tests.prefect_home import with_tables
from tests.servers.export import ExportServer, document, status
from tests.servers.slack import TOKEN, SlackServer

HOUR = timedelta(hours=1)
WAIT_S = 60.0
SECRET = "hush-hush"
LOG, EXPORT = "the traffic source log of bot", "the traffic source export of bot"


@pytest.fixture
def slack(monkeypatch):
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    with SlackServer() as server:
        yield server


@pytest.fixture
def export():
    with ExportServer([]) as server:
        server.answers["export"] = document([])
        yield server


@pytest.fixture
def config(tmp_path, slack, export) -> Path:
    """Write a configuration whose target has two sources of live traffic: a log and an HTTP export."""
    (tmp_path / "log.jsonl").touch()
    file = tmp_path / "lookout.toml"
    file.write_text(
        f"""
data_folder = "data"
[targets.bot]
url = "http://127.0.0.1:9"
suite = "few.jsonl"
[targets.bot.traffic.sources]
log = {{ kind = "file", at = "log.jsonl" }}
export = {{ kind = "http", url = "{export.url}/other/export?key={SECRET}", attempts = 1 }}
[alerts]
slack_channel = "C0ALERTS"
slack_api_url = "{slack.api_url}"
""",
        encoding="utf-8",
    )
    return file


@asynccontextmanager
async def watching(config: Path, now=utc_now) -> AsyncIterator[list[str]]:
    """Run a watcher in this process, and yield the lines that it prints."""
    from flows.watching.watcher import Watcher  # Prefect takes seconds to import

    lines: list[str] = []
    watcher = Watcher(load_config(config), config, now=now, write_line=lines.append)
    task = asyncio.create_task(watcher.run())
    try:
        yield lines
    finally:
        task.cancel()
        await asyncio.wait({task})


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 - a server and a file are polled
            await asyncio.sleep(0.05)


def read_times(config: Path) -> dict[str, WatchPoll]:
    return {poll.name: poll for poll in read_polls(config.parent / "data")}


async def test_sources_are_checked_at_the_start_and_then_only_after_an_hour(config, export):
    started_at = utc_now()
    async with watching(config) as lines:
        await until(lambda: len(export.asked) == 1)
        await asyncio.sleep(2)
        assert len(export.asked) == 1
    (poll,) = (poll for name, poll in read_times(config).items() if name == EXPORT)
    assert (poll.target, poll.every_s) == ("bot", 3600)
    assert poll.at >= started_at
    assert lines == []


async def test_three_failed_checks_in_a_row_send_one_alert_and_one_recovery(config, export, slack, monkeypatch):
    monkeypatch.setattr("flows.watching.watcher.EVERY_HOUR_S", 0.5)
    monkeypatch.setattr("flows.watching.watcher.WRITE_EVERY_S", 0.1)
    async with watching(config) as lines:
        await until(lambda: len(export.asked) >= 2)
        export.answers["export"] = status(503)
        await until(lambda: len(lines) == 2)
        failed_at = utc_now()
        assert slack.messages == []
        await until(lambda: len(slack.messages) >= 1)
        await until(lambda: len(lines) >= 5)
        log, read_at = read_times(config)[LOG], read_times(config)[EXPORT].at
        assert (log.at > failed_at, read_at < failed_at) == (True, True)
        assert len([message for message in slack.messages if message.thread_ts is None]) == 1

        export.answers["export"] = document([])
        await until(lambda: any(message.thread_ts for message in slack.messages))
        await until(lambda: read_times(config)[EXPORT].at > failed_at)
    assert all(line.startswith(f"{EXPORT} cannot be read: ") and "answered HTTP 503" in line for line in lines)
    assert SECRET not in str([lines, *(message.blocks for message in slack.messages)])
    (incident,) = open_store_in(config.parent / "data").query("select fingerprint, state from incidents").rows
    assert incident == (compute_fingerprint("bot", IncidentKind.MONITOR_FAULT, SOURCE_UNREAD), "resolved")


async def test_a_source_that_cannot_be_read_is_late_after_a_restart_too(config, export):
    """The time of a source's newest successful check survives a restart. The source is then still reported as late.

    For a source that never worked, the time of the first start counts.
    """
    export.answers["export"] = status(403)
    config.with_name("log.jsonl").unlink()
    now, data = utc_now(), config.parent / "data"
    data.mkdir()
    old = WatchPoll(name=LOG, target="bot", at=now - timedelta(days=2), every_s=3600)
    write_polls(data, [old, WatchPoll(name="the traffic source gone of bot", at=now, every_s=3600)])
    for started_at in (now, now + HOUR):
        async with watching(config, lambda at=started_at: at) as lines:
            await until(lambda lines=lines: len(lines) == 2)
        assert read_times(config) == {
            LOG: old,
            EXPORT: WatchPoll(name=EXPORT, target="bot", at=now, every_s=3600),
        }
    assert list_late_polls(data, now + HOUR) == (old,)
    assert {poll.name for poll in list_late_polls(data, now + 4 * HOUR, "bot")} == {LOG, EXPORT}


async def test_without_a_source_nothing_is_polled(config, export):
    text = config.read_text(encoding="utf-8")
    config.write_text(re.sub(r"(?s)\[targets.bot.traffic.*?(?=\[alerts)", "", text), encoding="utf-8")
    async with watching(config) as lines:
        await asyncio.sleep(1)
    assert (lines, export.asked, read_polls(config.parent / "data")) == ([], [], ())


def check_watching(config: Path, environment: dict[str, str]) -> tuple[Health, str]:
    """Return the health and the text of the check "watching" of `lookout doctor`."""
    command = [sys.executable, "-P", "-m", "deployments.cli.app", "doctor", "--config", str(config), "--json"]
    done = subprocess.run(
        command, cwd=config.parent, env=environment, capture_output=True, check=False, timeout=300
    )
    (check,) = (check for check in json.loads(done.stdout)["checks"] if check["name"] == "watching")
    return Health(check["health"]), check["found"]


@pytest.mark.prefect
@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="the clock is moved by a library")
@pytest.mark.whole_only
def test_doctor_and_site_show_a_source_that_cannot_be_read(config, export):
    """`lookout doctor` and the site show a source that cannot be read.

    To avoid a long wait, the test moves the clock and restarts the service, which then checks its sources at once.
    """
    few_cases(config.parent, severe=1, others=1)
    with config.open("a", encoding="utf-8") as file:
        file.write("[site]\nenabled = true\n")
    with_tables(config.parent / "data" / "prefect")
    log, clock = config.with_name("log.jsonl"), Clock(config.parent)
    environment = fork_server.bare(**clock.variables)
    with up(config, environment=environment, **clock.variables) as monitor:

        def read_site() -> str:
            port = int(monitor.url.rpartition(":")[2]) + 2
            return httpx.get(f"http://127.0.0.1:{port}/", timeout=60, trust_env=False).text

        def is_read_since(moment: datetime) -> bool:
            return all(
                name in read_times(config) and read_times(config)[name].at > moment for name in (LOG, EXPORT)
            )

        monitor.until(lambda: export.asked and is_read_since(utc_now() - HOUR), "both sources are read")
        log.unlink()
        clock.set(4 * HOUR)
        os.kill(monitor.pid_of("deployments.up.service"), signal.SIGKILL)
        monitor.until(lambda: f"{LOG} cannot be read: {log} does not exist" in monitor.said(), "the log says why")
        monitor.until(lambda: read_times(config)[EXPORT].at > utc_now() + 3 * HOUR, "the export is still read")
        health, text = check_watching(config, environment)
        assert (health, LOG in text, EXPORT in text) == (Health.BROKEN, True, False)
        assert LOG in read_site()

        log.touch()
        os.kill(monitor.pid_of("deployments.up.service"), signal.SIGKILL)
        monitor.until(lambda: is_read_since(utc_now() + 3 * HOUR), "the log is read again")
        assert check_watching(config, environment) == (Health.GOOD, f"{LOG}, {EXPORT}")
