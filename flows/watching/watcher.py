"""Watches hallucination logs, Spaces, deploys and live traffic in one process. Only new data starts a Prefect run.

    each log, every poll_s ─▶ did a file change since a run read it? ─▶ yes: start a run that reads the log
    each target, every minute ─▶ does it run a new commit? ─▶ yes: start the run that verifies the commit
    each traffic source, every hour ─▶ can it be read? ─▶ third failure in a row: send an alert
    every minute ─▶ does an alert wait? ─▶ yes: send it

Only a run of `flows.hallucination_log` changes the read position of a log. The watcher records what a run has read
only when that run has completed. Therefore, after a killed run or a killed watcher, another run reads the same
entries. Without Prefect's server, the watcher itself reads the log. If a person paused a deployment in Prefect, the
watcher does not start it. Live traffic is graded at night. The watcher only checks that the traffic sources can be
read, even while the nightly runs are paused.

Connect to Prefect's server before you import this module, because this module imports Prefect, which reads its
settings at import.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple
from uuid import UUID

from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.objects import State
from prefect.exceptions import ObjectNotFound
from prefect.states import Crashed

from flows.alerting.faults import Fault, build_fault_from_error, notify_fault, resolve_faults
from flows.alerting.pipeline import notify_of_load_errors, send_waiting_alerts
from flows.deploys.flow import build_deploy_poller, poll_and_start_runs
from flows.deploys.runs import RUN_CREATION_TIMEOUT_S, RunNotMade, convert_prefect_errors
from flows.hallucination_log.flow import MAX_FOLLOW_S
from flows.hallucination_log.follower import UNREADABLE, LogFollower, build_log_follower
from flows.nightly.alerts import SOURCE_UNREAD
from flows.runtime.slack import build_notifier_without_run
from flows.server.registered import read_pause
from flows.server.schedules import FOLLOW_LOG, NOT_PAUSED, WATCH_DEPLOYS, PlannedDeployment, plan_deployments
from flows.watching.polls import MAX_MISSED_POLLS, WRITE_EVERY_S, WatchPoll, read_polls, write_polls
from monitors.alerts.redact import redact
from monitors.config.file import Config, TargetConfig
from monitors.errors import SourceUnavailable
from monitors.records.incidents import Capability
from monitors.sources.settings import NightlySettings
from monitors.sources.traffic.source import TrafficSource

EVERY_MINUTE_S: Final = 60.0
EVERY_HOUR_S: Final = 3600.0
COMPARE_EVERY_S: Final = 3.0
"""Interval in seconds at which the watcher compares its newest polls with what runs have already read.

The comparison itself is cheap. Only a difference, or a run that has not ended, causes a request to Prefect.
"""
FOLLOW_FOR_S: Final = 20.0
"""A run that reads a log ends after this number of seconds without a new entry.

With the default poll interval, this time allows one more poll.
"""
MAX_RUN_S: Final = MAX_FOLLOW_S + 300.0
"""Maximum time in seconds that the watcher waits for the end of a run."""
UNKNOWN_RUN_S: Final = 60.0
"""Maximum time in seconds that the watcher waits for the end of a run if Prefect does not answer."""
READABLE_TEXT: Final = "Lookout can read the traffic sources again."
DEPLOYS: Final = "the deployed commits"
SUBJECT: Final = "watching"
"""In messages about watching, this name is shown instead of a target's name."""

LogFilesState = tuple[tuple[str, int, int], ...] | None
"""Name, size, and modification time in nanoseconds of each file of a log. ``None`` if the log cannot be read."""


class FollowRun(NamedTuple):
    """A run that reads logs, and the state of the log files before the run was created."""

    id: str
    files: dict[str, LogFilesState]
    created_s: float


