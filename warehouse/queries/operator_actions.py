"""Queries for operators' actions. Each action is stored immediately and carried out exactly once.

An action is written to the journal without waiting for the warehouse. The next process that acquires the lock
carries out the action, and stores one segment with the changes to incidents, labels, drafts and silences and the
outcome of the action. An action with an outcome is never carried out again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import duckdb
from pydantic import ValidationError

from monitors.errors import MonitorError
from monitors.records.cases import DraftOutcome
from monitors.records.exchanges import Exchange, Origin
from monitors.records.grades import FailureKind
from monitors.records.incidents import ActionKind, Alert, AlertItem, Incident
from monitors.records.operator_actions import (
    ActionChanges,
    ActionContext,
    CaseDraft,
    OperatorAction,
    Silence,
    StoredConversation,
)
from warehouse.database.connection import transaction
from warehouse.database.store import DEFAULT_READ_WAIT_S, Store
from warehouse.journal.journal import OUTBOX, Journal
from warehouse.journal.rows import (
    ActionRow,
    DraftOutcomeRow,
    DraftRow,
    IncidentRow,
    IncidentVersion,
    LabelRow,
    OutboxRow,
    OutcomeRow,
    ResultRow,
    SilenceRow,
)
from warehouse.queries.outbox import append_and_insert_rows, compute_next_sequence

_LOADED = """
select turns, case when graded_channel = 'wire' then wire_text else visible_text end, partial_text
from results where run_id = $run and case_id = $case order by repeat limit 1
"""


def load_conversation(
    connection: duckdb.DuckDBPyConnection, journal: Journal, run_id: str, case_id: str
) -> StoredConversation | None:
    """Load the conversation of a case in a run, or ``None`` if the conversation is missing or was removed."""
    row = connection.execute(_LOADED, {"run": run_id, "case": case_id}).fetchone()
    if row is not None:
        turns, answer = tuple(map(str, row[0] or ())), str(row[1] or row[2] or "")
    else:
        turns, answer = _read_conversation_from_journal(journal, run_id, case_id)
    return StoredConversation(run_id=run_id, case_id=case_id, turns=turns, answer=answer) if any(turns) else None


def _read_conversation_from_journal(journal: Journal, run_id: str, case_id: str) -> tuple[tuple[str, ...], str]:
    """Read the user's turns and the answer of a case whose run is not loaded yet.

    Return an empty tuple and an empty string if the conversation is missing.
    """
    for row in journal.read_run(run_id):
        if isinstance(row, ResultRow) and row.row.case_id == case_id:
            return row.row.turns, row.row.graded_text if isinstance(row.row, Exchange) else row.row.partial_text
    return (), ""


ResolveAction = Callable[[ActionContext], ActionChanges]
"""A function that computes what an action changes, without storing the changes."""


def append_action(journal: Journal, action: OperatorAction) -> None:
    """Store an operator's action. When the function returns, the action survives a crash.

    Raises `WarehouseUnwritable`.
    """
    journal.append_outbox([ActionRow(row=action)])


def append_silence(journal: Journal, silence: Silence) -> None:
    """Store a new silence, or a new version of a stored silence that ends earlier. Raises `WarehouseUnwritable`."""
    journal.append_outbox([SilenceRow(row=silence)])


class ActionResults(NamedTuple):
    """The changes made by the actions that were carried out, and all silences, newest first.

    ``failed`` contains the id and the error of each action that failed. The next call tries these actions again.
    """

    done: tuple[ActionChanges, ...]
    silences: tuple[Silence, ...]
    failed: tuple[str, ...] = ()


def carry_out_actions(store: Store, journal: Journal, resolve: ResolveAction, *, wait_s: float) -> ActionResults:
    """Carry out all waiting actions, oldest first, and return their results.

    ``resolve`` computes what an action changes. If an action fails, the other actions are still carried out. Raises
    `WarehouseBusy` if the lock is still held after ``wait_s`` seconds. The actions then wait for the next call.
    """
    done: list[ActionChanges] = []
    failed: list[str] = []
    with store.database.open_for_writing(wait_s) as connection:
        store.load_pending_segments_into(connection, OUTBOX)
        for action_id, record in connection.execute(_WAITING).fetchall():
            try:
                with transaction(connection):
                    changes = resolve(
                        _build_action_context(connection, journal, OperatorAction.model_validate_json(str(record)))
                    )
                    append_and_insert_rows(
                        connection, journal, _build_rows(changes, compute_next_sequence(connection))
                    )
                done.append(changes)
            except (MonitorError, duckdb.Error):
                raise
            except Exception as error:  # noqa: BLE001 - an action that fails must not delay an alert
                failed.append(f"{action_id}: {type(error).__name__}")
        silences = _read_silences(connection)
        store.save_ledger_if_complete(connection)
    return ActionResults(tuple(done), silences, tuple(failed))


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
"""Selects the alerts that one Slack message shows. Later alerts of a run are added to the run's first message."""

