"""Test that two machines with separate data folders and a shared Prefect server send each alert once.

The tests run the `lookout` command for both machines.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.conftest import ROOT
from tests.flows.few_cases import BY_API, configured, few_cases
from tests.servers.slack import TOKEN, SlackServer

pytestmark = [pytest.mark.browser, pytest.mark.prefect, pytest.mark.whole_only]


@pytest.fixture
def machines(tmp_path):
    folders = [tmp_path / name for name in ("machine-a", "machine-b")]
    for folder in folders:
        folder.mkdir()
    return folders


def set_up(folders, space, slack, suite):
    for folder in folders:
        configured(folder, space, suite, BY_API, slack_api_url=slack.api_url, slack_channel="#alerts")


def start_verify(folder, prefect_environment):
    with (folder / "verify.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "deployments.cli.app", "verify", "demo"],
            cwd=folder,
            env={**prefect_environment, "PYTHONPATH": str(ROOT), "SLACK_BOT_TOKEN": TOKEN},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def test_two_runs_at_once_send_each_alert_once(tmp_path, machines, lookout, prefect_environment, faulty_space):
    with SlackServer() as slack:
        set_up(machines, faulty_space, slack, few_cases(tmp_path, severe=1, others=0))
        runs = [start_verify(folder, prefect_environment) for folder in machines]
        assert [run.wait(240) for run in runs] == [1, 1], (machines[0] / "verify.log").read_text()
        first_lines = [message.text for message in slack.messages]
    receipts = "".join(lookout("sql", "select detail from receipts", cwd=folder).stdout for folder in machines)
    # A Prefect server on a busy machine may not answer within 5 s; then both send, and the receipt says why.
    without_lease = receipts.count("sent without a lease")
    assert len(first_lines) == len(set(first_lines)) <= 2 + without_lease, "the leak and the gate"
    assert receipts.count("sent by another machine") == 4 - len(first_lines)


def test_a_sender_that_is_killed_before_its_receipt_is_replaced(
    tmp_path, machines, lookout, prefect_environment, faulty_space
):
    with SlackServer() as slack:
        set_up(machines, faulty_space, slack, few_cases(tmp_path, severe=1, others=0))
        slack.misbehave("hang")
        dead = start_verify(machines[0], prefect_environment)
        assert slack.wait_for("chat.postMessage", 240), (machines[0] / "verify.log").read_text()
        os.killpg(dead.pid, signal.SIGKILL)
        dead.wait(30)
        killed_at = time.monotonic()
        done = lookout("verify", "demo", cwd=machines[1], SLACK_BOT_TOKEN=TOKEN)
        assert done.returncode == 1, done.stderr
        assert time.monotonic() - killed_at > 45, "it waited for the lease of 60 s"
        assert len(slack.messages) == 2, "the leak and the gate"
