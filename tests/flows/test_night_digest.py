"""The nightly digest from a real warehouse: what it says, that it is one message a day, and that it finds a way."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from flows.digest import catch_up, digest, send_digest
from flows.night_digest import digest_id, digest_of
from flows.notify import Notice, tell
from monitors.alerts.digest_blocks import digest_plain
from tests.conftest import ROOT
from tests.flows.desks import Night
from tests.monitors.alerts.sightings import NIGHT, scope, sighting
from tests.servers.slack import TOKEN, SlackServer
from tests.warehouse.sample_rows import run_report
from warehouse.rows import RunRow


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def night(tmp_path, slack):
    return Night(tmp_path, slack)


def finished(night: Night, run_id: str, hours_ago: float) -> None:
    """A run of the target that ended so many hours ago."""
    report = run_report(run_id)
    ended = {
        "started_at": night.now,
        "finished_at": night.now,
        "target": report.target.model_copy(update={"name": "demo"}),
    }
    night.skip(hours=-hours_ago)
    ended["finished_at"] = ended["started_at"] = night.now
    night.store.journal.append([RunRow(row=report.model_copy(update=ended))], run_id=run_id)
    night.skip(hours=hours_ago)


def made(night: Night, folder):
    night.store.load_pending(5)
    return digest_of(night.store, "demo", now=night.now, run_id="digest-1", runs=folder)


async def test_it_says_what_the_day_came_to_and_what_is_open(night, slack, tmp_path):
    await tell(night.desk(), [sighting("leak-1"), sighting("leak-2")], notice=Notice())
    ended = scope("run-2", "leak-2", began_at=night.now, ended_at=night.now)
    await tell(night.desk("run-2"), [], notice=Notice(), scope=ended)
    finished(night, "run-old", 40)
    finished(night, "run-a", 20)
    finished(night, "run-b", 1)
    said = digest_plain(made(night, tmp_path))
    assert "1 open, 1 of them SEV 3 · demo · night of 2026-03-01" in said
    assert "recovered: 1 incident" in said
    assert said.count("run run-b") == 1
    assert "runs: 2 " in said
    assert str(tmp_path / "run-b" / "report.html") in said


def test_a_night_without_a_run_says_so(night, tmp_path):
    said = digest_plain(made(night, tmp_path))
    assert "Nothing open" in said
    assert "none in the last day: is the schedule alive?" in said


async def test_what_could_not_be_sent_is_counted_and_then_sent(night, slack, tmp_path):
    slack.always = "500"
    await tell(night.desk(), [sighting()], notice=Notice())
    assert "1 message could not be sent yet" in digest_plain(made(night, tmp_path))
    slack.always = None
    night.skip(minutes=2)
    await catch_up(night.desk("digest-1"))
    assert len(slack.messages) == 1


async def test_a_digest_is_one_message_a_day_however_often_it_is_sent(night, slack, tmp_path):
    for _ in range(2):
        receipt = await send_digest.fn(night.desk("digest-1"), made(night, tmp_path))
        night.skip(minutes=3)
    (message,) = slack.messages
    assert receipt.alert_id == digest_id("demo", NIGHT)
    assert digest_id("demo", NIGHT) in json.dumps(message.blocks)
    assert digest_id("other", NIGHT) != digest_id("demo", NIGHT)


async def test_a_digest_that_is_refused_is_printed_and_told(night, slack, tmp_path):
    slack.misbehave("ok", "channel_not_found")
    await send_digest.fn(night.desk("digest-1"), made(night, tmp_path))
    assert "Nothing open" in night.printed.getvalue()
    assert "Monitor fault" in slack.messages[0].text


@pytest.mark.prefect
def test_the_flow_sends_one_for_each_target(tmp_path, prefect_environment, slack):
    path = tmp_path / "lookout.toml"
    path.write_text(
        f'data_folder = "data"\n[targets.one]\nurl = "http://127.0.0.1:9"\nsuite = "s.jsonl"\n'
        f'[targets.two]\nurl = "http://127.0.0.1:9"\nsuite = "s.jsonl"\n'
        f'[alerts]\nslack_channel = "C0ALERTS"\nslack_api_url = "{slack.api_url}"\n',
        encoding="utf-8",
    )
    program = f"import asyncio, pathlib\nfrom flows.digest import digest\nprint(asyncio.run(digest(pathlib.Path({str(path)!r}))))"
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
    told = {message.text.split(" · ")[1] for message in slack.messages}
    assert told == {"one", "two"}
