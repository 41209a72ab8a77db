"""Alerts that stay up to date: an edit adds later failures, both scores, the report, and operator actions.

A run's first alert grows while the run goes on. Every alert shows who acknowledged it and when, and what is left to
do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

from flows.alerting.notifier import Notifier
from monitors.errors import NotifyError, NotifyRejected, WarehouseError
from monitors.records.incidents import OPENING, Alert, DeliveryStatus, IncidentState, Receipt, RunSummary
from warehouse.queries.incidents import marks_on, sent_by_run


class AlertThread(NamedTuple):
    """A message in a channel, with all alerts that it shows so far, oldest first."""

    channel: str
    ts: str
    alerts: tuple[Alert, ...]


async def shown_in_first_alert(notifier: Notifier, alert: Alert) -> Receipt | None:
    """Show ``alert`` in the message that its run began with; ``None`` where it must be a message of its own.

    An edit can be repeated, so a missing reply costs nothing. When the first message is gone, or cannot be edited,
    the news goes below it.
    """
    ts, channel = alert.thread, alert.channel
    if not alert.continues_an_alert or ts is None or channel is None:
        return None
    page = next((one for one in await _pages(notifier) if (one.channel, one.ts) == (channel, ts)), None)
    if page is None or page.alerts[0].id == alert.id:
        return None
    try:
        await notifier.sender.update(page.alerts[0].grow((*page.alerts[1:], alert)), channel=channel, ts=ts)
    except NotifyRejected:
        return None
    except NotifyError as error:
        return Receipt(alert_id=alert.id, status=DeliveryStatus.FAILED, at=notifier.now(), detail=str(error))
    return Receipt(
        alert_id=alert.id,
        status=DeliveryStatus.SENT,
        at=notifier.now(),
        channel=channel,
        thread=ts,
        detail=f"shown in {page.alerts[0].id}, the first message of its run",
    )


async def finish_first_alerts(
    notifier: Notifier,
    summary: RunSummary,
    *,
    flaky: Mapping[str, str] | None = None,
    again: Callable[[Alert], str] | None = None,
) -> tuple[str, ...]:
    """Add what a whole run knows to the alerts sent before; return why any message could not be edited.

    That is its scores and links, how its reports on issues did, what its failed cases have in common, and what
    changed since the last accepted run. With ``again``, what came of asking the cases of an alert again is added to
    each, those included that knew the rest already or that somebody has acknowledged meanwhile.

    ``flaky`` maps a case id to how often a case was right that was right only sometimes: its other repeats were
    still to come when the first one was reported. A message that somebody has acknowledged stays as it is.
    """
    failed: list[str] = []
    quiet = await asyncio.to_thread(_acknowledged, notifier)
    for page in await _pages(notifier):
        first = page.alerts[0].grow(page.alerts[1:])
        more = again(first) if again else ""
        known_already = first.flat is not None or quiet.issuperset(first.fingerprints)
        if known_already and not more:
            continue
        whole = first.mark_flaky(flaky or {}).with_recheck(more).with_summary(summary.over(first))
        try:
            await notifier.sender.update(whole, channel=page.channel, ts=page.ts)
        except NotifyError as error:
            failed.append(str(error))
    return tuple(failed)


async def _pages(notifier: Notifier) -> tuple[AlertThread, ...]:
    try:
        return await asyncio.to_thread(_read_pages, notifier)
    except WarehouseError:
        return ()  # then the news goes below the first message instead of into it


def _read_pages(notifier: Notifier) -> tuple[AlertThread, ...]:
    by_message: dict[tuple[str, str], list[Alert]] = {}
    for channel, ts, alert in sent_by_run(notifier.store, notifier.run_id, notifier.target):
        if alert.reason in OPENING:
            by_message.setdefault((channel, ts), []).append(alert)
    return tuple(
        AlertThread(channel, ts, _marked(notifier, alerts)) for (channel, ts), alerts in by_message.items()
    )


def _marked(notifier: Notifier, alerts: list[Alert]) -> tuple[Alert, ...]:
    """The alerts with the operator actions on them, which stay visible while the message grows."""
    marks = marks_on(notifier.store, alerts[0].grow(alerts[1:]))
    return (alerts[0].with_marks(marks), *alerts[1:])


def _acknowledged(notifier: Notifier) -> frozenset[str]:
    try:
        still = notifier.store.open_incidents(notifier.target)
    except WarehouseError:
        return frozenset()
    return frozenset(one.fingerprint for one in still if one.state is IncidentState.ACKNOWLEDGED)
