"""Set a run's commit status and write its comment on a pull request.

A pull request may require the commit status. Each target has one comment, found by a hidden mark and updated in
place.

A comment is ours if it begins with the mark and its author is our login or, for a token that cannot read its login
(a workflow's), a bot. A person who copies the mark is not a bot, and a bot that quotes a comment does not begin
with the quotation. If two runs create a comment at the same time, the oldest stays.
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
    build_comment_purpose,
    build_status_purpose,
)
from monitors.records.base import Identifier, Record
from monitors.records.targets import HttpUrl, PullRequest, RepositoryName

MAX_DESCRIPTION_CHARACTERS: Final = 140
"""GitHub's limit: https://docs.github.com/en/rest/commits/statuses"""
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
    """The status of a commit of ``repository`` for ``target``; ``link`` leads to details."""

    repository: RepositoryName
    commit: str
    target: Identifier
    state: State
    description: Annotated[str, Field(min_length=1, max_length=MAX_DESCRIPTION_CHARACTERS)]
    link: HttpUrl | None = None

    @property
    def context(self) -> str:
        """The status's name on GitHub: one for each target."""
        return f"lookout/{self.target}"


def is_git_commit(commit: str | None) -> bool:
    """Whether the commit can have a status: a full SHA-1 or SHA-256."""
    return commit is not None and _COMMIT.fullmatch(commit) is not None


async def set_status(api: GitHubApi, status: CommitStatus) -> None:
    """Set a commit's status; it replaces an earlier one of the same target. Raises `NotifyError`."""
    purpose = build_status_purpose(status.repository, status.commit)
    path = f"/repos/{status.repository}/statuses/{status.commit}"
    body = {"state": status.state.value, "context": status.context, "description": status.description}
    link = {"target_url": status.link} if status.link else {}
    await api.write("POST", path, body | link, _ANSWER, purpose, is_repeatable=True)


ATTEMPTS: Final = 3
"""A comment may be deleted before it is changed, and a reply may be lost: enough attempts for one of each."""
_RUN: Final = re.compile(r"<!-- lookout run (\S{1,200}) -->")
_COMMENT: Final = TypeAdapter(Comment)
_COMMENTS: Final = TypeAdapter(list[Comment])
_USER: Final = TypeAdapter(User)


class PullComment(Record):
    """A run's result for a target. Ids of runs begin with their start time, so they sort."""

    target: Identifier
    run_id: Identifier
    text: str


class CommentStatus(StrEnum):
    """What was done with a comment."""

    MADE = "made"
    UPDATED = "updated"
    NEWER = "newer"
    """The comment has the results of a run that started later; they stay."""


class CommentResult(NamedTuple):
    """What was done with a comment, and its address."""

    done: CommentStatus
    address: str


def format_target_mark(target: str) -> str:
    """Return the hidden mark at the beginning of the comment about ``target``."""
    return f"<!-- lookout target {_escape_dashes(target)} -->"


def format_body(comment: PullComment) -> str:
    """Format the comment for GitHub: its two marks, then its text."""
    run_mark = f"<!-- lookout run {_escape_dashes(comment.run_id)} -->"
    return f"{format_target_mark(comment.target)}\n{run_mark}\n{comment.text}"


def _escape_dashes(name: str) -> str:
    """Escape ``--``, at which some renderers end an HTML comment; a name cannot contain a percent sign."""
    return name.replace("--", "-%2D")


async def post_comment(api: GitHubApi, pull: PullRequest, comment: PullComment) -> CommentResult:
    """Create the comment, or update the existing one. Raises `NotifyError`."""
    purpose = build_comment_purpose(f"{pull.repository}#{pull.number}")
    edit = _PullRequestComments(api, pull, purpose)
    for remaining in reversed(range(ATTEMPTS)):
        try:
            return await edit.create_or_update(comment)
        except (_CommentDeleted, NotifyUnsure):
            if not remaining:
                raise
    raise AssertionError("the last attempt returns or raises")


class _CommentDeleted(NotifyTransient):
    """The comment was deleted after it was found and before it was changed."""


class _PullRequestComments:
    """The comments of one pull request."""

    def __init__(self, api: GitHubApi, pull: PullRequest, purpose: Purpose) -> None:
        self._api = api
        self._purpose = purpose
        self._pull_path = f"/repos/{pull.repository}/issues/{pull.number}/comments"
        self._comments_path = f"/repos/{pull.repository}/issues/comments"
        self._myself: str | None = None

    async def create_or_update(self, comment: PullComment) -> CommentResult:
        self._myself = self._myself or await self._find_login()
        mine = await self._list_own(comment.target)
        if mine:
            return await self._update(mine, comment)
        made = await self._create(comment)
        return await self._remove_duplicates(made, comment)

    async def _remove_duplicates(self, made: Comment, comment: PullComment) -> CommentResult:
        """Search again, and leave only the oldest comment if another run created one at the same time."""
        mine = await self._list_own(comment.target)
        if all(own_comment.id >= made.id for own_comment in mine):
            return CommentResult(CommentStatus.MADE, made.html_url)
        return await self._update(mine, comment)

    async def _update(self, mine: list[Comment], comment: PullComment) -> CommentResult:
        newest = max(mine, key=_parse_run_id)
        if _parse_run_id(newest) > _escape_dashes(comment.run_id):
            await self._delete(own_comment for own_comment in mine if own_comment is not newest)
            return CommentResult(CommentStatus.NEWER, newest.html_url)
        first, *duplicates = sorted(mine, key=lambda own_comment: own_comment.id)
        path = f"{self._comments_path}/{first.id}"
        body = {"body": format_body(comment)}
        try:
            changed = await self._api.write("PATCH", path, body, _COMMENT, self._purpose, is_repeatable=True)
        except Gone:
            raise _CommentDeleted(
                f"could not {self._purpose.doing}: the comment is deleted again and again"
            ) from None
        await self._delete(duplicates)
        return CommentResult(CommentStatus.UPDATED, changed.html_url)

    async def _delete(self, comments: Iterable[Comment]) -> None:
        for comment in comments:
            await self._api.delete(f"{self._comments_path}/{comment.id}", self._purpose)

    async def _create(self, comment: PullComment) -> Comment:
        body = {"body": format_body(comment)}
        return await self._api.write("POST", self._pull_path, body, _COMMENT, self._purpose, is_repeatable=False)

    async def _list_own(self, target: str) -> list[Comment]:
        comments = await self._api.read_all(self._pull_path, _COMMENTS, self._purpose)
        mark = format_target_mark(target)
        return [
            comment
            for comment in comments
            if (comment.body or "").startswith(mark) and self._is_own_user(comment.user)
        ]

    def _is_own_user(self, user: User | None) -> bool:
        if user is None:
            return False
        return user.login == self._myself if self._myself else user.type == "Bot"

    async def _find_login(self) -> str:
        """Return our login; empty for a token of an app, which has none."""
        try:
            return (await self._api.read("/user", _USER, self._purpose)).login
        except (Forbidden, Gone):
            return ""


def _parse_run_id(comment: Comment) -> str:
    match = _RUN.search(comment.body or "")
    return match[1] if match else ""
