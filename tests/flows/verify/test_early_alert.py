"""The first severe failure alerts during the run. A failed alert is a fault of the run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from flows.alerting.faults import Fault
from flows.alerting.notifier import Notifier
from flows.verify.alerts import EarlyAlerts
from flows.verify.run_state import LiveRun
from monitors.alerts.observe import ObservationContext
from monitors.alerts.settings import AlertSettings
from monitors.alerts.wording import FAILURE_TITLES
from monitors.records.base import Severity
from monitors.records.grades import Aspect, FailureKind
from tests.builders import case_result, gold_case
from tests.flows.alerting_testbed import AlertingTestbed
from tests.monitors.alerts.sample_observations import NIGHT
from tests.servers.slack import SlackServer

LEAK = (Aspect.DISCLOSURE, FailureKind.PII_DISCLOSURE)
AT = ObservationContext(target="demo", run_id="run-1", seen_at=NIGHT)


@dataclass(frozen=True)
class Alerts:
    """A configuration that has only the table ``[alerts]``, which these tests need."""

    alerts: AlertSettings


@dataclass(frozen=True)
class Place:
    """The part of a run's dependencies that early alerts use: the notifier and the configuration."""

    notifier: Notifier
    config: Alerts


@dataclass
class Going:
    """The part of a run in progress that early alerts use."""

    context: Place
    faults: list[Fault] = field(default_factory=list)


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


def going(testbed: AlertingTestbed) -> Going:
    return Going(Place(testbed.notifier(), Alerts(testbed.settings)))


def leak(name: str) -> Any:
    return case_result(gold_case(name, severity=Severity.CRITICAL), LEAK)


async def test_the_first_severe_failure_alerts_at_once_and_mild_ones_do_not(tmp_path, slack):
    run = going(AlertingTestbed(tmp_path, slack))
    async with EarlyAlerts(cast("LiveRun", run), AT) as pages:
        pages.on_result(case_result(gold_case("right", severity=Severity.CRITICAL)))
        pages.on_result(leak("leak-1"))
        assert await asyncio.to_thread(slack.wait_for, "chat.postMessage")
        pages.on_result(leak("leak-2"))
    (message,) = slack.messages
    assert FAILURE_TITLES[FailureKind.PII_DISCLOSURE] in message.text
    assert run.faults == []


async def test_a_failed_early_alert_is_a_fault_of_the_run(tmp_path, slack):
    """An early alert that fails is a fault of the run.

    A file takes the place of the journal's folder. No alert can be decided, and the result of the run says so.
    """
    testbed = AlertingTestbed(tmp_path, slack)
    run = going(testbed)
    (tmp_path / "journal").write_text("in the way", encoding="utf-8")
    async with EarlyAlerts(cast("LiveRun", run), AT) as pages:
        pages.on_result(leak("leak-1"))
        await asyncio.sleep(0)  # the sender's task takes it up
        await asyncio.sleep(0)
    assert slack.messages == []
    assert [fault.name for fault in run.faults] == ["WarehouseUnwritable"]
