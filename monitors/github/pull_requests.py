"""Set a run's commit status and write its comment on a pull request.

A pull request may require the commit status. Each name of a gate has one status and one comment: the comment is
found by a hidden mark and updated in place. The address of a verdict's status ends with the id of its run, so
that an older run that ends later does not replace a newer run's verdict.

A comment is Lookout's if it begins with the mark and its author is the token's login or, for a token that cannot
read its login (a workflow's), a bot. A person who copies the mark is not a bot, and a bot that quotes a comment
does not begin with the quotation. If two runs create a comment at the same time, the oldest stays.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from pydantic import Field, TypeAdapter

from monitors.errors import NotifyTransient, NotifyUnsure
from monitors.github.actions import Pull
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
from monitors.records.targets import GitChange, HttpUrl, PullRequest, RepositoryName

MAX_DESCRIPTION_CHARACTERS: Final = 140
"""GitHub's limit: https://docs.github.com/en/rest/commits/statuses"""
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
_ANSWER: Final = TypeAdapter(GitHubRecord)
_RUN_FRAGMENT: Final = "lookout-run="

GateName = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""Distinguishes a gate's statuses and comments from those of another gate on the same commit."""


def build_gate_name(target: str, suite: Path, *, config_folder: Path, workspace: Path | None) -> str:
    """Build a gate's name: ``FOLDER/TARGET/SUITE``, of the configuration's folder in the repository, if any.

    The suite is named by its path in that folder without ``.jsonl``; outside of it by its path in the repository,
    or its file's name.
    """
    folder, root = config_folder.absolute(), workspace.absolute() if workspace else None
    place = folder.relative_to(root).as_posix() if root is not None and folder.is_relative_to(root) else "."
    file = suite.absolute().with_name(suite.name.removesuffix(".jsonl"))
    bases = [base for base in (folder, root) if base is not None and file.is_relative_to(base)]
    named = file.relative_to(bases[0]).as_posix() if bases else file.name
    whole = re.sub(r"[\x00-\x1f\x7f]", " ", f"{'' if place == '.' else f'{place}/'}{target}/{named}")
    if len(whole) <= MAX_NAME_CHARACTERS:
        return whole
    return f"{whole[: MAX_NAME_CHARACTERS - 9]}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


MAX_NAME_CHARACTERS: Final = 200
"""GitHub takes 255 characters for a status's context."""


class State(StrEnum):
    """GitHub's states. Only ``SUCCESS`` is green."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"
    """No run graded enough, or the monitor broke."""


class CommitStatus(Record):
    """The status of a commit of ``repository`` for the gate ``name``; ``link`` leads to details.

    A status with a ``run_id`` is that run's verdict; one without is an interim state.
    """

    repository: RepositoryName
    commit: str
    name: GateName
    state: State
    description: Annotated[str, Field(min_length=1, max_length=MAX_DESCRIPTION_CHARACTERS)]
    link: HttpUrl
    run_id: Identifier | None = None

    @property
    def context(self) -> str:
        """The status's name on GitHub."""
        return f"lookout/{self.name}"

    @property
    def target_url(self) -> str:
        """The link, with the run's id for a verdict."""
        return f"{self.link}#{_RUN_FRAGMENT}{self.run_id}" if self.run_id else self.link


def is_git_commit(commit: str | None) -> bool:
    """Whether the commit can have a status: a full SHA-1 or SHA-256."""
    return commit is not None and _COMMIT.fullmatch(commit) is not None


class _ListedStatus(GitHubRecord):
    context: str = ""
    state: str = ""
    description: str | None = None
    target_url: str | None = None

    @property
    def run_id(self) -> str:
        """The run whose verdict this is; empty for an interim state."""
        return (self.target_url or "").rpartition(f"#{_RUN_FRAGMENT}")[2] if self.is_verdict else ""

    def is_same(self, status: _ListedStatus) -> bool:
        """Whether both have the same result for the same run."""
        return (self.state, self.target_url) == (status.state, status.target_url)

    @property
    def is_verdict(self) -> bool:
        """Whether this is the verdict of a run."""
        return f"#{_RUN_FRAGMENT}" in (self.target_url or "")


async def set_pending_status(api: GitHubApi, status: CommitStatus) -> None:
    """Set a commit's status; it replaces an earlier one of the same name. Raises `NotifyError`."""
    await _write_status(api, status, _build_listed(status))


