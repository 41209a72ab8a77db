"""Alerts that stay up to date: an edit adds later failures, both scores, the report, and what people did.

A run's first alert grows while the run goes on. Every alert shows who acknowledged it and when, and what is left to
do. An edit replaces the whole message, so it says again what the run found out after the message was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import NamedTuple

from flows.alerting.notifier import Notifier, OperatorActions
from flows.alerting.run_summary import format_recheck_of, run_summary
from monitors.alerts.sender import AlertSender
from monitors.errors import NotifyError, NotifyRejected, WarehouseError
from monitors.records.incidents import OPENING, Alert, DeliveryStatus, IncidentState, Receipt, RunSummary
from monitors.records.operator_actions import ActionOutcome
from warehouse.queries.incidents import (
    action_of,
    alert_shown,
    first_messages_of,
    marks_on,
    outcomes,
    sent_by_run,
)


class AlertThread(NamedTuple):
    """A message in a channel, with all alerts that it shows so far, oldest first."""

    channel: str
    ts: str
    alerts: tuple[Alert, ...]


async def add_to_first_alert(notifier: Notifier, alert: Alert) -> Receipt | None:
    """Show ``alert`` in the message that its run began with; ``None`` where it must be a message of its own.

    An edit can be repeated, so a missing reply costs nothing. When the first message is gone, or cannot be edited,
    the news goes below it.
    """
    ts, channel = alert.thread, alert.channel
    if not alert.continues_an_alert or ts is None or channel is None:
        return None
    first = next((t for t in await _read_threads(notifier) if (t.channel, t.ts) == (channel, ts)), None)
    if first is None or first.alerts[0].id == alert.id:
        return None
    try:
        await notifier.sender.update(first.alerts[0].grow((*first.alerts[1:], alert)), channel=channel, ts=ts)
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
        detail=f"shown in {first.alerts[0].id}, the first message of its run",
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
    failures: list[str] = []
    acknowledged = await asyncio.to_thread(_read_acknowledged, notifier)
    for thread in await _read_threads(notifier):
        first = thread.alerts[0].grow(thread.alerts[1:])
        recheck = again(first) if again else ""
        is_complete = first.flat is not None or acknowledged.issuperset(first.fingerprints)
        if is_complete and not recheck:
            continue
        whole = first.mark_flaky(flaky or {}).with_recheck(recheck).with_summary(summary.over(first))
        try:
            await notifier.sender.update(whole, channel=thread.channel, ts=thread.ts)
        except NotifyError as error:
            failures.append(str(error))
    return tuple(failures)


async def _read_threads(notifier: Notifier) -> tuple[AlertThread, ...]:
    """The threads that this run began; what people did about them stays visible while they grow."""

    def read() -> tuple[AlertThread, ...]:
        alerts: dict[tuple[str, str], list[Alert]] = {}
        for channel, ts, alert in sent_by_run(notifier.store, notifier.run_id, notifier.target):
            if alert.reason in OPENING:
                alerts.setdefault((channel, ts), []).append(alert)
        threads: list[AlertThread] = []
        for (channel, ts), (first, *later) in alerts.items():
            marks = marks_on(notifier.store, first.grow(later))
            threads.append(AlertThread(channel, ts, (first.with_marks(marks), *later)))
        return tuple(threads)

    try:
        return await asyncio.to_thread(read)
    except WarehouseError:
        return ()  # then the news goes below the first message instead of into it


def _read_acknowledged(notifier: Notifier) -> frozenset[str]:
    try:
        incidents = notifier.store.open_incidents(notifier.target)
    except WarehouseError:
        return frozenset()
    return frozenset(i.fingerprint for i in incidents if i.state is IncidentState.ACKNOWLEDGED)


RECENT = timedelta(hours=1)


class MessageLocation(NamedTuple):
    """A message in a channel, and the alert that it began with."""

    channel: str
    ts: str
    alert_id: str


async def update_alerts(
    people: OperatorActions, sender: AlertSender, done: Iterable[ActionOutcome]
) -> tuple[str, ...]:
    """Edit every message that ``done`` is about; return why any could not be edited.

    An edit shows how things stand now, so it can be repeated, and the next edit makes up for a missing one.
    """
    failures: list[str] = []
    for place in await asyncio.to_thread(_find_messages, people, tuple(done)):
        alert = await asyncio.to_thread(current_alert, people, place.alert_id)
        if alert is None:
            continue
        try:
            await sender.update(alert, channel=place.channel, ts=place.ts)
        except NotifyError as error:
            failures.append(str(error))
    return tuple(failures)


def _find_messages(people: OperatorActions, done: Iterable[ActionOutcome]) -> tuple[MessageLocation, ...]:
    """The messages with the buttons, and the first message about each incident."""
    places: dict[tuple[str, str], MessageLocation] = {}
    for outcome in done:
        action = action_of(people.store, outcome.action_id)
        if action and action.channel is not None and action.message_ts is not None and action.alert_id is not None:
            place = MessageLocation(action.channel, action.message_ts, action.alert_id)
            places[place.channel, place.ts] = place
        for channel, ts, alert_id in first_messages_of(people.store, outcome.fingerprints):
            places.setdefault((channel, ts), MessageLocation(channel, ts, alert_id))
    return tuple(places.values())


def outcome_of(people: OperatorActions, action_id: str) -> ActionOutcome | None:
    """The outcome of an action, whoever carried it out; ``None`` while it waits."""
    return next(iter(outcomes(people.store, action_id=action_id)), None)


def recent_outcomes(people: OperatorActions, within: timedelta = RECENT) -> tuple[ActionOutcome, ...]:
    """Actions done lately, oldest first: a killed receiver may not have shown them."""
    return outcomes(people.store, since=people.now() - within)


def current_alert(people: OperatorActions, alert_id: str) -> Alert | None:
    """A message as it stands now; ``None`` when it is not known here.

    That is with all that it shows, all that its run found out after it was sent, and what people did about it.
    """
    shown = alert_shown(people.store, alert_id)
    if not shown:
        return None
    first, *later = shown
    alert = first.grow(later)
    report = people.store.report(alert.items[0].observation.run_id)
    if report is not None:
        patterns = people.account_patterns(alert.target)
        recheck = format_recheck_of(alert, report.recheck, account_patterns=patterns) if report.recheck else ""
        summary = run_summary(report, alert.links, account_patterns=patterns)
        alert = alert.with_recheck(recheck).with_summary(summary.over(alert))
    return alert.with_marks(marks_on(people.store, alert))