@dataclass
class WatchedLog:
    """A log, the state of its files at the newest poll, and their state before a run last read the log."""

    follower: LogFollower
    polled_at: datetime | None = None
    is_compared: bool = True
    files: LogFilesState = None
    is_read: bool = False
    read_files: LogFilesState = None

    @property
    def has_unread_entries(self) -> bool:
        """Return whether the files may have entries that no run has read.

        The result is true if the files changed since a run read them, or if no run has read them since the watcher
        started. The result is false if the newest poll has already been compared.
        """
        return not self.is_compared and not (self.is_read and self.files == self.read_files)

    def poll(self, now: datetime) -> None:
        """Read the state of the files, without their content."""
        try:
            with self.follower.reader.place.poll() as files:
                newest = [files.newest] if files.newest is not None else []
                # The size of an archive is unknown until it is decompressed, and an archive never grows.
                self.files = tuple(
                    (file.name, 0 if file.archive else file.size, file.modified_ns)
                    for file in (*newest, *files.rotated)
                )
        except SourceUnavailable:
            self.files = None
        self.polled_at, self.is_compared = now, False

    def store_read_state(self, files: LogFilesState) -> None:
        """Store the state of the files that a run has read."""
        self.is_read, self.read_files = True, files


@dataclass
class WatchedSource:
    """A source of a target's live traffic, and the results of the source's newest checks.

    ``settings`` contains only this source.
    """

    name: str
    target: str
    configured: TargetConfig
    settings: NightlySettings
    failures: int = 0
    error: str = ""

    async def check(self, now: datetime) -> None:
        """Check that the source can be read.

        Raises the source's error if the source cannot be read. The source is built again for each check.
        """

        def build() -> TrafficSource:
            from flows.nightly.context import build_traffic_sources  # this import loads the judge and the graders

            (source,) = build_traffic_sources(self.configured, self.settings).values()
            return source

        source = await asyncio.to_thread(build)
        await source.check_readable(now)


