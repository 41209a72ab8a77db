"""Polls the Hugging Face Hub and GitHub for deploys whose webhook was not delivered, and starts their runs.

    ask which commit each target runs ─▶ the commit is new ─▶ store the deploy ─▶ create its verification run

`flows.watching` polls every minute. This flow also polls once an hour, so that its completed runs show that polling
works. The watcher and this flow store deploys in the same queue, and create runs with the same idempotency keys.
Therefore each deploy gets only one run. A poll also creates the runs of deploys that a webhook receiver stored
before the receiver was stopped. The state of the flow is Completed with the name Watched. If a run could not be
created, the state is Failed with the name Waiting, and the next poll tries again.

The first poll of a target finds a commit that was never reported. By default, this poll only stores the commit.
With `first_poll = "verify"`, it also creates a verification run for the commit. For each target, a file counts the
consecutive failed polls.
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
from flows.alerting.pipeline import notify_of_load_errors, send_waiting_alerts
from flows.clock import utc_now
from flows.data_folder import open_store
from flows.deploys.github_deployments import find_newest_successful_deployment, select_triggers_polled_at_github
from flows.deploys.queue import FOLDER, DeployOutcome, DeployQueue, QueuedDeploy
from flows.deploys.runs import RunNotMade, RunPlan, create_runs_of_waiting_deploys, restart_crashed_runs
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
    """How many polls in a row have failed, since when, and whether Lookout's owners were notified."""

    failures: Annotated[int, Field(ge=0)] = 0
    since: UtcTime | None = None
    notified: bool = False


class HubOutageStore:
    """Stores one target's `HubOutage` in a file. Raises `WarehouseUnwritable`."""

    def __init__(self, data_folder: Path, target: str) -> None:
        self._data_folder = data_folder
        self._file = data_folder / FOLDER / target / FILE_NAME

    def read(self) -> HubOutage:
        """Read the outage. A damaged or missing file counts as no outage."""
        try:
            return HubOutage.model_validate_json(self._file.read_bytes())
        except (OSError, ValidationError):
            return HubOutage()

    def add_failed_poll(self, now: UtcTime) -> HubOutage:
        """Add a failed poll to the count, and return the stored outage."""
        outage = self.read()
        updated = HubOutage(failures=outage.failures + 1, since=outage.since or now, notified=outage.notified)
        self._write(updated)
        return updated

    def store_owners_notified(self) -> None:
        """Store that Lookout's owners have been notified of the outage."""
        outage = self.read()
        self._write(HubOutage(failures=outage.failures, since=outage.since, notified=True))

    def clear(self) -> None:
        """Delete the stored outage, because the Hub answers again."""
        self._file.unlink(missing_ok=True)

    def _write(self, outage: HubOutage) -> None:
        write_atomically(self._file, outage.model_dump_json(), within=self._data_folder)


SUBJECT: Final = "deploy-watch"
"""In alerts about polling, this name is shown instead of a target's name.

Because of this name, the runs of targets do not resolve these alerts.
"""
POLL: Final = "poll"
"""The value of ``reported_by`` for deploys that a poll finds."""

_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)


class PollResult(Record):
    """The result of polling one target: the running commit, or the error.

    ``deployment`` is GitHub's id of the running deployment.
    """

    target: str
    commit: str | None = None
    deployment: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class DeployPoller:
    """The context of a poll. ``notifier`` is called only if Lookout's owners must be notified."""

    config: Config
    settings: DeploySettings
    deploys: DeployQueue
    notifier: Callable[[], Notifier]
    hub_token: str | None
    now: Callable[[], datetime]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """The environment variables, which contain the GitHub token."""

    @property
    def github_triggers(self) -> dict[str, TriggerSettings]:
        """The triggers of the targets that are polled at GitHub, by target.

        Without a token, the mapping is empty.
        """
        return select_triggers_polled_at_github(self.config) if self.variables.get(TOKEN_VARIABLE) else {}

    @property
    def targets(self) -> dict[str, TargetConfig]:
        """The targets with a Hugging Face Space, which are polled at the Hub."""
        return {
            name: configured for name, configured in self.config.targets.items() if configured.space is not None
        }


