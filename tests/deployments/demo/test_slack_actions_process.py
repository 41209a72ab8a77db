"""The receiver as a process: it refuses to start without its secret, and no action is lost if it is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from contextlib import contextmanager
from datetime import UTC, datetime

import httpx
import pytest

from deployments.demo.configuration import find_free_port
from flows.alerting.pipeline import notify
from tests import fork_server
from tests.conftest import ROOT
from tests.flows.operator_actions import Clock, build_notifier, build_operator_actions
from tests.monitors.alerts.sample_observations import observation
from tests.polling import wait_until
from tests.servers.slack import TOKEN, SlackServer
from tests.servers.slack_interaction import SIGNING_SECRET, form_of, interaction, signed
from tests.servers.slack_rules import texts

ADDRESS_AT = "buttons at "


def environment(**variables):
    ours = ("SLACK_SIGNING_SECRET", "SLACK_BOT_TOKEN", "SLACK_WEBHOOK_URL")
    inherited = {name: value for name, value in os.environ.items() if name not in ours}
    return inherited | fork_server.WARM | variables


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def config(tmp_path, slack):
    file = tmp_path / "lookout.toml"
    file.write_text(
        f'data_folder = "data"\n[alerts]\nslack_channel = "C0ALERTS"\nslack_api_url = "{slack.api_url}"\n'
        'slack_buttons = true\n[targets.demo]\nurl = "http://127.0.0.1:1"\nsuite = "suite.jsonl"\n'
    )
    return file


def test_f31_without_a_secret_it_does_not_start(config, snapshot):
    done = fork_server.run("slack-actions", "--config", str(config), cwd=ROOT, env=environment())
    assert done.returncode == 2
    assert done.stderr == snapshot


@contextmanager
def receiving(config, port):
    """Start the receiver process, and yield the process when it answers requests."""
    process = fork_server.start(
        *("slack-actions", "--config", str(config), "--port", str(port)),
        cwd=ROOT,
        env=environment(SLACK_SIGNING_SECRET=SIGNING_SECRET, SLACK_BOT_TOKEN=TOKEN),
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        assert ADDRESS_AT in process.stderr.readline()
        wait_until(lambda: is_healthy(port), what="the receiver answers")
        yield process
    finally:
        process.kill()
        process.communicate()


def is_healthy(port):
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).text == "ok"
    except httpx.TransportError:
        return False


@pytest.mark.whole_only
def test_f35_a_press_outlives_the_receiver_that_took_it(config, slack, tmp_path):
    """A button press survives the receiver that acknowledged it.

    That receiver is killed after its 200 response, before it can write to the warehouse. The next receiver
    carries out the action and shows it.
    """
    port = find_free_port("127.0.0.1", 0)
    (tmp_path / "data").mkdir()
    clock = Clock(datetime.now(UTC))
    people = build_operator_actions(tmp_path / "data", slack, clock)
    asyncio.run(notify(build_notifier(people, clock), [observation()]))
    with receiving(config, port) as process, people.store.database.hold_lock(30):
        body = form_of(interaction(slack, slack.messages[0], "lookout_acknowledge"))
        answer = httpx.post(
            f"http://127.0.0.1:{port}/slack/actions",
            content=body,
            headers=signed(body, datetime.now(UTC)),
            trust_env=False,
        )
        assert answer.status_code == 200
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert slack.messages[0].edits == 0
    with receiving(config, port):
        wait_until(lambda: slack.messages[0].edits > 0, what="the message shows the action")
    assert any("*Acknowledged* by <@U0ASHA>" in text for text in texts(slack.messages[0].blocks))
    assert people.store.query("select state from incidents").rows == (("acknowledged",),)
