"""A short version of the soak test that simulates Slack outages of an hour."""

from __future__ import annotations

import pytest

from tests.soak.soak_slack_outage import faults_in, live_through

MINUTES = 4


@pytest.mark.parametrize("outage", ["429:3600", "500", "hang", "slow"])
@pytest.mark.whole_only
def test_while_slack_is_away_alerts_wait_and_then_arrive_once_and_in_order(tmp_path, outage):
    """Alerts wait during a Slack outage. Then each arrives once, in the original order."""
    assert faults_in(live_through(outage, MINUTES, tmp_path), MINUTES) == []