class Watcher:
    """Watches everything in a configuration. Runs load the configuration from the absolute ``config_path``."""

    def __init__(
        self, config: Config, config_path: Path, *, now: Callable[[], datetime], write_line: Callable[[str], None]
    ) -> None:
        self._config, self._config_path, self._now, self._write_line = config, config_path, now, write_line
        self._planned: dict[str, PlannedDeployment] = {
            planned.flow: planned for planned in plan_deployments(config, config_path, config.schedules)
        }
        self._logs = {
            name: WatchedLog(build_log_follower(config, name))
            for name, target in config.targets.items()
            if target.hallucination_log is not None
        }
        self._sources = [
            WatchedSource(
                f"the traffic source {source} of {name}",
                name,
                target,
                target.traffic.model_copy(update={"sources": {source: settings}}),
            )
            for name, target in config.targets.items()
            if target.traffic is not None
            for source, settings in target.traffic.sources.items()
        ]
        self._targets_with_alert: set[str] = set()
        self._poller = build_deploy_poller(config, config.deploys) if WATCH_DEPLOYS in self._planned else None
        self._notifier = build_notifier_without_run(config, SUBJECT, Capability.UP)
        self._polls: dict[str, WatchPoll] = {}
        self._paused: dict[str, bool] = {}
        self._runs: list[FollowRun] = []

    @property
    def names(self) -> tuple[str, ...]:
        """Readable names of the logs, the deploys and the sources that are watched."""
        logs = (f"the log of {name}" for name in self._logs)
        deploys = () if self._poller is None else (DEPLOYS,)
        return (*logs, *deploys, *(source.name for source in self._sources))

    async def run(self) -> None:
        """Watch until cancelled, or return immediately if there is nothing to watch.

        Errors do not end the watcher.
        """
        if not self.names:
            return
        self._polls = await asyncio.to_thread(self._read_polls)
        async with asyncio.TaskGroup() as group:
            for log in self._logs.values():
                group.create_task(self._repeat(partial(self._poll_log, log), log.follower.settings.poll_s))
            if self._logs:
                group.create_task(self._repeat(self._start_run_for_changed_logs, COMPARE_EVERY_S))
            if self._poller is not None:
                group.create_task(self._repeat(self._poll_deploys_and_start_runs, EVERY_MINUTE_S))
            for source in self._sources:
                group.create_task(self._repeat(partial(self._check_source, source), EVERY_HOUR_S))
            group.create_task(self._repeat(self._send_alerts, EVERY_MINUTE_S))
            group.create_task(self._repeat(self._write_polls, WRITE_EVERY_S))

    async def _repeat(self, work: Callable[[], Awaitable[None]], every_s: float) -> None:
        while True:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - a file or a server can cause an error of any type
                self._write_line(
                    f"the watcher failed; Lookout tries again: {redact(build_fault_from_error(error).detail)}"
                )
            # Files and servers send no events, so they are polled.
            await asyncio.sleep(every_s)

    async def _poll_log(self, log: WatchedLog) -> None:
        await asyncio.to_thread(log.poll, self._now())

    def _record_poll(self, name: str, at: datetime, every_s: float, target: str | None = None) -> None:
        self._polls[name] = WatchPoll(name=name, target=target, at=at, every_s=every_s)

    def _read_polls(self) -> dict[str, WatchPoll]:
        """Read an earlier process's polls, so that an unreadable source still counts as late after a restart."""
        earlier = {poll.name: poll for poll in read_polls(self._config.data_folder)}
        started = {
            source.name: WatchPoll(name=source.name, target=source.target, at=self._now(), every_s=EVERY_HOUR_S)
            for source in self._sources
        }
        return {name: poll for name, poll in (started | earlier).items() if name in self.names}

    async def _write_polls(self) -> None:
        await asyncio.to_thread(write_polls, self._config.data_folder, tuple(self._polls.values()))

    async def _send_alerts(self) -> None:
        """Send the alerts that a killed run, or a run without Slack, could not send."""
        await send_waiting_alerts(self._notifier)
        await notify_of_load_errors(self._notifier)

    async def _poll_deploys_and_start_runs(self) -> None:
        if self._poller is None or await self._is_paused(WATCH_DEPLOYS):
            self._polls.pop(DEPLOYS, None)
            return
        check = await poll_and_start_runs(self._poller, self._config_path)
        for run_id in check.runs:
            self._write_line(f"found a deploy; Prefect's run {run_id} verifies it")
        for error in check.failed:
            self._write_line(f"Lookout could not yet start the run for a deploy: {error}")
        self._record_poll(DEPLOYS, self._now(), EVERY_MINUTE_S)

    async def _check_source(self, source: WatchedSource) -> None:
        """Check that a traffic source can be read. Send an alert after three consecutive failed checks."""
        now = self._now()
        try:
            await source.check(now)
        except Exception as error:  # noqa: BLE001 - each store's client has errors of its own
            source.failures, source.error = source.failures + 1, redact(build_fault_from_error(error).detail)
            self._write_line(f"{source.name} cannot be read: {source.error}")
        else:
            source.failures = 0
            self._record_poll(source.name, now, EVERY_HOUR_S, source.target)
        unread = [
            f"{other.name} in the last {other.failures} hourly checks: {other.error}"
            for other in self._sources
            if other.target == source.target and other.failures >= MAX_MISSED_POLLS
        ]
        if not unread and source.target not in self._targets_with_alert:
            return
        notifier = await asyncio.to_thread(
            build_notifier_without_run, self._config, source.target, Capability.NIGHTLY
        )
        if unread:
            await notify_fault(notifier, Fault(SOURCE_UNREAD, f"Lookout could not read {'; '.join(unread)}."))
            self._targets_with_alert.add(source.target)
        else:
            await resolve_faults(notifier, {SOURCE_UNREAD: READABLE_TEXT}, began_at=now)
            self._targets_with_alert.discard(source.target)

    async def _is_paused(self, flow: str) -> bool:
        """Return whether a person paused the deployment of ``flow``.

        If Prefect does not answer, return the last known state.
        """
        name = self._planned[flow].full_name
        with suppress(RunNotMade), convert_prefect_errors(name):  # the last state counts
            async with asyncio.timeout(RUN_CREATION_TIMEOUT_S), get_client() as client:
                self._paused[flow] = read_pause(await client.read_deployment_by_name(name)) != NOT_PAUSED
        return self._paused.get(flow, False)

    async def _start_run_for_changed_logs(self) -> None:
        """Start a run if a log has changed and no active run reads this log.

        If another run is active, the new run reads all logs.
        """
        if self._runs:
            await self._remove_ended_runs()
        covered = {target for run in self._runs for target in run.files}
        news = [name for name, log in self._logs.items() if log.has_unread_entries and name not in covered]
        if news and not await self._is_paused(FOLLOW_LOG):
            # A second run reads all logs, even if only some have changed. Therefore at most two runs are active.
            await self._start_run_or_read_logs(list(self._logs) if self._runs else news)
        for name, log in self._logs.items():
            if name in news:
                log.is_compared = True  # if the run fails, the next poll starts another run
            if log.polled_at is not None:
                self._record_poll(f"the log of {name}", log.polled_at, log.follower.settings.poll_s, name)

    async def _start_run_or_read_logs(self, names: Sequence[str]) -> None:
        """Create a run that reads the logs of the targets ``names``.

        Without Prefect, this process reads the logs.
        """
        files = {name: self._logs[name].files for name in names}
        try:
            run = await self._start_follow_run(files)
        except RunNotMade as error:
            self._write_line(f"{error}; this process reads the logs itself")
            await asyncio.gather(*(self._read_log(self._logs[name], files[name]) for name in names))
        else:
            self._runs.append(run)
            self._write_line(f"the log of {', '.join(names)} has changed: Prefect's run {run.id} reads it")

    async def _start_follow_run(self, files: dict[str, LogFilesState]) -> FollowRun:
        """Create the run that reads the logs of the targets in ``files``.

        If ``files`` has several targets, the run reads all logs. Raises `RunNotMade`.
        """
        name = self._planned[FOLLOW_LOG].full_name
        target = next(iter(files)) if len(files) == 1 else None
        with convert_prefect_errors(name):
            async with asyncio.timeout(RUN_CREATION_TIMEOUT_S), get_client() as client:
                deployment = await client.read_deployment_by_name(name)
                run = await client.create_flow_run_from_deployment(
                    deployment.id,
                    parameters={"config_path": str(self._config_path), "target": target, "for_s": FOLLOW_FOR_S},
                    tags=["log", *(f"target:{name}" for name in files)],
                )
        return FollowRun(str(run.id), files, monotonic())

    async def _read_log(self, log: WatchedLog, files: LogFilesState) -> None:
        poll = await log.follower.poll_and_report_errors()
        if poll.unreadable is None or (files is None and not poll.broken):
            log.store_read_state(files)

    async def _remove_ended_runs(self) -> None:
        """Remove the runs that have ended, and store the file states that the completed runs have read."""
        try:
            with convert_prefect_errors(self._planned[FOLLOW_LOG].full_name):
                async with asyncio.timeout(RUN_CREATION_TIMEOUT_S), get_client() as client:
                    states = [await _read_or_assume_final_state(client, run) for run in self._runs]
        except RunNotMade:
            self._runs = [run for run in self._runs if monotonic() - run.created_s < UNKNOWN_RUN_S]
            return
        for run, state in zip(tuple(self._runs), states, strict=True):
            if state is None:
                continue
            self._runs.remove(run)
            for name, files in run.files.items():
                if state.is_completed() and (state.name != UNREADABLE or files is None):
                    self._logs[name].store_read_state(files)
                if state.is_crashed():
                    self._logs[name].is_compared = False  # start another run at once, because alerts are missing


async def _read_or_assume_final_state(client: PrefectClient, run: FollowRun) -> State | None:
    """Return the state in which a run ended, or ``None`` if the run has not ended.

    A deleted run, and a run that was created more than `MAX_RUN_S` ago, count as crashed.
    """
    try:
        state = (await client.read_flow_run(UUID(run.id))).state
    except ObjectNotFound:
        return Crashed()
    if monotonic() - run.created_s > MAX_RUN_S:
        return Crashed()
    return state if state is not None and state.is_final() else None