async def poll_targets_and_store_results(poller: DeployPoller) -> tuple[PollResult, ...]:
    """Poll all targets at the same time and store the results. Raises `WarehouseUnwritable`."""
    at_hub = (
        _await_poll_result(name, _poll_hub_for_commit(poller, name, configured))
        for name, configured in poller.targets.items()
    )
    at_github = (
        _await_poll_result(name, _poll_github_for_deployment(poller, name, trigger))
        for name, trigger in poller.github_triggers.items()
    )
    results = await asyncio.gather(*at_hub, *at_github)
    for result in results:
        await _count_failure_or_queue_commit(poller, result)
    return tuple(results)


async def _await_poll_result(name: str, poll: Awaitable[PollResult]) -> PollResult:
    """Await ``poll`` and return its result. An exception is returned as a result with an error, not raised."""
    try:
        return await poll
    except Exception as error:  # noqa: BLE001 - a server's answer can cause an error of any type
        return PollResult(target=name, error=build_fault_from_error(error).detail)


async def _poll_hub_for_commit(poller: DeployPoller, name: str, configured: TargetConfig) -> PollResult:
    target = build_target_record(name, configured)
    async with open_readiness_checker(target, configured.probe, poller.hub_token) as checker:
        readiness = await checker.poll_target()
    if readiness.stage == HUB_SILENT:
        return PollResult(target=name, error=readiness.detail)
    commit = (readiness.commit or "").lower()
    return PollResult(target=name, commit=commit if _COMMIT.fullmatch(commit) else None)


async def _poll_github_for_deployment(poller: DeployPoller, name: str, trigger: TriggerSettings) -> PollResult:
    reported = await find_newest_successful_deployment(poller.config, trigger, poller.variables, poller.now)
    if reported is None:
        await asyncio.to_thread(poller.deploys.mark_target_as_polled, name)  # the first deployment is then verified
        return PollResult(target=name)
    commit = reported.commit if _COMMIT.fullmatch(reported.commit) else None
    return PollResult(target=name, commit=commit, deployment=str(reported.id))


async def _count_failure_or_queue_commit(poller: DeployPoller, result: PollResult) -> None:
    if result.error is not None:
        await _count_failed_poll_and_notify(poller, result.target, result.error)
        return
    await _end_hub_outage(poller, result.target)
    if result.commit is not None:
        await asyncio.to_thread(_record_polled_commit, poller, result.target, result.commit, result.deployment)


def _record_polled_commit(poller: DeployPoller, target: str, commit: str, deployment: str | None) -> None:
    """Store the running commit as a deploy, unless it was already reported.

    If the first poll must not start a run, the outcome "no run" is stored before the deploy. Therefore, if the
    process is killed between these two steps, no deploy waits for a run. The Hub provides no deployment IDs.
    Therefore, at the Hub, an earlier commit that runs again counts as a rollback.
    """
    deploys, now = poller.deploys, poller.now()
    rollback_id = deploys.build_deployment_id_if_rolled_back(target, commit) if deployment is None else None
    event = DeployEvent(target=target, commit=commit, occurred_at=now, reported_by=POLL)
    queued = QueuedDeploy(deploy=ReportedDeploy(event=event, deployment=rollback_id or deployment), stored_at=now)
    if (
        poller.settings.first_poll is FirstPoll.NOTE
        and not deploys.has_polled(target)
        and deploys.confirm_new_or_store_repeat(queued)
    ):
        deploys.store_outcome(queued.deploy, DeployOutcome(run_id=None, at=now))
    deploys.save_if_new(queued, is_running_again=rollback_id is not None)
    deploys.store_running_commit(target, commit, now)
    deploys.mark_target_as_polled(target)


