"""`[deploys]`: which deploys start a verification, and who may say that there was one."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from monitors.records.base import Identifier
from monitors.records.deploys import EnvironmentName, RepositoryName

ANY_BRANCH: Final = "*"
MAIN: Final = "main"
STANDARD_EVENT: Final = "deploy.succeeded"
"""What a Standard Webhooks sender calls a deploy that is done, unless a trigger names another type."""

BranchName = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x20\x7f]+$")]


class Provider(StrEnum):
    """Who sends. The value is the last part of the receiver's path."""

    GITHUB = "github"
    HUGGINGFACE = "huggingface"
    STANDARD = "standard"


class GitHubEvent(StrEnum):
    """The events of GitHub that can tell of a deploy."""

    DEPLOYMENT_STATUS = "deployment_status"
    WORKFLOW_RUN = "workflow_run"
    PUSH = "push"


class FirstLook(StrEnum):
    """What becomes of the commit that the poll finds when it looks at a target for the first time."""

    NOTE = "note"
    VERIFY = "verify"


class TriggerSettings(BaseModel):
    """`[[deploys.triggers]]`: what one sender says about one repository → one target of this file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: Provider = Field(description="who sends: github, huggingface or standard (Standard Webhooks)")
    repository: RepositoryName = Field(description="as the sender names it: owner/name of a repository or Space")
    target: Identifier = Field(description="the target to verify, one of [targets]")
    event: Identifier | None = Field(
        default=None,
        description="github: deployment_status (when left out), workflow_run or push; standard: the type, "
        f"{STANDARD_EVENT} when left out; huggingface: leave it out",
    )
    branch: BranchName | None = Field(
        default=None,
        description='the branch that is deployed; "*" for any; left out: main, and any where deployments are told',
    )
    environment: EnvironmentName | None = Field(
        default=None, description="only deploys to this environment, where the sender tells it; left out: any"
    )
    workflow: str | None = Field(
        default=None, description="workflow_run only: the name of the workflow that deploys; left out: any"
    )

    @property
    def event_name(self) -> str | None:
        """The event that counts; ``None`` where a sender has only one."""
        defaults = {Provider.GITHUB: GitHubEvent.DEPLOYMENT_STATUS.value, Provider.STANDARD: STANDARD_EVENT}
        return self.event or defaults.get(self.provider)

    @property
    def branch_name(self) -> str | None:
        """The branch that counts; ``None`` for any."""
        if self.branch is not None:
            return None if self.branch == ANY_BRANCH else self.branch
        return None if self._tells_deployments else MAIN

    @property
    def _tells_deployments(self) -> bool:
        """Whether what is sent is about a place that something was deployed to, not about a branch."""
        return self.provider is Provider.STANDARD or self.event_name == GitHubEvent.DEPLOYMENT_STATUS

    @model_validator(mode="after")
    def _fits_its_sender(self) -> Self:
        if self.provider is Provider.GITHUB and self.event not in (None, *GitHubEvent):
            raise ValueError(f"for github `event` is one of {', '.join(GitHubEvent)}")
        if self.provider is Provider.HUGGINGFACE and self.event is not None:
            raise ValueError("for huggingface leave `event` out: a push to the Space is the only one")
        if self.environment is not None and not self._tells_deployments:
            raise ValueError("`environment` is told by deployment_status and by standard only: leave it out")
        if self.workflow is not None and self.event_name != GitHubEvent.WORKFLOW_RUN:
            raise ValueError('`workflow` goes with event = "workflow_run" only: leave it out')
        if self.provider is not Provider.STANDARD and "/" not in self.repository:
            raise ValueError("`repository` is owner/name")
        return self


class DeploySettings(BaseModel):
    """The ``[deploys]`` table of ``lookout.toml``. The senders' secrets come from the environment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    deployment: Annotated[str, Field(pattern=r"^[^/]+/[^/]+$")] = Field(
        default="verify-deploy/verify-deploy",
        description="the Prefect deployment that verifies, as flow/deployment; its runs are made for each deploy",
    )
    triggers: tuple[TriggerSettings, ...] = Field(
        default=(), description="which deliveries mean that which target was deployed"
    )
    first_look: FirstLook = Field(
        default=FirstLook.NOTE,
        description="the commit that the poll finds at its very first look at a target: note (it was deployed "
        "before anybody watched) or verify",
    )
    failures_before_notice: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=5,
        description="looks in a row at which the Hub did not answer before the monitor's owners hear of it",
    )

    @property
    def providers(self) -> frozenset[Provider]:
        """Those that a trigger listens to."""
        return frozenset(trigger.provider for trigger in self.triggers)
