"""Webhooks of the Hugging Face Hub: a plain shared secret in a header, and the new commit of each ref.

Nothing is signed and nothing has a time, so what keeps a repeated delivery from doing anything is that a commit is
taken once. A push is not yet a deploy: the run waits until the Space serves the commit.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import Field

from deployments.triggers.delivery import Delivery, Deploys, Headers, Ignored, NotForUs, Parsed, Refusal, Refused
from deployments.triggers.reading import (
    Payload,
    admit_json,
    branch_of,
    git_commit,
    is_branch,
    is_no_commit,
    one_header,
    read_payload,
)
from deployments.triggers.routing import Routes, Told
from monitors.trigger_settings import Provider, TriggerSettings

SECRET_HEADER: Final = "x-webhook-secret"  # noqa: S105 - the header's name
MOST_REFS: Final = 1_000
Text = Annotated[str, Field(max_length=500)]


class _Event(Payload):
    action: Text
    scope: Text


class _Repo(Payload):
    type: Text
    name: Text


class _Ref(Payload):
    ref: Text
    newSha: Text | None = None  # noqa: N815 - the Hub's own name


class _Push(Payload):
    event: _Event
    repo: _Repo
    updatedRefs: Annotated[list[_Ref], Field(max_length=MOST_REFS)] | None = None  # noqa: N815 - the Hub's own name


class HuggingFaceParser:
    """Deliveries of the Hub, proven by any of ``secrets``."""

    provider = Provider.HUGGINGFACE

    def __init__(self, secrets: Sequence[str], triggers: Sequence[TriggerSettings]) -> None:
        self._secrets = tuple(secret.encode() for secret in secrets)
        self._routes = Routes(self.provider, triggers)

    def admit(self, headers: Headers) -> None:
        """The secret is in a header, so a stranger's body is never read."""
        given = one_header(headers, SECRET_HEADER).encode("latin-1", "replace")
        if not any([hmac.compare_digest(secret, given) for secret in self._secrets]):  # noqa: C419 - all of them, always
            raise Refused(Refusal.WRONG_SIGNATURE, "not the secret of this webhook")
        admit_json(headers)

    def parse(self, delivery: Delivery) -> Parsed:
        """A push to a Space; everything else that the Hub tells is not for us."""
        self.admit(delivery.headers)
        push = read_payload(delivery.body, _Push)
        if push.event.scope != "repo.content" or push.event.action != "update":
            return NotForUs(Ignored.EVENT)
        if push.repo.type != "space":
            return NotForUs(Ignored.REPOSITORY)
        found = [
            self._route(push.repo.name, one, delivery) for one in push.updatedRefs or () if _is_new_commit(one)
        ]
        deploys = tuple(one for parsed in found if isinstance(parsed, Deploys) for one in parsed.deploys)
        if deploys:
            return Deploys(deploys)
        return found[0] if found else NotForUs(Ignored.BRANCH)

    def _route(self, repository: str, ref: _Ref, delivery: Delivery) -> Parsed:
        told = Told(repository, git_commit(str(ref.newSha)), at=None, branch=branch_of(ref.ref))
        return self._routes.route(told, received_at=delivery.received_at)


def _is_new_commit(ref: _Ref) -> bool:
    """A branch that moved on: no tag, no pull request, nothing deleted."""
    return is_branch(ref.ref) and not is_no_commit(ref.newSha)
