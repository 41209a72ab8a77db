"""Targets and their deploys."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from monitors.records.base import Identifier, Record, UtcTime

SpaceId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*/[\w.-]+$")]
"""A Hugging Face Space in the form ``owner/name``."""

HttpUrl = Annotated[str, Field(pattern=r"^https?://[^\s/]+\S*$")]
"""An ``http`` or ``https`` address, stored exactly as it was written."""


class Environment(StrEnum):
    """The environment of a target: staging or production. A CI run refuses a production target."""

    STAGING = "staging"
    PRODUCTION = "production"


class Target(Record):
    """The monitored application.

    ``model_family`` is the family of the application's model, such as ``claude``. The judge must be of another
    family.
    """

    name: Identifier
    space: SpaceId | None = None
    url: HttpUrl | None = None
    environment: Environment = Environment.STAGING
    model_family: str | None = None

    @model_validator(mode="after")
    def _require_url_or_space(self) -> Self:
        if self.space is None and self.url is None:
            raise ValueError("a target must have `url` (the page) or `space` (owner/name)")
        return self

    def with_environment_and_family(self, environment: Environment, model_family: str | None) -> Self:
        """Return a copy of the target that states its environment and the family of its model."""
        return self.model_copy(update={"environment": environment, "model_family": model_family})

    @property
    def address(self) -> str:
        """Return the address of the page: ``url``, or the address of the Space if there is no ``url``."""
        if self.url is not None:
            return self.url
        owner_and_name = (self.space or "").lower().replace("/", "-").replace("_", "-").replace(".", "-")
        return f"https://{owner_and_name}.hf.space"


MIN_COMMIT_CHARACTERS: Final = 7
"""Minimum length of an abbreviated commit. Git's own abbreviations are at least this long by default."""


def is_same_commit(first: str, second: str) -> bool:
    """Return whether two commit hashes name the same commit. Both may be shortened to seven or more characters."""
    shorter, longer = sorted((first.lower(), second.lower()), key=len)
    return len(shorter) >= MIN_COMMIT_CHARACTERS and longer.startswith(shorter)


class DeployEvent(Record):
    """A reported deploy: target, commit, time and sender."""

    target: Identifier
    commit: Identifier
    occurred_at: UtcTime
    reported_by: Identifier


RepositoryName = Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_.-]+)?$")]
"""A repository name as used by its host, but never an address: ``owner/name``, or a name without a slash."""

EnvironmentName = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""The environment of a deploy, as its sender names it. GitHub allows at most 255 characters."""


class GitChange(Record):
    """The change that a CI job checks. Unknown values are ``None``.

    ``head`` is the commit that gets the status. ``target_branch`` is the branch into which the change will be
    merged.
    """

    head: str | None = None
    branch: str | None = None
    target_branch: str | None = None

    def fill_missing_from(self, change: GitChange) -> GitChange:
        """Return a copy of this change in which missing values are taken from ``change``."""
        return GitChange(
            head=self.head or change.head,
            branch=self.branch or change.branch,
            target_branch=self.target_branch or change.target_branch,
        )


class PullRequest(Record):
    """The pull request that a deploy belongs to."""

    repository: RepositoryName
    number: Annotated[int, Field(ge=1, le=2**31)]


class ReportedDeploy(Record):
    """A reported deploy of a target.

    The record does not contain an address, because Lookout opens only configured addresses.
    """

    event: DeployEvent
    environment: EnvironmentName | None = None
    pull_request: PullRequest | None = None
    deployment: Identifier | None = None
    """The id that the sender gave to this deployment.

    A repeated delivery of the same report has the same id. A rollback or a redeploy has another id. The form of the
    id depends on the sender:

    - a number: a GitHub deployment
    - ``run-WORKFLOW-RUN-ATTEMPT``: a GitHub workflow run
    - ``push-COMMIT``: a GitHub push that started from this commit
    - ``message-HASH``: a Standard Webhook
    - ``after-TIME``: an earlier build that Lookout found running again when it polled the application
    """
