"""Maintain the warehouse every night: load → export → age → compact → check → age pictures.

    load ─▶ export ─▶ age ─▶ compact ─▶ check ─▶ age pictures ─▶ notify the monitor's owners, when there is cause

A stage that fails is reported, and the next one goes on. By a clock that was set ahead nothing ages out. A file
that is damaged, or that differs from the journal, is rebuilt from the journal. The flow ends Completed as Sound,
Restored or Busy, Failed as Damaged or Incomplete.
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

from flows.alerting.faults import fault_of, notify_fault
from flows.alerting.notifier import Notifier
from flows.alerting.pipeline import notify
from flows.clock import uptime
from flows.maintenance.clock_guard import clock_fault, clock_reading
from flows.maintenance.findings import (
    MENDED_BY_REBUILD,
    Upkeep,
    WarehouseHealth,
    age_evidence_of,
    faults_of_check,
    faults_of_load,
)
from flows.runtime.secrets import age_key
from flows.runtime.slack import notifier_without_run
from monitors.alerts.resolve import ResolutionScope
from monitors.config.file import Config, load_config
from monitors.config.sections import WarehouseSettings
from monitors.errors import MonitorError, WarehouseBusy, WarehouseDamaged, WarehouseError
from monitors.probes.evidence_age import AgedEvidence
from monitors.records.incidents import Capability, IncidentKind
from warehouse.database.check import CheckReport, check
from warehouse.database.load import LoadReport
from warehouse.database.parquet import ExportReport, export
from warehouse.database.rebuild import rebuild
from warehouse.database.retention import AgeReport, CompactReport, age, compact
from warehouse.database.store import Store

SUBJECT: Final = "warehouse"
"""The subject of the messages, in the place of a target's name."""

WAIT_S: Final = 600.0
"""At night there is time: many times the longest load that was measured."""

ENDS_WELL: Final = frozenset({WarehouseHealth.SOUND, WarehouseHealth.RESTORED, WarehouseHealth.BUSY})

Done = TypeVar("Done")


@flow(name="load-warehouse", description=__doc__)
async def load_warehouse(config_path: Path, wait_s: float = WAIT_S) -> State[str]:
    """Maintain the warehouse of one configuration, by its ``[warehouse]`` settings.

    Each stage waits up to ``wait_s`` seconds for other processes. The state is named after the health of the
    warehouse and says what was done. Raises `ConfigError` before anything is done.
    """
    config = await asyncio.to_thread(load_config, config_path)
    notifier = await asyncio.to_thread(notifier_without_run, config, SUBJECT, Capability.MAINTENANCE)
    began_at = notifier.now()
    done = Upkeep()
    ages = await _stage(done, _clock_is_right(config, notifier, done)) is True
    await _all_stages(notifier.store, config.warehouse, done, wait_s, ages=ages)
    if ages:
        done.pictures = await _stage(done, age_pictures(config, notifier.now()))
    for fault in done.faults:
        await notify_fault(notifier, fault)
    if not done.faults:
        await _notify_recovery(notifier, began_at=began_at)
    end = Completed if done.standing in ENDS_WELL else Failed
    return end(name=done.standing.value, message=done.describe())


async def _clock_is_right(config: Config, notifier: Notifier, done: Upkeep) -> bool:
    """Whether things may age out by this machine's clock; else ``done`` has the fault."""
    seen = clock_reading(notifier.now(), uptime())
    newest = await asyncio.to_thread(notifier.store.journal.newest)
    fault = await asyncio.to_thread(clock_fault, config.data_folder, seen, newest)
    if fault is not None:
        done.faults.append(fault)
    return fault is None


async def _all_stages(
    store: Store, settings: WarehouseSettings, done: Upkeep, wait_s: float, *, ages: bool
) -> None:
    done.loaded = await _stage(done, _load(store, done, wait_s))
    if settings.export_folder is not None:
        done.exported = await _stage(done, export_days(store, settings.export_folder, settings.export_days, wait_s))
    if settings.personal_data_days is not None and ages:
        done.aged = await _stage(done, age_out(store, settings.personal_data_days, wait_s))
    done.compacted = await _stage(done, compact_old(store, settings.compact_after_days, wait_s))
    if settings.check:
        done.checked = await _stage(done, _examine(store, done, wait_s))


