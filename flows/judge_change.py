"""Whether this run's judge is the one of the run before: what two judges said is not compared."""

from __future__ import annotations

from flows.live_run import LiveRun
from flows.monitor_fault import Fault
from monitors.errors import WarehouseError
from monitors.judge.lineage import compare_lineages

CHANGED = "JudgeChanged"


def look_for_change(run: LiveRun) -> None:
    """Remember a changed judge: it is told once, and this run is not compared with the one before.

    A run that no judge was needed for compares with any: nothing in it is a judge's.
    """
    if run.judging is None or not run.judging.lineages:
        return
    wired = run.wired
    try:
        before = wired.store.last_report(wired.target.name, wired.suite.sha256, before=wired.run_id)
    except WarehouseError:
        return
    if before is None or before.judging is None or not before.judging.lineages:
        return
    compared = compare_lineages(before.judging.lineages, run.judging.lineages)
    if not compared.allowed:
        run.judge_changed = True
        run.faults.append(Fault(CHANGED, f"Not compared with run {before.run_id}: {compared.reason}"))
