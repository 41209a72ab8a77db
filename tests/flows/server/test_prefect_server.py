"""Test Prefect's local server: it is started once, found again and stopped. A configured server must answer."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path

import pytest
from prefect.settings.models.server.services import ServerServicesDBVacuumSettings

from deployments.demo.configuration import find_free_port
from flows.server import prefect_server
from flows.server.prefect_server import PrefectUnavailable
from monitors.errors import WarehouseUnwritable
from tests.flows.server_kills import kill_while_it_starts, servers_of
from tests.polling import wait_until
from tests.prefect_home import with_tables

pytestmark = pytest.mark.prefect

LISTENS, LOOPBACK = "0A", "0100007F"
"""Values in /proc/net/tcp: the state of a listening socket, and the address 127.0.0.1 in reverse byte order."""


def connect(home, environment, *, configured=None, said=None):
    return prefect_server.connect_or_start(
        configured,
        home,
        environment=environment,
        start_timeout_s=180,
        write_line=(said if said is not None else []).append,
    )


def listening_at(port: int) -> set[str]:
    """Return the local addresses at which ``port`` is open, in the format of /proc/net/tcp."""
    tables = [Path(f"/proc/net/{name}") for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    ends = [row[1].split(":") for row in rows if row[3] == LISTENS]
    return {address for address, at in ends if int(at, 16) == port}


@pytest.mark.whole_only
def test_local_servers_are_started_once_found_again_and_stopped(tmp_path):
    """Two data folders get separate local servers. A killed server is started again on the same port."""
    homes = [with_tables(tmp_path / "one"), tmp_path / "other"]
    environments, said = [{}, {}], []
    with ThreadPoolExecutor(2) as pool:
        servers = list(pool.map(lambda home, own: connect(home, own, said=said), homes, environments))
    try:
        assert len({server.port for server in servers}) == 2
        assert [own["PREFECT_API_URL"] for own in environments] == [server.api_url for server in servers]
        assert [listening_at(server.port) for server in servers] == [{LOOPBACK}, {LOOPBACK}]
        assert environments[0]["PREFECT_SERVER_ALLOW_EPHEMERAL_MODE"] == "false"
        assert connect(homes[0], {}, said=said) == servers[0]
        assert [line.partition(" ")[0] for line in said if "Still" not in line] == ["Starting"] * 2
        os.killpg(servers[0].pid, signal.SIGKILL)
        again = connect(homes[0], {}, said=said)
        assert (again.port, again.pid != servers[0].pid) == (servers[0].port, True), "it comes back where it was"
    finally:
        assert [prefect_server.stop_server(home) for home in homes] == [True, True]
    assert prefect_server.find_running_server(homes[0]) is None
    assert not prefect_server.stop_server(homes[0])


def test_a_start_that_takes_longer_than_announced_is_reported_again_and_again(tmp_path, monkeypatch, snapshot):
    """If the server does not answer for a long time, the wait for it is reported repeatedly.

    In this test, the recorded server process never answers.
    """
    monkeypatch.setattr(prefect_server, "PROGRESS_INTERVAL_S", 0.5)
    port = find_free_port("127.0.0.1", 0)
    pretends = ("-c", "import time; time.sleep(600)", "prefect", "server", "start", "--port", str(port), "")
    said: list[str] = []
    home = tmp_path / "home"
    home.mkdir()
    with subprocess.Popen([sys.executable, *pretends], cwd=home, start_new_session=True) as silent:
        note = prefect_server.LocalServer(pid=silent.pid, port=port)
        (home / "server.json").write_text(note.model_dump_json(), encoding="utf-8")
        # Linux shows the arguments of a new process a moment after `Popen` returns.
        wait_until(Path(f"/proc/{silent.pid}/cmdline").read_bytes, what="the process shows its arguments")
        try:
            with pytest.raises(PrefectUnavailable, match=r"did not answer within 1\.2 s"):
                prefect_server.connect_or_start(
                    None, home, environment={}, start_timeout_s=1.2, write_line=said.append, outlives=False
                )
        finally:
            silent.kill()
    assert [line.split()[0] for line, _ in groupby(said, key=lambda line: line.split()[0])] == [
        "Waiting",
        "Still",
        "Starting",
        "Still",
    ]
    assert list(dict.fromkeys(re.sub(r"\d+ s so", "N s so", line) for line in said)) == snapshot


@pytest.mark.whole_only
def test_a_server_outlives_the_process_that_started_it(tmp_path):
    """If processes that start a Prefect server are killed at random moments, there is never more than one server.

    `make soak` repeats this twenty times.
    """
    after = kill_while_it_starts(with_tables(tmp_path / "home"), kills=3, seed=18)
    assert max(map(len, after)) == len(after[-1]) == 1, after
    assert servers_of(tmp_path / "home") == []


@pytest.mark.a_slice(1)  # always in the quick tier, whatever slice of the file it takes
@pytest.mark.whole_only
def test_another_folders_server_that_comes_up_on_the_chosen_port_first_is_not_taken_for_ones_own(
    tmp_path, monkeypatch, prefect_environment
):
    """If the server of another folder already uses the chosen port, this folder starts its own on another port."""
    taken = int(prefect_environment["PREFECT_API_URL"].removesuffix("/api").rpartition(":")[2])
    chosen = prefect_server._choose_port
    chooses = [taken]
    monkeypatch.setattr(prefect_server, "_choose_port", lambda known: chooses.pop() if chooses else chosen(known))
    server = connect(with_tables(tmp_path / "home"), {})
    try:
        assert server.port != taken
        assert prefect_server.find_running_server(tmp_path / "home") == server
    finally:
        assert prefect_server.stop_server(tmp_path / "home")


def test_a_configured_server_that_is_silent_is_an_error_and_no_other_is_started(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/api"
    with pytest.raises(prefect_server.PrefectUnavailable, match="no Prefect server answers"):
        connect(tmp_path / "home", {}, configured=url)
    assert not (tmp_path / "home").exists()


def test_the_servers_process_gets_no_secret(tmp_path):
    environment = {
        **os.environ,
        "ANTHROPIC_API_KEY": "sk-a-secret",
        "SLACK_BOT_TOKEN": "xoxb-a-secret",
        "TZ": "UTC",
    }
    environment.pop("PREFECT_API_URL", None)
    server, process = prefect_server._spawn_server(tmp_path, environment, find_free_port("127.0.0.1", 0))
    try:
        variables = Path(f"/proc/{server.pid}/environ").read_text(errors="replace").split("\0")
    finally:
        process.kill()
        process.wait()
    assert "TZ=UTC" in variables
    assert not any("a-secret" in line for line in variables)


def test_a_note_of_a_server_that_is_gone_is_not_believed(tmp_path):
    (tmp_path / "server.json").write_text('{"pid": 1, "port": 9}', encoding="utf-8")
    assert prefect_server.find_running_server(tmp_path) is None
    (tmp_path / "server.json").write_text("torn", encoding="utf-8")
    assert prefect_server.find_running_server(tmp_path) is None


def test_another_ones_server_on_the_old_port_is_not_taken_for_ones_own(tmp_path, prefect_environment):
    port = int(prefect_environment["PREFECT_API_URL"].removesuffix("/api").rpartition(":")[2])
    with subprocess.Popen(["/bin/true"]) as ended:
        pass
    for pid in (ended.pid, os.getpid()):  # gone, and given to another process since
        note = f'{{"pid": {pid}, "port": {port}}}'
        (tmp_path / "server.json").write_text(note, encoding="utf-8")
        assert prefect_server.find_running_server(tmp_path) is None
        assert not prefect_server.stop_server(tmp_path)


def test_an_unwritable_home_is_reported(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(
        WarehouseUnwritable,
        match=r"cannot write .*/file: .*a file exists at the path of a folder that Lookout needs",
    ):
        connect(tmp_path / "file" / "home", {})


def test_a_local_server_deletes_runs_that_ended_long_ago(monkeypatch, tmp_path):
    """A local server deletes events and runs after 90 days. By default, Prefect never deletes runs."""
    for name, value in prefect_server.build_client_settings("http://127.0.0.1:1/api", tmp_path).items():
        monkeypatch.setenv(name, value)
    settings = ServerServicesDBVacuumSettings()
    assert settings.enabled_vacuum_types >= {"events", "flow_runs"}
    assert settings.retention_period.days == 90
