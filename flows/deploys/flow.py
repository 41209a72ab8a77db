"""Polls for deploys whose webhook delivery is missing, so that each still gets its run, once.

    each target with a Space, or deployed by GitHub ─▶ which commit runs? ─▶ known: nothing · new: saved ─▶ its run

`flows.watching` polls every minute, and this flow every hour as a sign of life. Receiver, watcher and flow store
deploys in one place and create runs with the same idempotency key, so it does not matter which is first. A poll
also creates the runs for deploys that a receiver stored before it ended. The flow ends Completed as Watched, or
Failed as Waiting when a run could not be created: the next poll, a minute later, tries again.

Prefect's key gives each commit one run, but it cannot tell a missing delivery from the first poll: when Lookout is
set up, every target runs a commit that was never reported. So the first poll is noted, and the commit that runs
then is stored as known; with `first_poll = "verify"` it is verified instead. A file for each target counts the
polls in a row that the Hub did not answer.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed
from pydantic import Field, ValidationError

from flows.alerting.faults import Fault, build_fault_from_error, notify_fault, resolve_faults
from flows.alerting.notifier import Notifier
from flows.alerting.pipeline import report_load_errors, send_waiting_alerts
from flows.clock import utc_now
from flows.data_folder import open_store
from flows.deploys.github_deployments import find_deployment, select_polled_triggers
from flows.deploys.queue import FOLDER, DeployOutcome, DeployQueue, QueuedDeploy
from flows.deploys.runs import RunNotMade, RunPlan, restart_crashed_runs, start_waiting_deploys
from flows.runtime.secrets import get_environment, get_hub_token
from flows.runtime.slack import build_notifier_without_run
from monitors.config.file import Config, TargetConfig, build_target_record, load_config
from monitors.config.sections import DeploySettings, FirstPoll, TriggerSettings
from monitors.errors import WarehouseError, WarehouseInUse
from monitors.github.actions import TOKEN_VARIABLE
from monitors.plural import plural
from monitors.probes.readiness import HUB_SILENT, open_readiness_checker
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
    """Stores one target's `HubOutage` in a file. Raises `WarehouseUnwritable`."""

    def __init__(self, data_folder: Path, target: str) -> None:
        self._data_folder = data_folder
        self._file = data_folder / FOLDER / target / FILE_NAME

    def read(self) -> HubOutage:
        """Read the outage; a damaged or missing file counts as no outage."""
        try:
            return HubOutage.model_validate_json(self._file.read_bytes())
        except (OSError, ValidationError):
            return HubOutage()

    def count_failure(self, now: UtcTime) -> HubOutage:
        """Count another poll without an answer; return the updated outage."""
        outage = self.read()
        updated = HubOutage(failures=outage.failures + 1, since=outage.since or now, notified=outage.notified)
        self._write(updated)
        return updated

    def store_owner_notice(self) -> None:
        """Store that the monitor's owners have been notified."""
        outage = self.read()
        self._write(HubOutage(failures=outage.failures, since=outage.since, notified=True))

    def clear(self) -> None:
        """Remove the outage: the Hub answers again."""
        self._file.unlink(missing_ok=True)

    def _write(self, outage: HubOutage) -> None:
        write_atomically(self._file, outage.model_dump_json(), within=self._data_folder)


SUBJECT: Final = "deploy-watch"
"""The subject of the messages, instead of a target's name, so that no run of a target can resolve them."""
POLL: Final = "poll"
"""The value of ``reported_by`` for deploys that the poll finds."""

_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)


class PollResult(Record):
    """The result of one poll: the running commit, if the Hub names one, or why there is no answer.

    ``deployment`` is GitHub's id of the deployment that runs.
    """

    target: str
    commit: str | None = None
    deployment: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class DeployPoller:
    """The context of a poll. ``notifier`` is only called when the monitor's owners must be notified."""

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
        """The triggers of the targets that are polled at GitHub; empty without a token."""
        return select_polled_triggers(self.config) if self.variables.get(TOKEN_VARIABLE) else {}

    @property
    def targets(self) -> dict[str, TargetConfig]:
        """The targets with a Space: only the Hub names their running commit."""
        return {
            name: configured for name, configured in self.config.targets.items() if configured.space is not None
        }


async def poll_all(poller: DeployPoller) -> tuple[PollResult, ...]:
    """Poll every target concurrently and store the results. Raises `WarehouseUnwritable`."""
    at_hub = (
        _poll_target(name, _poll_hub(poller, name, configured)) for name, configured in poller.targets.items()
    )
    at_github = (
        _poll_target(name, _poll_github(poller, name, trigger)) for name, trigger in poller.polled_at_github.items()
    )
    results = await asyncio.gather(*at_hub, *at_github)
    for result in results:
        await _apply_result(poller, result)
    return tuple(results)


async def _poll_target(name: str, poll: Awaitable[PollResult]) -> PollResult:
    """Await ``poll``; an error of any type affects only this target, and the next poll tries again."""
    try:
        return await poll
    except Exception as error:  # noqa: BLE001 - a server's answer can cause an error of any type
        return PollResult(target=name, error=build_fault_from_error(error).detail)


async def _poll_hub(poller: DeployPoller, name: str, configured: TargetConfig) -> PollResult:
    target = build_target_record(name, configured)
    async with open_readiness_checker(target, configured.probe, poller.hub_token) as checker:
        readiness = await checker.poll_target()
    if readiness.stage == HUB_SILENT:
        return PollResult(target=name, error=readiness.detail)
    commit = (readiness.commit or "").lower()
    return PollResult(target=name, commit=commit if _COMMIT.fullmatch(commit) else None)


