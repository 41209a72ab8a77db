"""The nightly digest: one message for each target, also when nothing is wrong, so that silence says something.

What still waits in the outbox goes out first.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.desk import Desk
from flows.monitor_fault import fault_of, tell_fault
from flows.night_digest import digest_of
from flows.notify import Notice, tell
from flows.wiring import desk_without_run, runs_folder
from monitors.alerts.digest import Digest
from monitors.config import load_config
from monitors.errors import NotifyRejected, WarehouseBusy
from monitors.records.incidents import Receipt

RETRY_AFTER_S = (60.0, 300.0, 900.0)
"""A digest is no page: it may come a quarter of an hour late, and is looked for before it is posted again."""
LOAD_WAIT_S = 60.0


@flow(name="digest", description=__doc__)
async def digest(config_path: Path, target: str | None = None) -> State[tuple[str, ...]]:
    """Send the digest of ``target``, or of every target of the configuration; the state's data are their ids.

    Raises `ConfigError` before anything is sent.
    """
    config = await asyncio.to_thread(load_config, config_path)
    names = [target] if target is not None else list(config.targets)
    sent: list[str] = []
    for name in names:
        config.target(name)
        desk = await asyncio.to_thread(desk_without_run, config, name)
        await catch_up(desk)
        night = await asyncio.to_thread(
            digest_of, desk.store, name, now=desk.now(), run_id=desk.run_id, runs=runs_folder(config)
        )
        await send_digest(desk, night)
        sent.append(night.id)
    return Completed(message=f"{len(sent)} sent", data=tuple(sent))


async def catch_up(desk: Desk) -> None:
    """Load what runs wrote, send what waits."""
    try:
        await asyncio.to_thread(desk.store.load_pending, LOAD_WAIT_S)
    except WarehouseBusy as error:
        await tell_fault(desk, fault_of(error))
        return
    await tell(desk, (), notice=Notice())


@task(
    name="send digest", cache_policy=NO_CACHE, retries=len(RETRY_AFTER_S), retry_delay_seconds=list(RETRY_AFTER_S)
)
async def send_digest(desk: Desk, night: Digest) -> Receipt:
    """Send one digest. What every way refuses is printed, and told as a fault."""
    try:
        return await desk.sender.send_digest(night, again=True)
    except NotifyRejected as error:
        receipt = await desk.terminal.send_digest(night)
        await tell_fault(desk, fault_of(error))
        return receipt
