"""Find the newest successful deployment of a repository on GitHub, in case its webhook did not arrive."""

from __future__ import annotations

from typing import Final

import httpx
from pydantic import TypeAdapter

from monitors.github.api import GitHubApi, GitHubRecord, Purpose
from monitors.records.base import Record

MAX_DEPLOYMENTS_READ: Final = 10
"""Deployments to read, newest first: a success is nearly always the first or second of them."""
SUCCESS: Final = "success"
_HEADS: Final = "refs/heads/"


class Deployment(Record):
    """A commit that was deployed. ``ref`` is a branch, a tag or a commit, in the deployer's words.

    ``id`` is GitHub's number: another deployment of the same commit has another one.
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
    """Find the newest deployment with a last state of success; ``None`` if the newest ones have none.

    ``environment`` and ``branch`` filter the deployments, ``None`` for any. Raises `NotifyError`.
    """
    purpose = Purpose(f"read the deployments of {repository}", "deployments: read")
    query = {"per_page": str(MAX_DEPLOYMENTS_READ)} | ({"environment": environment} if environment else {})
    path = f"/repos/{repository}/deployments"
    for deployment in await api.read(str(httpx.URL(path, params=query)), _DEPLOYMENTS, purpose):
        if branch is not None and deployment.ref.removeprefix(_HEADS) != branch:
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
