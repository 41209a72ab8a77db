"""The poll behind the webhook: a deploy whose delivery was lost still gets its run, once.

    each target with a Space ─▶ which commit runs? ─▶ known: nothing · new: kept ─▶ its run

The receiver and the poll keep deploys in one place and ask for runs by one key, so it does not matter who is first.
What a receiver that is gone has kept gets its run here too, and what a run that was killed had to say is sent. The
flow ends Completed as Watched, or Failed as Waiting when a run could not be made: the next look, a minute later,
tries again.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.delivery import deliver_waiting
from flows.deploy_runs import RunPlan, Started, start_waiting
from flows.deploy_watch import SUBJECT, Looked, Watch, look_at_all
from flows.kept_deploys import KeptDeploys
from flows.keys import hub_token
from flows.wiring import desk_without_run, open_store, utc_now
from monitors.config import Config, load_config
from monitors.trigger_settings import DeploySettings


@flow(name="watch-deploys", description=__doc__)
async def watch_deploys(config_path: Path, settings: DeploySettings) -> State[str]:
    """One look at every target of a configuration; ``settings`` are its ``[deploys]``.

    Raises `ConfigError` before anything is looked at, and `WarehouseUnwritable` when nothing can be kept.
    """
    config = await asyncio.to_thread(load_config, config_path)
    absolute = await asyncio.to_thread(config_path.resolve)
    watch = watch_of(config, settings)
    looked = await look_at_all(watch)
    plan = RunPlan(deployment=settings.deployment, config_path=absolute)
    journal = open_store(config).journal
    async with get_client() as client:
        started = await start_waiting(client, watch.kept, journal, plan, now=watch.now)
    await deliver_waiting(watch.desk())
    if started.failed:
        return Failed(name="Waiting", message=str(started.failed[0]))
    return Completed(name="Watched", message=_in_words(looked, started))


def watch_of(config: Config, settings: DeploySettings) -> Watch:
    """The poll over a configuration's data folder."""
    return Watch(
        config=config,
        settings=settings,
        kept=KeptDeploys(config.data_folder),
        desk=lambda: desk_without_run(config, SUBJECT),
        hub_token=hub_token(),
        now=utc_now,
    )


def _in_words(looked: tuple[Looked, ...], started: Started) -> str:
    silent = sum(one.trouble is not None for one in looked)
    return f"{len(looked)} targets looked at, {silent} told nothing, {len(started.runs)} runs made"
