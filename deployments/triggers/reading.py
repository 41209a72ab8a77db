"""How a delivery is read: one value of a header, a JSON object, a commit, a time. Refused, never guessed."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from deployments.strict_json import NotStrict, read_strict_json
from deployments.triggers.delivery import Headers, Refusal, Refused

_GIT_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
"""SHA-1 or SHA-256, whole."""
_HEXADECIMAL: Final = re.compile(r"[0-9a-fA-F]{7,64}", re.ASCII)
_HEADS: Final = "refs/heads/"
_PULL: Final = re.compile(r"(?:refs/)?pull/([1-9][0-9]{0,8})/(?:head|merge)", re.ASCII)


class Payload(BaseModel):
    """The part of a payload that is read; everything else in it, every address above all, is left where it is."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


Read = TypeVar("Read", bound=Payload)


def one_header(headers: Headers, name: str, *, most_characters: int = 1_000) -> str:
    """The one value of a header that proves who sends. Raises `Refused` when it is missing, twice, or endless."""
    values = headers.get(name, ())
    if len(values) != 1 or not 0 < len(values[0]) <= most_characters:
        raise Refused(Refusal.UNSIGNED, f"one {name} header is needed")
    return values[0]


def admit_json(headers: Headers) -> None:
    """Raises `Refused` for anything but JSON."""
    kinds = headers.get("content-type", ())
    if len(kinds) != 1 or kinds[0].partition(";")[0].strip().lower() != "application/json":
        raise Refused(Refusal.MEDIA_TYPE, "set the content type to application/json")


def read_payload(body: bytes, form: type[Read]) -> Read:
    """The body as ``form``. Raises `Refused` for what is no UTF-8, no JSON, of two meanings, or of another form."""
    try:
        return form.model_validate(read_strict_json(body.decode("utf-8")))
    except UnicodeDecodeError:
        raise Refused(Refusal.MALFORMED, "the body is not UTF-8") from None
    except NotStrict as error:
        raise Refused(Refusal.MALFORMED, str(error)) from None
    except ValidationError:
        raise Refused(Refusal.MALFORMED, "the payload has not the form of this event") from None


def git_commit(text: str) -> str:
    """A whole commit. Raises `Refused`."""
    if not _GIT_COMMIT.fullmatch(text.lower()):
        raise Refused(Refusal.MALFORMED, "the payload names no commit")
    return text.lower()


def any_commit(text: str) -> str:
    """A commit or version of any system; git's hexadecimal is the same in capitals."""
    return text.lower() if _HEXADECIMAL.fullmatch(text) else text


def is_no_commit(text: str | None) -> bool:
    """Whether a ref was deleted: nothing, or git's zeros."""
    return text is None or not text.strip("0")


def branch_of(ref: str) -> str:
    """The branch of ``refs/heads/x``; any other ref as it is, which is no branch's name."""
    return ref.removeprefix(_HEADS)


def is_branch(ref: str) -> bool:
    """Whether a whole ref is a branch: no tag, no pull request."""
    return ref.startswith(_HEADS)


def pull_number_of(ref: str) -> int | None:
    """The number in ``refs/pull/12/merge``."""
    match = _PULL.fullmatch(ref)
    return int(match[1]) if match else None


def time_in(text: str | None) -> datetime | None:
    """A time with its zone as ISO 8601; ``None`` for anything else: when it arrived is known anyway."""
    try:
        time = datetime.fromisoformat(text) if text else None
        return time.astimezone(UTC) if time and time.tzinfo else None
    except (ValueError, OverflowError):
        return None
