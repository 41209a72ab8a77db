"""Test that the first severe failure is alerted during the run, and that a failed alert is a fault of the run."""

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
    """A replacement for the configuration, which has only the settings in ``[alerts]``."""

    alerts: AlertSettings


@dataclass(frozen=True)
class Place:
    """A replacement for the run's context, with the fields that early alerts use."""

    notifier: Notifier
    config: Alerts


@dataclass
class Going:
    """A replacement for a run in progress, with the fields that early alerts use."""

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
    """If an early alert cannot be stored, because the path of the journal is a file, this is a fault of the run."""
    testbed = AlertingTestbed(tmp_path, slack)
    run = going(testbed)
    (tmp_path / "journal").write_text("in the way", encoding="utf-8")
    async with EarlyAlerts(cast("LiveRun", run), AT) as pages:
        pages.on_result(leak("leak-1"))
        await asyncio.sleep(0)  # the sender's task takes it up
        await asyncio.sleep(0)
    assert slack.messages == []
    assert [fault.name for fault in run.faults] == ["WarehouseUnwritable"]