_LAST_ALERT = """
select record from alerts
where target = $target and contains(cast(record as varchar), $fingerprint)
order by created_at desc, id limit 1
"""


def _read_silences(connection: duckdb.DuckDBPyConnection) -> tuple[Silence, ...]:
    """List all silences. Silences that a newer version of Lookout stored are skipped and have no effect."""
    rows = connection.execute("select record from silences order by starts_at desc, id").fetchall()
    silences: list[Silence] = []
    for row in rows:
        with suppress(ValidationError):  # a newer Lookout wrote this row
            silences.append(Silence.model_validate_json(str(row[0])))
    return tuple(silences)


def _build_action_context(
    connection: duckdb.DuckDBPyConnection, journal: Journal, action: OperatorAction
) -> ActionContext:
    wanted = set(action.fingerprints)
    by_fingerprint = {
        item.incident.fingerprint: item for alert in _find_alerts(connection, action) for item in alert.items
    }
    items = tuple(item for key, item in by_fingerprint.items() if not wanted or key in wanted)
    return ActionContext(
        action=action,
        items=items,
        incidents=tuple(_load_incidents(connection, sorted(wanted or by_fingerprint))),
        conversations=_load_conversations(connection, journal, items)
        if action.kind is ActionKind.ADD_TO_GOLD
        else (),
    )


def _find_alerts(connection: duckdb.DuckDBPyConnection, action: OperatorAction) -> Sequence[Alert]:
    """Find the alerts of the message on which a person performed the action.

    If the action is not about a message, find the last alert about each of the action's incidents.
    """
    if action.alert_id is None:
        return _find_last_alerts(connection, action.fingerprints)
    rows = connection.execute("select record from alerts where id = ?", [action.alert_id]).fetchall()
    others = connection.execute(SHOWN_TOGETHER, {"alert": action.alert_id}).fetchall()
    records = [str(row[0]) for row in rows] + [str(row[2]) for row in others]
    return [Alert.model_validate_json(record) for record in records]


def _find_last_alerts(connection: duckdb.DuckDBPyConnection, fingerprints: Sequence[str]) -> Sequence[Alert]:
    alerts: list[Alert] = []
    for incident in _load_incidents(connection, fingerprints):
        wanted = {"target": incident.target, "fingerprint": incident.fingerprint}
        rows = connection.execute(_LAST_ALERT, wanted).fetchall()
        alerts += [Alert.model_validate_json(str(row[0])) for row in rows]
    return alerts


def _load_incidents(connection: duckdb.DuckDBPyConnection, fingerprints: Sequence[str]) -> Sequence[Incident]:
    rows = connection.execute(
        "select record from incidents where list_contains($wanted, fingerprint) order by fingerprint",
        {"wanted": list(fingerprints)},
    ).fetchall()
    return [Incident.model_validate_json(str(row[0])) for row in rows]


def _load_conversations(
    connection: duckdb.DuckDBPyConnection, journal: Journal, items: Sequence[AlertItem]
) -> tuple[StoredConversation, ...]:
    cases = [(item.observation.run_id, item.observation.case_id) for item in items]
    conversations = (load_conversation(connection, journal, run, case) for run, case in cases if case is not None)
    return tuple(conversation for conversation in conversations if conversation is not None)


