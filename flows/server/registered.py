"""Reads which deployments are paused in Prefect, and removes deployments that are not in the configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterTags
from prefect.client.schemas.responses import DeploymentResponse

from flows.server.schedules import NOT_PAUSED, PAUSED_TAG, SCHEDULE_SLUG, Pause, PlannedDeployment

MAX_DEPLOYMENTS: Final = 200
"""Maximum number of deployments that are read: one page of Prefect's API."""


async def read_pauses(client: PrefectClient, tag: str) -> Mapping[str, Pause]:
    """Return the pause of each paused deployment with ``tag``. The keys are the deployments' names.

    Schedules without Lookout's slug were created by an earlier version of Lookout, which paused all schedules when
    it ended. Such schedules count as active.
    """
    pauses = {deployment.name: read_pause(deployment) for deployment in await _list_deployments(client, tag)}
    return {name: pause for name, pause in pauses.items() if pause != NOT_PAUSED}


async def delete_unplanned_deployments(
    client: PrefectClient, planned: Sequence[PlannedDeployment], config_path: Path, tag: str
) -> tuple[str, ...]:
    """Remove the deployments of ``config_path`` that are no longer in this configuration. Return their names.

    Prefect also removes the waiting runs of these deployments, but not the runs that have ended. Deployments of
    other configurations, and deployments without ``tag``, are not removed.
    """
    names = {deployment.name for deployment in planned}
    gone = [
        deployment
        for deployment in await _list_deployments(client, tag)
        if deployment.name not in names and _get_config_path(deployment) == str(config_path)
    ]
    for deployment in gone:
        await client.delete_deployment(deployment.id)
    return tuple(sorted(deployment.name for deployment in gone))


async def _list_deployments(client: PrefectClient, tag: str) -> Sequence[DeploymentResponse]:
    return await client.read_deployments(
        deployment_filter=DeploymentFilter(tags=DeploymentFilterTags(all_=[tag])), limit=MAX_DEPLOYMENTS
    )


def read_pause(deployment: DeploymentResponse) -> Pause:
    """Return which parts of a deployment a person paused."""
    schedules = [schedule for schedule in deployment.schedules if schedule.slug == SCHEDULE_SLUG]
    is_active = all(schedule.active for schedule in schedules)
    if not schedules or (is_active and not deployment.paused):
        return NOT_PAUSED
    times = [moment.timestamp() for moment in (deployment.updated, schedules[0].updated) if moment is not None]
    noted = [tag.removeprefix(PAUSED_TAG) for tag in deployment.tags if tag.startswith(PAUSED_TAG)]
    since = datetime.fromisoformat(noted[0]) if noted else datetime.fromtimestamp(max(times, default=0), UTC)
    return Pause(is_paused=deployment.paused, is_schedule_active=is_active, since=since)


def _get_config_path(deployment: DeploymentResponse) -> str | None:
    parameters: Any = deployment.parameters.get("request", deployment.parameters)
    path: Any = cast("dict[str, Any]", parameters).get("config_path") if isinstance(parameters, dict) else None
    return path
