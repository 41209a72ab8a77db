"""The status of a commit: what a pull request shows beside its commit, and may be made to require."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, TypeAdapter

from monitors.github.answers import Answer
from monitors.github.api import GitHubApi
from monitors.github.refusals import setting_status
from monitors.records.base import Identifier, Record
from monitors.records.deploys import RepositoryName
from monitors.records.targets import HttpUrl

MOST_DESCRIPTION: Final = 140
"""Characters that GitHub takes: https://docs.github.com/en/rest/commits/statuses"""
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
_ANSWER: Final = TypeAdapter(Answer)


class State(StrEnum):
    """GitHub's states. Only ``SUCCESS`` is green."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"
    """Nobody could tell, or the monitor broke."""


class CommitStatus(Record):
    """What is said of a commit of ``repository`` about ``target``; ``link`` is where more is to be read."""

    repository: RepositoryName
    commit: str
    target: Identifier
    state: State
    description: Annotated[str, Field(min_length=1, max_length=MOST_DESCRIPTION)]
    link: HttpUrl | None = None

    @property
    def context(self) -> str:
        """The name under which the status stands: one for each target."""
        return f"lookout/{self.target}"


def is_git_commit(commit: str | None) -> bool:
    """Whether it can have a status: a whole SHA-1 or SHA-256."""
    return commit is not None and _COMMIT.fullmatch(commit) is not None


async def set_status(api: GitHubApi, status: CommitStatus) -> None:
    """Say it; a later word takes the place of an earlier one of the same target. Raises `NotifyError`."""
    purpose = setting_status(status.repository, status.commit)
    path = f"/repos/{status.repository}/statuses/{status.commit}"
    body = {"state": status.state.value, "context": status.context, "description": status.description}
    link = {"target_url": status.link} if status.link else {}
    await api.write("POST", path, body | link, _ANSWER, purpose, twice=True)