def _build_rows(changes: ActionChanges, sequence: int) -> Sequence[OutboxRow]:
    return [
        OutcomeRow(row=changes.outcome),
        *(
            IncidentRow(row=IncidentVersion(sequence=number, incident=incident))
            for number, incident in enumerate(changes.incidents, start=sequence)
        ),
        *(LabelRow(row=label) for label in changes.labels),
        *(DraftRow(row=draft) for draft in changes.drafts),
        *(SilenceRow(row=silence) for silence in changes.silences),
    ]


_WAITING_DRAFTS = """
select record from case_drafts d
where ($target is null or d.target = $target)
  and not exists (select 1 from draft_outcomes o where o.draft_id = d.id)
order by d.suggested_severity desc, d.made_at, d.id
"""


def list_waiting_drafts(
    store: Store, *, target: str | None = None, wait_s: float = DEFAULT_READ_WAIT_S
) -> tuple[CaseDraft, ...]:
    """List the drafts without a decision, most severe first.

    Drafts that a newer version of Lookout stored are skipped.
    """
    drafts: list[CaseDraft] = []
    for (record,) in store.query(_WAITING_DRAFTS, {"target": target}, wait_s=wait_s).rows:
        with suppress(ValidationError):  # a newer Lookout wrote this row
            drafts.append(CaseDraft.model_validate_json(str(record)))
    return tuple(drafts)


def list_decided_draft_ids(store: Store, *, wait_s: float = DEFAULT_READ_WAIT_S) -> frozenset[str]:
    """List the ids of all drafts with a decision."""
    return frozenset(str(row[0]) for row in store.query("select draft_id from draft_outcomes", wait_s=wait_s).rows)


def append_draft(journal: Journal, draft: CaseDraft) -> None:
    """Store a draft. Storing the same draft twice changes nothing. Raises `WarehouseUnwritable`."""
    journal.append_outbox([DraftRow(row=draft)])


def append_draft_outcomes(journal: Journal, outcomes: tuple[DraftOutcome, ...]) -> None:
    """Store people's decisions on drafts. Raises `WarehouseUnwritable`."""
    journal.append([DraftOutcomeRow(row=outcome) for outcome in outcomes], run_id=None)


class GradedConversation(NamedTuple):
    """A stored conversation and its grade in the run. ``severity`` is 0 if the conversation was not graded."""

    conversation: StoredConversation
    target: str
    origin: Origin
    severity: int = 0
    policy_row: str = ""
    failed: bool = False
    failure_kind: FailureKind | None = None
    reason: str = ""


def load_graded_conversation(
    store: Store, run_id: str, case_id: str, *, wait_s: float = DEFAULT_READ_WAIT_S
) -> GradedConversation | None:
    """Load a conversation of a run with its grade.

    Returns ``None`` if the conversation is not stored, or if its run is not loaded.
    """
    with store.database.open_for_reading(wait_s) as connection:
        conversation = load_conversation(connection, store.journal, run_id, case_id)
        row = connection.execute(_TRACE, {"run": run_id, "case": case_id}).fetchone()
    if conversation is None or row is None:
        return None
    origin, target, severity, policy_row, outcome, kinds, reason = row
    return GradedConversation(
        conversation=conversation,
        target=str(target),
        origin=Origin(origin),
        severity=int(severity or 0),
        policy_row=str(policy_row or ""),
        failed=outcome == "failed",
        failure_kind=FailureKind(kinds[0]) if kinds else None,
        reason=str(reason or ""),
    )


_TRACE = """
select
  r.origin, coalesce(runs.target, nightly_runs.target), a.severity, a.policy_row, a.outcome, a.failure_kinds,
  a.reason
from results r
left join assessments a using (run_id, case_id, repeat)
left join runs using (run_id)
left join nightly_runs using (run_id)
where r.run_id = $run and r.case_id = $case and coalesce(runs.target, nightly_runs.target) is not null
order by r.repeat limit 1
"""
