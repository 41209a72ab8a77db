"""``lookout up`` refuses an incomplete configuration, runs each delivery, and leaves no process behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys

import httpx
import pytest

from deployments.up.guard import find_descendants
from flows.server.prefect_server import find_running_server
from tests import fork_server
from tests.conftest import ROOT
from tests.deployments.cli.test_bare_commands import answers
from tests.deployments.triggers.senders import COMMIT, GITHUB_SECRET
from tests.deployments.up.test_guard import wait_until_gone
from tests.deployments.up_process import SECRETS, START_S, UP, find_free_ports_of_installation, runs_of_deploys, up
from tests.flows.few_cases import few_cases
from tests.in_process import run_in_process
from tests.prefect_home import with_tables
from tests.stable_text import replace_volatile

TRIGGER = '[[deploys.triggers]]\nprovider = "github"\nrepository = "acme/helpdesk"\ntarget = "bot"\n'


def configured(folder, extra=TRIGGER):
    few_cases(folder, severe=1, others=1)
    file = folder / "lookout.toml"
    file.write_text(
        'data_folder = "data"\n[targets.bot]\nurl = "http://127.0.0.1:9"\nsuite = "few.jsonl"\n'
        f"[targets.bot.probe]\npage_deadline_s = 5\n{extra}",
        encoding="utf-8",
    )
    return file


def refused(file, *, port=None, command="up", **variables):
    """Return the error that the command prints when it refuses to start."""
    place = () if command == "receive" else ("--port", str(port or find_free_ports_of_installation()))
    environment = fork_server.bare(COLUMNS="400", **variables)
    done = run_in_process(command, "--config", str(file), *place, cwd=file.parent, env=environment)
    assert done.returncode == 2, done.stderr
    assert not (file.parent / "data" / "prefect").exists()
    return replace_volatile(done.stderr, file.parent)


def states(api):
    """Return the names and states of the runs that deploys created."""
    return {run["name"]: run["state_name"] for run in runs_of_deploys(api, "bot")}


@pytest.mark.prefect
@pytest.mark.browser
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
@pytest.mark.whole_only
def test_from_one_command_a_delivery_becomes_a_run_a_killed_part_comes_back_and_nothing_is_left(tmp_path):
    """`lookout up` turns a delivery into a run, restarts a killed part, and leaves no process behind."""
    with_tables(tmp_path / "data" / "prefect")
    with up(configured(tmp_path), environment=fork_server.bare()) as running:
        running.until(running.receives, "the receiver answers")
        os.kill(running.pid_of("deployments.up.service"), signal.SIGKILL)
        running.until(lambda: "service  | ended with code 137" in running.said(), "its end is noticed")
        running.until(running.receives, "the receiver is back")
        running.until(running.serves, "the runner serves")
        address, _, port = running.url.rpartition(":")
        running.until(lambda: answers(f"{address}:{int(port) + 2}/healthz"), "the site answers")
        api = find_running_server(tmp_path / "data" / "prefect").api_url

        assert running.deliver(COMMIT).status_code == 202
        name = f"bot {COMMIT[:12]}"
        running.until(lambda: states(api).get(name) == "Inconclusive", "the run of the missing page has its state")

        family = find_descendants(running.process.pid)
        running.process.terminate()
        assert running.process.wait(START_S) == 0
        wait_until_gone(*family)
    assert list(fork_server.bare_home().glob(".prefect*")) == []
    said = running.said()
    assert said.splitlines()[-1].endswith("up       | stopped")
    assert "local Prefect server" in said
    next_at = r"\d{4}-\d\d-\d\d 01:00 UTC"
    assert re.search(rf"scheduled-verify-bot .* next {next_at}\n", said)
    assert re.search(r"load-warehouse .* \S+ 04:30 UTC\n", said)
    assert GITHUB_SECRET not in said
    assert "Traceback" not in said
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ [a-z]+ +\| ", line) for line in said.splitlines())


@pytest.mark.whole_only
@pytest.mark.prefect
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
def test_killed_itself_it_leaves_nothing_behind_and_a_second_one_is_refused(tmp_path, prefect_environment):
    """If `lookout up` itself is killed, none of its processes is left. A second `lookout up` is refused.

    The installation uses another Prefect server, which keeps running.
    """
    api = prefect_environment["PREFECT_API_URL"]
    file = configured(tmp_path)
    with up(file, PREFECT_API_URL=api, SLACK_SIGNING_SECRET="8f742231b10e") as running:
        running.until(running.receives, "the receiver answers")
        assert "set slack_buttons" in running.said()
        assert "server" not in running.said().splitlines()[0].rpartition(": ")[2]
        second = subprocess.run(
            [*UP, str(file), "--port", running.url.rpartition(":")[2]],
            env=os.environ | {"PYTHONPATH": str(ROOT), "PREFECT_API_URL": api} | SECRETS,
            capture_output=True,
            text=True,
            timeout=START_S,
            check=False,
        )
        assert second.returncode == 2
        assert "`lookout receive`" in second.stderr, "another one runs over this folder"
        assert "cannot listen" not in second.stderr
        family = find_descendants(running.process.pid)
        assert len(family) >= 2
        running.process.kill()
        running.process.wait()
        wait_until_gone(*family)
    assert httpx.get(f"{api}/health", trust_env=False).json() is True


def test_f31_everything_that_is_wrong_is_named_at_once_and_nothing_is_started(tmp_path, snapshot):
    extra = (
        TRIGGER.replace('"bot"', '"bit"')
        + TRIGGER.replace("github", "huggingface")
        + '[targets.other]\nurl = "http://127.0.0.1:9"\nsuite = "missing.jsonl"\n[alerts]\nslack_buttons = true\n'
    )
    port = find_free_ports_of_installation()
    with socket.create_server(("127.0.0.1", port)):
        said = refused(configured(tmp_path, extra), port=port, SLACK_SIGNING_SECRET="abc12")
    assert "abc12" not in said
    assert said.replace(str(port), "PORT") == snapshot


NEEDS = """
[targets.bot.probe]
driver = "json"
headers = { "X-Api-Key" = { env = "BOT_KEY" }, "X-Tenant-Token" = { env = "TENANT" } }
api.request = '{"question": "{question}"}'
api.text = "answer"
[targets.bot.traffic.sources.export]
kind = "http"
url = "http://127.0.0.1:9/export"
token_env = "EXPORT_TOKEN"
[targets.page]
model_family = "llama"
url = "http://127.0.0.1:9"
suite = "few.jsonl"
experiments = "langsmith:page"
[targets.page.traffic]
privacy = "pseudonymise"
[targets.page.traffic.sources.traces]
kind = "langsmith"
project = "page"
[targets.page.login]
user = { env = "PAGE_USER" }
password = { env = "PAGE_PASSWORD" }
[judge]
budget_usd = 2
[gate]
rating_needed = true
"""


def test_every_variable_that_a_run_would_miss_is_named_with_its_target_and_key(tmp_path, snapshot):
    """Before the start, `lookout up` names each missing variable that a run would need, with its target and key."""
    few_cases(tmp_path, severe=1, others=1)
    file = tmp_path / "lookout.toml"
    bot = 'data_folder = "data"\n[targets.bot]\nmodel_family = "llama"\nurl = "http://127.0.0.1:9"\nsuite = "few.jsonl"\n'
    file.write_text(bot + NEEDS, encoding="utf-8")
    assert refused(file) == snapshot
    known = {"BOT_KEY": "k-1", "TENANT": "t-1", "EXPORT_TOKEN": "e-1", "PAGE_USER": "u", "PAGE_PASSWORD": "p"}
    said = refused(file, **known)
    assert "ANTHROPIC_API_KEY" in said
    assert not [name for name in known if name in said], said


def test_a_receiver_alone_names_what_its_runs_would_miss(tmp_path, snapshot):
    """`lookout receive` alone names the variables that its runs would miss.

    It checks only targets with a deploy trigger.
    """
    few_cases(tmp_path, severe=1, others=1)
    file = tmp_path / "lookout.toml"
    bot = 'data_folder = "data"\n[targets.bot]\nmodel_family = "llama"\nurl = "http://127.0.0.1:9"\nsuite = "few.jsonl"\n'
    file.write_text(bot + NEEDS.partition("[judge]")[0] + TRIGGER, encoding="utf-8")
    said = refused(file, command="receive", **SECRETS)
    assert "PAGE_USER" not in said
    assert said == snapshot


def test_a_file_that_is_wrong_itself_is_refused_with_all_its_keys(tmp_path):
    said = refused(configured(tmp_path, "[gates]\n[alerts]\nslack_button = true\n"))
    assert "gates: " in said
    assert "alerts.slack_button: " in said
