"""Cases that were drafted from incidents and traces: those that wait, and what became of the others."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from pydantic import ValidationError

from monitors.records.drafts import DraftOutcome
from monitors.records.exchanges import Origin
from monitors.records.grades import FailureKind
from monitors.records.people import CaseDraft, Said
from warehouse.journal import Journal
from warehouse.rows import DraftOutcomeRow, DraftRow
from warehouse.said import what_was_said
from warehouse.store import READ_WAIT_S, Store

_WAITING = """
select record from case_drafts d
where ($target is null or d.target = $target)
  and not exists (select 1 from draft_outcomes o where o.draft_id = d.id)
order by d.suggested_severity desc, d.made_at, d.id
"""


def waiting_drafts(
    store: Store, *, target: str | None = None, wait_s: float = READ_WAIT_S
) -> tuple[CaseDraft, ...]:
    """Drafts that nobody has decided, worst first, then oldest first; those of a newer Lookout are left out."""
    found: list[CaseDraft] = []
    for (record,) in store.query(_WAITING, {"target": target}, wait_s=wait_s).rows:
        with suppress(ValidationError):
            found.append(CaseDraft.model_validate_json(str(record)))
    return tuple(found)


def decided_drafts(store: Store, *, wait_s: float = READ_WAIT_S) -> frozenset[str]:
    """Ids of all drafts that somebody has decided."""
    return frozenset(str(row[0]) for row in store.query("select draft_id from draft_outcomes", wait_s=wait_s).rows)


def append_draft(journal: Journal, draft: CaseDraft) -> None:
    """Keep a draft; durable when this returns. The same one again changes nothing. Raises `WarehouseUnwritable`."""
    journal.append_outbox([DraftRow(row=draft)])


def append_outcomes(journal: Journal, outcomes: tuple[DraftOutcome, ...]) -> None:
    """Keep what became of drafts; durable when this returns. Raises `WarehouseUnwritable`."""
    journal.append([DraftOutcomeRow(row=outcome) for outcome in outcomes], run_id=None)


class Trace(NamedTuple):
    """What was said once, and what the run thought of it. ``severity`` is 0 where nothing graded it."""

    said: Said
    target: str
    origin: Origin
    severity: int = 0
    policy_row: str = ""
    failed: bool = False
    failure_kind: FailureKind | None = None
    reason: str = ""


def trace(store: Store, run_id: str, case_id: str, *, wait_s: float = READ_WAIT_S) -> Trace | None:
    """A conversation of a run with its grade; ``None`` when it was never kept, has aged out, or waits to load."""
    with store.database.reading(wait_s) as connection:
        said = what_was_said(connection, store.journal, run_id, case_id)
        row = connection.execute(_TRACE, {"run": run_id, "case": case_id}).fetchone()
    if said is None or row is None:
        return None
    origin, target, severity, policy_row, outcome, kinds, reason = row
    return Trace(
        said=said,
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
  r.origin, coalesce(runs.target, nights.target), a.severity, a.policy_row, a.outcome, a.failure_kinds, a.reason
from results r
left join assessments a using (run_id, case_id, repeat)
left join runs using (run_id)
left join nights using (run_id)
where r.run_id = $run and r.case_id = $case and coalesce(runs.target, nights.target) is not null
order by r.repeat limit 1
"""
