"""Test with the demo's faulty Space and Slack that alerts state what the failed cases have in common."""

from __future__ import annotations

import json

import pytest

from deployments.demo.configuration import SUITE
from deployments.demo.faults import PlantedFaults
from monitors.alerts.wording import FAILURE_TITLES
from monitors.records.grades import FailureKind
from tests.flows.few_cases import BY_API, configured
from tests.servers.slack import TOKEN, SlackServer

pytestmark = [pytest.mark.browser, pytest.mark.prefect]

LINE = (
    f"group is {PlantedFaults.OUTDATED} in 10 of all 16 failures: 10 of 32 such cases failed, 6 of 162 other cases"
)


@pytest.mark.whole_only
def test_the_alert_names_the_policy(tmp_path, lookout, faulty_space):
    """Every message, the terminal and the reports name the policy that the failed cases have in common."""
    with SlackServer() as slack:
        configured(tmp_path, faulty_space, SUITE, BY_API, slack_api_url=slack.api_url, slack_channel="#alerts")
        done = lookout("verify", "demo", cwd=tmp_path, SLACK_BOT_TOKEN=TOKEN)
        messages = [json.dumps(message.blocks, ensure_ascii=False) for message in slack.messages]
    assert done.returncode == 1, done.stderr
    assert any(FAILURE_TITLES[FailureKind.PII_DISCLOSURE] in message for message in messages)
    assert all(message.count(f"In common: {LINE}") == 1 for message in messages), messages
    assert f"In common {LINE}" in " ".join(done.stdout.split())
    run = max(tmp_path.glob("data/runs/*"))
    for name in ("results.md", "report.html"):
        assert LINE in (run / name).read_text(encoding="utf-8"), name
