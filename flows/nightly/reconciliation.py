"""Compares the findings of the hallucination log and of the nightly runs, and estimates what neither found."""

from __future__ import annotations

from datetime import datetime

from monitors.records.reconciliation import NO_LOG, Reconciliation, Unknown
from monitors.stats.agreement import compute_effective_counts
from monitors.stats.capture_recapture import reconcile_counts
from warehouse.database.store import DEFAULT_READ_WAIT_S, Store
from warehouse.queries.reconcile import count_for_reconciliation
from warehouse.queries.reviews import list_answers_judged_and_reviewed


def reconcile_detectors(
    store: Store, target: str, since: datetime, until: datetime, *, wait_s: float = DEFAULT_READ_WAIT_S
) -> Reconciliation:
    """Compare what two detectors of ``target`` found from ``since`` to ``until``, and estimate what neither found.

    The two detectors are the application's own guard, which writes the hallucination log, and Lookout's nightly
    runs. The judge's errors are estimated from all human labels for the same judge and prompt on this target.
    Raises `WarehouseBusy`, and `WarehouseDamaged` for an invalid nightly report.
    """
    counts = count_for_reconciliation(store, target, since, until, wait_s=wait_s)
    judges = frozenset(counts.nightly.lineages)
    graded = [
        (answer.judge_passed, answer.people_right, answer.inclusion_probability)
        for answer in list_answers_judged_and_reviewed(store, target=target, wait_s=wait_s)
        if answer.lineage in judges
    ]
    return reconcile_counts(counts, compute_effective_counts(graded))


def mark_figures_unknown_without_log(reconciliation: Reconciliation) -> Reconciliation:
    """Mark the figures that need the hallucination log as unknown if the log has no entries."""
    if reconciliation.counts.guard.entries:
        return reconciliation
    unknown = Unknown(why=NO_LOG)
    changes: dict[str, Unknown] = dict.fromkeys(("precision", "held_back_rightly", "recall", "total_bad"), unknown)
    return reconciliation.model_copy(update=changes)
