"""Checks this installation's webhook receiver with a signed test delivery that starts no run."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, NamedTuple, assert_never

import httpx

from flows.deploys.queue import NOT_FOR_US_PREFIX
from flows.drill.context import DrillContext, NotSetUp, StationFailed
from flows.drill.stations import REQUEST_TIMEOUT_S
from monitors.config.sections import DeploySender

RECEIVER_VARIABLE: Final = "LOOKOUT_RECEIVER_URL"
"""The environment variable with the receiver's URL. ``lookout up`` sets it for the processes that it starts."""
DEFAULT_RECEIVER_URL: Final = "http://127.0.0.1:8066"
SECRETS: Final[Mapping[DeploySender, str]] = {
    DeploySender.GITHUB: "LOOKOUT_GITHUB_WEBHOOK_SECRET",
    DeploySender.HUGGINGFACE: "LOOKOUT_HUGGINGFACE_WEBHOOK_SECRET",
    DeploySender.STANDARD: "LOOKOUT_STANDARD_WEBHOOK_SECRET",
}


class SignedDelivery(NamedTuple):
    """The body and the headers of a signed webhook delivery."""

    headers: Mapping[str, str]
    body: bytes


async def check_receiver(drill: DrillContext) -> str:
    """Check that the receiver accepts a signed test delivery from each configured sender."""
    providers = sorted(drill.config.deploys.providers)
    if not providers:
        raise NotSetUp("no [[deploys.triggers]]")
    receiver_url = (
        drill.config.drill.receiver_url or drill.environment.get(RECEIVER_VARIABLE) or DEFAULT_RECEIVER_URL
    )
    async with httpx.AsyncClient(timeout=REQUEST_TIMEOUT_S, trust_env=False) as client:
        for provider in providers:
            await _send_signed_delivery(drill, client, receiver_url, provider)
    return f"the receiver accepts signed deliveries from {', '.join(providers)}"


async def _send_signed_delivery(
    drill: DrillContext, client: httpx.AsyncClient, receiver_url: str, provider: DeploySender
) -> None:
    secret = drill.environment.get(SECRETS[provider], "").split(",")[0].strip()
    if not secret:
        raise StationFailed(f"{SECRETS[provider]} is not set", "set it in the environment of `lookout up`")
    signed = build_signed_delivery(provider, secret, drill.drill_id, int(drill.now().timestamp()))
    try:
        response = await client.post(
            f"{receiver_url}/deploys/{provider.value}", headers=signed.headers, content=signed.body
        )
    except httpx.HTTPError as error:
        raise StationFailed(
            f"the deploy receiver does not respond on its port ({type(error).__name__})",
            "read the lines of `receiver` in the log of `lookout up`",
        ) from error
    reply = response.text[:100]
    if response.status_code == HTTPStatus.OK and reply.startswith(NOT_FOR_US_PREFIX):
        return
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        raise StationFailed(
            f"the receiver refuses deliveries signed with {SECRETS[provider]}: {reply}",
            "restart `lookout up` with the current secret",
        )
    raise StationFailed(
        f"another program answers at the receiver's port (HTTP {response.status_code})",
        "find the program with `ss -ltnp` and stop it, or restart `lookout up` with another --port",
    )


def build_signed_delivery(provider: DeploySender, secret: str, drill_id: str, at: int) -> SignedDelivery:
    """Build a test delivery in the format of ``provider`` at the Unix time ``at``, signed with ``secret``."""
    content_headers = {"content-type": "application/json"}
    match provider:
        case DeploySender.GITHUB:
            body = json.dumps({"zen": drill_id}).encode()
            signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
            proof = {"x-hub-signature-256": f"sha256={signature}", "x-github-event": "ping"}
        case DeploySender.HUGGINGFACE:
            event = {"action": "update", "scope": "discussion"}
            body = json.dumps({"event": event, "repo": {"type": "space", "name": "lookout/drill"}}).encode()
            proof = {"x-webhook-secret": secret}
        case DeploySender.STANDARD:
            body = json.dumps({"type": "lookout.drill"}).encode()
            signed = f"{drill_id}.{at}.".encode() + body
            text = secret.removeprefix("whsec_").rstrip("=")
            key = base64.b64decode(text + "=" * (-len(text) % 4))
            signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
            proof = {"webhook-id": drill_id, "webhook-timestamp": str(at), "webhook-signature": f"v1,{signature}"}
        case _:
            assert_never(provider)
    return SignedDelivery(content_headers | proof, body)
