"""GitHub's webhooks: a signature of the body (HMAC-SHA256), and three events that can report a deploy.

The signature covers only the body. The name of the event is in a header that is not signed, so a body that is valid
for one event must not be valid for another. Deliveries contain no time, so an old delivery cannot be recognised.
Therefore each commit is accepted only once. Only a few fields of GitHub's payloads are read, and none of them is an
address.
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
    IgnoreReason,
    NotForUs,
    ParsedDelivery,
    Payload,
    RejectionReason,
    is_branch,
    is_full_commit_hash,
    is_null_commit,
    parse_branch,
    parse_git_commit,
    parse_payload,
    parse_pull_number,
    parse_time,
    read_header,
    require_json_content_type,
)
from deployments.triggers.routes import DeployClaim, Routes
from monitors.config.sections import DeploySender, GitHubEvent, TriggerSettings

Text = Annotated[str, Field(max_length=1_000)]
_Number = Annotated[int, Field(ge=0, le=2**63)]


class Repository(Payload):
    """The repository that the event is about."""

    full_name: Text


class _PullRequest(Payload):
    number: Annotated[int, Field(ge=1)]


class _RunOfWorkflow(Payload):
    """The part of a workflow run that the events ``deployment_status`` and ``workflow_run`` both contain."""

    pull_requests: Annotated[list[_PullRequest], Field(max_length=1_000)] | None = None

    @property
    def pull_number(self) -> int | None:
        """The number of the run's first pull request, or ``None``.

        A run for a fork contains no pull requests.
        """
        return self.pull_requests[0].number if self.pull_requests else None


class _DeploymentPayload(Payload):
    id: _Number | None = None
    sha: Text
    ref: Text
    environment: Text


class _Status(Payload):
    state: Text
    created_at: Text | None = None


class DeploymentStatus(Payload):
    """The payload of a ``deployment_status`` event."""

    deployment_status: _Status
    deployment: _DeploymentPayload
    repository: Repository
    workflow_run: _RunOfWorkflow | None = None


class _RunPayload(_RunOfWorkflow):
    id: _Number | None = None
    workflow_id: _Number | None = None
    run_attempt: _Number = 1
    head_sha: Text
    head_branch: Text | None = None
    head_repository: Repository | None = None
    name: Text | None = None
    conclusion: Text | None = None
    updated_at: Text | None = None


class WorkflowRun(Payload):
    """The payload of a ``workflow_run`` event."""

    action: Text
    workflow_run: _RunPayload
    repository: Repository


class Push(Payload):
    """The payload of a ``push`` event."""

    ref: Text
    before: Text | None = None
    after: Text
    repository: Repository


SIGNATURE_HEADER: Final = "x-hub-signature-256"
EVENT_HEADER: Final = "x-github-event"
_SIGNATURE: Final = re.compile(r"sha256=[0-9a-f]{64}", re.ASCII)
_EVENT: Final = re.compile(r"[a-z_]{1,60}", re.ASCII)

PayloadParser = Callable[[bytes], DeployClaim | IgnoreReason]


class GitHubParser:
    """Checks and parses GitHub's deliveries, which must be signed with one of ``secrets``."""

    provider = DeploySender.GITHUB

    def __init__(self, secrets: Sequence[str], triggers: Sequence[TriggerSettings]) -> None:
        self._secrets = tuple(secret.encode() for secret in secrets)
        self._routes = Routes(self.provider, triggers)

    def check_headers(self, headers: Headers) -> None:
        """Raise `DeliveryRejected` if the signature or event header is missing or invalid."""
        if not _SIGNATURE.fullmatch(read_header(headers, SIGNATURE_HEADER)):
            raise DeliveryRejected(
                RejectionReason.UNSIGNED, f"{SIGNATURE_HEADER} must be sha256= followed by 64 hexadecimal digits"
            )
        if not _EVENT.fullmatch(read_header(headers, EVENT_HEADER)):
            raise DeliveryRejected(RejectionReason.MALFORMED, f"{EVENT_HEADER} is not a valid event name")
        require_json_content_type(headers)

    def verify_and_parse(self, delivery: Delivery) -> ParsedDelivery:
        """Parse a deployment, a workflow run or a push. Other events, such as a ping, start no run."""
        self.check_headers(delivery.headers)
        self._check_signature(delivery)
        event = delivery.headers[EVENT_HEADER][0]
        if event == "ping":
            return NotForUs(IgnoreReason.PING)
        parse_event = PAYLOAD_PARSERS.get(event)
        if parse_event is None:
            return NotForUs(IgnoreReason.EVENT)
        report = parse_event(delivery.body)
        if isinstance(report, IgnoreReason):
            return NotForUs(report)
        return self._routes.match_deploy_to_triggers(report, received_at=delivery.received_at)

    def _check_signature(self, delivery: Delivery) -> None:
        received = delivery.headers[SIGNATURE_HEADER][0].removeprefix("sha256=")
        expected = [hmac.new(secret, delivery.body, hashlib.sha256).hexdigest() for secret in self._secrets]
        if not any([hmac.compare_digest(digest, received) for digest in expected]):  # noqa: C419 - all of them, always
            raise DeliveryRejected(
                RejectionReason.WRONG_SIGNATURE, ("the delivery is not signed with the secret of this webhook")
            )


