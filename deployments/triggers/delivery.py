"""Parses webhook deliveries. A delivery reports a deploy, starts no run, or is refused.

An ambiguous or meaningless header, JSON object, commit or time is refused. Lookout does not guess what was meant.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from http import HTTPStatus
from typing import Final, NamedTuple, NoReturn, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from monitors.config.sections import DeploySender
from monitors.records.targets import ReportedDeploy

DELIVERY_PATH: Final = "/deploys"
"""The path to which senders deliver. In an address, the provider's name follows the path."""


class NotStrict(ValueError):
    """Raised for a text that is not strict JSON. Different parsers could read such a text differently.

    The message never contains the text itself.
    """


def parse_strict_json(text: str) -> object:
    """Parse JSON strictly. Raises `NotStrict` for JSON that is invalid or ambiguous.

    NaN, Infinity (also as ``1e999``), duplicate keys, lone surrogates, and nesting that is too deep are refused.
    """
    try:
        value: object = json.loads(
            text,
            parse_constant=_raise_for_nan_or_infinity,
            parse_float=_parse_finite_number,
            object_pairs_hook=_raise_for_repeated_keys,
        )
        encode_json(value)
    except NotStrict:
        raise
    except RecursionError:
        raise NotStrict("the JSON is nested too deeply") from None
    except ValueError:
        raise NotStrict("the JSON is broken") from None
    return value


def encode_json(value: object) -> bytes:
    """Encode ``value`` as JSON in UTF-8. A lone surrogate raises ``UnicodeEncodeError``."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8")


def _raise_for_nan_or_infinity(_constant: str) -> NoReturn:
    raise NotStrict("the JSON contains NaN or Infinity")


def _parse_finite_number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise NotStrict("the JSON contains a number that is not finite")
    return value


def _raise_for_repeated_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise NotStrict("the JSON contains a duplicate key")
    return fields


Headers = Mapping[str, tuple[str, ...]]
"""All values of each header, by its name in lower case. A header that was sent twice has two values."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A request: its headers, its unchanged body, and the time of arrival."""

    headers: Headers
    body: bytes
    received_at: datetime


class RejectionReason(StrEnum):
    """The reason why a delivery is rejected. The values are labels of a metric."""

    UNSIGNED = "unsigned"
    WRONG_SIGNATURE = "wrong_signature"
    STALE = "stale"
    MEDIA_TYPE = "media_type"
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    TOO_SLOW = "too_slow"
    CUT_OFF = "cut_off"
    NOT_STORED = "not_stored"


STATUS: Mapping[RejectionReason, HTTPStatus] = {
    RejectionReason.UNSIGNED: HTTPStatus.UNAUTHORIZED,
    RejectionReason.WRONG_SIGNATURE: HTTPStatus.UNAUTHORIZED,
    RejectionReason.STALE: HTTPStatus.UNAUTHORIZED,
    RejectionReason.MEDIA_TYPE: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    RejectionReason.MALFORMED: HTTPStatus.BAD_REQUEST,
    RejectionReason.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    RejectionReason.TOO_SLOW: HTTPStatus.REQUEST_TIMEOUT,
    RejectionReason.CUT_OFF: HTTPStatus.BAD_REQUEST,
    RejectionReason.NOT_STORED: HTTPStatus.SERVICE_UNAVAILABLE,
}


