"""Follow the hallucination logs: store new entries and send alerts about them.

    load ─▶ read ─▶ store entries and read position ─▶ send alerts about new entries ─▶ check the log itself
     └──────────────── again every poll_s, until no entry came for for_s seconds ──────────────────────┘

`flows.watching` starts this flow when a log has changed. A schedule also starts it every hour, so that its
completed runs show that it works. The state of the flow is Completed with the name Notified (it sent an alert),
Quiet, or Unreadable (a log could not be read, which is an internal fault of Lookout). If a poll failed for another
reason, the state is Failed with the name Broken. If another run of Lookout uses the warehouse, the state is
Cancelled with the name Busy, and the next run reads the entries.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import monotonic
from typing import Final

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Cancelled, Completed, Failed

from flows.hallucination_log.follower import (
    LogFollower,
    LogPoll,
    build_log_follower,
    format_poll,
    format_polls,
    select_poll_state_name,
    select_targets_to_follow,
)
from flows.server.missed_runs import BUSY
from monitors.config.file import load_config

MAX_FOLLOW_S: Final = 900.0
"""Maximum duration of a run in seconds, even if entries still arrive.

The limit exists because only the next run reads a changed configuration.
"""


@flow(name="follow-log", description=__doc__)
async def follow_log(config_path: Path, target: str | None = None, for_s: float = 0) -> State[tuple[LogPoll, ...]]:
    """Poll the log of ``target``, or all configured logs, until no entry arrived for ``for_s`` seconds.

    An error in one log does not stop the polls of the other logs. The state's data are the successful polls. Raises
    `ConfigError` before anything is read.
    """
    config = await asyncio.to_thread(load_config, config_path)
    followers = [
        await asyncio.to_thread(build_log_follower, config, name)
        for name in select_targets_to_follow(config, target)
    ]
    polls_by_log = await asyncio.gather(*(_poll_until_quiet(log_follower, for_s) for log_follower in followers))
    completed = tuple(poll for polls in polls_by_log for poll in polls if not poll.broken and not poll.skipped)
    broken = [format_poll(polls[-1]) for polls in polls_by_log if polls[-1].broken]
    skipped = [format_poll(polls[0]) for polls in polls_by_log if all(poll.skipped for poll in polls)]
    text = "; ".join([*broken, *skipped, *format_polls(completed)])
    if broken:
        return Failed(name="Broken", message=text, data=completed)
    if skipped:
        return Cancelled(name=BUSY, message=text, data=completed)  # a person is notified if no run completes
    return Completed(name=select_poll_state_name(completed), message=text, data=completed)


async def _poll_until_quiet(log_follower: LogFollower, for_s: float) -> list[LogPoll]:
    began = monotonic()
    last_entry = began
    polls: list[LogPoll] = []
    while True:
        polls.append(await log_follower.poll_and_report_errors())
        if polls[-1].found.entries:
            last_entry = monotonic()
        end = min(last_entry, began + MAX_FOLLOW_S) + for_s
        if end - monotonic() <= (pause := log_follower.settings.poll_s):
            return polls
        # A log file sends no events, so it is polled.
        await asyncio.sleep(pause)
