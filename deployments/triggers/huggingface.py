"""Webhooks of the Hugging Face Hub. A delivery has a shared secret in a header, and the new commit of each ref.

Deliveries have no signature and no time. A repeated delivery does nothing, because a commit is accepted only once.
After a push, the run waits until the Space serves the commit.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import Field

from deployments.triggers.delivery import (
    Delivery,
    DeliveryRejected,
    Deploys,
    Headers,
    IgnoreReason,
    NotForUs,
    ParsedDelivery,
    Payload,
    RejectionReason,
    is_branch,
    is_null_commit,
    parse_branch,
    parse_git_commit,
    parse_payload,
    read_header,
    require_json_content_type,
)
from deployments.triggers.routes import DeployClaim, Routes
from monitors.config.sections import DeploySender, TriggerSettings

SECRET_HEADER: Final = "x-webhook-secret"  # noqa: S105 - the header's name
MAX_REFS: Final = 1_000
Text = Annotated[str, Field(max_length=500)]


class _HubEvent(Payload):
    action: Text
    scope: Text


class _Repo(Payload):
    type: Text
    name: Text


class _Ref(Payload):
    ref: Text
    newSha: Text | None = None  # noqa: N815 - the Hub's own name


class _Push(Payload):
    event: _HubEvent
    repo: _Repo
    updatedRefs: Annotated[list[_Ref], Field(max_length=MAX_REFS)] | None = None  # noqa: N815 - the Hub's own name


class HuggingFaceParser:
    """Checks and parses the Hub's deliveries, which must contain one of ``secrets``."""

    provider = DeploySender.HUGGINGFACE

    def __init__(self, secrets: Sequence[str], triggers: Sequence[TriggerSettings]) -> None:
        self._secrets = tuple(secret.encode() for secret in secrets)
        self._routes = Routes(self.provider, triggers)

    def check_headers(self, headers: Headers) -> None:
        """Raise `DeliveryRejected` if the secret in the header is wrong. The body is then not read."""
        received = read_header(headers, SECRET_HEADER).encode("latin-1", "replace")
        if not any([hmac.compare_digest(secret, received) for secret in self._secrets]):  # noqa: C419 - all of them, always
            raise DeliveryRejected(
                RejectionReason.WRONG_SIGNATURE, "the secret in the delivery is not the secret of this webhook"
            )
        require_json_content_type(headers)

    def verify_and_parse(self, delivery: Delivery) -> ParsedDelivery:
        """Parse a push to a Space. Everything else that the Hub reports starts no run.

        A branch that occurs more than once counts once, with its last commit.
        """
        self.check_headers(delivery.headers)
        push = parse_payload(delivery.body, _Push)
        if push.event.scope != "repo.content" or push.event.action != "update":
            return NotForUs(IgnoreReason.EVENT)
        if push.repo.type != "space":
            return NotForUs(IgnoreReason.REPOSITORY)
        # Skip tags, pull requests and deletions.
        latest = {
            ref.ref: ref for ref in push.updatedRefs or () if is_branch(ref.ref) and not is_null_commit(ref.newSha)
        }
        parsed_refs = [self._find_deploys_of_branch(push.repo.name, ref, delivery) for ref in latest.values()]
        deploys = tuple(
            deploy for parsed in parsed_refs if isinstance(parsed, Deploys) for deploy in parsed.deploys
        )
        if deploys:
            return Deploys(deploys)
        return parsed_refs[0] if parsed_refs else NotForUs(IgnoreReason.BRANCH)

    def _find_deploys_of_branch(self, repository: str, ref: _Ref, delivery: Delivery) -> ParsedDelivery:
        report = DeployClaim(repository, parse_git_commit(str(ref.newSha)), at=None, branch=parse_branch(ref.ref))
        return self._routes.match_deploy_to_triggers(report, received_at=delivery.received_at)