class DeliveryRejected(Exception):
    """Raised for a rejected delivery. The error's text is the response body, without text from the delivery."""

    def __init__(self, reason: RejectionReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason

    @property
    def status(self) -> HTTPStatus:
        """The HTTP status of the response: 4xx, or 503 if the sender should try again later."""
        return STATUS[self.reason]


class IgnoreReason(StrEnum):
    """The reason why a valid delivery starts no run. The values are labels of a metric."""

    PING = "ping"
    EVENT = "event"
    STATE = "state"
    REPOSITORY = "repository"
    FORK = "fork"
    BRANCH = "branch"
    ENVIRONMENT = "environment"
    WORKFLOW = "workflow"


class NotForUs(NamedTuple):
    """A valid delivery that starts no run, because it reports no deploy of a configured target."""

    reason: IgnoreReason


class Deploys(NamedTuple):
    """The deploys that a delivery reports, for the targets with a matching trigger."""

    deploys: tuple[ReportedDeploy, ...]


ParsedDelivery = Deploys | NotForUs


class TriggerParser(Protocol):
    """Checks and parses the deliveries of one sender. Several threads can use it."""

    @property
    def provider(self) -> DeploySender:
        """The sender of the deliveries."""
        ...

    def check_headers(self, headers: Headers) -> None:
        """Raise `DeliveryRejected` for invalid headers, before the body is read."""
        ...

    def verify_and_parse(self, delivery: Delivery) -> ParsedDelivery:
        """Return what a delivery reports. The signature is checked before the content is read.

        Whatever the body contains, only `DeliveryRejected` is raised.
        """
        ...


_GIT_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
"""Matches a complete SHA-1 or SHA-256 hash."""
_HEXADECIMAL: Final = re.compile(r"[0-9a-fA-F]{7,64}", re.ASCII)
_HEADS: Final = "refs/heads/"
_PULL: Final = re.compile(r"(?:refs/)?pull/([1-9][0-9]{0,8})/(?:head|merge)", re.ASCII)


class Payload(BaseModel):
    """Base class for the parts of a payload. Fields without a definition, such as e-mail addresses, are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


Read = TypeVar("Read", bound=Payload)


def read_header(headers: Headers, name: str, *, max_characters: int = 1_000) -> str:
    """Return the value of a header that must be sent exactly once.

    Raises `DeliveryRejected` if the header is missing, empty, sent twice or too long.
    """
    values = headers.get(name, ())
    if len(values) != 1 or not 0 < len(values[0]) <= max_characters:
        raise DeliveryRejected(RejectionReason.UNSIGNED, f"exactly one {name} header is required")
    return values[0]


def require_json_content_type(headers: Headers) -> None:
    """Raise `DeliveryRejected` for any content type except JSON."""
    kinds = headers.get("content-type", ())
    if len(kinds) != 1 or kinds[0].partition(";")[0].strip().lower() != "application/json":
        raise DeliveryRejected(RejectionReason.MEDIA_TYPE, "set the content type to application/json")


def parse_payload(body: bytes, form: type[Read]) -> Read:
    """Parse the body into the record type ``form``.

    Raises `DeliveryRejected` if the body is not UTF-8, is not strict JSON, or does not fit the type.
    """
    try:
        return form.model_validate(parse_strict_json(body.decode("utf-8")))
    except UnicodeDecodeError:
        raise DeliveryRejected(RejectionReason.MALFORMED, "the body is not UTF-8") from None
    except NotStrict as error:
        raise DeliveryRejected(RejectionReason.MALFORMED, str(error)) from None
    except ValidationError:
        raise DeliveryRejected(
            RejectionReason.MALFORMED, "a field of this event is missing or not valid in the payload"
        ) from None


def parse_git_commit(text: str) -> str:
    """Return a full commit hash in lower case. Raises `DeliveryRejected`."""
    if not is_full_commit_hash(text.lower()):
        raise DeliveryRejected(RejectionReason.MALFORMED, "the payload has no full commit hash")
    return text.lower()


def is_full_commit_hash(text: str) -> bool:
    """Return whether a text is a full commit hash in lower case."""
    return _GIT_COMMIT.fullmatch(text) is not None


def normalise_commit(text: str) -> str:
    """Return a hexadecimal commit in lower case, and any other commit or version unchanged."""
    return text.lower() if _HEXADECIMAL.fullmatch(text) else text


def is_null_commit(text: str | None) -> bool:
    """Return whether a commit is empty or consists of zeros, which means that the branch was deleted."""
    return text is None or not text.strip("0")


def parse_branch(ref: str) -> str:
    """Return the branch name ``x`` of ``refs/heads/x``. Any other ref is returned unchanged."""
    return ref.removeprefix(_HEADS)


def is_branch(ref: str) -> bool:
    """Return whether a full ref is a branch, and not a tag or a pull request."""
    return ref.startswith(_HEADS)


def parse_pull_number(ref: str) -> int | None:
    """Return the number of the pull request: 12 for ``refs/pull/12/merge``.

    Return ``None`` for any other ref.
    """
    match = _PULL.fullmatch(ref)
    return int(match[1]) if match else None


def parse_time(text: str | None) -> datetime | None:
    """Parse an ISO 8601 time with a time zone. Return ``None`` for any other text."""
    try:
        time = datetime.fromisoformat(text) if text else None
        return time.astimezone(UTC) if time and time.tzinfo else None
    except (ValueError, OverflowError):
        return None
