"""Creates the run of a deploy: one for each commit of a target, however often it is reported.

Two things ensure that. The outcome is stored beside the queued deploy. And the run is created with an idempotency
key: two processes at once, or one that is killed before it stores the outcome, get the same run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

import httpx
from prefect.client.orchestration import PrefectClient
from prefect.exceptions import PrefectException

from flows.deploys.queue import DeployOutcome, DeployQueue
from monitors.errors import MonitorError
from monitors.records.base import Record
from monitors.records.targets import DeployEvent, ReportedDeploy
from warehouse.journal.journal import Journal
from warehouse.journal.rows import DeployRow

RUN_CREATION_TIMEOUT_S: Final = 30.0
"""For creating one run, including the client's own retries; it takes 0.05 s on an idle machine."""
SHOWN_COMMIT_LENGTH: Final = 12


class RunNotMade(MonitorError):
    """Prefect did not create the run. The deploy stays queued, and a later attempt creates the run."""

    retryable = True


class RunPlan(Record):
    """The Prefect deployment (``flow/name``) and the configuration that verify a deploy."""

    deployment: str
    config_path: Path


class StartReport(NamedTuple):
    """The ids of the runs that were created, and the errors for those that were not."""

    runs: tuple[str, ...]
    failed: tuple[RunNotMade, ...]


def build_run_key(event: DeployEvent) -> str:
    """Build the idempotency key of a deploy's run. Neither part can hold a slash, so keys are unique."""
    return f"lookout-deploy/{event.target}/{event.commit}"


async def ensure_run(client: PrefectClient, deploy: ReportedDeploy, plan: RunPlan) -> str:
    """Create the run that verifies ``deploy``, unless it exists; return its id.

    Raises `RunNotMade` when Prefect does not answer or has no such deployment.
    """
    event = deploy.event
    try:
        async with asyncio.timeout(RUN_CREATION_TIMEOUT_S):
            deployment = await client.read_deployment_by_name(plan.deployment)
            run = await client.create_flow_run_from_deployment(
                deployment.id,
                parameters={"request": build_request_parameters(deploy, plan)},
                name=f"{event.target} {event.commit[:SHOWN_COMMIT_LENGTH]}",
                tags=build_run_tags(deploy),
                idempotency_key=build_run_key(event),
            )
    except (httpx.HTTPError, PrefectException, TimeoutError, OSError) as error:
        raise RunNotMade(_format_reason(plan, error)) from error
    return str(run.id)


def build_request_parameters(deploy: ReportedDeploy, plan: RunPlan) -> dict[str, object]:
    """Build the parameters of the run; with the pull request if there is one."""
    parameters = {
        "target": deploy.event.target,
        "config_path": str(plan.config_path),
        "commit": deploy.event.commit,
    }
    pull = deploy.pull_request
    return {**parameters, "pull_request": pull.model_dump()} if pull else {**parameters}


def build_run_tags(deploy: ReportedDeploy) -> tuple[str, ...]:
    """Build the tags for finding a run in Prefect's UI."""
    tags = ("deploy", f"target:{deploy.event.target}", f"reported-by:{deploy.event.reported_by}")
    pull = deploy.pull_request
    return (*tags, f"pull-request:{pull.repository}#{pull.number}") if pull else tags


async def start_waiting_deploys(
    client: PrefectClient, deploys: DeployQueue, journal: Journal, plan: RunPlan, *, now: Callable[[], datetime]
) -> StartReport:
    """Create the runs of all waiting deploys; a failure does not stop the others.

    A deploy is appended to the journal before its outcome is stored. After a kill in between it is appended twice,
    and the warehouse counts it once. Raises `WarehouseUnwritable`.
    """
    runs: list[str] = []
    failed: list[RunNotMade] = []
    for queued in await asyncio.to_thread(deploys.list_open_deploys):
        try:
            run_id = await ensure_run(client, queued.deploy, plan)
        except RunNotMade as error:
            failed.append(error)
            continue
        await asyncio.to_thread(journal.append, [DeployRow(row=queued.deploy.event)], run_id=None)
        await asyncio.to_thread(deploys.store_outcome, queued.deploy.event, DeployOutcome(run_id=run_id, at=now()))
        runs.append(run_id)
    return StartReport(tuple(runs), tuple(failed))


def _format_reason(plan: RunPlan, error: BaseException) -> str:
    """Format why no run was created. Only the HTTP status is named, since the response may hold the parameters."""
    if isinstance(error, httpx.HTTPStatusError):
        return f"Prefect answered HTTP {error.response.status_code} to the request for a run of {plan.deployment}"
    if isinstance(error, PrefectException):
        return (
            f"Prefect has no deployment {plan.deployment} ({type(error).__name__}): check that "
            "`deploys.deployment` is its name, and that it is registered"
        )
    return f"Prefect does not answer ({type(error).__name__})"
