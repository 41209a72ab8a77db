"""The guard's log, the nights and people's labels, put together: what was found, and what nobody found."""

from __future__ import annotations

from datetime import datetime

from monitors.agreement import effective
from monitors.reconcile import reconcile
from monitors.records.reconciliation import Reconciliation
from warehouse.reconcile import reconciliation_counts
from warehouse.reviews import reviewed
from warehouse.store import READ_WAIT_S, Store


def reconciled(
    store: Store, target: str, since: datetime, until: datetime, *, wait_s: float = READ_WAIT_S
) -> Reconciliation:
    """What both detectors of ``target`` found from ``since`` to ``until``, and an estimate of what they missed.

    It sees what is loaded. The judge's record is what people said of the answers of the same judge and prompt on
    this target, whenever that was. Raises `WarehouseBusy`, and `WarehouseDamaged` for a night's report of another
    form.
    """
    counts = reconciliation_counts(store, target, since, until, wait_s=wait_s)
    judges = frozenset(counts.night.lineages)
    told = [
        (each.judge_passed, each.people_right, each.inclusion_probability)
        for each in reviewed(store, target=target, wait_s=wait_s)
        if each.lineage in judges
    ]
    return reconcile(counts, effective(told))
