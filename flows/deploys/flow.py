"""The poll behind the webhook: a deploy whose delivery is missing still gets its run, once.

    each target with a Space, or deployed by GitHub ─▶ which commit runs? ─▶ known: nothing · new: saved ─▶ its run

The receiver and the poll store deploys in one place and ask for runs by one key, so it does not matter who is
first. The flow also makes the runs for what a receiver stored before it ended, and sends the messages of a run that
was killed. It ends Completed as Watched, or Failed as Waiting when a run could not be made: the next poll, a minute
later, tries again.

Prefect's key alone gives each commit one run, but it cannot tell a missing delivery from the very first poll: on
the day that Lookout is set up every target runs a commit that nobody reported. So the first poll is noted, and the
commit that runs then is stored as known; `first_poll = "verify"` has it verified instead. As every poll is a run of
its own, a note for each target counts the polls in a row that the Hub did not answer.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import httpx
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed
from pydantic import Field, ValidationError

from flows.alerting.faults import Fault, notify_fault, resolve_faults
from flows.alerting.notifier import Notifier
from flows.alerting.send import send_waiting
from flows.clock import utc_now
from flows.data_folder import open_store
from flows.deploys.github_deployments import deployed_commit, polled_triggers
from flows.deploys.queue import FOLDER, DeployOutcome, DeployQueue, QueuedDeploy
from flows.deploys.runs import RunPlan, StartReport, start_waiting
from flows.runtime.secrets import environment, hub_token
from flows.runtime.slack import notifier_without_run
from monitors.config.file import Config, TargetConfig, load_config, target_record
from monitors.config.sections import DeploySettings, FirstPoll, TriggerSettings
from monitors.errors import AccessDenied, NotifyError, WarehouseError
from monitors.github.actions import TOKEN_VARIABLE
from monitors.plural import plural
from monitors.probes.readiness import HUB_SILENT, ReadinessChecker
from monitors.records.base import Record, UtcTime
from monitors.records.incidents import Capability
from monitors.records.targets import DeployEvent, ReportedDeploy
from monitors.storage import write_atomically

FILE_NAME: Final = "hub-silence"


class HubOutage(Record):
    """Polls in a row that got no answer, since when, and whether the monitor's owners have been notified."""

    failures: Annotated[int, Field(ge=0)] = 0
    since: UtcTime | None = None
    notified: bool = False


class HubOutageStore:
    """One target's note. Raises `WarehouseUnwritable` where it cannot be stored."""

    def __init__(self, data_folder: Path, target: str) -> None:
        self._data_folder = data_folder
        self._file = data_folder / FOLDER / target / FILE_NAME

    def read(self) -> HubOutage:
        """The note as it stands; a torn or missing one counts from nothing."""
        try:
            return HubOutage.model_validate_json(self._file.read_bytes())
        except (OSError, ValidationError):
            return HubOutage()

    def failed(self, now: UtcTime) -> HubOutage:
        """Count another poll that got no answer."""
        known = self.read()
        after = known.model_copy(update={"failures": known.failures + 1, "since": known.since or now})
        self._write(after)
        return after

    def note_notified(self) -> None:
        """Note that the monitor's owners have been notified."""
        self._write(self.read().model_copy(update={"notified": True}))

    def over(self) -> None:
        """Note that the Hub answers."""
        self._file.unlink(missing_ok=True)

    def _write(self, silence: HubOutage) -> None:
        write_atomically(self._file, silence.model_dump_json(), within=self._data_folder)


SUBJECT: Final = "deploy-watch"
"""The subject of the messages, in the place of a target's name: no run of a target can resolve them."""
POLL: Final = "poll"
"""Who reported the deploys that the poll finds."""

_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)


class PollResult(Record):
    """What one poll found: the commit that runs, where the Hub names one, or why there is no answer."""

    target: str
    commit: str | None = None
    trouble: str | None = None


@dataclass(frozen=True)
class DeployPoller:
    """What the poll needs. ``notifier`` is made only when the monitor's owners must hear something."""

    config: Config
    settings: DeploySettings
    deploys: DeployQueue
    notifier: Callable[[], Notifier]
    hub_token: str | None
    now: Callable[[], datetime]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """The environment, for GitHub's token."""

    @property
    def polled_at_github(self) -> dict[str, TriggerSettings]:
        """The targets whose deployments GitHub knows, where there is a token to ask it with."""
        return polled_triggers(self.config) if self.variables.get(TOKEN_VARIABLE) else {}

    @property
    def targets(self) -> dict[str, TargetConfig]:
        """The targets with a Space: only the Hub names their running commit."""
        return {name: one for name, one in self.config.targets.items() if one.space is not None}


async def poll_all(watch: DeployPoller) -> tuple[PollResult, ...]:
    """Poll every target, all at once, and store what follows from it. Raises `WarehouseUnwritable`."""
    at_hub = (_poll(watch, name, one) for name, one in watch.targets.items())
    at_github = (_ask_github(watch, name, row) for name, row in watch.polled_at_github.items())
    results = await asyncio.gather(*at_hub, *at_github)
    for one in results:
        await _follow(watch, one)
    return tuple(results)


