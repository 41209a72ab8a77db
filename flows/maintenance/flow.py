"""Maintain the warehouse every night: load, export, remove old data, compact and check.

    load ─▶ export ─▶ remove old personal data ─▶ compact ─▶ check ─▶ remove old pictures
         ─▶ close incidents of removed targets ─▶ notify Lookout's owners of faults

If a stage fails, the fault is reported and the next stage runs. If the clock was set ahead, no old data is removed.
A database file that is damaged or differs from the journal is rebuilt from the journal. The state of the flow is
Completed with the name Sound, Restored or Busy, or Failed with the name Damaged or Incomplete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, TypeVar

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.alerting.faults import build_fault_from_error, notify_fault
from flows.alerting.notifier import Notifier
from flows.alerting.pipeline import WAREHOUSE, notify
from flows.clock import read_boot_and_uptime, utc_now
from flows.data_folder import UPKEEP_WAIT_S, open_store
from flows.maintenance.clock_guard import build_clock_reading, check_clock_not_ahead_and_store_reading
from flows.maintenance.findings import (
    REPAIRED_BY_REBUILD,
    Upkeep,
    WarehouseHealth,
    build_check_faults,
    build_load_faults,
    remove_old_evidence_and_reports,
)
from flows.runtime.secrets import load_pseudonym_key
from flows.runtime.slack import build_notifier_without_run
from flows.server.missed_runs import cancel_missed_runs_of_deployment
from monitors.alerts.resolve import TARGET_REMOVED, ResolutionScope
from monitors.config.file import Config, load_config
from monitors.config.sections import WarehouseSettings
from monitors.errors import MonitorError, WarehouseBusy, WarehouseDamaged, WarehouseError
from monitors.probes.evidence_age import RemovedEvidence
from monitors.records.incidents import Capability, IncidentKind, NotifyReason
from warehouse.database.check import CheckReport, check_database
from warehouse.database.load import LoadReport
from warehouse.database.parquet import ExportReport, export_parquet
from warehouse.database.rebuild import rebuild_database
from warehouse.database.retention import AgeReport, CompactReport, compact_segments, remove_personal_data
from warehouse.database.store import Store
from warehouse.queries.incidents import list_removed_targets_with_incidents

SUBJECT: Final = WAREHOUSE
"""In alerts about the warehouse, this name is shown instead of a target's name."""

REMOVED_AFTER: Final = timedelta(days=1)

HEALTHY_STATES: Final = frozenset({WarehouseHealth.SOUND, WarehouseHealth.RESTORED, WarehouseHealth.BUSY})

Done = TypeVar("Done")


@flow(name="load-warehouse", description=__doc__)
async def load_warehouse(config_path: Path, wait_s: float = UPKEEP_WAIT_S) -> State[str] | State[None]:
    """Maintain the warehouse of one configuration, according to its section ``[warehouse]``.

    Each stage waits up to ``wait_s`` seconds for other processes. The name of the state is the health of the
    warehouse. Raises `ConfigError` before the first stage.
    """
    config = await asyncio.to_thread(load_config, config_path)
    skipped = await cancel_missed_runs_of_deployment(config.schedules.missed, utc_now())
    if skipped is not None:
        return skipped
    notifier = await asyncio.to_thread(build_notifier_without_run, config, SUBJECT, Capability.MAINTENANCE)
    began_at = notifier.now()
    upkeep = Upkeep()
    may_remove_data = await _run_stage(upkeep, _check_clock_and_add_fault(config, notifier, upkeep)) is True
    await _run_warehouse_stages(notifier.store, config.warehouse, upkeep, wait_s, may_remove_data=may_remove_data)
    if may_remove_data:
        upkeep.pictures = await _run_stage(upkeep, remove_expired_evidence_and_reports(config, notifier.now()))
        await _run_stage(upkeep, close_incidents_of_removed_targets(config, notifier.now()))
    for fault in upkeep.faults:
        await notify_fault(notifier, fault)
    if not upkeep.faults:
        await _resolve_earlier_faults(notifier, began_at=began_at)
    end = Completed if upkeep.health in HEALTHY_STATES else Failed
    return end(name=upkeep.health.value, message=upkeep.describe())


async def _check_clock_and_add_fault(config: Config, notifier: Notifier, upkeep: Upkeep) -> bool:
    """Return whether the clock is reliable enough to remove old data. If not, add a fault to ``upkeep``."""
    reading = build_clock_reading(notifier.now(), read_boot_and_uptime())
    newest = await asyncio.to_thread(notifier.store.journal.find_newest_segment_time)
    fault = await asyncio.to_thread(check_clock_not_ahead_and_store_reading, config.data_folder, reading, newest)
    if fault is not None:
        upkeep.faults.append(fault)
    return fault is None


async def _run_warehouse_stages(
    store: Store, settings: WarehouseSettings, upkeep: Upkeep, wait_s: float, *, may_remove_data: bool
) -> None:
    upkeep.loaded = await _run_stage(upkeep, _load_or_rebuild(store, upkeep, wait_s))
    if settings.export_folder is not None:
        upkeep.exported = await _run_stage(
            upkeep, export_days(store, settings.export_folder, settings.export_days, wait_s)
        )
    if settings.personal_data_days is not None and may_remove_data:
        upkeep.aged = await _run_stage(upkeep, remove_old_personal_data(store, settings.personal_data_days, wait_s))
    upkeep.compacted = await _run_stage(upkeep, compact_old_segments(store, settings.compact_after_days, wait_s))
    if settings.check:
        upkeep.checked = await _run_stage(upkeep, _check_or_rebuild(store, upkeep, wait_s))


