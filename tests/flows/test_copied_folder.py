"""Test that a copy of a data folder does not affect the original: its server, messages, deploys and runs."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from deployments.demo.configuration import find_free_port
from flows.alerting.pipeline import notify, send_undelivered_alerts_again
from flows.alerting.send import send_outbox
from flows.deploys.queue import DeployQueue, QueuedDeploy
from flows.folder_identity import claim_or_separate_data_folder
from flows.server import prefect_server
from monitors.errors import ConfigError
from monitors.records.base import Severity
from monitors.records.grades import FailureKind
from monitors.records.incidents import NotifyReason
from monitors.records.targets import DeployEvent, ReportedDeploy
from tests import fork_server
from tests.builders import NOON
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.chat import Chat, watched
from tests.in_process import run_in_process
from tests.monitors.alerts.sample_observations import observation, scope
from tests.polling import wait_until
from tests.prefect_home import with_tables
from tests.servers.slack import SlackServer
from tests.stable_text import replace_volatile
from warehouse.folder_identity import create_or_check_identity, read_identity

COMMANDS = {
    "up": ("up",),
    "verify": ("verify", "demo"),
    "nightly": ("nightly",),
    "watch": ("watch", "--once"),
    "down": ("down",),
}
LOGGED = (
    'hallucination_log = { at = "log.jsonl" }\n[targets.demo.traffic.sources.talks]\nkind = "file"\nat = '
    '"talks.jsonl"\n'
)


def copy_all(source: Path, destination: Path) -> Path:
    subprocess.run(["cp", "-a", str(source), str(destination)], check=True)
    return destination


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def original(tmp_path, slack) -> AlertingTestbed:
    """Return an installation that has sent one alert, and has one pending alert because Slack had an error."""
    create_or_check_identity(tmp_path / "data", new_id="original", at=NOON)
    testbed = AlertingTestbed(tmp_path / "data", slack)
    asyncio.run(notify(testbed.notifier("run-1"), [observation()]))
    slack.always = "internal_error"
    asyncio.run(notify(testbed.notifier("run-2"), [observation("leak-2", run_id="run-2")]))
    slack.always = None
    assert len(slack.messages) == 1
    return testbed


def live_on(testbed: AlertingTestbed) -> list[NotifyReason]:
    """Simulate three more days of an installation, and return the reasons of the alerts that it sends in this time.

    The installation sends its pending alerts, then sees the same fault again, and then gets right answers.
    """
    before = list_sent_alerts(testbed)
    testbed.skip(days=3)
    asyncio.run(send_outbox(testbed.notifier("run-3")))
    again = observation(run_id="run-3", seen_at=testbed.now)
    asyncio.run(notify(testbed.notifier("run-3"), [again]))
    testbed.skip(hours=1)
    over = scope("run-4", "leak-1", "leak-2", began_at=testbed.now, ended_at=testbed.now)
    asyncio.run(notify(testbed.notifier("run-4"), [], scope=over))
    assert set(before) <= set(list_sent_alerts(testbed))
    return [NotifyReason(reason) for key, reason in list_sent_alerts(testbed).items() if key not in before]


def list_sent_alerts(testbed: AlertingTestbed) -> dict[str, str]:
    """Return the reasons of the alerts that Slack accepted, keyed by alert id, oldest first."""
    testbed.store.load_pending(5)
    rows = testbed.store.query(
        "select id, reason from alerts where id in (select alert_id from receipts where status = 'sent') "
        "order by created_at, id"
    ).rows
    return {str(key): str(reason) for key, reason in rows}


def copy_of(original: AlertingTestbed, folder: Path, **answer: bool) -> AlertingTestbed:
    """Copy the original's folder to ``folder``, and return the installation there.

    ``answer`` is ``copied=True`` or ``moved=True``, as a user declares it.
    """
    data = copy_all(original.store.database.file.parent, folder)
    claim_or_separate_data_folder(data, None, new_id="copy", at=original.now, **answer)
    testbed = AlertingTestbed(data, original.slack)
    testbed.now = original.now + timedelta(minutes=1)  # the ids of segments are made of the time
    return testbed


ALL = [NotifyReason.FIRST_SEEN, NotifyReason.REMINDER, NotifyReason.RECOVERED, NotifyReason.RECOVERED]


@pytest.mark.whole_only
def test_a_separated_copy_sends_nothing_that_its_original_sends(tmp_path, slack, original):
    """A folder that was declared as a copy sends only alerts about new faults.

    The original sends the pending alert, the reminder and the recoveries.
    """
    copy = copy_of(original, tmp_path / "copy", copied=True)
    assert live_on(copy) == []
    assert len(slack.messages) == 1
    asyncio.run(notify(copy.notifier("run-5"), [observation("leak-3", run_id="run-5", seen_at=copy.now)]))
    assert len(slack.messages) == 2
    assert live_on(original) == ALL


def test_a_separated_copy_does_not_send_what_slack_refused_from_its_original(tmp_path, slack, original):
    """An alert that Slack refused before the copy was made is sent again by the original, and not by the copy."""
    slack.always = "channel_not_found"
    asyncio.run(notify(original.notifier("run-3"), [observation("leak-3", run_id="run-3")]))
    slack.always = None
    copy = copy_of(original, tmp_path / "copy", copied=True)
    for testbed in (copy, original):
        before = len(slack.messages)
        testbed.skip(hours=2)
        asyncio.run(send_undelivered_alerts_again(testbed.notifier("run-4")))
        assert (len(slack.messages) > before) == (testbed is original)
    assert copy.store.query("from unsent_alerts").rows == ()


@pytest.mark.whole_only
def test_what_gets_worse_in_a_separated_copy_is_sent_in_a_thread_of_its_own(tmp_path, slack, original):
    mild = observation("price", FailureKind.WRONG_FACT, severity=Severity.MAJOR)
    asyncio.run(notify(original.notifier("run-2"), [mild]))
    copy = copy_of(original, tmp_path / "copy", copied=True)
    before = len(slack.messages)
    worse = observation("price", FailureKind.WRONG_FACT, run_id="run-3", seen_at=copy.now)
    (alert,) = asyncio.run(notify(copy.notifier("run-3"), [worse]))
    assert (alert.reason, len(slack.messages) - before) == (NotifyReason.WORSE, 1)
    assert slack.messages[-1].thread_ts is None


@pytest.mark.whole_only
def test_a_moved_folder_sends_what_was_waiting(tmp_path, slack, original):
    moved = copy_of(original, tmp_path / "copy", moved=True)
    assert read_identity(tmp_path / "copy").id == "original"
    assert live_on(moved) == ALL


@pytest.mark.whole_only
def test_copy_changes_nothing_in_a_folder_that_is_none(tmp_path, slack, original):
    """The option `--copy` has no effect on a folder that is not a copy.

    Therefore a service can use this option at every start.
    """
    claim_or_separate_data_folder(tmp_path / "data", None, new_id="copy", at=original.now, copied=True)
    assert read_identity(tmp_path / "data").id == "original"
    assert live_on(original) == ALL


def test_a_copy_with_its_journal_elsewhere_is_refused(tmp_path, original):
    """A copy is rejected if its journal is outside the folder, such as in a bucket.

    The original and the copy would otherwise use one journal.
    """
    copy_all(tmp_path / "data", tmp_path / "copy")
    with pytest.raises(ConfigError, match=r"warehouse\.journal"):
        claim_or_separate_data_folder(
            tmp_path / "copy", "s3://bucket/journal", new_id="copy", at=original.now, copied=True
        )


def test_a_separated_copy_runs_no_deploy_that_was_reported_to_its_original(tmp_path):
    create_or_check_identity(tmp_path / "data", new_id="original", at=NOON)
    event = DeployEvent(target="demo", commit="4f2a91c", occurred_at=NOON, reported_by="github")
    DeployQueue(tmp_path / "data").save_if_new(QueuedDeploy(deploy=ReportedDeploy(event=event), stored_at=NOON))
    copy_all(tmp_path / "data", tmp_path / "copy")
    claim_or_separate_data_folder(tmp_path / "copy", None, new_id="copy", at=NOON, copied=True)
    assert [DeployQueue(tmp_path / name).has_waiting_deploys() for name in ("data", "copy")] == [True, False]


@pytest.fixture
def installations(tmp_path):
    """Yield a folder with an installation and its copy, and the recorded server process of the installation."""
    with Chat() as chat:
        (tmp_path / "original").mkdir()
        config = watched(tmp_path / "original", chat)
        text = config.read_text(encoding="utf-8")
        config.write_text(
            text.replace('suite = "suite.jsonl"\n', f'suite = "suite.jsonl"\n{LOGGED}'), encoding="utf-8"
        )
        home = tmp_path / "original" / "data" / "prefect"
        home.mkdir(parents=True)
        create_or_check_identity(tmp_path / "original" / "data", new_id="original", at=NOON)
        port = str(find_free_port("127.0.0.1", 0))
        pretends = ("-c", "import time; time.sleep(600)", "prefect", "server", "start", "--port", port, "")
        with subprocess.Popen([sys.executable, *pretends], cwd=home, start_new_session=True) as server:
            note = prefect_server.LocalServer(pid=server.pid, port=int(port))
            (home / "server.json").write_text(note.model_dump_json(), encoding="utf-8")
            shown = Path(f"/proc/{server.pid}/cmdline")
            wait_until(lambda: b"prefect" in shown.read_bytes(), what="the process shows its arguments")
            try:
                copy_all(tmp_path / "original", tmp_path / "copy")
                yield tmp_path, server
            finally:
                server.kill()


def test_a_copy_s_commands_are_refused_and_end_no_process_of_the_original(installations, snapshot):
    folder, server = installations
    refusals = {}
    for name, arguments in COMMANDS.items():
        done = run_in_process(*arguments, cwd=folder / "copy", env=fork_server.bare(COLUMNS="400"))
        refusals[name] = (done.returncode, replace_volatile(done.stderr, folder))
    assert {code for code, _ in refusals.values()} == {2}
    assert len({text for _, text in refusals.values()}) == 1, refusals
    assert server.poll() is None
    checked = run_in_process("doctor", "--no-ask", "--json", cwd=folder / "copy", env=fork_server.bare())
    assert any(
        (check["name"], "is a copy of" in check["found"]) == ("rights", True)
        for check in json.loads(checked.stdout)["checks"]
    )
    done = run_in_process("down", "--copy", "--json", cwd=folder / "copy", env=fork_server.bare())
    assert (done.returncode, json.loads(done.stdout)["ended"]) == (0, None), done.stderr
    assert server.poll() is None
    assert prefect_server.find_server_process(folder / "copy" / "data" / "prefect") is None
    assert read_identity(folder / "copy" / "data").id != "original"
    both = run_in_process("down", "--copy", "--moved", cwd=folder / "copy", env=fork_server.bare())
    assert both.returncode == 2
    assert refusals["down"][1].replace(_host(folder), "HOST") == snapshot


def _host(folder: Path) -> str:
    return read_identity(folder / "original" / "data").host


def test_a_renamed_folder_ends_its_own_server(installations):
    """`lookout down` in a renamed folder ends the server that was started under the former name."""
    folder, server = installations
    (folder / "original").rename(folder / "renamed")
    done = run_in_process("down", "--json", cwd=folder / "renamed", env=fork_server.bare())
    assert (done.returncode, json.loads(done.stdout)["ended"]["pid"]) == (0, server.pid), done.stderr
    assert server.wait(10) != 0


@pytest.mark.prefect
@pytest.mark.whole_only
def test_original_and_copy_each_have_a_server_of_their_own(tmp_path):
    """The first run in a copy starts its own Prefect server, and `lookout down` there ends only this server."""
    homes = {name: tmp_path / name / "data" / "prefect" for name in ("original", "copy")}

    def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return fork_server.run(*arguments, cwd=tmp_path / name, env=fork_server.bare(), timeout_s=600)

    with Chat() as chat:
        with_tables(homes["original"])
        watched(tmp_path / "original", chat, cases=2)
        try:
            assert run("original", "verify", "demo").returncode == 0
            server = prefect_server.find_running_server(homes["original"])
            copy_all(tmp_path / "original", tmp_path / "copy")
            for arguments in (("verify", "demo", "--fresh"), ("down",)):
                assert run("copy", *arguments).returncode == 2
            assert run("copy", "verify", "demo", "--fresh", "--copy").returncode == 0
            own = prefect_server.find_running_server(homes["copy"])
            assert prefect_server.find_running_server(homes["original"]) == server
            assert own is not None
            assert server is not None
            assert (own.pid == server.pid, own.port == server.port) == (False, False)
            assert run("copy", "down").returncode == 0
            assert prefect_server.find_running_server(homes["copy"]) is None
            assert prefect_server.find_running_server(homes["original"]) == server
            assert run("original", "down").returncode == 0
            assert prefect_server.find_running_server(homes["original"]) is None
        finally:
            for home in homes.values():
                prefect_server.stop_server(home)