async def _poll(watch: DeployPoller, name: str, configured: TargetConfig) -> PollResult:
    settings = configured.probe.readiness
    async with httpx.AsyncClient(timeout=settings.request_deadline_s, follow_redirects=True) as client:
        try:
            seen = await ReadinessChecker(
                target_record(name, configured), settings, client, watch.hub_token
            ).at_target()
        except AccessDenied as error:
            return PollResult(target=name, trouble=str(error))
    if seen.stage == HUB_SILENT:
        return PollResult(target=name, trouble=seen.detail)
    commit = (seen.commit or "").lower()
    return PollResult(target=name, commit=commit if _COMMIT.fullmatch(commit) else None)


async def _ask_github(watch: DeployPoller, name: str, row: TriggerSettings) -> PollResult:
    try:
        commit = await deployed_commit(watch.config, row, watch.variables, watch.now)
    except NotifyError as error:
        return PollResult(target=name, trouble=str(error))
    if commit is None:
        await asyncio.to_thread(watch.deploys.note_poll, name)  # the first deployment of all is one to verify
    return PollResult(target=name, commit=commit if commit and _COMMIT.fullmatch(commit) else None)


async def _follow(watch: DeployPoller, result: PollResult) -> None:
    if result.trouble is not None:
        await _count_failure(watch, result.target, result.trouble)
        return
    await _end_silence(watch, result.target)
    if result.commit is not None:
        await asyncio.to_thread(_take_up, watch, result.target, result.commit)


def _take_up(watch: DeployPoller, target: str, commit: str) -> None:
    """Save a commit that nobody reported. One that is only noted is settled first: a kill between makes it new."""
    deploys, now = watch.deploys, watch.now()
    if not deploys.knows(target, commit):
        event = DeployEvent(target=target, commit=commit, occurred_at=now, reported_by=POLL)
        if watch.settings.first_poll is FirstPoll.NOTE and not deploys.polled_before(target):
            deploys.settle(event, DeployOutcome(run_id=None, at=now))
        deploys.save(QueuedDeploy(deploy=ReportedDeploy(event=event), stored_at=now))
    deploys.note_poll(target)


async def _count_failure(watch: DeployPoller, target: str, trouble: str) -> None:
    """Notify the monitor's owners after every so many failures in a row; as one incident, with its reminders."""
    note = HubOutageStore(watch.config.data_folder, target)
    silence = await asyncio.to_thread(note.failed, watch.now())
    if silence.failures % watch.settings.failures_before_alert:
        return
    since = f"{silence.since:%Y-%m-%d %H:%M} UTC" if silence.since else "now"
    detail = (
        f"The Hub did not say which commit {target} runs in {plural(silence.failures, 'poll')} in a row, "
        f"since {since}: {trouble}. If a webhook got lost meanwhile, Lookout finds that deploy as soon as the Hub "
        "answers."
    )
    await notify_fault(watch.notifier(), Fault(_name_of(target), detail))
    await asyncio.to_thread(note.note_notified)


async def _end_silence(watch: DeployPoller, target: str) -> None:
    note = HubOutageStore(watch.config.data_folder, target)
    silence = await asyncio.to_thread(note.read)
    if silence.notified:
        who = "The Hub" if target in watch.targets else "GitHub"
        text = f"{who} says again which commit {target} runs."
        try:
            await resolve_faults(watch.notifier(), {_name_of(target): text}, began_at=watch.now())
        except WarehouseError:
            return  # the next poll reports it
    if silence.failures:
        await asyncio.to_thread(note.over)


def _name_of(target: str) -> str:
    return f"HubSilent:{target}"


@flow(name="watch-deploys", description=__doc__)
async def watch_deploys(config_path: Path, settings: DeploySettings) -> State[str]:
    """Poll every target of a configuration once; ``settings`` are its ``[deploys]``.

    Raises `ConfigError` before any poll, and `WarehouseUnwritable` when nothing can be stored.
    """
    config = await asyncio.to_thread(load_config, config_path)
    absolute = await asyncio.to_thread(config_path.resolve)
    watch = watch_of(config, settings)
    results = await poll_all(watch)
    plan = RunPlan(deployment=settings.deployment, config_path=absolute)
    journal = open_store(config).journal
    async with get_client() as client:
        started = await start_waiting(client, watch.deploys, journal, plan, now=watch.now)
    await send_waiting(watch.notifier())
    if started.failed:
        return Failed(name="Waiting", message=str(started.failed[0]))
    return Completed(name="Watched", message=_describe_polls(results, started))


def watch_of(config: Config, settings: DeploySettings) -> DeployPoller:
    """The poll over a configuration's data folder."""
    return DeployPoller(
        config=config,
        settings=settings,
        deploys=DeployQueue(config.data_folder),
        notifier=lambda: notifier_without_run(config, SUBJECT, Capability.DEPLOYS),
        hub_token=hub_token(),
        now=utc_now,
        variables=environment(),
    )


def _describe_polls(results: tuple[PollResult, ...], started: StartReport) -> str:
    silent = sum(one.trouble is not None for one in results)
    polled, runs = plural(len(results), "target"), plural(len(started.runs), "run")
    return f"{polled} polled, {silent} without an answer, {runs} started"
