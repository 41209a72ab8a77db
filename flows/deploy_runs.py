"""A deploy becomes a run: one for each commit of a target, however often and by whomever it is told.

Two things see to that. What was settled is noted beside the kept deploy; and Prefect is asked with a key, under
which its database holds one run: two who ask at once, or one who was killed before he noted it, get the same.
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

from flows.kept_deploys import KeptDeploys, Settled
from monitors.errors import MonitorError
from monitors.records.base import Record
from monitors.records.deploys import ReportedDeploy
from monitors.records.targets import DeployEvent
from warehouse.journal import Journal
from warehouse.rows import DeployRow

ASK_DEADLINE_S: Final = 30.0
"""For one run: 0.05 s on an idle machine; the client's own retries are within it."""
SHORT_COMMIT: Final = 12


class RunNotMade(MonitorError):
    """Prefect made no run now. The deploy stays kept and is tried again."""

    retryable = True


class RunPlan(Record):
    """What is run for a deploy: a Prefect deployment (``flow/name``) over one configuration."""

    deployment: str
    config_path: Path


class Started(NamedTuple):
    """What became of the deploys that waited: runs that were made, and why others still wait."""

    runs: tuple[str, ...]
    failed: tuple[RunNotMade, ...]


def key_of(event: DeployEvent) -> str:
    """The key under which there is one run. Neither part can hold a slash, so no two deploys share one."""
    return f"lookout-deploy/{event.target}/{event.commit}"


async def ensure_run(client: PrefectClient, deploy: ReportedDeploy, plan: RunPlan) -> str:
    """The id of the run that verifies ``deploy``: made now, or the one that there is.

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
    """What the run is told; a pull request only where there is one."""
    asked = {"target": deploy.event.target, "config_path": str(plan.config_path), "commit": deploy.event.commit}
    pull = deploy.pull_request
    return {**asked, "pull_request": pull.model_dump()} if pull else {**asked}


def tags_of(deploy: ReportedDeploy) -> tuple[str, ...]:
    """What a run is found by on Prefect's pages."""
    tags = ("deploy", f"target:{deploy.event.target}", f"reported-by:{deploy.event.reported_by}")
    pull = deploy.pull_request
    return (*tags, f"pull-request:{pull.repository}#{pull.number}") if pull else tags


async def start_waiting(
    client: PrefectClient, kept: KeptDeploys, journal: Journal, plan: RunPlan, *, now: Callable[[], datetime]
) -> Started:
    """Make the runs of all deploys that wait; one that cannot be made keeps no other from its own.

    The warehouse hears of a deploy before it is settled: killed in between, it hears twice, which is once. Raises
    `WarehouseUnwritable`.
    """
    runs: list[str] = []
    failed: list[RunNotMade] = []
    for one in await asyncio.to_thread(kept.waiting):
        try:
            run_id = await ensure_run(client, one.deploy, plan)
        except RunNotMade as error:
            failed.append(error)
            continue
        await asyncio.to_thread(journal.append, [DeployRow(row=one.deploy.event)], run_id=None)
        await asyncio.to_thread(kept.settle, one.deploy.event, Settled(run_id=run_id, at=now()))
        runs.append(run_id)
    return Started(tuple(runs), tuple(failed))


def _why(plan: RunPlan, error: BaseException) -> str:
    """For a person; the server's own words may hold the parameters, so its status is all that is said."""
    if isinstance(error, httpx.HTTPStatusError):
        return f"Prefect answered HTTP {error.response.status_code} when a run of {plan.deployment} was asked for"
    if isinstance(error, PrefectException):
        return (
            f"Prefect has no deployment {plan.deployment} ({type(error).__name__}): is `deploys.deployment` its "
            "name, and is it registered?"
        )
    return f"Prefect does not answer ({type(error).__name__})"
