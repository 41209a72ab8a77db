"""A message shows what people did about it: who acknowledged it and when, and what is left to do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from typing import NamedTuple

from flows.people import People
from monitors.alerts.growing import grown
from monitors.alerts.sender import AlertSender
from monitors.errors import NotifyError
from monitors.records.incidents import Alert
from monitors.records.people import ActionOutcome, PersonAction
from warehouse.messages import action_of, alert_shown, first_messages_of, marks_on, outcomes

RECENT = timedelta(hours=1)


class Place(NamedTuple):
    """A message in a channel, and the alert that it began with."""

    channel: str
    ts: str
    alert_id: str


async def show_again(people: People, sender: AlertSender, done: Iterable[ActionOutcome]) -> tuple[str, ...]:
    """Edit every message that ``done`` is about; why any could not be edited.

    An edit says how things stand now, so that it may be repeated, and a lost one is made good by the next.
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


def outcome_of(people: People, action_id: str) -> ActionOutcome | None:
    """What came of an action, whoever carried it out; ``None`` while it waits."""
    return next(iter(outcomes(people.store, action_id=action_id)), None)


def recent_outcomes(people: People, within: timedelta = RECENT) -> tuple[ActionOutcome, ...]:
    """What was done lately, oldest first: what a killed receiver may not have shown any more."""
    return outcomes(people.store, since=people.now() - within)


def as_it_stands(people: People, alert_id: str) -> Alert | None:
    """A message with all that is shown in it and what people did about it; ``None`` when it is not known here."""
    told = alert_shown(people.store, alert_id)
    if not told:
        return None
    first, *later = told
    whole = grown(first, later)
    return whole.model_copy(update={"marks": marks_on(people.store, whole)})


def _places(people: People, done: tuple[ActionOutcome, ...]) -> tuple[Place, ...]:
    """Where the buttons were, and the first message about each incident."""
    places: dict[tuple[str, str], Place] = {}
    for outcome in done:
        action = action_of(people.store, outcome.action_id)
        if action is not None and (clicked := _clicked(action)):
            places[clicked.channel, clicked.ts] = clicked
        for channel, ts, alert_id in first_messages_of(people.store, outcome.fingerprints):
            places.setdefault((channel, ts), Place(channel, ts, alert_id))
    return tuple(places.values())


def _clicked(action: PersonAction) -> Place | None:
    if action.channel is None or action.message_ts is None or action.alert_id is None:
        return None
    return Place(action.channel, action.message_ts, action.alert_id)
