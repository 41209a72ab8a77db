"""Look after the warehouse every night: load → export → age → compact → check → age pictures.

    load ─▶ export ─▶ age ─▶ compact ─▶ check ─▶ age pictures ─▶ tell the monitor's owners, when there is cause

What a stage cannot do is told, and the next one goes on. A file that is damaged, or that differs from the journal,
is made anew from the journal. The flow ends Completed as Sound, Restored or Busy, Failed as Damaged or Incomplete.
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

from flows.age_evidence import age_evidence_of
from flows.desk import Desk
from flows.keys import age_key
from flows.monitor_fault import fault_of, tell_fault
from flows.notify import Notice, tell
from flows.upkeep import MENDED_BY_REBUILD, Standing, Upkeep, faults_of_check, faults_of_load
from flows.wiring import desk_without_run
from monitors.alerts.scope import Scope
from monitors.config import Config, load_config
from monitors.errors import MonitorError, WarehouseBusy, WarehouseDamaged, WarehouseError
from monitors.probes.evidence_age import AgedEvidence
from monitors.records.incidents import IncidentKind
from monitors.warehouse_settings import WarehouseSettings
from warehouse.check import CheckReport, check
from warehouse.compact import CompactReport, compact
from warehouse.export import ExportReport, export
from warehouse.load import LoadReport
from warehouse.rebuild import rebuild
from warehouse.retention import AgeReport, age
from warehouse.store import Store

SUBJECT: Final = "warehouse"
"""What the messages are about, in the place of a target's name."""

WAIT_S: Final = 600.0
"""At night there is time: many times the longest load that was measured."""

ENDS_WELL: Final = frozenset({Standing.SOUND, Standing.RESTORED, Standing.BUSY})

Done = TypeVar("Done")


@flow(name="load-warehouse", description=__doc__)
async def load_warehouse(config_path: Path, wait_s: float = WAIT_S) -> State[str]:
    """Look after the warehouse of one configuration, by its ``[warehouse]`` settings.

    Each stage waits up to ``wait_s`` seconds for other processes. The state is named after how the warehouse stands
    and says what was done. Raises `ConfigError` before anything is done.
    """
    config = await asyncio.to_thread(load_config, config_path)
    desk = await asyncio.to_thread(desk_without_run, config, SUBJECT)
    began_at = desk.now()
    done = Upkeep()
    await _all_stages(desk.store, config.warehouse, done, wait_s)
    done.pictures = await _stage(done, age_pictures(config, desk.now()))
    for fault in done.faults:
        await tell_fault(desk, fault)
    if not done.faults:
        await _tell_sound(desk, began_at=began_at)
    end = Completed if done.standing in ENDS_WELL else Failed
    return end(name=done.standing.value, message=done.in_words())


async def _all_stages(store: Store, settings: WarehouseSettings, done: Upkeep, wait_s: float) -> None:
    done.loaded = await _stage(done, _load(store, done, wait_s))
    if settings.export_folder is not None:
        done.exported = await _stage(done, export_days(store, settings.export_folder, settings.export_days, wait_s))
    if settings.personal_data_days is not None:
        done.aged = await _stage(done, age_out(store, settings.personal_data_days, wait_s))
    done.compacted = await _stage(done, compact_old(store, settings.compact_after_days, wait_s))
    if settings.check:
        done.checked = await _stage(done, _examine(store, done, wait_s))


async def _stage(done: Upkeep, job: Awaitable[Done]) -> Done | None:
    """One stage; what it could not do is kept for telling, once for a file that somebody holds."""
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
    """Take what the journal has; a damaged file is made anew from it."""
    try:
        report = await load_pending(store, wait_s)
    except WarehouseDamaged as error:
        done.faults.append(fault_of(error))
        report = done.rebuilt = await make_anew(store, wait_s)
    done.faults.extend(faults_of_load(report))
    done.hurt = done.hurt or bool(report.damaged)
    return report


async def _examine(store: Store, done: Upkeep, wait_s: float) -> CheckReport:
    """Where the tables alone are wrong, they are made anew and compared again."""
    report = await examine(store, wait_s)
    done.faults.extend(faults_of_check(report))
    if not report.sound and {trouble.kind for trouble in report.troubles} <= MENDED_BY_REBUILD:
        done.rebuilt = await make_anew(store, wait_s)
        report = await examine(store, wait_s)
    done.hurt = done.hurt or not report.sound
    return report


@task(name="load", cache_policy=NO_CACHE)
async def load_pending(store: Store, wait_s: float) -> LoadReport:
    """Take what the journal has and the file has not."""
    return await asyncio.to_thread(store.load_pending, wait_s)


@task(name="rebuild", cache_policy=NO_CACHE)
async def make_anew(store: Store, wait_s: float) -> LoadReport:
    """A new file from the journal; the old one is kept beside."""
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
    """Remove screenshots and traces that ``[evidence]`` no longer wants kept."""
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


async def _tell_sound(desk: Desk, *, began_at: datetime) -> None:
    """A night without a fault ends what earlier nights told."""
    scope = Scope(
        target=SUBJECT,
        run_id=desk.run_id,
        began_at=began_at,
        ended_at=desk.now(),
        cleared=frozenset({IncidentKind.MONITOR_FAULT}),
    )
    try:
        await tell(desk, [], notice=Notice(), scope=scope)
    except WarehouseError:
        return  # the next night says it
