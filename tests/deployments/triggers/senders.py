"""Builds signed deliveries of GitHub, the Hub and a Standard Webhooks sender.

The payloads are our own. They are signed as the senders sign theirs.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import Any

from deployments.triggers.delivery import Delivery
from deployments.triggers.github import GitHubParser
from deployments.triggers.huggingface import HuggingFaceParser
from deployments.triggers.standard_webhooks import StandardParser
from monitors.config.sections import TriggerSettings

GITHUB_SECRET = "github-secret-for-tests-01"
HUB_SECRET = "hub-secret-for-tests-0001"
STANDARD_SECRET = "whsec_" + base64.b64encode(b"standard-secret-for-tests-0001").decode()
NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
COMMIT = "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334"
OTHER_COMMIT = "0f0e0d0c0b0a09080706050403020100ffeeddcc"

REPOSITORY = "acme/helpdesk"
SPACE = "acme/helpdesk-space"


def trigger(**values: Any) -> TriggerSettings:
    """Build a trigger for the target ``bot``. By default, its sender is GitHub."""
    defaults = {"provider": "github", "repository": REPOSITORY, "target": "bot"}
    return TriggerSettings.model_validate(defaults | values)


def space_trigger(**values: Any) -> TriggerSettings:
    return trigger(**{"provider": "huggingface", "repository": SPACE} | values)


def standard_trigger(**values: Any) -> TriggerSettings:
    return trigger(**{"provider": "standard"} | values)


def github(*rows: TriggerSettings, secrets: tuple[str, ...] = (GITHUB_SECRET,)) -> GitHubParser:
    return GitHubParser(secrets, rows or (trigger(),))


def hub(*rows: TriggerSettings, secrets: tuple[str, ...] = (HUB_SECRET,)) -> HuggingFaceParser:
    return HuggingFaceParser(secrets, rows or (space_trigger(),))


def standard(*rows: TriggerSettings, secrets: tuple[str, ...] = (STANDARD_SECRET,)) -> StandardParser:
    return StandardParser(secrets, rows or (standard_trigger(),))


def raw(payload: Any) -> bytes:
    return payload if isinstance(payload, bytes) else json.dumps(payload).encode()


def github_headers(body: bytes, event: str = "deployment_status", *, secret: str = GITHUB_SECRET) -> dict[str, str]:
    return {
        "content-type": "application/json",
        "x-github-event": event,
        "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
        "x-hub-signature-256": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(),
    }


def hub_headers(*, secret: str = HUB_SECRET) -> dict[str, str]:
    return {"content-type": "application/json", "x-webhook-secret": secret}


def standard_signature(body: bytes, stamp: int, *, secret: str = STANDARD_SECRET, msg_id: str = "msg_1") -> str:
    text = secret.removeprefix("whsec_")
    key = base64.b64decode(text + "=" * (-len(text) % 4))
    digest = hmac.new(key, f"{msg_id}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def standard_headers(
    body: bytes, at: datetime | int = NOW, *, secret: str = STANDARD_SECRET, msg_id: str = "msg_1"
) -> dict[str, str]:
    stamp = at if isinstance(at, int) else int(at.timestamp())
    return {
        "content-type": "application/json",
        "webhook-id": msg_id,
        "webhook-timestamp": str(stamp),
        "webhook-signature": standard_signature(body, stamp, secret=secret, msg_id=msg_id),
    }


def delivery(body: bytes, headers: dict[str, str], *, at: datetime = NOW) -> Delivery:
    return Delivery({name: (value,) for name, value in headers.items()}, body, at)


def by_github(payload: Any, event: str = "deployment_status") -> Delivery:
    body = raw(payload)
    return delivery(body, github_headers(body, event))


def by_hub(payload: Any) -> Delivery:
    return delivery(raw(payload), hub_headers())


def by_standard(payload: Any, *, msg_id: str = "msg_1") -> Delivery:
    body = raw(payload)
    return delivery(body, standard_headers(body, msg_id=msg_id))


def deployed(**changes: Any) -> dict[str, Any]:
    """Build the payload of GitHub's ``deployment_status`` event.

    ``changes`` replace values such as ``state``, ``id``, ``sha``, ``ref``, ``environment`` and ``repository``.
    """
    return {
        "action": "created",
        "deployment_status": {
            "state": changes.get("state", "success"),
            "created_at": changes.get("created_at", "2026-03-01T11:59:30Z"),
            "environment_url": changes.get("url", "https://helpdesk.example.com"),
            "target_url": changes.get("url", ""),
            "log_url": changes.get("url", ""),
        },
        "deployment": {
            "id": changes.get("id"),
            "sha": changes.get("sha", COMMIT),
            "ref": changes.get("ref", "main"),
            "environment": changes.get("environment", "production"),
            "url": changes.get("url", ""),
            "payload": changes.get("payload", {}),
        },
        "repository": {
            "full_name": changes.get("repository", REPOSITORY),
            "html_url": changes.get("url", ""),
            "clone_url": changes.get("url", ""),
        },
        "workflow_run": changes.get("workflow_run"),
    }


def workflow(**changes: Any) -> dict[str, Any]:
    return {
        "action": changes.get("action", "completed"),
        "workflow_run": {
            "id": changes.get("id"),
            "workflow_id": 31,
            "run_attempt": changes.get("attempt", 1),
            "name": changes.get("name", "Deploy"),
            "conclusion": changes.get("conclusion", "success"),
            "head_sha": changes.get("sha", COMMIT),
            "head_branch": changes.get("branch", "main"),
            "head_repository": {"full_name": changes.get("fork", REPOSITORY)},
            "updated_at": "2026-03-01T11:59:30Z",
            "pull_requests": changes.get("pull_requests", []),
        },
        "repository": {"full_name": changes.get("repository", REPOSITORY)},
    }


def pushed(**changes: Any) -> dict[str, Any]:
    return {
        "ref": changes.get("ref", "refs/heads/main"),
        "before": changes.get("before"),
        "after": changes.get("after", COMMIT),
        "deleted": False,
        "repository": {"full_name": changes.get("repository", REPOSITORY)},
    }


def space_pushed(*refs: tuple[str, str | None], **changes: Any) -> dict[str, Any]:
    """Build the Hub's payload about a push.

    ``refs`` are pairs of a ref and its new commit, by default for ``main``.
    """
    updated = refs or (("refs/heads/main", COMMIT),)
    return {
        "event": {"action": changes.get("action", "update"), "scope": changes.get("scope", "repo.content")},
        "repo": {
            "type": changes.get("type", "space"),
            "name": changes.get("name", SPACE),
            "headSha": OTHER_COMMIT,
            "url": {"web": changes.get("url", ""), "api": changes.get("url", "")},
        },
        "updatedRefs": [{"ref": ref, "oldSha": None, "newSha": new} for ref, new in updated],
        "webhook": {"id": "65a14fd933eca76f4639fc84", "version": 3},
    }


def announced(**changes: Any) -> dict[str, Any]:
    """Build a Standard Webhooks payload in Lookout's format."""
    data = {"repository": REPOSITORY, "commit": COMMIT, **changes.get("data", {})}
    return {
        "type": changes.get("type", "deploy.succeeded"),
        "timestamp": "2026-03-01T11:59:30Z",
        "data": {name: value for name, value in data.items() if value is not None},
    }
