"""Find the newest successful deployment on GitHub. Lookout polls for deployments because a webhook may be lost."""

from __future__ import annotations

from typing import Final

import httpx
from pydantic import TypeAdapter

from monitors.github.actions import BRANCH_REF_PREFIX
from monitors.github.api import GitHubApi, GitHubRecord, Purpose
from monitors.records.base import Record

MAX_DEPLOYMENTS_READ: Final = 10
"""Maximum number of deployments that are read, from the newest to the oldest.

One of the first two deployments is nearly always successful.
"""
SUCCESS: Final = "success"


class Deployment(Record):
    """A commit that was deployed.

    ``ref`` is the branch, tag or commit that was deployed. ``id`` is the number of the deployment on GitHub. If the
    same commit is deployed again, the new deployment has another ``id``.
    """

    id: int
    commit: str
    ref: str
    environment: str


class _ListedDeployment(GitHubRecord):
    id: int
    sha: str
    ref: str
    environment: str


class _DeploymentStatus(GitHubRecord):
    state: str


_DEPLOYMENTS: Final = TypeAdapter(list[_ListedDeployment])
_STATUSES: Final = TypeAdapter(list[_DeploymentStatus])


async def find_newest_success(
    api: GitHubApi, repository: str, *, environment: str | None, branch: str | None
) -> Deployment | None:
    """Find the newest successful deployment, or ``None`` if none of the newest ten deployments was successful.

    ``environment`` and ``branch`` limit the search. Raises `NotifyError`.
    """
    purpose = Purpose(f"read the deployments of {repository}", "deployments: read")
    query = {"per_page": str(MAX_DEPLOYMENTS_READ)} | ({"environment": environment} if environment else {})
    path = f"/repos/{repository}/deployments"
    for deployment in await api.read(str(httpx.URL(path, params=query)), _DEPLOYMENTS, purpose):
        if branch is not None and deployment.ref.removeprefix(BRANCH_REF_PREFIX) != branch:
            continue
        latest = await api.read(f"{path}/{deployment.id}/statuses?per_page=1", _STATUSES, purpose)
        if latest and latest[0].state == SUCCESS:
            return Deployment(
                id=deployment.id,
                commit=deployment.sha.lower(),
                ref=deployment.ref,
                environment=deployment.environment,
            )
    return None
