"""A short version of the Slack outages that the soak test simulates for an hour."""

from __future__ import annotations

import pytest

from tests.soak.soak_slack_outage import faults_in, live_through

MINUTES = 4


@pytest.mark.parametrize("outage", ["429:3600", "500", "hang", "slow"])
@pytest.mark.whole_only
def test_while_slack_is_away_alerts_wait_and_then_arrive_once_and_in_order(tmp_path, outage):
    """Alerts wait while Slack is unreachable, and then arrive once and in their order.

    No run tries to send more than two pending alerts, so a run waits for at most two requests to Slack.
    """
    assert faults_in(live_through(outage, MINUTES, tmp_path), MINUTES) == []
