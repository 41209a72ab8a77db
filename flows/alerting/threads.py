"""Alerts that stay up to date: an edit adds later failures, both scores, the report, and operator actions.

A run's first alert grows while the run goes on. Every alert shows who acknowledged it and when, and what is left to
do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

from flows.alerting.notifier import Notifier
from monitors.alerts.grouping import OPENING, channel_of, continues_an_alert, grown, thread_of
from monitors.errors import NotifyError, NotifyRejected, WarehouseError
from monitors.records.incidents import Alert, AlertItem, DeliveryStatus, IncidentState, Link, Receipt
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
    ts, channel = thread_of(alert), channel_of(alert)
    if not continues_an_alert(alert) or ts is None or channel is None:
        return None
    page = next((one for one in await _pages(notifier) if (one.channel, one.ts) == (channel, ts)), None)
    if page is None or page.alerts[0].id == alert.id:
        return None
    try:
        await notifier.sender.update(grown(page.alerts[0], (*page.alerts[1:], alert)), channel=channel, ts=ts)
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
    *,
    flat: str | None,
    weighted: str | None,
    links: tuple[Link, ...],
    dimensions: str | None = None,
    in_common: tuple[str, ...] = (),
    changed: tuple[str, ...] = (),
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
        first = grown(page.alerts[0], page.alerts[1:])
        more = again(first) if again else ""
        known_already = first.flat is not None or {item.incident.fingerprint for item in first.items} <= quiet
        if known_already and not more:
            continue
        items = tuple(_marked_flaky(item, flaky or {}) for item in first.items)
        known = {
            "flat": flat,
            "weighted": weighted,
            "links": links,
            "dimensions": dimensions,
            "in_common": in_common,
            "changed": changed,
            "again": more,
            "under_way": False,
        }
        whole = first.model_copy(update={"items": items, **known})
        try:
            await notifier.sender.update(whole, channel=page.channel, ts=page.ts)
        except NotifyError as error:
            failed.append(str(error))
    return tuple(failed)


def _marked_flaky(item: AlertItem, flaky: Mapping[str, str]) -> AlertItem:
    text = flaky.get(item.observation.case_id or "")
    if text is None:
        return item
    return item.model_copy(update={"observation": item.observation.model_copy(update={"flaky": text})})


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
    marks = marks_on(notifier.store, grown(alerts[0], alerts[1:]))
    return (alerts[0].model_copy(update={"marks": marks}), *alerts[1:])


def _acknowledged(notifier: Notifier) -> frozenset[str]:
    try:
        still = notifier.store.open_incidents(notifier.target)
    except WarehouseError:
        return frozenset()
    return frozenset(one.fingerprint for one in still if one.state is IncidentState.ACKNOWLEDGED)
