"""Edits Slack messages about alerts that were already sent.

While a run continues, new failures are added to the first message of the run. At the end of the run, the flat
score, the weighted score and the link to the report are added. When a person acknowledges an alert, the message
shows who acknowledged the alert and when. An edit always replaces the whole message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import NamedTuple

from flows.alerting.notifier import Notifier, OperatorActions
from flows.alerting.run_summary import build_run_summary, format_alert_recheck
from monitors.alerts.sender import AlertSender
from monitors.errors import NotifyError, NotifyRejected, WarehouseError
from monitors.records.incidents import OPENING_REASONS, Alert, DeliveryStatus, IncidentState, Receipt, RunSummary
from monitors.records.operator_actions import ActionOutcome
from warehouse.queries.incidents import (
    find_action,
    find_slack_thread_starts,
    list_action_outcomes,
    list_operator_actions_on_alert,
    list_sent_alerts,
    load_alerts_of_message,
)


class AlertThread(NamedTuple):
    """A Slack message and all alerts that the message shows, oldest first."""

    channel: str
    ts: str
    alerts: tuple[Alert, ...]


async def add_alert_to_first_message(notifier: Notifier, alert: Alert) -> Receipt | None:
    """Add ``alert`` to the first message that its run sent.

    Return ``None`` if the alert must be a separate message.

    The alert must be a separate message if the first message was deleted or cannot be edited. The edit is
    idempotent, so it can be repeated, for example after a missing reply from Slack.
    """
    ts, channel = alert.thread, alert.channel
    if not alert.is_added_to_earlier_message or ts is None or channel is None:
        return None
    first = next((t for t in await _read_alert_threads(notifier) if (t.channel, t.ts) == (channel, ts)), None)
    if first is None or first.alerts[0].id == alert.id:
        return None
    try:
        await notifier.sender.update(
            first.alerts[0].merge_alerts((*first.alerts[1:], alert)), channel=channel, ts=ts
        )
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
        detail=f"shown in {first.alerts[0].id}, the first message of the run",
    )


async def add_summary_to_sent_alerts(
    notifier: Notifier,
    summary: RunSummary,
    *,
    flaky: Mapping[str, str] | None = None,
    format_recheck: Callable[[Alert], str] | None = None,
) -> tuple[str, ...]:
    """Add the summary of a finished run to the messages that the run sent. Return the errors of failed edits.

    The summary contains the scores, the links, the common attributes of the failed cases, and the changes since the
    last accepted run. ``flaky`` maps the id of each flaky case to a note on how often the case was answered
    correctly. ``format_recheck`` returns a text about the recheck of an alert's cases, and this text is added to
    the message. A message that already shows the scores, or that a person has acknowledged, is edited only if this
    text is not empty.
    """
    failures: list[str] = []
    acknowledged = await asyncio.to_thread(_read_acknowledged_fingerprints, notifier)
    for thread in await _read_alert_threads(notifier):
        first = thread.alerts[0].merge_alerts(thread.alerts[1:])
        recheck = format_recheck(first) if format_recheck else ""
        is_complete = first.flat is not None or acknowledged.issuperset(first.fingerprints)
        if is_complete and not recheck:
            continue
        whole = (
            first.mark_flaky(flaky or {}).with_recheck(recheck).with_summary(summary.fill_empty_fields_from(first))
        )
        try:
            await notifier.sender.update(whole, channel=thread.channel, ts=thread.ts)
        except NotifyError as error:
            failures.append(str(error))
    return tuple(failures)


async def _read_alert_threads(notifier: Notifier) -> tuple[AlertThread, ...]:
    """Read the Slack messages that started this run's threads, and the operator actions on these messages."""

    def read() -> tuple[AlertThread, ...]:
        alerts: dict[tuple[str, str], list[Alert]] = {}
        for channel, ts, alert in list_sent_alerts(notifier.store, notifier.run_id, notifier.target):
            if alert.reason in OPENING_REASONS:
                alerts.setdefault((channel, ts), []).append(alert)
        threads: list[AlertThread] = []
        for (channel, ts), (first, *later) in alerts.items():
            marks = list_operator_actions_on_alert(notifier.store, first.merge_alerts(later))
            threads.append(AlertThread(channel, ts, (first.with_marks(marks), *later)))
        return tuple(threads)

    try:
        return await asyncio.to_thread(read)
    except WarehouseError:
        return ()  # later alerts are then replies in the thread of the first message


