"""What people do: durable at once and without waiting, carried out once, whoever comes first to do it.

An action goes to the journal like a receipt. Whoever next has the lock (the receiver, a command, a run that is
about to tell something) carries out what is waiting: incidents in their new state, labels, drafts and silences
become one segment with the outcome. An action with an outcome is never carried out again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import duckdb
from pydantic import ValidationError

from monitors.errors import MonitorError
from monitors.records.incidents import Alert, AlertItem, Incident
from monitors.records.marks import ActionKind
from monitors.records.people import Matter, PersonAction, Said, Settlement
from monitors.records.silences import Silence
from warehouse.connection import transaction
from warehouse.journal import OUTBOX, Journal
from warehouse.load import load
from warehouse.outbox import keep, next_sequence
from warehouse.rows import (
    ActionRow,
    DraftRow,
    IncidentRow,
    IncidentVersion,
    LabelRow,
    OutboxRow,
    OutcomeRow,
    SilenceRow,
)
from warehouse.said import what_was_said
from warehouse.store import Store

Settle = Callable[[Matter], Settlement]
"""Pure: an action with what it is about → what comes of it."""


def append_action(journal: Journal, action: PersonAction) -> None:
    """Keep what a person did; durable when this returns. Nobody is waited for. Raises `WarehouseUnwritable`."""
    journal.append_outbox([ActionRow(row=action)])


def append_silence(journal: Journal, silence: Silence) -> None:
    """Keep a silence, or its earlier end; durable when this returns. Raises `WarehouseUnwritable`."""
    journal.append_outbox([SilenceRow(row=silence)])


class CarriedOut(NamedTuple):
    """What came of the actions that waited, and all silences there are, in force or over, newest first.

    ``failed`` names the actions that could not be carried out, with the error's name: they wait on. One of them
    must not keep a run from telling what it found.
    """

    done: tuple[Settlement, ...]
    silences: tuple[Silence, ...]
    failed: tuple[str, ...] = ()


def carry_out(store: Store, journal: Journal, settle: Settle, *, wait_s: float) -> CarriedOut:
    """Carry out every action that is still waiting, oldest first.

    Waits ``wait_s`` seconds at most for the lock, else raises `WarehouseBusy`: then they wait for the next one.
    """
    done: list[Settlement] = []
    failed: list[str] = []
    with store.database.writing(wait_s) as connection:
        load(connection, journal, store.database.scratch, OUTBOX)
        for action_id, record in connection.execute(_WAITING).fetchall():
            try:
                done.append(_carry_out_one(connection, journal, settle, str(record)))
            except (MonitorError, duckdb.Error):
                raise
            except Exception as error:  # noqa: BLE001 - what one action trips over must not keep a page from people
                failed.append(f"{action_id}: {type(error).__name__}")
        silences = _silences(connection)
        store.remember(connection)
    return CarriedOut(tuple(done), silences, tuple(failed))


def _carry_out_one(
    connection: duckdb.DuckDBPyConnection, journal: Journal, settle: Settle, record: str
) -> Settlement:
    with transaction(connection):
        settled = settle(_matter(connection, journal, PersonAction.model_validate_json(record)))
        keep(connection, journal, _rows(settled, next_sequence(connection)))
    return settled


_WAITING = """
select id, record from actions a where not exists (select 1 from action_outcomes o where o.action_id = a.id)
order by done_at, id
"""

SHOWN_TOGETHER = """
select distinct other.created_at, other.id, other.record
from alerts mine
join receipts here on here.alert_id = mine.id and here.status = 'sent'
join receipts there on there.channel = here.channel and there.thread = here.thread and there.status = 'sent'
join alerts other on other.id = there.alert_id and other.run_id = mine.run_id
where mine.id = $alert
  and mine.reason in ('first_seen', 'regressed') and other.reason in ('first_seen', 'regressed')
order by other.created_at, other.id
"""
"""A run's first page grows: what the run told later is shown in the same message."""

_LAST_TOLD = """
select record from alerts
where target = $target and contains(cast(record as varchar), $fingerprint)
order by created_at desc, id limit 1
"""


def _silences(connection: duckdb.DuckDBPyConnection) -> tuple[Silence, ...]:
    """Those that can be read: one of a newer Lookout mutes nothing here, which is the safe side."""
    rows = connection.execute("select record from silences order by starts_at desc, id").fetchall()
    found: list[Silence] = []
    for row in rows:
        with suppress(ValidationError):
            found.append(Silence.model_validate_json(str(row[0])))
    return tuple(found)


def _matter(connection: duckdb.DuckDBPyConnection, journal: Journal, action: PersonAction) -> Matter:
    wanted = set(action.fingerprints)
    told = {item.incident.fingerprint: item for alert in _told(connection, action) for item in alert.items}
    items = tuple(item for key, item in told.items() if not wanted or key in wanted)
    return Matter(
        action=action,
        items=items,
        incidents=tuple(_incidents(connection, sorted(wanted or told))),
        said=_said(connection, journal, items) if action.kind is ActionKind.ADD_TO_GOLD else (),
    )


def _told(connection: duckdb.DuckDBPyConnection, action: PersonAction) -> Sequence[Alert]:
    """The message that it is about, with all that is shown in it; else the last message about each incident."""
    if action.alert_id is None:
        return _last_told(connection, action.fingerprints)
    rows = connection.execute("select record from alerts where id = ?", [action.alert_id]).fetchall()
    others = connection.execute(SHOWN_TOGETHER, {"alert": action.alert_id}).fetchall()
    records = [str(row[0]) for row in rows] + [str(row[2]) for row in others]
    return [Alert.model_validate_json(record) for record in records]


def _last_told(connection: duckdb.DuckDBPyConnection, fingerprints: Sequence[str]) -> Sequence[Alert]:
    found: list[Alert] = []
    for incident in _incidents(connection, fingerprints):
        wanted = {"target": incident.target, "fingerprint": incident.fingerprint}
        rows = connection.execute(_LAST_TOLD, wanted).fetchall()
        found += [Alert.model_validate_json(str(row[0])) for row in rows]
    return found


def _incidents(connection: duckdb.DuckDBPyConnection, fingerprints: Sequence[str]) -> Sequence[Incident]:
    rows = connection.execute(
        "select record from incidents where list_contains($wanted, fingerprint) order by fingerprint",
        {"wanted": list(fingerprints)},
    ).fetchall()
    return [Incident.model_validate_json(str(row[0])) for row in rows]


def _said(connection: duckdb.DuckDBPyConnection, journal: Journal, items: Sequence[AlertItem]) -> tuple[Said, ...]:
    about = [(item.observation.run_id, item.observation.case_id) for item in items]
    found = (what_was_said(connection, journal, run, case) for run, case in about if case is not None)
    return tuple(said for said in found if said is not None)


def _rows(settled: Settlement, sequence: int) -> Sequence[OutboxRow]:
    return [
        OutcomeRow(row=settled.outcome),
        *(
            IncidentRow(row=IncidentVersion(sequence=number, incident=incident))
            for number, incident in enumerate(settled.incidents, start=sequence)
        ),
        *(LabelRow(row=label) for label in settled.labels),
        *(DraftRow(row=draft) for draft in settled.drafts),
        *(SilenceRow(row=silence) for silence in settled.silences),
    ]