def _parse_deployment_status(body: bytes) -> DeployClaim | IgnoreReason:
    """Parse a ``deployment_status`` event. Only a successful deployment is a deploy."""
    status = parse_payload(body, DeploymentStatus)
    if status.deployment_status.state != "success":
        return IgnoreReason.STATE
    deployment, run = status.deployment, status.workflow_run
    return DeployClaim(
        repository=status.repository.full_name,
        commit=parse_git_commit(deployment.sha),
        at=parse_time(status.deployment_status.created_at),
        event=GitHubEvent.DEPLOYMENT_STATUS,
        branch=parse_branch(deployment.ref),
        environment=deployment.environment,
        pull_request=parse_pull_number(deployment.ref) or (run.pull_number if run else None),
        deployment=str(deployment.id) if deployment.id is not None else None,
    )


def _parse_workflow_run(body: bytes) -> DeployClaim | IgnoreReason:
    """Parse a ``workflow_run`` event.

    Only a successful run of the repository itself, not of a fork, is a deploy.
    """
    payload = parse_payload(body, WorkflowRun)
    run = payload.workflow_run
    if payload.action != "completed" or run.conclusion != "success":
        return IgnoreReason.STATE
    if run.head_repository is None or run.head_repository.full_name != payload.repository.full_name:
        return IgnoreReason.FORK
    return DeployClaim(
        repository=payload.repository.full_name,
        commit=parse_git_commit(run.head_sha),
        at=parse_time(run.updated_at),
        event=GitHubEvent.WORKFLOW_RUN,
        branch=run.head_branch,
        workflow=run.name,
        pull_request=run.pull_number,
        deployment=f"run-{run.workflow_id or 0}-{run.id}-{run.run_attempt}" if run.id is not None else None,
    )


def _parse_push(body: bytes) -> DeployClaim | IgnoreReason:
    """Parse a ``push`` event. Only a push to a branch is a deploy, not a tag or a deleted branch."""
    push = parse_payload(body, Push)
    if not is_branch(push.ref) or is_null_commit(push.after):
        return IgnoreReason.BRANCH
    return DeployClaim(
        repository=push.repository.full_name,
        commit=parse_git_commit(push.after),
        at=None,
        event=GitHubEvent.PUSH,
        branch=parse_branch(push.ref),
        deployment=f"push-{push.before}" if push.before and is_full_commit_hash(push.before) else None,
    )


PAYLOAD_PARSERS: Final[Mapping[str, PayloadParser]] = {
    GitHubEvent.DEPLOYMENT_STATUS: _parse_deployment_status,
    GitHubEvent.WORKFLOW_RUN: _parse_workflow_run,
    GitHubEvent.PUSH: _parse_push,
}