def _read_acknowledged_fingerprints(notifier: Notifier) -> frozenset[str]:
    try:
        incidents = notifier.store.list_open_incidents(notifier.target)
    except WarehouseError:
        return frozenset()
    return frozenset(i.fingerprint for i in incidents if i.state is IncidentState.ACKNOWLEDGED)


RECENT_WINDOW = timedelta(hours=1)


class MessageLocation(NamedTuple):
    """The channel and the timestamp of a Slack message, and the id of the first alert in the message."""

    channel: str
    ts: str
    alert_id: str


async def edit_messages_after_actions(
    actions: OperatorActions, sender: AlertSender, outcomes_done: Iterable[ActionOutcome]
) -> tuple[str, ...]:
    """Edit the messages that must show the outcomes of operator actions. Return the error of each failed edit.

    ``outcomes_done`` are the outcomes that the messages must show. If an edit fails, the next edit of the same
    message also shows the missing outcome, because each edit shows the current state.
    """
    failures: list[str] = []
    for place in await asyncio.to_thread(_find_messages_to_edit, actions, tuple(outcomes_done)):
        alert = await asyncio.to_thread(build_current_alert, actions, place.alert_id)
        if alert is None:
            continue
        try:
            await sender.update(alert, channel=place.channel, ts=place.ts)
        except NotifyError as error:
            failures.append(str(error))
    return tuple(failures)


def _find_messages_to_edit(
    actions: OperatorActions, outcomes_done: Iterable[ActionOutcome]
) -> tuple[MessageLocation, ...]:
    """Find the messages that must be edited to show the outcomes of operator actions.

    The result contains the messages whose buttons a person pressed, and the first message about each incident that
    was changed by an outcome.
    """
    places: dict[tuple[str, str], MessageLocation] = {}
    for outcome in outcomes_done:
        action = find_action(actions.store, outcome.action_id)
        if action and action.channel is not None and action.message_ts is not None and action.alert_id is not None:
            place = MessageLocation(action.channel, action.message_ts, action.alert_id)
            places[place.channel, place.ts] = place
        for channel, ts, alert_id in find_slack_thread_starts(actions.store, outcome.fingerprints):
            places.setdefault((channel, ts), MessageLocation(channel, ts, alert_id))
    return tuple(places.values())


def find_action_outcome(actions: OperatorActions, action_id: str) -> ActionOutcome | None:
    """Return the outcome of an operator action, or ``None`` if it was not carried out yet."""
    return next(iter(list_action_outcomes(actions.store, action_id=action_id)), None)


def list_recent_action_outcomes(
    actions: OperatorActions, window: timedelta = RECENT_WINDOW
) -> tuple[ActionOutcome, ...]:
    """List the outcomes of the operator actions in the last ``window``, oldest first.

    The Slack messages may not show these outcomes, because the process that edits the messages may have been killed
    before the edit.
    """
    return list_action_outcomes(actions.store, since=actions.now() - window)


def build_current_alert(actions: OperatorActions, alert_id: str) -> Alert | None:
    """Build the current content of the message about an alert. Return ``None`` if the store has no such alert.

    The content includes the alerts that were added later, the summary of the run, and the operator actions.
    """
    shown = load_alerts_of_message(actions.store, alert_id)
    if not shown:
        return None
    first, *later = shown
    alert = first.merge_alerts(later)
    report = actions.store.find_report(alert.items[0].observation.run_id)
    if report is not None:
        patterns = actions.account_patterns(alert.target)
        recheck = format_alert_recheck(alert, report.recheck, account_patterns=patterns) if report.recheck else ""
        summary = build_run_summary(report, alert.links, account_patterns=patterns)
        alert = alert.with_recheck(recheck).with_summary(summary.fill_empty_fields_from(alert))
    return alert.with_marks(list_operator_actions_on_alert(actions.store, alert))
