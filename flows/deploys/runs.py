"""Creates one verification run for each deploy, even if the deploy is reported several times.

The id of the run is stored with the deploy. Prefect creates each run with an idempotency key. Therefore two
processes get the same run for a deploy. A run whose process was killed is restarted at most twice. After that, an
alert says that the deploy is not verified.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

import httpx
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import StateType
from prefect.exceptions import ObjectNotFound, PrefectException

from flows.alerting.faults import Fault, notify_fault
from flows.alerting.notifier import Notifier
from flows.deploys.queue import DeployAttempt, DeployOutcome, DeployQueue, QueuedDeploy
from monitors.config.file import PREFECT_TAG
from monitors.errors import MonitorError
from monitors.records.base import Record
from monitors.records.targets import ReportedDeploy
from warehouse.journal.journal import Journal
from warehouse.journal.rows import DeployRow

RUN_CREATION_TIMEOUT_S: Final = 30.0
"""Timeout for the creation of one run in seconds, including the client's retries."""
SHOWN_COMMIT_LENGTH: Final = 12
MAX_ATTEMPTS: Final = 3
"""Maximum number of runs of one deploy. If all of them are killed, the run itself is probably the cause."""
RUN_LOST: Final = "RunLost"
"""The name of the fault for a deploy that could not be verified.

The target's next completed run resolves the fault.
"""


class RunNotMade(MonitorError):
    """Raised if Prefect did not create a run. The deploy stays in the queue, and Lookout tries again later."""

    retryable = True


class RunPlan(Record):
    """The Prefect deployment (``flow/name``) and the configuration of the runs that verify deploys.

    ``tag`` is `PrefectSettings.tag`. The tag is part of each run's idempotency key, because several installations
    can share a server.
    """

    deployment: str
    config_path: Path
    tag: str = PREFECT_TAG

    def compute_sha256(self) -> str:
        """Compute one SHA-256, in hexadecimal, of the configuration file together with Lookout's version."""
        try:
            text = self.config_path.read_bytes()
        except OSError:
            text = b""  # the run itself reports that the file cannot be read
        return hashlib.sha256(version("lookout-monitor").encode() + b"\0" + text).hexdigest()


class StartReport(NamedTuple):
    """The ids of the created runs, and the errors for the runs that could not be created."""

    runs: tuple[str, ...]
    failed: tuple[RunNotMade, ...]


def build_run_idempotency_key(deploy: ReportedDeploy, attempt: int = 1, *, tag: str = PREFECT_TAG) -> str:
    """Build the idempotency key of a deploy's run.

    The parts of the key are separated by slashes and contain no slash. Therefore two runs never have the same key.
    """
    key = f"{tag}-deploy/{deploy.event.target}/{deploy.event.commit}"
    again = f"/attempt {attempt}" if attempt > 1 else ""
    return f"{key}{again}" if deploy.deployment is None else f"{key}/{deploy.deployment}{again}"


async def ensure_verification_run(
    client: PrefectClient, deploy: ReportedDeploy, plan: RunPlan, attempt: int = 1
) -> str:
    """Create the run that verifies ``deploy``, unless this run exists. Return the id of the run.

    ``attempt`` counts from 1.

    Raises `RunNotMade` if Prefect does not answer or does not have the deployment.
    """
    event = deploy.event
    with convert_prefect_errors(plan.deployment):
        async with asyncio.timeout(RUN_CREATION_TIMEOUT_S):
            deployment = await client.read_deployment_by_name(plan.deployment)
            run = await client.create_flow_run_from_deployment(
                deployment.id,
                parameters={"request": build_verification_request(deploy, plan)},
                name=f"{event.target} {event.commit[:SHOWN_COMMIT_LENGTH]}",
                tags=build_run_tags(deploy),
                idempotency_key=build_run_idempotency_key(deploy, attempt, tag=plan.tag),
            )
    return str(run.id)


@contextmanager
def convert_prefect_errors(deployment: str) -> Generator[None]:
    """Convert errors of Prefect's client to `RunNotMade`. The new errors name ``deployment``."""
    try:
        yield
    except (httpx.HTTPError, PrefectException, TimeoutError, OSError) as error:
        raise RunNotMade(_format_creation_error(deployment, error)) from error


def build_verification_request(deploy: ReportedDeploy, plan: RunPlan) -> dict[str, object]:
    """Build the parameters of the verification run of a deploy."""
    parameters = {
        "target": deploy.event.target,
        "config_path": str(plan.config_path),
        "commit": deploy.event.commit,
    }
    pull = deploy.pull_request
    return {**parameters, "pull_request": pull.model_dump()} if pull else {**parameters}


def build_run_tags(deploy: ReportedDeploy) -> tuple[str, ...]:
    """Build the tags that help people to find a run in Prefect's UI."""
    tags = ("deploy", f"target:{deploy.event.target}", f"reported-by:{deploy.event.reported_by}")
    pull = deploy.pull_request
    return (*tags, f"pull-request:{pull.repository}#{pull.number}") if pull else tags


