"""Standard Webhooks (https://www.standardwebhooks.com), for every sender without its own format.

The signature is an HMAC-SHA256 over ``id.timestamp.body``. Its timestamp may be at most 300 s in the past or in
the future. Lookout defines the format of a deploy in the body:

    {"type": "deploy.succeeded", "timestamp": "2026-03-01T12:00:00Z",
     "data": {"repository": "owner/name", "commit": "…", "environment": "…", "branch": "…", "pull_request": 12}}

``repository`` and ``commit`` are required. This module does not use the specification's own library, because that
library raises errors of various types for malformed input.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Sequence
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
    normalise_commit,
    parse_branch,
    parse_payload,
    parse_time,
    read_header,
    require_json_content_type,
)
from deployments.triggers.routes import DeployClaim, Routes
from monitors.config.sections import DeploySender, TriggerSettings
from monitors.errors import ConfigError

ID_HEADER: Final = "webhook-id"
TIMESTAMP_HEADER: Final = "webhook-timestamp"
SIGNATURE_HEADER: Final = "webhook-signature"
TOLERANCE_S: Final = 300
"""Maximum difference between the time in a signature and this machine's clock, in seconds.

The value is from the specification.
"""
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - what the specification writes before every secret
MAX_SIGNATURES: Final = 20
"""Maximum number of signatures in a header. A sender has two or three during a rotation of secrets."""

_ID: Final = re.compile(r"[\x21-\x7e]{1,256}", re.ASCII)
_TIMESTAMP: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
Text = Annotated[str, Field(max_length=500)]


class _Data(Payload):
    repository: Text
    commit: Text
    environment: Text | None = None
    branch: Text | None = None
    pull_request: Annotated[int, Field(ge=1, le=2**31)] | None = None


class _Kind(Payload):
    type: Text | None = None


class _Message(Payload):
    timestamp: Text | None = None
    data: _Data


def decode_webhook_secret(secret: str) -> bytes:
    """Decode a base64 secret, with or without ``whsec_`` and padding. Raises `ConfigError`."""
    text = secret.removeprefix(SECRET_PREFIX).rstrip("=")
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError("a Standard Webhooks secret must be base64, with or without the prefix whsec_") from None
    if not key:
        raise ConfigError("the Standard Webhooks secret is empty")
    return key


class StandardParser:
    """Checks and parses deliveries that follow the specification and are signed with one of ``secrets``."""

    provider = DeploySender.STANDARD

    def __init__(self, secrets: Sequence[str], triggers: Sequence[TriggerSettings]) -> None:
        self._keys = tuple(decode_webhook_secret(secret) for secret in secrets)
        self._routes = Routes(self.provider, triggers)
        self._events = {row.event_name for row in triggers if row.provider is self.provider}

    def check_headers(self, headers: Headers) -> None:
        """Raise `DeliveryRejected` if one of the three required headers is missing or invalid."""
        if not _ID.fullmatch(read_header(headers, ID_HEADER)):
            raise DeliveryRejected(
                RejectionReason.UNSIGNED, f"{ID_HEADER} must have 1 to 256 visible ASCII characters"
            )
        if not _TIMESTAMP.fullmatch(read_header(headers, TIMESTAMP_HEADER)):
            raise DeliveryRejected(RejectionReason.UNSIGNED, f"{TIMESTAMP_HEADER} must be a Unix time in seconds")
        read_header(headers, SIGNATURE_HEADER, max_characters=5_000)
        require_json_content_type(headers)

    def verify_and_parse(self, delivery: Delivery) -> ParsedDelivery:
        """Parse a deploy if a trigger is configured for its event type. Deliveries of other types start no run."""
        self.check_headers(delivery.headers)
        self._check_signature(delivery)
        self._check_time(delivery)
        kind = parse_payload(delivery.body, _Kind).type
        if kind not in self._events:
            return NotForUs(IgnoreReason.EVENT)
        message = parse_payload(delivery.body, _Message)
        data = message.data
        report = DeployClaim(
            repository=data.repository,
            commit=normalise_commit(data.commit),
            at=parse_time(message.timestamp),
            event=kind,
            branch=parse_branch(data.branch) if data.branch else None,
            environment=data.environment,
            pull_request=data.pull_request,
            deployment=f"message-{hashlib.sha256(_read_header(delivery, ID_HEADER).encode()).hexdigest()[:16]}",
        )
        return self._routes.match_deploy_to_triggers(report, received_at=delivery.received_at)

    def _check_signature(self, delivery: Delivery) -> None:
        """Raise `DeliveryRejected` unless one of the signatures was made with one of the keys."""
        signed = b".".join(
            [
                _read_header(delivery, ID_HEADER).encode(),
                _read_header(delivery, TIMESTAMP_HEADER).encode(),
                delivery.body,
            ]
        )
        expected = [base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()) for key in self._keys]
        received = [
            signature.removeprefix("v1,").encode("latin-1", "replace")
            for signature in _read_header(delivery, SIGNATURE_HEADER).split(" ", MAX_SIGNATURES)[:MAX_SIGNATURES]
            if signature.startswith("v1,")
        ]
        if not any([hmac.compare_digest(ours, theirs) for ours in expected for theirs in received]):  # noqa: C419 - all, always
            raise DeliveryRejected(
                RejectionReason.WRONG_SIGNATURE, ("the delivery is not signed with the secret of this webhook")
            )

    def _check_time(self, delivery: Delivery) -> None:
        difference_s = abs(delivery.received_at.timestamp() - int(_read_header(delivery, TIMESTAMP_HEADER)))
        if difference_s > TOLERANCE_S:
            raise DeliveryRejected(
                RejectionReason.STALE,
                f"the delivery's time differs from the receiver's time by more than {TOLERANCE_S} s; check "
                "both clocks",
            )


def _read_header(delivery: Delivery, name: str) -> str:
    return delivery.headers[name][0]