async def _count_failed_poll_and_notify(poller: DeployPoller, target: str, error: str) -> None:
    """Count a failed poll. Notify Lookout's owners after every ``failures_before_alert`` consecutive failures."""
    store = HubOutageStore(poller.config.data_folder, target)
    outage = await asyncio.to_thread(store.add_failed_poll, poller.now())
    if outage.failures % poller.settings.failures_before_alert:
        return
    since = f"{outage.since:%Y-%m-%d %H:%M} UTC" if outage.since else "now"
    detail = (
        f"Lookout could not read which commit {target} runs. {plural(outage.failures, 'poll')} in a row have "
        f"failed since {since}: {error}. The next successful poll also finds a deploy whose webhook was lost."
    )
    await notify_fault(poller.notifier(), Fault(_build_hub_outage_fault_name(target), detail))
    await asyncio.to_thread(store.store_owners_notified)


async def _end_hub_outage(poller: DeployPoller, target: str) -> None:
    store = HubOutageStore(poller.config.data_folder, target)
    outage = await asyncio.to_thread(store.read)
    if outage.notified:
        source = "The Hub" if target in poller.targets else "GitHub"
        text = f"{source} reports the commit of {target} again."
        try:
            await resolve_faults(
                poller.notifier(), {_build_hub_outage_fault_name(target): text}, began_at=poller.now()
            )
        except WarehouseError:
            return  # the next poll resolves the fault
    if outage.failures:
        await asyncio.to_thread(store.clear)


def _build_hub_outage_fault_name(target: str) -> str:
    return f"HubSilent:{target}"


@flow(name="watch-deploys", description=__doc__)
async def watch_deploys(config_path: Path, settings: DeploySettings) -> State[str]:
    """Poll every target of a configuration once. ``settings`` is the section ``[deploys]`` of the configuration.

    Raises `ConfigError` before any poll, and `WarehouseUnwritable` if a deploy cannot be stored.
    """
    config = await asyncio.to_thread(load_config, config_path)
    poller = build_deploy_poller(config, settings)
    check = await poll_and_start_runs(poller, await asyncio.to_thread(config_path.resolve))
    notifier = poller.notifier()
    with suppress(WarehouseInUse):  # the next poll sends them
        await send_waiting_alerts(notifier)
        await notify_of_load_errors(notifier)
    if check.failed:
        return Failed(name="Waiting", message=str(check.failed[0]))
    silent = sum(result.error is not None for result in check.results)
    polled, runs = plural(len(check.results), "target"), plural(len(check.runs), "run")
    return Completed(name="Watched", message=f"{polled} polled ({silent} did not answer), {runs} started")


class DeployCheck(NamedTuple):
    """The results of a poll, the ids of the created runs, and the errors for runs that could not be created."""

    results: tuple[PollResult, ...]
    runs: tuple[str, ...]
    failed: tuple[RunNotMade, ...]


async def poll_and_start_runs(poller: DeployPoller, config_path: Path) -> DeployCheck:
    """Poll every target once, create the runs of waiting deploys, and restart runs whose process was killed.

    The runs load the configuration from the absolute ``config_path``. Raises `WarehouseUnwritable`.
    """
    results = await poll_targets_and_store_results(poller)
    config = poller.config
    plan = RunPlan(deployment=poller.settings.deployment, config_path=config_path, tag=config.prefect.tag)
    journal = open_store(config).journal
    async with get_client() as client:
        started = await create_runs_of_waiting_deploys(client, poller.deploys, journal, plan, now=poller.now)
        restarted = await restart_crashed_runs(
            client,
            poller.deploys,
            plan,
            build_notifier=lambda target: build_notifier_without_run(config, target, Capability.VERIFY),
        )
    return DeployCheck(results, (*started.runs, *restarted.runs), (*started.failed, *restarted.failed))


def build_deploy_poller(config: Config, settings: DeploySettings) -> DeployPoller:
    """Build the context of a poll from a configuration."""
    return DeployPoller(
        config=config,
        settings=settings,
        deploys=DeployQueue(config.data_folder),
        notifier=lambda: build_notifier_without_run(config, SUBJECT, Capability.DEPLOYS),
        hub_token=get_hub_token(),
        now=utc_now,
        variables=get_environment(),
    )
