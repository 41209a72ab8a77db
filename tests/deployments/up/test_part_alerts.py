"""Test that the process that the supervisor starts for each alert sends it to the channel of the monitor."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import fork_server
from tests.deployments.cli.test_up_command import configured
from tests.flows.test_disk_faults import SLACK
from tests.servers.slack import TOKEN, SlackServer


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


def run_part_alert(folder, *arguments):
    """Start the process as `deployments.up.supervise` does, in an environment without our variables."""
    return subprocess.run(
        [sys.executable, "-m", "deployments.up.part_alerts", str(folder / "lookout.toml"), *arguments],
        cwd=fork_server.ROOT,
        env=fork_server.bare(SLACK_BOT_TOKEN=TOKEN),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.whole_only
def test_a_crash_loop_is_reported_once_and_its_end_is_reported_too(tmp_path, slack):
    configured(tmp_path, SLACK.format(slack=slack.api_url))
    for deaths in ("5", "6"):
        done = run_part_alert(tmp_path, "crash-loop", "service", deaths, "137")
        assert (done.returncode, done.stderr) == (0, "")
    (sent,) = slack.messages
    assert sent.channel == "C0MONITOR"
    assert "service" in str(sent.blocks)
    assert "137" in str(sent.blocks)
    done = run_part_alert(tmp_path, "recovery", "service")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(slack.messages) == 2
    assert "service" in str(slack.messages[1].blocks)
    assert run_part_alert(tmp_path, "recovery", "service").returncode == 0
    assert len(slack.messages) == 2, "a part that was not reported has no end to report"


def test_an_alert_that_cannot_be_sent_is_named_with_its_part(tmp_path):
    (tmp_path / "lookout.toml").write_text("[targets", encoding="utf-8")
    done = run_part_alert(tmp_path, "crash-loop", "service", "5", "1")
    assert done.returncode == 4
    assert "service" in done.stderr
    assert "lookout.toml" in done.stderr
    assert "Traceback" not in done.stderr