async def _stage(done: Upkeep, job: Awaitable[Done]) -> Done | None:
    """Run one stage. A failure becomes a fault to report, only one for a file that another process holds."""
    try:
        return await job
    except WarehouseBusy as error:
        if not done.busy:
            done.faults.append(fault_of(error))
        done.busy = True
    except WarehouseDamaged as error:
        done.hurt = True
        done.faults.append(fault_of(error))
    except MonitorError as error:
        done.faults.append(fault_of(error))
    return None


async def _load(store: Store, done: Upkeep, wait_s: float) -> LoadReport:
    """Load what the journal has; rebuild a damaged file from it."""
    try:
        report = await load_pending(store, wait_s)
    except WarehouseDamaged as error:
        done.faults.append(fault_of(error))
        report = done.rebuilt = await make_anew(store, wait_s)
    done.faults.extend(faults_of_load(report))
    done.hurt = done.hurt or bool(report.damaged)
    return report


async def _examine(store: Store, done: Upkeep, wait_s: float) -> CheckReport:
    """Check the warehouse. Where the tables alone are wrong, rebuild them and compare again."""
    report = await examine(store, wait_s)
    done.faults.extend(faults_of_check(report))
    if not report.sound and {trouble.kind for trouble in report.troubles} <= MENDED_BY_REBUILD:
        done.rebuilt = await make_anew(store, wait_s)
        report = await examine(store, wait_s)
    done.hurt = done.hurt or not report.sound
    return report


@task(name="load", cache_policy=NO_CACHE)
async def load_pending(store: Store, wait_s: float) -> LoadReport:
    """Load what the journal has and the file has not."""
    return await asyncio.to_thread(store.load_pending, wait_s)


@task(name="rebuild", cache_policy=NO_CACHE)
async def make_anew(store: Store, wait_s: float) -> LoadReport:
    """Rebuild the file from the journal; the old one stays beside it."""
    return (await asyncio.to_thread(rebuild, store, wait_s=wait_s)).loaded


@task(name="export", cache_policy=NO_CACHE)
async def export_days(store: Store, goal: Path, days: int, wait_s: float) -> ExportReport:
    """Write the last ``days`` up to yesterday as Parquet."""
    yesterday = store.clock().date() - timedelta(days=1)
    since = yesterday - timedelta(days=days - 1)
    return await asyncio.to_thread(export, store, goal, since=since, until=yesterday, wait_s=wait_s)


@task(name="age", cache_policy=NO_CACHE)
async def age_out(store: Store, days: int, wait_s: float) -> AgeReport:
    """Remove personal data from what is older than ``days``."""
    key = age_key()
    before = store.clock() - timedelta(days=days)
    return await asyncio.to_thread(age, store, before=before, key=key, wait_s=wait_s)


@task(name="age evidence", cache_policy=NO_CACHE)
async def age_pictures(config: Config, now: datetime) -> AgedEvidence:
    """Remove screenshots and traces that ``[evidence]`` no longer stores."""
    return await asyncio.to_thread(age_evidence_of, config, now=now)


@task(name="compact", cache_policy=NO_CACHE)
async def compact_old(store: Store, days: int, wait_s: float) -> CompactReport:
    """Move segments older than ``days`` into archives."""
    before = store.clock() - timedelta(days=days)
    return await asyncio.to_thread(compact, store, before=before, wait_s=wait_s)


@task(name="check", cache_policy=NO_CACHE)
async def examine(store: Store, wait_s: float) -> CheckReport:
    """Compare journal and tables, row by row."""
    return await asyncio.to_thread(check, store, wait_s=wait_s)


async def _notify_recovery(notifier: Notifier, *, began_at: datetime) -> None:
    """A nightly run without a fault ends the faults that earlier ones reported."""
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
        return  # the next nightly run does
