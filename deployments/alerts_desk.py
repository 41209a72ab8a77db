"""What the commands about alerts work on: the warehouse, people's actions, and Slack where there is a token."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deployments.data_folder import data_folder_of, store_of
from flows.messages_again import outcome_of, show_again
from flows.people import People, act, catch_up
from flows.wiring import people_of, slack_bot, utc_now
from monitors.alerts.settings import AlertSettings
from monitors.alerts.slack import SlackBot
from monitors.config import load_config
from monitors.errors import ConfigError, WarehouseBusy
from monitors.records.incidents import Incident
from monitors.records.marks import ActionKind, ActionVia
from monitors.records.people import ActionOutcome, PersonAction
from warehouse.store import FILE_NAME, JOURNAL_FOLDER, Store

WAIT_S: Final = 10.0
ID_CHARACTERS: Final = 24


@dataclass(frozen=True)
class AlertsDesk:
    """One data folder's incidents and the people who look after them."""

    people: People
    bot: SlackBot | None

    @property
    def store(self) -> Store:
        """The warehouse."""
        return self.people.store

    def do(self, kind: ActionKind, incidents: Sequence[Incident], *, by: str, note: str) -> ActionOutcome | None:
        """Keep an action about ``incidents``, carry it out and show it; ``None`` while it waits for the file."""
        action = self._action(kind, incidents, by=by, note=note)
        act(self.people, action)
        with suppress(WarehouseBusy):
            catch_up(self.people, wait_s=WAIT_S)
        outcome = outcome_of(self.people, action.id)
        if outcome is not None and self.bot is not None:
            asyncio.run(show_again(self.people, self.bot, [outcome]))
        return outcome

    def _action(self, kind: ActionKind, incidents: Sequence[Incident], *, by: str, note: str) -> PersonAction:
        about = tuple(incident.fingerprint for incident in incidents)
        at = self.people.now()
        canonical = "\n".join([kind.value, by, at.isoformat(), *about]).encode()
        return PersonAction(
            id=f"command-{hashlib.sha256(canonical).hexdigest()[:ID_CHARACTERS]}",
            kind=kind,
            at=at,
            by=by,
            via=ActionVia.COMMAND,
            fingerprints=about,
            note=note,
        )


def alerts_desk(config: Path, data_folder: Path | None) -> AlertsDesk:
    """The desk of a configuration or a data folder; what waits in the journal is taken in first."""
    folder = data_folder_of(config, data_folder)
    if not (folder / FILE_NAME).exists() and not (folder / JOURNAL_FOLDER).exists():
        raise ConfigError(f"{folder}: no warehouse here yet; a run makes one")
    store = store_of(config, data_folder)
    desk = _desk(config, store)
    with suppress(WarehouseBusy):
        catch_up(desk.people, wait_s=WAIT_S)
    return desk


def _desk(config: Path, store: Store) -> AlertsDesk:
    if config.exists():
        loaded = load_config(config)
        return AlertsDesk(people=people_of(loaded, store), bot=slack_bot(loaded))
    people = People(store=store, settings=AlertSettings(), account_patterns=lambda _: (), now=utc_now)
    return AlertsDesk(people=people, bot=None)
