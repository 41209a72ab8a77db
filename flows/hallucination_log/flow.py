"""Follow the hallucination logs: store new entries and send alerts about them, every minute.

    load ─▶ read ─▶ save, with the read position ─▶ send alerts about new entries ─▶ check the log itself
     └──────────────────────────────── again every poll_s, for for_s ────────────────────────────────┘

A start costs seconds and a poll milliseconds, so a run that starts every minute polls more than once. The flow ends
Completed as Notified (an alert was decided), Quiet or Unreadable; a log that cannot be read is a fault.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import monotonic

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.alerting.faults import fault_of, notify_fault
from flows.hallucination_log.follower import (
    LogPoll,
    describe_all,
    follower,
    logs_to_follow,
    poll_s,
    state_name,
)
from flows.runtime.slack import notifier_without_run
from monitors.config.file import Config, load_config
from monitors.errors import ConfigError, MonitorError
from monitors.records.incidents import Capability


@flow(name="follow-log", description=__doc__)
async def follow_log(config_path: Path, target: str | None = None, for_s: float = 0) -> State[tuple[LogPoll, ...]]:
    """Poll the log of ``target``, or of every target that has one, and again until ``for_s`` seconds are over.

    Raises `ConfigError` before anything. What breaks for one log does not stop the others from being followed. The
    state's data are the last poll of each log that could be made.
    """
    config = await asyncio.to_thread(load_config, config_path)
    names = logs_to_follow(config, target)
    polls = await asyncio.gather(*(_polls(config, name, for_s) for name in names))
    seen = tuple(poll for each in polls for poll in each if isinstance(poll, LogPoll))
    broken = [
        f"{name}: {each[-1]}" for name, each in zip(names, polls, strict=True) if isinstance(each[-1], MonitorError)
    ]
    text = "; ".join([*broken, *describe_all(seen)])
    if broken:
        return Failed(name="Broken", message=text, data=seen)
    return Completed(name=state_name(seen), message=text, data=seen)


async def _polls(config: Config, name: str, for_s: float) -> list[LogPoll | MonitorError]:
    end = monotonic() + for_s
    polls = [await _poll(config, name)]
    while end - monotonic() > (pause := poll_s(config, name)):
        # A log file is polled; its pause is a setting.
        await asyncio.sleep(pause)
        polls.append(await _poll(config, name))
    return polls


async def _poll(config: Config, name: str) -> LogPoll | MonitorError:
    try:
        return await poll_log(config, name)
    except ConfigError:
        raise
    except MonitorError as error:
        notifier = await asyncio.to_thread(notifier_without_run, config, name, Capability.HALLUCINATION_LOG)
        await notify_fault(notifier, fault_of(error))
        return error


@task(name="poll log", cache_policy=NO_CACHE)
async def poll_log(config: Config, name: str) -> LogPoll:
    """Poll one log once."""
    following = await asyncio.to_thread(follower, config, name)
    return await following.poll()
