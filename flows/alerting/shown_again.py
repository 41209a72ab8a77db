"""Messages shown once more after somebody did something about them: as things stand, with who did what.

An edit replaces the whole message, so it says again what the run found out after the message was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from typing import NamedTuple

from flows.alerting.notifier import OperatorActions
from flows.alerting.notify import asked_again, run_summary
from monitors.alerts.sender import AlertSender
from monitors.errors import NotifyError
from monitors.records.incidents import Alert
from monitors.records.operator_actions import ActionOutcome, PersonAction
from warehouse.queries.incidents import action_of, alert_shown, first_messages_of, marks_on, outcomes

RECENT = timedelta(hours=1)


class MessageLocation(NamedTuple):
    """A message in a channel, and the alert that it began with."""

    channel: str
    ts: str
    alert_id: str


async def show_again(
    people: OperatorActions, sender: AlertSender, done: Iterable[ActionOutcome]
) -> tuple[str, ...]:
    """Edit every message that ``done`` is about; return why any could not be edited.

    An edit shows how things stand now, so it can be repeated, and the next edit makes up for a missing one.
    """
    failed: list[str] = []
    places = await asyncio.to_thread(_places, people, tuple(done))
    for place in places:
        alert = await asyncio.to_thread(as_it_stands, people, place.alert_id)
        if alert is None:
            continue
        try:
            await sender.update(alert, channel=place.channel, ts=place.ts)
        except NotifyError as error:
            failed.append(str(error))
    return tuple(failed)


def outcome_of(people: OperatorActions, action_id: str) -> ActionOutcome | None:
    """The outcome of an action, whoever carried it out; ``None`` while it waits."""
    return next(iter(outcomes(people.store, action_id=action_id)), None)


def recent_outcomes(people: OperatorActions, within: timedelta = RECENT) -> tuple[ActionOutcome, ...]:
    """Actions done lately, oldest first: a killed receiver may not have shown them."""
    return outcomes(people.store, since=people.now() - within)


def as_it_stands(people: OperatorActions, alert_id: str) -> Alert | None:
    """A message with all that it shows and the operator actions on it; ``None`` when it is not known here."""
    shown = alert_shown(people.store, alert_id)
    if not shown:
        return None
    first, *later = shown
    whole = _explained(people, first.grow(later))
    return whole.with_marks(marks_on(people.store, whole))


def _explained(people: OperatorActions, alert: Alert) -> Alert:
    """The alert with all that its run found out after it was sent, where that run has ended."""
    report = people.store.report(alert.items[0].observation.run_id)
    if report is None:
        return alert
    patterns = people.account_patterns(alert.target)
    summary = run_summary(report, alert.links, account_patterns=patterns)
    again = asked_again(alert, report.recheck, account_patterns=patterns) if report.recheck else ""
    return alert.with_recheck(again).with_summary(summary.over(alert))


def _places(people: OperatorActions, done: tuple[ActionOutcome, ...]) -> tuple[MessageLocation, ...]:
    """The messages with the buttons, and the first message about each incident."""
    places: dict[tuple[str, str], MessageLocation] = {}
    for outcome in done:
        action = action_of(people.store, outcome.action_id)
        if action is not None and (clicked := _clicked(action)):
            places[clicked.channel, clicked.ts] = clicked
        for channel, ts, alert_id in first_messages_of(people.store, outcome.fingerprints):
            places.setdefault((channel, ts), MessageLocation(channel, ts, alert_id))
    return tuple(places.values())


def _clicked(action: PersonAction) -> MessageLocation | None:
    if action.channel is None or action.message_ts is None or action.alert_id is None:
        return None
    return MessageLocation(action.channel, action.message_ts, action.alert_id)
