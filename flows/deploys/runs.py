"""Turns a deploy into a run: one for each commit of a target, however often and by whomever it is reported.

Two things ensure that. A note beside the stored deploy says what became of it. And Prefect is asked with a key,
under which its database holds one run: two that ask at once, or one that is killed before it writes the note, get
the same run.
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

ASK_DEADLINE_S: Final = 30.0
"""For one run: 0.05 s on an idle machine; this includes the client's own retries."""
SHORT_COMMIT: Final = 12


class RunNotMade(MonitorError):
    """Prefect made no run now. The deploy stays stored, and a later attempt makes the run."""

    retryable = True


class RunPlan(Record):
    """What runs for a deploy: a Prefect deployment (``flow/name``) over one configuration."""

    deployment: str
    config_path: Path


class StartReport(NamedTuple):
    """What became of the deploys that waited: the runs that were made, and why others still wait."""

    runs: tuple[str, ...]
    failed: tuple[RunNotMade, ...]


def key_of(event: DeployEvent) -> str:
    """The key under which there is one run. Neither part can hold a slash, so no two deploys share one."""
    return f"lookout-deploy/{event.target}/{event.commit}"


async def ensure_run(client: PrefectClient, deploy: ReportedDeploy, plan: RunPlan) -> str:
    """The id of the run that verifies ``deploy``: a new one, or the one that exists.

    Raises `RunNotMade` when Prefect is away, or has no such deployment.
    """
    event = deploy.event
    try:
        async with asyncio.timeout(ASK_DEADLINE_S):
            deployment = await client.read_deployment_by_name(plan.deployment)
            run = await client.create_flow_run_from_deployment(
                deployment.id,
                parameters={"request": request_of(deploy, plan)},
                name=f"{event.target} {event.commit[:SHORT_COMMIT]}",
                tags=tags_of(deploy),
                idempotency_key=key_of(event),
            )
    except (httpx.HTTPError, PrefectException, TimeoutError, OSError) as error:
        raise RunNotMade(_why(plan, error)) from error
    return str(run.id)


def request_of(deploy: ReportedDeploy, plan: RunPlan) -> dict[str, object]:
    """The parameters of the run; a pull request only where there is one."""
    asked = {"target": deploy.event.target, "config_path": str(plan.config_path), "commit": deploy.event.commit}
    pull = deploy.pull_request
    return {**asked, "pull_request": pull.model_dump()} if pull else {**asked}


def tags_of(deploy: ReportedDeploy) -> tuple[str, ...]:
    """The tags that find a run on Prefect's pages."""
    tags = ("deploy", f"target:{deploy.event.target}", f"reported-by:{deploy.event.reported_by}")
    pull = deploy.pull_request
    return (*tags, f"pull-request:{pull.repository}#{pull.number}") if pull else tags


async def start_waiting(
    client: PrefectClient, deploys: DeployQueue, journal: Journal, plan: RunPlan, *, now: Callable[[], datetime]
) -> StartReport:
    """Make the runs of all deploys that wait; one that cannot be made holds up no other.

    The warehouse hears of a deploy before it is settled: after a kill in between it hears twice, which counts once.
    Raises `WarehouseUnwritable`.
    """
    runs: list[str] = []
    failed: list[RunNotMade] = []
    for one in await asyncio.to_thread(deploys.waiting):
        try:
            run_id = await ensure_run(client, one.deploy, plan)
        except RunNotMade as error:
            failed.append(error)
            continue
        await asyncio.to_thread(journal.append, [DeployRow(row=one.deploy.event)], run_id=None)
        await asyncio.to_thread(deploys.settle, one.deploy.event, DeployOutcome(run_id=run_id, at=now()))
        runs.append(run_id)
    return StartReport(tuple(runs), tuple(failed))


def _why(plan: RunPlan, error: BaseException) -> str:
    """Why no run was made, for a person. The server's words may hold the parameters: only its status is named."""
    if isinstance(error, httpx.HTTPStatusError):
        return f"Prefect answered HTTP {error.response.status_code} when a run of {plan.deployment} was asked for"
    if isinstance(error, PrefectException):
        return (
            f"Prefect has no deployment {plan.deployment} ({type(error).__name__}): is `deploys.deployment` its "
            "name, and is it registered?"
        )
    return f"Prefect does not answer ({type(error).__name__})"
