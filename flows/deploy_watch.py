"""One look at a target: which commit runs, and whether anybody has told of it.

Prefect's key alone could see to it that a commit has one run, but not tell a lost delivery from the very first
look: on the day that Lookout is set up every target runs a commit that nobody reported. So the first look is noted,
and what runs then is kept as known; `first_look = "verify"` has it verified instead.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import httpx

from flows.desk import Desk
from flows.fault_over import fault_over
from flows.hub_silence import HubSilence
from flows.kept_deploys import KeptDeploy, KeptDeploys, Settled
from flows.monitor_fault import Fault, tell_fault
from monitors.config import Config, TargetConfig, target_record
from monitors.errors import AccessDenied, WarehouseError
from monitors.probes.readiness import HUB_SILENT, Lookout
from monitors.records.base import Record
from monitors.records.deploys import ReportedDeploy
from monitors.records.targets import DeployEvent
from monitors.trigger_settings import DeploySettings, FirstLook

SUBJECT: Final = "deploy-watch"
"""What the messages are about, in the place of a target's name: no run of a target may call them over."""
POLL: Final = "poll"
"""Who says so, on the deploys that the poll finds."""

_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)


class Looked(Record):
    """What one look told: the commit that runs, where the Hub named one, or why it told nothing."""

    target: str
    commit: str | None = None
    trouble: str | None = None


@dataclass(frozen=True)
class Watch:
    """What the poll needs. ``desk`` is made only when the monitor's owners must hear something."""

    config: Config
    settings: DeploySettings
    kept: KeptDeploys
    desk: Callable[[], Desk]
    hub_token: str | None
    now: Callable[[], datetime]

    @property
    def targets(self) -> dict[str, TargetConfig]:
        """Those that the Hub knows: it alone names the running commit."""
        return {name: one for name, one in self.config.targets.items() if one.space is not None}


async def look_at_all(watch: Watch) -> tuple[Looked, ...]:
    """One look at every target, all at once, and what follows from it is kept. Raises `WarehouseUnwritable`."""
    looked = await asyncio.gather(*(_look(watch, name, one) for name, one in watch.targets.items()))
    for one in looked:
        await _follow(watch, one)
    return tuple(looked)


async def _look(watch: Watch, name: str, configured: TargetConfig) -> Looked:
    settings = configured.probe.readiness
    async with httpx.AsyncClient(timeout=settings.request_deadline_s, follow_redirects=True) as client:
        try:
            seen = await Lookout(target_record(name, configured), settings, client, watch.hub_token).at_target()
        except AccessDenied as error:
            return Looked(target=name, trouble=str(error))
    if seen.stage == HUB_SILENT:
        return Looked(target=name, trouble=seen.detail)
    commit = (seen.commit or "").lower()
    return Looked(target=name, commit=commit if _COMMIT.fullmatch(commit) else None)


async def _follow(watch: Watch, looked: Looked) -> None:
    if looked.trouble is not None:
        await _count_failure(watch, looked.target, looked.trouble)
        return
    await _end_silence(watch, looked.target)
    if looked.commit is not None:
        await asyncio.to_thread(_take_up, watch, looked.target, looked.commit)


def _take_up(watch: Watch, target: str, commit: str) -> None:
    """Keep a commit that nobody reported. One that is only noted is settled first: killed in between, it is new."""
    kept, now = watch.kept, watch.now()
    if not kept.knows(target, commit):
        event = DeployEvent(target=target, commit=commit, occurred_at=now, reported_by=POLL)
        if watch.settings.first_look is FirstLook.NOTE and not kept.looked_before(target):
            kept.settle(event, Settled(run_id=None, at=now))
        kept.keep(KeptDeploy(deploy=ReportedDeploy(event=event), kept_at=now))
    kept.note_look(target)


async def _count_failure(watch: Watch, target: str, trouble: str) -> None:
    """Every so many failures in a row the monitor's owners hear of it; as one incident, with its reminders."""
    note = HubSilence(watch.config.data_folder, target)
    silence = await asyncio.to_thread(note.failed, watch.now())
    if silence.failures % watch.settings.failures_before_notice:
        return
    since = f"{silence.since:%Y-%m-%d %H:%M} UTC" if silence.since else "now"
    detail = (
        f"Which commit {target} runs could not be told at {silence.failures} looks in a row, since {since}: "
        f"{trouble}. A deploy whose webhook is lost meanwhile is found when it can be told again."
    )
    await tell_fault(watch.desk(), Fault(_name_of(target), detail))
    await asyncio.to_thread(note.note_told)


async def _end_silence(watch: Watch, target: str) -> None:
    note = HubSilence(watch.config.data_folder, target)
    silence = await asyncio.to_thread(note.read)
    if silence.told:
        words = f"The Hub tells again which commit {target} runs."
        try:
            await fault_over(watch.desk(), _name_of(target), began_at=watch.now(), words=words)
        except WarehouseError:
            return  # the next look says it
    if silence.failures:
        await asyncio.to_thread(note.over)


def _name_of(target: str) -> str:
    return f"HubSilent:{target}"
