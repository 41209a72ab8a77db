"""What arrives, and the three things it can be: a deploy, nothing of ours, or refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple, Protocol

from monitors.records.deploys import ReportedDeploy
from monitors.trigger_settings import Provider

Headers = Mapping[str, tuple[str, ...]]
"""Values by lower-case name, every one that was sent: a header that comes twice is seen to."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One request: its headers, its body as it came, and when."""

    headers: Headers
    body: bytes
    received_at: datetime


class Refusal(StrEnum):
    """Why a delivery goes no further. The values are labels of a metric: a fixed, short list."""

    UNSIGNED = "unsigned"
    WRONG_SIGNATURE = "wrong_signature"
    STALE = "stale"
    MEDIA_TYPE = "media_type"
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    TOO_SLOW = "too_slow"
    CUT_OFF = "cut_off"
    NOT_KEPT = "not_kept"


STATUS: Mapping[Refusal, HTTPStatus] = {
    Refusal.UNSIGNED: HTTPStatus.UNAUTHORIZED,
    Refusal.WRONG_SIGNATURE: HTTPStatus.UNAUTHORIZED,
    Refusal.STALE: HTTPStatus.UNAUTHORIZED,
    Refusal.MEDIA_TYPE: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    Refusal.MALFORMED: HTTPStatus.BAD_REQUEST,
    Refusal.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Refusal.TOO_SLOW: HTTPStatus.REQUEST_TIMEOUT,
    Refusal.CUT_OFF: HTTPStatus.BAD_REQUEST,
    Refusal.NOT_KEPT: HTTPStatus.SERVICE_UNAVAILABLE,
}


class Refused(Exception):
    """A delivery that goes no further. ``str`` is the answer's body and holds nothing of what was sent."""

    def __init__(self, reason: Refusal, why: str) -> None:
        super().__init__(why)
        self.reason = reason

    @property
    def status(self) -> HTTPStatus:
        """The answer's status: 4xx, or 503 when the fault is ours and the sender shall come again."""
        return STATUS[self.reason]


class Ignored(StrEnum):
    """Why a genuine delivery starts nothing. The values are labels of a metric."""

    PING = "ping"
    EVENT = "event"
    STATE = "state"
    REPOSITORY = "repository"
    FORK = "fork"
    BRANCH = "branch"
    ENVIRONMENT = "environment"
    WORKFLOW = "workflow"


class NotForUs(NamedTuple):
    """Genuine, and no deploy of a target of ours."""

    why: Ignored


class Deploys(NamedTuple):
    """The deploys that a delivery tells of: one for each target that is fed by the repository."""

    deploys: tuple[ReportedDeploy, ...]


Parsed = Deploys | NotForUs


class TriggerParser(Protocol):
    """Tells what a sender's deliveries mean. Pure: no clock, no network; safe for threads."""

    @property
    def provider(self) -> Provider:
        """Whose deliveries these are."""
        ...

    def admit(self, headers: Headers) -> None:
        """Raises `Refused` for what can be told before the body is read."""
        ...

    def parse(self, delivery: Delivery) -> Parsed:
        """What the delivery tells. Its signature is checked before anything in it is looked at.

        Raises `Refused`, and nothing else, whatever the body holds.
        """
        ...