async def settle_status(api: GitHubApi, status: CommitStatus) -> None:
    """Set a status that ends a run, unless a newer run has given this commit its verdict.

    The verdict of the newest run stays; if an interim state covers it, it is set again. An interim state, for
    example of a stopped run, stays only if no run has given the commit a verdict. The statuses are read again
    after each write, because another gate may write at the same time. Raises `NotifyError`.
    """
    purpose = build_status_purpose(status.repository, status.commit)
    path = f"/repos/{status.repository}/commits/{status.commit}/statuses"
    own = _build_listed(status)
    for _ in range(ATTEMPTS):
        listed = await api.read_all(path, _STATUSES, purpose)
        newest_first = [status_before for status_before in listed if status_before.context == status.context]
        verdicts = [candidate for candidate in (own, *newest_first) if candidate.is_verdict]
        standing = max(verdicts, key=lambda verdict: verdict.run_id) if verdicts else own
        if newest_first and newest_first[0].is_same(standing):
            return
        await _write_status(api, status, standing)


def _build_listed(status: CommitStatus) -> _ListedStatus:
    return _ListedStatus(
        context=status.context,
        state=status.state.value,
        description=status.description,
        target_url=status.target_url,
    )


async def _write_status(api: GitHubApi, status: CommitStatus, written: _ListedStatus) -> None:
    purpose = build_status_purpose(status.repository, status.commit)
    path = f"/repos/{status.repository}/statuses/{status.commit}"
    await api.write("POST", path, written.model_dump(exclude_none=True), _ANSWER, purpose, is_repeatable=True)


async def read_change(api: GitHubApi, pull: PullRequest) -> GitChange:
    """Read the head and both branches of a pull request. Raises `NotifyError`."""
    purpose = Purpose(f"read the head of {pull.repository}#{pull.number}", "pull-requests: read")
    read = await api.read(f"/repos/{pull.repository}/pulls/{pull.number}", _PULL, purpose)
    return GitChange(head=read.head.sha, branch=read.head.ref, target_branch=read.base.ref)


ATTEMPTS: Final = 3
"""Attempts.

Another gate may set a status meanwhile, a comment may be deleted before it is changed, and a reply may be
lost: enough attempts for one of each.
"""
_RUN: Final = re.compile(r"<!-- lookout run (\S{1,200}) -->")
_COMMENT: Final = TypeAdapter(Comment)
_COMMENTS: Final = TypeAdapter(list[Comment])
_USER: Final = TypeAdapter(User)
_STATUSES: Final = TypeAdapter(list[_ListedStatus])
_PULL: Final = TypeAdapter(Pull)


class PullComment(Record):
    """A run's result for a gate. Ids of runs begin with their start time, so they sort."""

    name: GateName
    run_id: Identifier
    text: str


class CommentStatus(StrEnum):
    """The change that was made to a comment."""

    MADE = "made"
    UPDATED = "updated"
    NEWER = "newer"
    """The comment has the results of a run that started later and stays unchanged."""


class CommentResult(NamedTuple):
    """The change that was made to a comment, and the comment's address."""

    done: CommentStatus
    address: str


def format_gate_mark(name: str) -> str:
    """Return the hidden mark at the beginning of the comment of the gate ``name``."""
    return f"<!-- lookout gate {_escape_dashes(name)} -->"


def format_body(comment: PullComment) -> str:
    """Format the comment for GitHub: its two marks, then its text."""
    run_mark = f"<!-- lookout run {_escape_dashes(comment.run_id)} -->"
    return f"{format_gate_mark(comment.name)}\n{run_mark}\n{comment.text}"


def _escape_dashes(name: str) -> str:
    """Escape ``--``, because some renderers end an HTML comment at it."""
    return name.replace("%", "%25").replace("--", "-%2D")


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
    """The comment was deleted between search and change."""


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
        mine = await self._list_own(comment.name)
        if mine:
            return await self._update(mine, comment)
        made = await self._create(comment)
        return await self._remove_duplicates(made, comment)

    async def _remove_duplicates(self, made: Comment, comment: PullComment) -> CommentResult:
        """Search again, and leave only the oldest comment if another run created one at the same time."""
        mine = await self._list_own(comment.name)
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
                f"could not {self._purpose.doing}: another program deletes the comment each time"
            ) from None
        await self._delete(duplicates)
        return CommentResult(CommentStatus.UPDATED, changed.html_url)

    async def _delete(self, comments: Iterable[Comment]) -> None:
        for comment in comments:
            await self._api.delete(f"{self._comments_path}/{comment.id}", self._purpose)

    async def _create(self, comment: PullComment) -> Comment:
        body = {"body": format_body(comment)}
        return await self._api.write("POST", self._pull_path, body, _COMMENT, self._purpose, is_repeatable=False)

    async def _list_own(self, name: str) -> list[Comment]:
        comments = await self._api.read_all(self._pull_path, _COMMENTS, self._purpose)
        mark = format_gate_mark(name)
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
        """Find the token's login; empty for a token of an app, which has none."""
        try:
            return (await self._api.read("/user", _USER, self._purpose)).login
        except (Forbidden, Gone):
            return ""


def _parse_run_id(comment: Comment) -> str:
    match = _RUN.search(comment.body or "")
    return match[1] if match else ""