async def _run_stage(upkeep: Upkeep, job: Awaitable[Done]) -> Done | None:
    """Run one stage and return its result. An error becomes a fault. A locked warehouse is reported only once."""
    try:
        return await job
    except WarehouseBusy as error:
        if not upkeep.busy:
            upkeep.faults.append(build_fault_from_error(error))
        upkeep.busy = True
    except WarehouseDamaged as error:
        upkeep.is_damaged = True
        upkeep.faults.append(build_fault_from_error(error))
    except MonitorError as error:
        upkeep.faults.append(build_fault_from_error(error))
    return None


async def _load_or_rebuild(store: Store, upkeep: Upkeep, wait_s: float) -> LoadReport:
    """Load the journal. If the database file is damaged, rebuild the file from the journal."""
    try:
        report = await load_pending(store, wait_s)
    except WarehouseDamaged as error:
        upkeep.faults.append(build_fault_from_error(error))
        report = upkeep.rebuilt = await rebuild_from_journal(store, wait_s)
    upkeep.faults.extend(build_load_faults(report))
    upkeep.is_damaged = upkeep.is_damaged or bool(report.damaged or report.missing)
    return report


async def _check_or_rebuild(store: Store, upkeep: Upkeep, wait_s: float) -> CheckReport:
    """Check the warehouse. If a rebuild can repair all problems, rebuild the file and check again."""
    report = await check_warehouse(store, wait_s)
    upkeep.faults.extend(build_check_faults(report))
    if not report.is_sound and {problem.kind for problem in report.problems} <= REPAIRED_BY_REBUILD:
        upkeep.rebuilt = await rebuild_from_journal(store, wait_s)
        report = await check_warehouse(store, wait_s)
    upkeep.is_damaged = upkeep.is_damaged or not report.is_sound
    return report


@task(name="load", cache_policy=NO_CACHE)
async def load_pending(store: Store, wait_s: float) -> LoadReport:
    """Load the journal segments that are not in the database file yet."""
    return await asyncio.to_thread(store.load_pending, wait_s)


@task(name="rebuild", cache_policy=NO_CACHE)
async def rebuild_from_journal(store: Store, wait_s: float) -> LoadReport:
    """Rebuild the database file from the journal. The old file stays in the same folder under another name."""
    return (await asyncio.to_thread(rebuild_database, store, wait_s=wait_s)).loaded


@task(name="export", cache_policy=NO_CACHE)
async def export_days(store: Store, folder: Path, days: int, wait_s: float) -> ExportReport:
    """Export the last ``days`` days, up to yesterday, as Parquet."""
    yesterday = store.clock().date() - timedelta(days=1)
    since = yesterday - timedelta(days=days - 1)
    return await asyncio.to_thread(export_parquet, store, folder, since=since, until=yesterday, wait_s=wait_s)


@task(name="age", cache_policy=NO_CACHE)
async def remove_old_personal_data(store: Store, days: int, wait_s: float) -> AgeReport:
    """Remove personal data that is older than ``days`` days."""
    key = load_pseudonym_key()
    before = store.clock() - timedelta(days=days)
    return await asyncio.to_thread(remove_personal_data, store, before=before, key=key, wait_s=wait_s)


@task(name="age evidence", cache_policy=NO_CACHE)
async def remove_expired_evidence_and_reports(config: Config, now: datetime) -> RemovedEvidence:
    """Remove screenshots and traces that are older than ``[evidence]`` allows, and old reports of nightly runs."""
    return await asyncio.to_thread(remove_old_evidence_and_reports, config, now=now)


@task(name="compact", cache_policy=NO_CACHE)
async def compact_old_segments(store: Store, days: int, wait_s: float) -> CompactReport:
    """Move segments that are older than ``days`` days into archives."""
    before = store.clock() - timedelta(days=days)
    return await asyncio.to_thread(compact_segments, store, before=before, wait_s=wait_s)


@task(name="check", cache_policy=NO_CACHE)
async def check_warehouse(store: Store, wait_s: float) -> CheckReport:
    """Compare the journal with the tables, row by row."""
    return await asyncio.to_thread(check_database, store, wait_s=wait_s)


@task(name="close incidents of removed targets", cache_policy=NO_CACHE)
async def close_incidents_of_removed_targets(config: Config, now: datetime) -> None:
    """Close the incidents of targets that are no longer in the configuration.

    A target that was asked within `REMOVED_AFTER` is skipped, because another configuration with the same data
    folder may contain this target.
    """
    store = open_store(config)
    for target in await asyncio.to_thread(
        list_removed_targets_with_incidents, store, config.targets, now - REMOVED_AFTER
    ):
        incidents = await asyncio.to_thread(store.list_open_incidents, target)
        cases = frozenset(incident.case_id for incident in incidents if incident.case_id)
        for owner in sorted({incident.owner for incident in incidents}):
            notifier = await asyncio.to_thread(build_notifier_without_run, config, target, owner)
            scope = ResolutionScope(
                target=target,
                run_id=notifier.run_id,
                began_at=now,
                ended_at=notifier.now(),
                graded=cases,
                cleared=frozenset(IncidentKind),
                owner=owner,
                text=TARGET_REMOVED,
                reason=NotifyReason.CLOSED,
            )
            await notify(notifier, [], scope=scope)


async def _resolve_earlier_faults(notifier: Notifier, *, began_at: datetime) -> None:
    """Resolve the faults that earlier maintenance runs reported."""
    scope = ResolutionScope(
        target=SUBJECT,
        run_id=notifier.run_id,
        began_at=began_at,
        ended_at=notifier.now(),
        cleared=frozenset({IncidentKind.MONITOR_FAULT}),
        owner=notifier.owner,
    )
    try:
        await notify(notifier, [], scope=scope)
    except WarehouseError:
        return  # the next maintenance resolves them
