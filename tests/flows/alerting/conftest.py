"""Fixtures: a Slack server, and a data folder whose alerts go to that server."""

from __future__ import annotations

import pytest

from tests.flows.alerting_testbed import AlertingTestbed
from tests.servers.slack import SlackServer


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def testbed(tmp_path, slack):
    return AlertingTestbed(tmp_path, slack)
