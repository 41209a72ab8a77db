"""What was said about a deploy, beside the deploy itself."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from monitors.records.base import Record
from monitors.records.targets import DeployEvent

RepositoryName = Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_.-]+)?$")]
"""A repository as its host names it: ``owner/name``, or one plain name. Never an address."""

EnvironmentName = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""An environment as the sender names it; GitHub's own limit is 255 characters."""


class PullRequest(Record):
    """The pull request that a deploy belongs to."""

    repository: RepositoryName
    number: Annotated[int, Field(ge=1, le=2**31)]


class ReportedDeploy(Record):
    """A deploy of one target, with where it stands and the pull request it belongs to, where the sender says so.

    It holds no address: what is opened and asked is what the configuration names.
    """

    event: DeployEvent
    environment: EnvironmentName | None = None
    pull_request: PullRequest | None = None
