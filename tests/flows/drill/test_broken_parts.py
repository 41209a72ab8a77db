"""Test that, whichever part of an installation is broken, the next drill reports it and sends an alert."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from moto.server import ThreadedMotoServer

from flows.server.prefect_server import find_running_server
from monitors.records.self_checks import DRILL_TARGET, DrillStation
from tests.deployments.cli.test_journal_in_a_bucket import KEYS
from tests.deployments.up_process import up
from tests.flows.drill.broken_parts import (
    OTHER_WAY,
    PARTS,
    SILENCE,
    SLACK,
    BrokenPart,
    parts_of_page,
    table,
)
from tests.flows.drill.installation import TRIGGER, DatedSlack, Installation, Refuser
from tests.flows.test_disk_faults import Disk
from tests.servers.anthropic import AnthropicServer
from tests.servers.slack import SlackServer
from tests.servers.watchdog import Watchdog
from tests.warehouse.decisions import OutboxDecision, decide
from tests.warehouse.sample_rows import alert, incident
from tests.warehouse.temporary_stores import store_in
from warehouse.database.store import Store

Break = Callable[[Installation, ExitStack], None]
BREAKS: dict[str, Break] = {}
ROWS = {row.part: row for row in PARTS}
BY_WORKER = ("worker dead", "schedule paused")
HOLD = "import duckdb, sys; held = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"


def breaks(part: str) -> Callable[[Break], Break]:
    def named(function: Break) -> Break:
        BREAKS[part] = function
        return function

    return named


def _store(installation: Installation) -> Store:
    (installation.folder / "data").mkdir()
    store = store_in(installation.folder / "data")
    store.load_pending(5)
    return store


@breaks("browser missing")
def _(installation: Installation, _stack: ExitStack) -> None:
    installation.variables["CHROMIUM_PATH"] = "/nowhere/chromium"


@breaks("wrong Chromium")
def _(installation: Installation, _stack: ExitStack) -> None:
    installation.variables["CHROMIUM_PATH"] = "/bin/true"


@breaks("Slack token revoked")
def _(installation: Installation, stack: ExitStack) -> None:
    installation.slack.always = "token_revoked"
    installation.other = stack.enter_context(SlackServer())
    installation.variables["SLACK_FALLBACK_WEBHOOK_URL"] = installation.other.webhook_url


@breaks("channel archived")
def _(installation: Installation, _stack: ExitStack) -> None:
    installation.slack.refusing["C0ALERTS"] = "is_archived"


@breaks("judge key dead")
def _(installation: Installation, _stack: ExitStack) -> None:
    installation.variables["ANTHROPIC_API_KEY"] = "a-key-that-was-taken-back"


@breaks("disk full")
def _(installation: Installation, stack: ExitStack) -> None:
    _on_a_disk(installation, stack).spoil("full")


@breaks("data folder read-only")
def _(installation: Installation, stack: ExitStack) -> None:
    _on_a_disk(installation, stack).spoil("read-only")


def _on_a_disk(installation: Installation, stack: ExitStack) -> Disk:
    disk = Disk(installation.folder / "data")
    stack.callback(disk.end)
    return disk


@breaks("warehouse locked")
def _(installation: Installation, stack: ExitStack) -> None:
    store = _store(installation)
    command = [sys.executable, "-c", HOLD, str(store.database.file)]
    holder = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    stack.callback(holder.kill)


@breaks("clock a day off")
def _(installation: Installation, _stack: ExitStack) -> None:
    installation.slack.off = timedelta(days=-1)


@breaks("outbox stuck")
def _(installation: Installation, _stack: ExitStack) -> None:
    store = _store(installation)
    for name in ("first", "second"):
        known = incident(name).model_copy(update={"target": "bot"})
        message = alert(f"LK-{name}", about=known)
        decision = OutboxDecision(incidents=(known,), alerts=(message,))
        decide(store, store.journal, "bot", lambda _, decision=decision: decision, wait_s=5)
    installation.slack.refusing["C0ALERTS"] = "internal_error"


@breaks("receiver port taken")
def _(installation: Installation, stack: ExitStack) -> None:
    taken = stack.enter_context(Refuser())
    installation.configure(TRIGGER)
    installation.variables["LOOKOUT_RECEIVER_URL"] = taken.url


@breaks("log unreadable")
def _(installation: Installation, _stack: ExitStack) -> None:
    (installation.folder / "log.jsonl").unlink()
    (installation.folder / "log.jsonl").mkdir()


@breaks("DNS dead")
def _(installation: Installation, _stack: ExitStack) -> None:
    installation.slack_url = "http://slack.invalid/api/"
    installation.configure()


@breaks("Prefect server dead")
def _(_one: Installation, _stack: ExitStack) -> None:
    """Do nothing, because a service that was never started is already broken."""


@breaks("suite file gone")
def _(installation: Installation, _stack: ExitStack) -> None:
    (installation.folder / "suite.jsonl").unlink()


@breaks("proxy in the way")
def _(installation: Installation, stack: ExitStack) -> None:
    installation.variables["HTTP_PROXY"] = stack.enter_context(Refuser()).url


@breaks("heartbeat address wrong")
def _(installation: Installation, _stack: ExitStack) -> None:
    installation.check.status = 404


@breaks("journal bucket gone")
def _(installation: Installation, stack: ExitStack) -> None:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    stack.callback(server.stop)
    host, port = server.get_host_and_port()
    installation.variables |= KEYS | {"AWS_ENDPOINT_URL": f"http://{host}:{port}"}
    installation.configure('[warehouse]\njournal = "s3://nowhere/journal"\n')


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    with DatedSlack() as slack, Watchdog() as check, AnthropicServer() as judge:
        yield Installation(tmp_path, slack, check, judge)


def assert_is_reported(installation: Installation, row: BrokenPart) -> None:
    """Check that the expected channel got an alert with the failed station, and the watchdog no success ping."""
    headline = f"Drill failed at {DrillStation(row.station).place}"
    took = installation.other if row.heard_by == OTHER_WAY else installation.slack
    alerts = [message.text for message in took.messages if message.text.startswith(headline)]
    failures = [
        ping.body for ping in installation.check.pings if ping.kind == "/fail" and ping.body.startswith(headline)
    ]
    assert bool(alerts) is (row.heard_by in (SLACK, OTHER_WAY))
    assert bool(failures) is (row.heard_by != SILENCE)
    if row.station != "heartbeat":
        assert "" not in installation.check.kinds
    assert all(message.text.startswith("Drill") for message in installation.slack.messages)


@pytest.mark.browser
@pytest.mark.prefect
@pytest.mark.parametrize("part", sorted(BREAKS))
@pytest.mark.a_slice(2)
@pytest.mark.whole_only
def test_the_next_drill_names_the_part_that_is_broken(installation, part):
    """If one part is broken, `lookout drill` exits with code 4, and reports the failed station and the reason.

    The station and the reason appear on the terminal and in every working channel.
    """
    row = ROWS[part]
    with ExitStack() as stack:
        BREAKS[part](installation, stack)
        options = () if part == "Prefect server dead" else ("--here",)
        done = installation.drill(*options)
        assert done.returncode == 4, done.stdout + done.stderr
        assert f"The drill failed at {DrillStation(row.station).place}: " in done.stdout
        assert row.says in done.stdout
        assert "What to do: " in done.stdout
        assert_is_reported(installation, row)


def test_every_part_of_the_table_is_broken_by_a_test():
    """Each of the twenty parts is broken by a test in this file, with or without `lookout up`."""
    assert len(PARTS) == 20
    assert {row.part for row in PARTS} == {*BREAKS, *BY_WORKER}


def test_the_table_in_the_operations_page_is_made_of_these_rows():
    """The table in docs/operations.md matches the rows.

    To update it: ``python -m tests.flows.drill.broken_parts``.
    """
    assert parts_of_page()[1] == table()


@pytest.mark.browser
@pytest.mark.prefect
@pytest.mark.whole_only
def test_under_lookout_up_a_drill_passes_then_a_paused_schedule_then_a_dead_worker_are_named(installation):
    """While `lookout up` runs, a drill passes. Drills fail if a schedule is paused or the worker has stopped.

    The drill that passes sends one silent message and changes no score.
    """
    installation.configure(TRIGGER + "[drill]\nworker_wait_s = 400\n", log="")
    mine = {name: value for name, value in installation.variables.items() if "GITHUB" not in name}
    with up(installation.folder / "lookout.toml", **mine) as running:
        running.until(lambda: "fire-drill/fire-drill" in running.said(), "the runner knows the drill")
        api = find_running_server(installation.folder / "data" / "prefect").api_url
        running.until(lambda: _deployment(api, "fire-drill/fire-drill") is not None, "the drill is registered")
        done = installation.drill()
        assert done.returncode == 0, done.stdout + done.stderr + running.said()
        assert [line.split("  ")[-1].split(":")[0] for line in done.stdout.splitlines()[:3]] == [
            "Prefect server",
            "worker",
            "data folder",
        ]
        (message,) = installation.slack.messages
        assert message.text.startswith("Drill, no action needed")
        assert installation.check.kinds == [""]
        store = store_in(installation.folder / "data")
        ((passed, message_after_s),) = store.query("select passed, message_after_s from last_drills").rows
        assert (passed, message_after_s > 0) == (True, True)
        assert store.query("select count(*) from runs").rows == ((0,),)
        assert store.list_open_incidents(DRILL_TARGET) == ()

        running.until(lambda: _pause(api, "verify-deploy/scheduled-verify-bot"), "the schedule is paused")
        installation.check.pings.clear()
        paused = installation.drill()
        assert f"The drill failed at {DrillStation.SCHEDULE.place}: " in paused.stdout
        assert "verify-deploy/scheduled-verify-bot" in paused.stdout
        assert_is_reported(installation, ROWS["schedule paused"])

        installation.configure(TRIGGER + "[drill]\nworker_wait_s = 5\n", log="")
        runner = running.pid_of("deployments.up.service")
        os.kill(runner, signal.SIGSTOP)
        installation.check.pings.clear()
        try:
            dead = installation.drill()
        finally:
            os.kill(runner, signal.SIGCONT)
        assert f"The drill failed at {DrillStation.WORKER.place}: " in dead.stdout
        assert_is_reported(installation, ROWS["worker dead"])
        assert (paused.returncode, dead.returncode) == (4, 4)


def _deployment(api: str, name: str) -> dict[str, str] | None:

    found = httpx.get(f"{api}/deployments/name/{name}", timeout=30, trust_env=False)
    return found.json() if found.is_success else None


def _pause(api: str, name: str) -> bool:
    """Pause a deployment.

    Return ``False``, so that the caller retries, if a busy server did not accept the request.
    """
    known = _deployment(api, name)
    assert known is not None
    asked = httpx.patch(f"{api}/deployments/{known['id']}", json={"paused": True}, timeout=30, trust_env=False)
    return asked.is_success
