"""Follow the hallucination logs: what is new is kept and told, every minute.

    load ─▶ read ─▶ keep, with the place where reading stands ─▶ tell what nobody was told of ─▶ the log itself
     └──────────────────────────────── again every look_s, for for_s ────────────────────────────────┘

A start costs seconds and a look milliseconds, so a run that is started every minute looks more than once.
The flow ends Completed as Told (something was), Quiet or Unreadable; a log that cannot be read is told too.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import monotonic

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.log_follower import Looked
from flows.log_wiring import follower, logs_to_follow, look_s
from flows.log_words import in_words_together, state_name
from flows.monitor_fault import fault_of, tell_fault
from flows.wiring import desk_without_run
from monitors.config import Config, load_config
from monitors.errors import ConfigError, MonitorError


@flow(name="follow-log", description=__doc__)
async def follow_log(config_path: Path, target: str | None = None, for_s: float = 0) -> State[tuple[Looked, ...]]:
    """Look at the log of ``target``, or of every target that has one, and again until ``for_s`` seconds are over.

    Raises `ConfigError` before anything. What breaks for one log does not keep the others from being followed. The
    state's data are the last look at each log that could be made.
    """
    config = await asyncio.to_thread(load_config, config_path)
    names = logs_to_follow(config, target)
    looks = await asyncio.gather(*(_looks(config, name, for_s) for name in names))
    seen = tuple(look for each in looks for look in each if isinstance(look, Looked))
    broken = [
        f"{name}: {each[-1]}" for name, each in zip(names, looks, strict=True) if isinstance(each[-1], MonitorError)
    ]
    words = "; ".join([*broken, *in_words_together(seen)])
    if broken:
        return Failed(name="Broken", message=words, data=seen)
    return Completed(name=state_name(seen), message=words, data=seen)


async def _looks(config: Config, name: str, for_s: float) -> list[Looked | MonitorError]:
    end = monotonic() + for_s
    looks = [await _look(config, name)]
    while end - monotonic() > (pause := look_s(config, name)):
        await asyncio.sleep(pause)
        looks.append(await _look(config, name))
    return looks


async def _look(config: Config, name: str) -> Looked | MonitorError:
    try:
        return await look_at(config, name)
    except ConfigError:
        raise
    except MonitorError as error:
        desk = await asyncio.to_thread(desk_without_run, config, name)
        await tell_fault(desk, fault_of(error))
        return error


@task(name="look at log", cache_policy=NO_CACHE)
async def look_at(config: Config, name: str) -> Looked:
    """One look at one log."""
    following = await asyncio.to_thread(follower, config, name)
    return await following.look()
