"""Follow the hallucination logs: store new entries and send alerts about them, every minute.

    load ─▶ read ─▶ save, with the read position ─▶ send alerts about new entries ─▶ check the log itself
     └──────────────────────────────── again every poll_s, for for_s ────────────────────────────────┘

A start takes seconds and a poll milliseconds, so each run polls more than once. The flow ends Completed as Notified
(an alert was decided), Quiet or Unreadable; a log that cannot be read is a fault.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import monotonic

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.alerting.faults import fault_from_error, notify_fault
from flows.hallucination_log.follower import (
    LogPoll,
    build_follower,
    format_polls,
    get_poll_interval_s,
    logs_to_follow,
    select_state_name,
)
from flows.runtime.slack import build_notifier_without_run
from monitors.config.file import Config, load_config
from monitors.errors import ConfigError, MonitorError
from monitors.records.incidents import Capability


@flow(name="follow-log", description=__doc__)
async def follow_log(config_path: Path, target: str | None = None, for_s: float = 0) -> State[tuple[LogPoll, ...]]:
    """Poll the log of ``target``, or of every target that has one, repeatedly for ``for_s`` seconds.

    Raises `ConfigError` before anything is read. An error of one log does not stop the others. The state's data are
    the successful polls.
    """
    config = await asyncio.to_thread(load_config, config_path)
    targets = logs_to_follow(config, target)
    polls = await asyncio.gather(*(_poll_until_end(config, name, for_s) for name in targets))
    completed = tuple(poll for log_polls in polls for poll in log_polls if isinstance(poll, LogPoll))
    broken = [
        f"{name}: {log_polls[-1]}"
        for name, log_polls in zip(targets, polls, strict=True)
        if isinstance(log_polls[-1], MonitorError)
    ]
    text = "; ".join([*broken, *format_polls(completed)])
    if broken:
        return Failed(name="Broken", message=text, data=completed)
    return Completed(name=select_state_name(completed), message=text, data=completed)


async def _poll_until_end(config: Config, name: str, for_s: float) -> list[LogPoll | MonitorError]:
    end = monotonic() + for_s
    polls = [await _poll_and_notify(config, name)]
    while end - monotonic() > (pause := get_poll_interval_s(config, name)):
        # A log file is polled; its pause is a setting.
        await asyncio.sleep(pause)
        polls.append(await _poll_and_notify(config, name))
    return polls


async def _poll_and_notify(config: Config, name: str) -> LogPoll | MonitorError:
    try:
        return await poll_log(config, name)
    except ConfigError:
        raise
    except MonitorError as error:
        notifier = await asyncio.to_thread(build_notifier_without_run, config, name, Capability.HALLUCINATION_LOG)
        await notify_fault(notifier, fault_from_error(error))
        return error


@task(name="poll log", cache_policy=NO_CACHE)
async def poll_log(config: Config, name: str) -> LogPoll:
    """Poll one log once."""
    follower_of_log = await asyncio.to_thread(build_follower, config, name)
    return await follower_of_log.poll()
