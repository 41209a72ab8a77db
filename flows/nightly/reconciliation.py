"""Compares the guard's log, the nightly runs and people's labels: what each found, and what nobody found."""

from __future__ import annotations

from datetime import datetime

from monitors.records.reconciliation import NO_LOG, Reconciliation, Unknown
from monitors.stats.agreement import compute_effective_counts
from monitors.stats.capture_recapture import reconcile
from warehouse.database.store import DEFAULT_READ_WAIT_S, Store
from warehouse.queries.reconcile import count_for_reconciliation
from warehouse.queries.reviews import list_reviewed_answers


def reconciled(
    store: Store, target: str, since: datetime, until: datetime, *, wait_s: float = DEFAULT_READ_WAIT_S
) -> Reconciliation:
    """What both detectors of ``target`` found from ``since`` to ``until``, and an estimate of what they missed.

    It reads what is loaded. The judge's record is what people said of the answers of the same judge and prompt on
    this target, whenever that was. Raises `WarehouseBusy`, and `WarehouseDamaged` for a nightly report of another
    form.
    """
    counts = count_for_reconciliation(store, target, since, until, wait_s=wait_s)
    judges = frozenset(counts.nightly.lineages)
    graded = [
        (each.judge_passed, each.people_right, each.inclusion_probability)
        for each in list_reviewed_answers(store, target=target, wait_s=wait_s)
        if each.lineage in judges
    ]
    return reconcile(counts, compute_effective_counts(graded))


def without_log(found: Reconciliation) -> Reconciliation:
    """The same for a target whose guard's log is not configured: that nothing was read of it proves nothing.

    Entries that were read while it was configured count as they are.
    """
    if found.counts.guard.entries:
        return found
    unknown = Unknown(why=NO_LOG)
    said: dict[str, Unknown] = dict.fromkeys(("precision", "held_back_rightly", "recall", "total_bad"), unknown)
    return found.model_copy(update=said)