async def _poll_github(poller: DeployPoller, name: str, trigger: TriggerSettings) -> PollResult:
    reported = await find_deployment(poller.config, trigger, poller.variables, poller.now)
    if reported is None:
        await asyncio.to_thread(poller.deploys.note_poll, name)  # the very first deployment is verified
        return PollResult(target=name)
    commit = reported.commit if _COMMIT.fullmatch(reported.commit) else None
    return PollResult(target=name, commit=commit, deployment=str(reported.id))


async def _apply_result(poller: DeployPoller, result: PollResult) -> None:
    if result.error is not None:
        await _count_failure(poller, result.target, result.error)
        return
    await _resolve_outage(poller, result.target)
    if result.commit is not None:
        await asyncio.to_thread(_queue_commit, poller, result.target, result.commit, result.deployment)


def _queue_commit(poller: DeployPoller, target: str, commit: str, deployment: str | None) -> None:
    """Queue what runs, if it was not reported. On a first poll that is only noted, store the outcome first.

    The order matters after a kill in between: the commit then counts as new. The Hub names no deployment: there the
    poll sees that an earlier commit is back.
    """
    deploys, now = poller.deploys, poller.now()
    returned = deploys.find_return(target, commit) if deployment is None else None
    event = DeployEvent(target=target, commit=commit, occurred_at=now, reported_by=POLL)
    queued = QueuedDeploy(deploy=ReportedDeploy(event=event, deployment=returned or deployment), stored_at=now)
    if poller.settings.first_poll is FirstPoll.NOTE and not deploys.has_polled(target) and deploys.is_new(queued):
        deploys.store_outcome(queued.deploy, DeployOutcome(run_id=None, at=now))
    deploys.save(queued, is_back=returned is not None)
    deploys.note_running(target, commit, now)
    deploys.note_poll(target)


async def _count_failure(poller: DeployPoller, target: str, error: str) -> None:
    """Count a failed poll, and notify the monitor's owners after every ``failures_before_alert`` in a row."""
    store = HubOutageStore(poller.config.data_folder, target)
    outage = await asyncio.to_thread(store.count_failure, poller.now())
    if outage.failures % poller.settings.failures_before_alert:
        return
    since = f"{outage.since:%Y-%m-%d %H:%M} UTC" if outage.since else "now"
    detail = (
        f"The Hub did not say which commit {target} runs in {plural(outage.failures, 'poll')} in a row, since "
        f"{since}: {error}. If a webhook was lost, Lookout finds that deploy when the Hub answers again."
    )
    await notify_fault(poller.notifier(), Fault(_build_hub_outage_name(target), detail))
    await asyncio.to_thread(store.store_owner_notice)


async def _resolve_outage(poller: DeployPoller, target: str) -> None:
    store = HubOutageStore(poller.config.data_folder, target)
    outage = await asyncio.to_thread(store.read)
    if outage.notified:
        source = "The Hub" if target in poller.targets else "GitHub"
        text = f"{source} reports the commit of {target} again."
        try:
            await resolve_faults(poller.notifier(), {_build_hub_outage_name(target): text}, began_at=poller.now())
        except WarehouseError:
            return  # the next poll resolves the fault
    if outage.failures:
        await asyncio.to_thread(store.clear)


def _build_hub_outage_name(target: str) -> str:
    return f"HubSilent:{target}"


@flow(name="watch-deploys", description=__doc__)
async def watch_deploys(config_path: Path, settings: DeploySettings) -> State[str]:
    """Poll every target of a configuration once; ``settings`` are its ``[deploys]``.

    Raises `ConfigError` before any poll, and `WarehouseUnwritable` when nothing can be stored.
    """
    config = await asyncio.to_thread(load_config, config_path)
    poller = build_poller(config, settings)
    check = await check_deploys(poller, await asyncio.to_thread(config_path.resolve))
    notifier = poller.notifier()
    with suppress(WarehouseInUse):  # the next poll sends them
        await send_waiting_alerts(notifier)
        await report_load_errors(notifier)
    if check.failed:
        return Failed(name="Waiting", message=str(check.failed[0]))
    silent = sum(result.error is not None for result in check.results)
    polled, runs = plural(len(check.results), "target"), plural(len(check.runs), "run")
    return Completed(name="Watched", message=f"{polled} polled, {silent} without an answer, {runs} started")


class DeployCheck(NamedTuple):
    """The results of a poll, the ids of the runs that were created, and the errors for those that were not."""

    results: tuple[PollResult, ...]
    runs: tuple[str, ...]
    failed: tuple[RunNotMade, ...]


async def check_deploys(poller: DeployPoller, config_path: Path) -> DeployCheck:
    """Poll every target once; create the runs of waiting deploys, and those of runs whose process was killed.

    The runs read the absolute ``config_path``. Raises `WarehouseUnwritable`.
    """
    results = await poll_all(poller)
    config = poller.config
    plan = RunPlan(deployment=poller.settings.deployment, config_path=config_path, tag=config.prefect.tag)
    journal = open_store(config).journal
    async with get_client() as client:
        started = await start_waiting_deploys(client, poller.deploys, journal, plan, now=poller.now)
        restarted = await restart_crashed_runs(
            client,
            poller.deploys,
            plan,
            build_notifier=lambda target: build_notifier_without_run(config, target, Capability.VERIFY),
        )
    return DeployCheck(results, (*started.runs, *restarted.runs), (*started.failed, *restarted.failed))


def build_poller(config: Config, settings: DeploySettings) -> DeployPoller:
    """Build the poller of a configuration."""
    return DeployPoller(
        config=config,
        settings=settings,
        deploys=DeployQueue(config.data_folder),
        notifier=lambda: build_notifier_without_run(config, SUBJECT, Capability.DEPLOYS),
        hub_token=get_hub_token(),
        now=utc_now,
        variables=get_environment(),
    )
