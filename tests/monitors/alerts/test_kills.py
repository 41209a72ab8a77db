"""Test that workers send a message only once, even if a worker process is killed while it sends the message."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.slack import SlackServer

ROOT = Path(__file__).resolve().parents[3]


OVER_AT_ONCE_S = 0.001
"""The length of a lease in seconds. It is so short that the lease ends before the next worker process starts."""


def worker(folder: Path, slack: SlackServer, lease_s: float = OVER_AT_ONCE_S) -> list[str]:
    module = "tests.monitors.alerts.paging_worker"
    return [sys.executable, "-m", module, str(folder), slack.api_url, str(lease_s)]


def killed_while_sending(folder: Path, slack: SlackServer) -> None:
    """Start a worker, and kill it with SIGKILL while it waits for Slack's response to its request."""
    with subprocess.Popen(worker(folder, slack), cwd=ROOT) as process:
        assert slack.wait_for("chat.postMessage")
        process.kill()
        assert process.wait() == -9


def finished(folder: Path, slack: SlackServer) -> None:
    subprocess.run(worker(folder, slack), cwd=ROOT, check=True, timeout=120)


@pytest.mark.whole_only
@pytest.mark.parametrize("fault", ["hang", "slow"], ids=["f07", "f08"])
def test_f07_f08_a_kill_before_or_after_slack_took_it_leaves_one_message(tmp_path, fault):
    """A worker that is killed while it sends leaves one message in Slack.

    If Slack had not stored the message before the kill, the next worker sends it. Otherwise, the next worker finds
    the message in Slack and does not send it again.
    """
    with SlackServer() as slack:
        slack.misbehave("ok", fault)
        killed_while_sending(tmp_path, slack)
        assert len(slack.messages) == (fault == "slow")
        finished(tmp_path, slack)
        assert len(slack.messages) == 1


def test_f15_two_workers_at_once_send_one_message(tmp_path):
    with SlackServer() as slack:
        workers = [subprocess.Popen(worker(tmp_path, slack, lease_s=90), cwd=ROOT) for _ in range(2)]
        assert [process.wait(timeout=120) for process in workers] == [0, 0]
        assert len(slack.messages) == 1
