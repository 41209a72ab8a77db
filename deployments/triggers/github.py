"""GitHub's webhooks: HMAC-SHA256 over the body, and three events that can report a deploy.

The signature covers the body alone. The event's name stands in a header beside it, so a body that is sent again
under another event's name must fail that event's form; and as nothing has a time, a commit is taken once. Few
fields of GitHub's payloads are read. No address is among them.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final

from pydantic import Field

from deployments.triggers.delivery import (
    Delivery,
    DeliveryRejected,
    Headers,
    Ignored,
    NotForUs,
    Parsed,
    Payload,
    RejectionReason,
    admit_json,
    branch_of,
    git_commit,
    is_branch,
    is_no_commit,
    one_header,
    pull_number_of,
    read_payload,
    time_in,
)
from deployments.triggers.routes import DeployClaim, Routes
from monitors.config.sections import DeploySender, GitHubEvent, TriggerSettings

Text = Annotated[str, Field(max_length=1_000)]


class Repository(Payload):
    """Where it happened."""

    full_name: Text


class _PullRequest(Payload):
    number: Annotated[int, Field(ge=1)]


class _RunOfWorkflow(Payload):
    """What both events say of a workflow's run."""

    pull_requests: Annotated[list[_PullRequest], Field(max_length=1_000)] | None = None

    @property
    def pull_number(self) -> int | None:
        """The first pull request that the run belongs to; a run for a fork's names none."""
        return self.pull_requests[0].number if self.pull_requests else None


class _DeploymentPayload(Payload):
    sha: Text
    ref: Text
    environment: Text


class _Status(Payload):
    state: Text
    created_at: Text | None = None


class DeploymentStatus(Payload):
    """``deployment_status``."""

    deployment_status: _Status
    deployment: _DeploymentPayload
    repository: Repository
    workflow_run: _RunOfWorkflow | None = None


class _RunPayload(_RunOfWorkflow):
    head_sha: Text
    head_branch: Text | None = None
    head_repository: Repository | None = None
    name: Text | None = None
    conclusion: Text | None = None
    updated_at: Text | None = None


class WorkflowRun(Payload):
    """``workflow_run``."""

    action: Text
    workflow_run: _RunPayload
    repository: Repository


class Push(Payload):
    """``push``."""

    ref: Text
    after: Text
    repository: Repository


SIGNATURE_HEADER: Final = "x-hub-signature-256"
EVENT_HEADER: Final = "x-github-event"
_SIGNATURE: Final = re.compile(r"sha256=[0-9a-f]{64}", re.ASCII)
_EVENT: Final = re.compile(r"[a-z_]{1,60}", re.ASCII)

Reader = Callable[[bytes], DeployClaim | Ignored]


class GitHubParser:
    """Deliveries of GitHub, proven by any of ``secrets``."""

    provider = DeploySender.GITHUB

    def __init__(self, secrets: Sequence[str], triggers: Sequence[TriggerSettings]) -> None:
        self._secrets = tuple(secret.encode() for secret in secrets)
        self._routes = Routes(self.provider, triggers)

    def admit(self, headers: Headers) -> None:
        """Both headers are there and have their form."""
        if not _SIGNATURE.fullmatch(one_header(headers, SIGNATURE_HEADER)):
            raise DeliveryRejected(
                RejectionReason.UNSIGNED, f"{SIGNATURE_HEADER} is sha256= and 64 hexadecimal digits"
            )
        if not _EVENT.fullmatch(one_header(headers, EVENT_HEADER)):
            raise DeliveryRejected(RejectionReason.MALFORMED, f"{EVENT_HEADER} is no event's name")
        admit_json(headers)

    def parse(self, delivery: Delivery) -> Parsed:
        """A deployment, workflow run or push; a ping and everything else is not for us."""
        self.admit(delivery.headers)
        self._check_signature(delivery)
        event = delivery.headers[EVENT_HEADER][0]
        if event == "ping":
            return NotForUs(Ignored.PING)
        read = READERS.get(event)
        if read is None:
            return NotForUs(Ignored.EVENT)
        report = read(delivery.body)
        if isinstance(report, Ignored):
            return NotForUs(report)
        return self._routes.route(report, received_at=delivery.received_at)

    def _check_signature(self, delivery: Delivery) -> None:
        given = delivery.headers[SIGNATURE_HEADER][0].removeprefix("sha256=")
        wanted = [hmac.new(secret, delivery.body, hashlib.sha256).hexdigest() for secret in self._secrets]
        if not any([hmac.compare_digest(one, given) for one in wanted]):  # noqa: C419 - all of them, always
            raise DeliveryRejected(RejectionReason.WRONG_SIGNATURE, "not signed with the secret of this webhook")


def _deployment_status(body: bytes) -> DeployClaim | Ignored:
    """Only a success: the app serves. GitHub itself reports what came before it or went wrong."""
    status = read_payload(body, DeploymentStatus)
    if status.deployment_status.state != "success":
        return Ignored.STATE
    deployment, run = status.deployment, status.workflow_run
    return DeployClaim(
        repository=status.repository.full_name,
        commit=git_commit(deployment.sha),
        at=time_in(status.deployment_status.created_at),
        event=GitHubEvent.DEPLOYMENT_STATUS,
        branch=branch_of(deployment.ref),
        environment=deployment.environment,
        pull_request=pull_number_of(deployment.ref) or (run.pull_number if run else None),
    )


def _workflow_run(body: bytes) -> DeployClaim | Ignored:
    """Only one that succeeded, of the repository itself: a fork's branch may be called ``main`` as well."""
    happened = read_payload(body, WorkflowRun)
    run = happened.workflow_run
    if happened.action != "completed" or run.conclusion != "success":
        return Ignored.STATE
    if run.head_repository is None or run.head_repository.full_name != happened.repository.full_name:
        return Ignored.FORK
    return DeployClaim(
        repository=happened.repository.full_name,
        commit=git_commit(run.head_sha),
        at=time_in(run.updated_at),
        event=GitHubEvent.WORKFLOW_RUN,
        branch=run.head_branch,
        workflow=run.name,
        pull_request=run.pull_number,
    )


def _push(body: bytes) -> DeployClaim | Ignored:
    """A branch that moved on: no tag, nothing deleted."""
    push = read_payload(body, Push)
    if not is_branch(push.ref) or is_no_commit(push.after):
        return Ignored.BRANCH
    return DeployClaim(
        repository=push.repository.full_name,
        commit=git_commit(push.after),
        at=None,
        event=GitHubEvent.PUSH,
        branch=branch_of(push.ref),
    )


READERS: Final[Mapping[str, Reader]] = {
    GitHubEvent.DEPLOYMENT_STATUS: _deployment_status,
    GitHubEvent.WORKFLOW_RUN: _workflow_run,
    GitHubEvent.PUSH: _push,
}
