"""The few fields of GitHub's payloads that are read. No address is among them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deployments.triggers.reading import Payload

Text = Annotated[str, Field(max_length=1_000)]


class Repository(Payload):
    """Where it happened."""

    full_name: Text


class _PullRequest(Payload):
    number: Annotated[int, Field(ge=1)]


class _RunOfWorkflow(Payload):
    """What both events tell of a workflow's run."""

    pull_requests: Annotated[list[_PullRequest], Field(max_length=1_000)] | None = None

    @property
    def pull_number(self) -> int | None:
        """The first pull request that the run belongs to; a run for a fork's names none."""
        return self.pull_requests[0].number if self.pull_requests else None


class _Deployment(Payload):
    sha: Text
    ref: Text
    environment: Text


class _Status(Payload):
    state: Text
    created_at: Text | None = None


class DeploymentStatus(Payload):
    """``deployment_status``."""

    deployment_status: _Status
    deployment: _Deployment
    repository: Repository
    workflow_run: _RunOfWorkflow | None = None


class _Run(_RunOfWorkflow):
    head_sha: Text
    head_branch: Text | None = None
    head_repository: Repository | None = None
    name: Text | None = None
    conclusion: Text | None = None
    updated_at: Text | None = None


class WorkflowRun(Payload):
    """``workflow_run``."""

    action: Text
    workflow_run: _Run
    repository: Repository


class Push(Payload):
    """``push``."""

    ref: Text
    after: Text
    repository: Repository
