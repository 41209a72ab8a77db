"""Test that each conversation is in exactly one report if the clock is wrong by a day or more in some nights."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from flows.nightly.context import compute_previous_due_at
from flows.nightly.run import NightlyRun
from monitors.records.incidents import NotifyReason
from monitors.records.nightly import NightlyReport
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.messages import format_messages
from tests.flows.nightly_runs import Nights, talk
from tests.monitors.alerts.sample_observations import NIGHT
from tests.servers.slack import SlackServer

DAY = timedelta(days=1)
RIGHT = timedelta(0)


class Clocked(Nights):
    """Nightly runs on a machine whose clock can be wrong."""

    async def graded_at(self, day: int, wrong: timedelta) -> NightlyReport:
        """Run the nightly run of ``day`` at 02:05, while the clock is wrong by ``wrong``."""
        shown = NIGHT + day * DAY + wrong + timedelta(minutes=5)
        due_at: datetime = compute_previous_due_at(shown, self.settings)
        context = self.wired((due_at - NIGHT) // DAY)
        self.testbed.now = shown
        return await NightlyRun(context).run()


@pytest.fixture
def nights(tmp_path):
    (tmp_path / "data").mkdir()
    with SlackServer() as slack:
        yield Clocked(tmp_path, AlertingTestbed(tmp_path / "data", slack, slack_monitor_channel="C0MONITOR"))


COURSES = {
    "a day ahead in one night": (RIGHT, DAY, RIGHT, RIGHT, RIGHT),
    "two days ahead in one night": (RIGHT, 2 * DAY, RIGHT, RIGHT, RIGHT),
    "ten years ahead in one night": (RIGHT, 3650 * DAY, RIGHT, RIGHT, RIGHT),
    "ahead in the first night": (DAY, RIGHT, RIGHT, RIGHT, RIGHT),
    "ahead from one night on": (RIGHT, DAY, DAY, DAY, DAY),
    "a day behind in one night": (RIGHT, -DAY, RIGHT, RIGHT, RIGHT),
    "ten years behind in one night": (RIGHT, -3650 * DAY, RIGHT, RIGHT, RIGHT),
    "back and forth": (RIGHT, DAY, -DAY, DAY, RIGHT, RIGHT),
}


@pytest.mark.parametrize("course", COURSES.values(), ids=COURSES)
@pytest.mark.a_slice(2)
@pytest.mark.whole_only
async def test_each_conversation_is_graded_once_whatever_the_clock_did(nights, course):
    """Each conversation is stored once and counted in exactly one report, whatever the clock did."""
    for day, wrong in enumerate(course):
        nights.append(*(talk(100 * day + number, hours=2 - 24 * day) for number in range(10)))
        await nights.graded_at(day, wrong)
    rows = nights.loaded("select count(*), count(distinct id) from conversations")
    assert rows == [(10 * len(course), 10 * len(course))]
    assert nights.loaded("select sum((record->>'read')::int) from nightly_runs") == [(10 * len(course),)]


@pytest.mark.whole_only
async def test_a_night_whose_report_is_from_the_future_says_so(nights, snapshot):
    """If a night was graded too early because the clock was a day ahead, its own nightly run says so."""
    for day, wrong in enumerate((RIGHT, DAY)):
        nights.append(talk(day, hours=2 - 24 * day))
        await nights.graded_at(day, wrong)
    nights.append(talk(2, hours=2 - 48))
    report = await nights.graded_at(2, RIGHT)
    assert (report.read, report.known) == (1, 1)
    assert [message.channel for message in nights.testbed.slack.messages] == ["C0MONITOR"]
    after = await nights.graded_at(3, RIGHT)
    assert after.read == 1
    assert [alert.reason for alert in nights.testbed.alerts()] == [NotifyReason.FIRST_SEEN, NotifyReason.RECOVERED]
    assert format_messages(nights.testbed.slack.messages) == snapshot
