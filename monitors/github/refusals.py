"""What GitHub answers → what it means for us, in words that hold no address and no token."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final, NamedTuple

from monitors.errors import NotifyError, NotifyRejected, NotifyTransient

FORKS: Final = "a pull request from a fork has a token that only reads (docs/ci.md says what to do)"


class Forbidden(NotifyRejected):
    """The token may not do that."""


class Gone(NotifyRejected):
    """It is not there, or the token may not know that it is."""


class Purpose(NamedTuple):
    """What a request is for: ``doing`` for a sentence, ``permission`` as a workflow or a token's page names it."""

    doing: str
    permission: str


def commenting(pull_request: str) -> Purpose:
    """Reading and writing the comments of ``owner/name#12``."""
    return Purpose(f"comment on {pull_request}", "pull-requests: write")


def setting_status(repository: str, commit: str) -> Purpose:
    """Setting the status of a commit."""
    return Purpose(f"set the status of {repository}@{commit[:12]}", "statuses: write")


_KINDS: Final[dict[int, type[NotifyRejected]]] = {HTTPStatus.FORBIDDEN: Forbidden, HTTPStatus.NOT_FOUND: Gone}


def refused(status: int, purpose: Purpose) -> NotifyError:
    """The error for an answer that is neither success nor a limit of rate."""
    kind = _KINDS.get(status, NotifyRejected)
    match status:
        case HTTPStatus.UNAUTHORIZED:
            why = "the token in GITHUB_TOKEN is not valid, or no longer; make a new one"
        case HTTPStatus.FORBIDDEN:
            why = f"the token lacks the permission `{purpose.permission}`; {FORKS}"
        case HTTPStatus.NOT_FOUND:
            why = (
                f"it is not there, or the token may not see it: it needs `{purpose.permission}` on that repository"
            )
        case HTTPStatus.GONE | HTTPStatus.LOCKED:
            why = "it is closed for that: the conversation is locked, or the repository archived"
        case HTTPStatus.UNPROCESSABLE_ENTITY:
            why = "it does not take what it was sent; is the commit in that repository, and the pull request in it?"
        case _ if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return NotifyTransient(f"could not {purpose.doing}: GitHub is in trouble (HTTP {status}); try again")
        case _:
            why = "this answer is not one that Lookout knows"
    return kind(f"could not {purpose.doing} (HTTP {status}): {why}")