async def create_runs_of_waiting_deploys(
    client: PrefectClient, deploys: DeployQueue, journal: Journal, plan: RunPlan, *, now: Callable[[], datetime]
) -> StartReport:
    """Create the runs of all waiting deploys. An error for one deploy does not prevent the other runs.

    Each deploy is written to the journal before its outcome is stored. If the process is killed between these two
    steps, the deploy is written twice, but the warehouse counts it once. Raises `WarehouseUnwritable`.
    """
    runs: list[str] = []
    failed: list[RunNotMade] = []
    for queued in await asyncio.to_thread(deploys.list_waiting_deploys):
        try:
            run_id = await ensure_verification_run(client, queued.deploy, plan)
        except RunNotMade as error:
            failed.append(error)
            continue
        await asyncio.to_thread(journal.append, [DeployRow(row=queued.deploy.event)], run_id=None)
        attempt = DeployAttempt(run_id=run_id, number=1, plan_sha256=plan.compute_sha256())
        await asyncio.to_thread(deploys.store_attempt, queued.deploy, attempt)
        await asyncio.to_thread(deploys.store_outcome, queued.deploy, DeployOutcome(run_id=run_id, at=now()))
        runs.append(run_id)
    return StartReport(tuple(runs), tuple(failed))


async def restart_crashed_runs(
    client: PrefectClient, deploys: DeployQueue, plan: RunPlan, *, build_notifier: Callable[[str], Notifier]
) -> StartReport:
    """Restart the runs whose process was killed. Restarted runs continue with their stored answers.

    If a run must not be restarted, an alert is sent with the notifier of the run's target. Runs that have ended are
    no longer listed as unfinished. Raises `WarehouseUnwritable`.
    """
    runs: list[str] = []
    failed: list[RunNotMade] = []
    for queued, attempt in await asyncio.to_thread(deploys.list_unfinished_attempts):
        event = queued.deploy.event
        try:
            state = await _read_run_state(client, attempt.run_id, plan)
            if state in RUNNING_STATES:
                continue
            obstacle = await asyncio.to_thread(_find_restart_obstacle, deploys, queued, attempt, plan)
            if state is StateType.CRASHED and obstacle is None:
                run_id = await ensure_verification_run(client, queued.deploy, plan, attempt.number + 1)
                again = DeployAttempt(run_id=run_id, number=attempt.number + 1, plan_sha256=attempt.plan_sha256)
                await asyncio.to_thread(deploys.store_attempt, queued.deploy, again)
                runs.append(run_id)
                continue
        except RunNotMade as error:
            failed.append(error)
            continue
        if state is StateType.CRASHED:
            detail = (
                f"The run that verifies commit {event.commit} of {event.target} was killed. Lookout does not "
                f"restart it: {obstacle}. This commit is not verified. To verify it, run "
                f"`lookout verify {event.target} --commit {event.commit}`."
            )
            notifier = await asyncio.to_thread(build_notifier, event.target)
            await notify_fault(notifier, Fault(RUN_LOST, detail), commit=event.commit)
        await asyncio.to_thread(deploys.delete_attempt, queued.deploy)
    return StartReport(tuple(runs), tuple(failed))


RUNNING_STATES: Final = frozenset(
    {StateType.SCHEDULED, StateType.PENDING, StateType.RUNNING, StateType.PAUSED, StateType.CANCELLING}
)


async def _read_run_state(client: PrefectClient, run_id: str, plan: RunPlan) -> StateType:
    """Read the state of a run from Prefect. A deleted run counts as crashed. Raises `RunNotMade`."""
    with convert_prefect_errors(plan.deployment):
        try:
            async with asyncio.timeout(RUN_CREATION_TIMEOUT_S):
                run = await client.read_flow_run(UUID(run_id))
        except ObjectNotFound:
            return StateType.CRASHED
    return run.state_type or StateType.PENDING


def _find_restart_obstacle(
    deploys: DeployQueue, queued: QueuedDeploy, attempt: DeployAttempt, plan: RunPlan
) -> str | None:
    """Return why the run of a deploy must not be restarted, or ``None`` if the run may be restarted."""
    if attempt.number >= MAX_ATTEMPTS:
        return f"this was attempt {attempt.number} of {MAX_ATTEMPTS}"
    if attempt.plan_sha256 != plan.compute_sha256():
        return "lookout.toml or the version of Lookout has changed since the first attempt"
    newest = deploys.find_newest_deploy(queued.deploy.event.target)
    if newest is not None and newest.deploy.event.commit != queued.deploy.event.commit:
        return f"commit {newest.deploy.event.commit} was deployed later"
    return None


def _format_creation_error(deployment: str, error: BaseException) -> str:
    """Format why Prefect did not create a run.

    The text does not quote Prefect's response, because the response can contain parameters.
    """
    if isinstance(error, httpx.HTTPStatusError):
        return f"Prefect answered the request for a run of {deployment} with HTTP {error.response.status_code}"
    if isinstance(error, PrefectException):
        return (
            f"Prefect has no deployment {deployment} ({type(error).__name__}). Check that `deploys.deployment` in "
            "lookout.toml is right and that the deployment is registered"
        )
    return f"Prefect does not answer ({type(error).__name__})"
