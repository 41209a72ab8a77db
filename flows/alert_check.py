"""A test message through every way there is, so that the first real one is not the test."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from flows.alert_wiring import delivery_paths
from flows.wiring import heartbeat_in, terminal_sender, utc_now
from monitors.alerts.compose import compose
from monitors.alerts.events import Sighting, monitor_fault
from monitors.alerts.fallback_sender import DeliveryPath
from monitors.alerts.heartbeat import Beat
from monitors.alerts.lifecycle import decide
from monitors.config import Config
from monitors.errors import NotifyError
from monitors.records.base import Record
from monitors.records.incidents import Alert

TEST_ALERT = "TestAlert"
NO_TARGET = "TEST-nothing-is-wrong"
"""In the place of a target's name, which every message shows in its first line."""


class PathOutcome(Record):
    """What became of the test by one way: its name, whether it arrived, and what to do where it did not.

    ``arrived`` is true for a message that was printed, too: that is how it arrives without credentials. A way that
    is not ``configured`` was not tried.
    """

    path: str
    configured: bool = True
    arrived: bool
    detail: str


async def send_test_alert(
    config: Config, environment: Mapping[str, str], *, target: str
) -> tuple[PathOutcome, ...]:
    """Send a test about ``target`` by the main way, the fallbacks, and the heartbeat; nothing is stored.

    With a bot the channels for the application and for the monitor are tried both. Never raises for a way that
    fails. `ConfigError` where credentials are there and what they need is not configured.
    """
    now = utc_now()
    alert = alert_for_test(config, now)
    paths = delivery_paths(config, environment, now=utc_now) or (DeliveryPath("terminal", terminal_sender(config)),)
    outcomes = [await _try(path, alert, None) for path in paths]
    channel = config.alerts.slack_channel
    if channel and channel != config.alerts.channel_for_monitor() and paths[0].name == "bot":
        elsewhere = config.model_copy(
            update={"alerts": config.alerts.model_copy(update={"slack_monitor_channel": None})}
        )
        main = delivery_paths(elsewhere, environment, now=utc_now)[0]
        outcomes.insert(0, await _try(main, alert_for_test(config, now), f"bot, {channel}"))
    outcomes.append(await _try_heartbeat(environment, target, alert.run_id))
    return tuple(outcomes)


def alert_for_test(config: Config, now: datetime) -> Alert:
    """A message that cannot be mistaken for a real one, on a lock screen neither."""
    at = Sighting(target=NO_TARGET, run_id=f"test-{now:%Y%m%dT%H%M%SZ}", seen_at=now)
    seen = monitor_fault(
        at, what=TEST_ALERT, detail="This is a test of Lookout's alerts, asked for by a person. Nothing is wrong."
    )
    settled = decide({}, [seen], now=now, settings=config.alerts)
    (alert,) = compose(settled.items, target=NO_TARGET, run_id=at.run_id, now=now)
    return alert


async def _try(path: DeliveryPath, alert: Alert, name: str | None) -> PathOutcome:
    try:
        receipt = await path.sender.send(alert)
    except NotifyError as error:
        return PathOutcome(path=name or path.name, arrived=False, detail=str(error))
    where = f" in {receipt.channel}" if receipt.channel else ""
    return PathOutcome(path=name or path.name, arrived=True, detail=f"{alert.id} {receipt.status.value}{where}")


async def _try_heartbeat(environment: Mapping[str, str], target: str, run_id: str) -> PathOutcome:
    """A start without an end: the check notes it, and nobody is told that work was proved."""
    beat = heartbeat_in(environment, target)
    if not beat.is_configured:
        detail = "set LOOKOUT_HEARTBEAT_URL to a check outside: else nobody hears of it when all of this is down"
        return PathOutcome(path="heartbeat", configured=False, arrived=False, detail=detail)
    if await beat.ping(Beat.STARTED, run_id=run_id, note="a test, asked for by a person"):
        return PathOutcome(path="heartbeat", arrived=True, detail="the check took a start ping")
    detail = (
        "the check did not take the ping: see whether the address in LOOKOUT_HEARTBEAT_URL is right and reachable"
    )
    return PathOutcome(path="heartbeat", arrived=False, detail=detail)
