"""A run's status and comment on a pull request.

The status of a commit stands beside it, and a pull request may require it. Each target has one comment, found by a
hidden mark and updated in place.

A comment is ours when the mark stands at its very beginning and its author is our login or, for a token that may
not ask for its login (a workflow's), a bot. A person who copies the mark is no bot, and a bot that quotes somebody
does not begin with the quotation. Where two runs made a comment at once, the oldest stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Final, NamedTuple

from pydantic import Field, TypeAdapter

from monitors.errors import NotifyTransient, NotifyUnsure
from monitors.github.api import (
    Comment,
    Forbidden,
    GitHubApi,
    GitHubRecord,
    Gone,
    Purpose,
    User,
    commenting,
    setting_status,
)
from monitors.records.base import Identifier, Record
from monitors.records.targets import HttpUrl, PullRequest, RepositoryName

MOST_DESCRIPTION: Final = 140
"""Characters that GitHub takes: https://docs.github.com/en/rest/commits/statuses"""
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
_ANSWER: Final = TypeAdapter(GitHubRecord)


class State(StrEnum):
    """GitHub's states. Only ``SUCCESS`` is green."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"
    """No run graded enough, or the monitor broke."""


class CommitStatus(Record):
    """The status of a commit of ``repository`` for ``target``; ``link`` leads to more."""

    repository: RepositoryName
    commit: str
    target: Identifier
    state: State
    description: Annotated[str, Field(min_length=1, max_length=MOST_DESCRIPTION)]
    link: HttpUrl | None = None

    @property
    def context(self) -> str:
        """The name under which the status stands: one for each target."""
        return f"lookout/{self.target}"


def is_git_commit(commit: str | None) -> bool:
    """Whether it can have a status: a whole SHA-1 or SHA-256."""
    return commit is not None and _COMMIT.fullmatch(commit) is not None


async def set_status(api: GitHubApi, status: CommitStatus) -> None:
    """Say it; a later word takes the place of an earlier one of the same target. Raises `NotifyError`."""
    purpose = setting_status(status.repository, status.commit)
    path = f"/repos/{status.repository}/statuses/{status.commit}"
    body = {"state": status.state.value, "context": status.context, "description": status.description}
    link = {"target_url": status.link} if status.link else {}
    await api.write("POST", path, body | link, _ANSWER, purpose, twice=True)


ATTEMPTS: Final = 3
"""A comment may vanish between being found and being changed, and a reply may not arrive; both together, twice."""
_RUN: Final = re.compile(r"<!-- lookout run (\S{1,200}) -->")
_COMMENT: Final = TypeAdapter(Comment)
_COMMENTS: Final = TypeAdapter(list[Comment])
_USER: Final = TypeAdapter(User)


class PullComment(Record):
    """A run's result for a target. Ids of runs begin with the time they started, so they sort."""

    target: Identifier
    run_id: Identifier
    text: str


class CommentStatus(StrEnum):
    """What became of a comment."""

    MADE = "made"
    UPDATED = "updated"
    NEWER = "newer"
    """A run that started later is there already; its results stay."""


class CommentResult(NamedTuple):
    """What became of a comment, and where it stands."""

    done: CommentStatus
    address: str


def mark_of(target: str) -> str:
    """What the comment about ``target`` begins with. Renderers show nothing of it."""
    return f"<!-- lookout target {_unbroken(target)} -->"


def body_of(comment: PullComment) -> str:
    """The comment as it is sent: its two marks, then its text."""
    return f"{mark_of(comment.target)}\n<!-- lookout run {_unbroken(comment.run_id)} -->\n{comment.text}"


def _unbroken(name: str) -> str:
    """Some renderers end an HTML comment at its first ``--``; a name cannot hold a percent sign."""
    return name.replace("--", "-%2D")


async def post_comment(api: GitHubApi, pull: PullRequest, comment: PullComment) -> CommentResult:
    """Make the comment, or update the one there is. Raises `NotifyError`."""
    purpose = commenting(f"{pull.repository}#{pull.number}")
    edit = _PullRequestComments(api, pull, purpose)
    for left in reversed(range(ATTEMPTS)):
        try:
            return await edit.put(comment)
        except (_CommentDeleted, NotifyUnsure):
            if not left:
                raise
    raise AssertionError("the last attempt returns or raises")


class _CommentDeleted(NotifyTransient):
    """Somebody deleted the comment between our finding and our changing it."""


class _PullRequestComments:
    """The comments of one pull request."""

    def __init__(self, api: GitHubApi, pull: PullRequest, purpose: Purpose) -> None:
        self._api = api
        self._purpose = purpose
        self._on_pull = f"/repos/{pull.repository}/issues/{pull.number}/comments"
        self._one = f"/repos/{pull.repository}/issues/comments"
        self._myself: str | None = None

    async def put(self, comment: PullComment) -> CommentResult:
        self._myself = self._myself or await self._who_am_i()
        mine = await self._mine(comment.target)
        if mine:
            return await self._update(mine, comment)
        made = await self._make(comment)
        return await self._settle(made, comment)

    async def _settle(self, made: Comment, comment: PullComment) -> CommentResult:
        """Search again: where another run made one meanwhile, whoever sees both leaves only the oldest."""
        mine = await self._mine(comment.target)
        if all(one.id >= made.id for one in mine):
            return CommentResult(CommentStatus.MADE, made.html_url)
        return await self._update(mine, comment)

    async def _update(self, mine: list[Comment], comment: PullComment) -> CommentResult:
        newest = max(mine, key=_run_of)
        if _run_of(newest) > _unbroken(comment.run_id):
            await self._delete(one for one in mine if one is not newest)
            return CommentResult(CommentStatus.NEWER, newest.html_url)
        first, *others = sorted(mine, key=lambda one: one.id)
        path = f"{self._one}/{first.id}"
        body = {"body": body_of(comment)}
        try:
            changed = await self._api.write("PATCH", path, body, _COMMENT, self._purpose, twice=True)
        except Gone:
            raise _CommentDeleted(
                f"could not {self._purpose.doing}: the comment is deleted again and again"
            ) from None
        await self._delete(others)
        return CommentResult(CommentStatus.UPDATED, changed.html_url)

    async def _delete(self, comments: Iterable[Comment]) -> None:
        for one in comments:
            await self._api.delete(f"{self._one}/{one.id}", self._purpose)

    async def _make(self, comment: PullComment) -> Comment:
        body = {"body": body_of(comment)}
        return await self._api.write("POST", self._on_pull, body, _COMMENT, self._purpose, twice=False)

    async def _mine(self, target: str) -> list[Comment]:
        found = await self._api.read_all(self._on_pull, _COMMENTS, self._purpose)
        mark = mark_of(target)
        return [one for one in found if (one.body or "").startswith(mark) and self._wrote(one.user)]

    def _wrote(self, user: User | None) -> bool:
        if user is None:
            return False
        return user.login == self._myself if self._myself else user.type == "Bot"

    async def _who_am_i(self) -> str:
        """Our login; nothing for a token of an app, to which GitHub does not give one."""
        try:
            return (await self._api.read("/user", _USER, self._purpose)).login
        except (Forbidden, Gone):
            return ""


def _run_of(comment: Comment) -> str:
    found = _RUN.search(comment.body or "")
    return found[1] if found else ""
