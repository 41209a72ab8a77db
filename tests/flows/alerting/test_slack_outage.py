"""Minutes of the hour that the soak of Slack's outages lives through."""

from __future__ import annotations

import pytest

from tests.soak.soak_slack_outage import faults_in, live_through

MINUTES = 4


@pytest.mark.parametrize("outage", ["429:3600", "500", "hang", "slow"])
@pytest.mark.whole_only
def test_while_slack_is_away_alerts_wait_and_then_arrive_once_and_in_order(tmp_path, outage):
    """No run tries more than two of those that wait, so none hangs on Slack for longer than two sends."""
    assert faults_in(live_through(outage, MINUTES, tmp_path), MINUTES) == []
