"""A run's first page grows: what the run finds later is shown in it, and at the end both scores and the report."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from flows.desk import Desk
from monitors.alerts.compose import OPENING, channel_of, thread_of
from monitors.alerts.growing import continues_a_page, grown
from monitors.errors import NotifyError, NotifyRejected, WarehouseError
from monitors.records.incidents import Alert, AlertItem, DeliveryStatus, IncidentState, Link, Receipt
from warehouse.messages import marks_on

_SENT = """
select a.record, r.channel, r.thread from alerts a join receipts r on r.alert_id = a.id
where a.run_id = $run and a.target = $target and r.status = 'sent'
  and r.thread is not null and r.channel is not null
order by a.created_at, a.id
"""


class Page(NamedTuple):
    """A message that stands in a channel, with all that was told in it so far, oldest first."""

    channel: str
    ts: str
    told: tuple[Alert, ...]


async def shown_in_first_page(desk: Desk, alert: Alert) -> Receipt | None:
    """Show ``alert`` in the message that its run began with; ``None`` where it must be a message of its own.

    An edit may be repeated, so a lost reply costs nothing. When the first message is gone, or cannot be edited,
    the news goes below it.
    """
    ts, channel = thread_of(alert), channel_of(alert)
    if not continues_a_page(alert) or ts is None or channel is None:
        return None
    page = next((one for one in await _pages(desk) if (one.channel, one.ts) == (channel, ts)), None)
    if page is None or page.told[0].id == alert.id:
        return None
    try:
        await desk.sender.update(grown(page.told[0], (*page.told[1:], alert)), channel=channel, ts=ts)
    except NotifyRejected:
        return None
    except NotifyError as error:
        return Receipt(alert_id=alert.id, status=DeliveryStatus.FAILED, at=desk.now(), detail=str(error))
    return Receipt(
        alert_id=alert.id,
        status=DeliveryStatus.SENT,
        at=desk.now(),
        channel=channel,
        thread=ts,
        detail=f"shown in {page.told[0].id}, the first message of its run",
    )


async def finish_first_pages(
    desk: Desk,
    *,
    flat: str | None,
    weighted: str | None,
    links: tuple[Link, ...],
    flaky: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Put scores and links into what was told before they were known; why any message could not be edited.

    ``flaky`` says by case id how often a case was right that was right only sometimes: when the first ask was told,
    the others were still to come. What somebody has acknowledged meanwhile is left as it is.
    """
    failed: list[str] = []
    quiet = await asyncio.to_thread(_acknowledged, desk)
    for page in await _pages(desk):
        first = grown(page.told[0], page.told[1:])
        if first.flat is not None or {item.incident.fingerprint for item in first.items} <= quiet:
            continue
        items = tuple(_marked_flaky(item, flaky or {}) for item in first.items)
        changes = {"flat": flat, "weighted": weighted, "links": links, "items": items}
        whole = first.model_copy(update=changes)
        try:
            await desk.sender.update(whole, channel=page.channel, ts=page.ts)
        except NotifyError as error:
            failed.append(str(error))
    return tuple(failed)


def _marked_flaky(item: AlertItem, flaky: Mapping[str, str]) -> AlertItem:
    words = flaky.get(item.observation.case_id or "")
    if words is None:
        return item
    return item.model_copy(update={"observation": item.observation.model_copy(update={"flaky": words})})


async def _pages(desk: Desk) -> tuple[Page, ...]:
    try:
        return await asyncio.to_thread(_read_pages, desk)
    except WarehouseError:
        return ()  # then the news goes below the first message instead of into it


def _read_pages(desk: Desk) -> tuple[Page, ...]:
    told: dict[tuple[str, str], list[Alert]] = {}
    for record, channel, ts in desk.store.query(_SENT, {"run": desk.run_id, "target": desk.target}).rows:
        alert = Alert.model_validate_json(str(record))
        if alert.reason in OPENING:
            told.setdefault((str(channel), str(ts)), []).append(alert)
    return tuple(Page(channel, ts, _marked(desk, alerts)) for (channel, ts), alerts in told.items())


def _marked(desk: Desk, told: list[Alert]) -> tuple[Alert, ...]:
    """What people have done about it stays visible while it grows."""
    marks = marks_on(desk.store, grown(told[0], told[1:]))
    return (told[0].model_copy(update={"marks": marks}), *told[1:])


def _acknowledged(desk: Desk) -> frozenset[str]:
    try:
        still = desk.store.open_incidents(desk.target)
    except WarehouseError:
        return frozenset()
    return frozenset(one.fingerprint for one in still if one.state is IncidentState.ACKNOWLEDGED)
