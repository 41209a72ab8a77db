"""Set the commit status of a run, and write the run's comment on a pull request.

A gate has one status and one comment on each pull request. A hidden mark at the start of the comment identifies the
comment, so that later runs can update it. The link of a status contains the id of the run that set the status.
Another run compares this id with its own id, and does not replace the result of a newer run.

A comment belongs to Lookout if it starts with the mark and its author is the user of the token. A token in a
workflow cannot read its own user. In this case, the author must be a bot. If two runs create a comment at the same
time, one of the two comments is deleted.
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
    NotFound,
    Purpose,
    User,
    build_comment_purpose,
    build_status_purpose,
)
from monitors.records.base import Identifier, Record
from monitors.records.targets import GitChange, HttpUrl, PullRequest, RepositoryName

MAX_DESCRIPTION_CHARACTERS: Final = 140
"""Maximum length of the description of a status, in characters: https://docs.github.com/en/rest/commits/statuses"""
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
_ANSWER: Final = TypeAdapter(GitHubRecord)
_RUN_FRAGMENT: Final = "lookout-run="

GateName = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""The name of a gate. Gates on the same commit have different names, and each has its own status and comment."""


def build_gate_name(target: str, suite: Path, *, config_folder: Path, workspace: Path | None) -> str:
    """Return the name of a gate: ``FOLDER/TARGET/SUITE``.

    ``FOLDER`` is the folder of the configuration in the repository. ``SUITE`` is the path of the suite in this
    folder, without ``.jsonl``. If the suite is outside this folder, ``SUITE`` is its path in the repository. If the
    suite is outside the repository, ``SUITE`` is its file name. A name that is too long is cut, and ends with a
    hash.
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
"""Maximum length of the name of a status on GitHub, in characters."""


class State(StrEnum):
    """The states of a commit status on GitHub. Only ``SUCCESS`` is green."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    ERROR = "error"
    """Too few answers were graded, or Lookout had an error."""


class CommitStatus(Record):
    """The status of a commit for the gate ``name``. ``link`` is the address of the details.

    A status with a ``run_id`` is the result of that run. A status without ``run_id`` means that the gate is still
    working or was stopped.
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
        """Return the name of the status on GitHub."""
        return f"lookout/{self.name}"

    @property
    def target_url(self) -> str:
        """Return the address of the details. If the status is a result, the address ends with the id of the run."""
        return f"{self.link}#{_RUN_FRAGMENT}{self.run_id}" if self.run_id else self.link


def is_git_commit(commit: str | None) -> bool:
    """Return whether a string is a complete Git commit id, which a commit status needs."""
    return commit is not None and _COMMIT.fullmatch(commit) is not None


class _ListedStatus(GitHubRecord):
    context: str = ""
    state: str = ""
    description: str | None = None
    target_url: str | None = None

    @property
    def run_id(self) -> str:
        """Return the id of the run whose result this status is. The id is empty if the gate has no result yet."""
        return (self.target_url or "").rpartition(f"#{_RUN_FRAGMENT}")[2] if self.is_verdict else ""

    def has_same_result(self, status: _ListedStatus) -> bool:
        """Return whether this status and ``status`` report the same result of the same run."""
        return (self.state, self.target_url) == (status.state, status.target_url)

    @property
    def is_verdict(self) -> bool:
        """Return whether this status is the result of a run."""
        return f"#{_RUN_FRAGMENT}" in (self.target_url or "")


async def set_pending_status(api: GitHubApi, status: CommitStatus) -> None:
    """Set the status of a commit to pending.

    An earlier status with the same name is replaced. Raises `NotifyError`.
    """
    await _write_status(api, status, _build_listed_status(status))


async def set_final_status_unless_newer(api: GitHubApi, status: CommitStatus) -> None:
    """Set the final status of a run, unless a newer run has already set a result.

    A status without a result, for example the status of a stopped run, is set only if no run has a result for this
    commit. The statuses are read again after each write, because another run may write at the same time. Raises
    `NotifyError`.
    """
    purpose = build_status_purpose(status.repository, status.commit)
    path = f"/repos/{status.repository}/commits/{status.commit}/statuses"
    own = _build_listed_status(status)
    for _ in range(MAX_ATTEMPTS):
        listed = await api.read_all(path, _STATUSES, purpose)
        newest_first = [status_before for status_before in listed if status_before.context == status.context]
        verdicts = [candidate for candidate in (own, *newest_first) if candidate.is_verdict]
        standing = max(verdicts, key=lambda verdict: verdict.run_id) if verdicts else own
        if newest_first and newest_first[0].has_same_result(standing):
            return
        await _write_status(api, status, standing)


def _build_listed_status(status: CommitStatus) -> _ListedStatus:
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


async def read_head_and_branches(api: GitHubApi, pull: PullRequest) -> GitChange:
    """Read the last commit and both branches of a pull request. Raises `NotifyError`."""
    purpose = Purpose(f"read the head of {pull.repository}#{pull.number}", "pull-requests: read")
    read = await api.read(f"/repos/{pull.repository}/pulls/{pull.number}", _PULL, purpose)
    return GitChange(head=read.head.sha, branch=read.head.ref, target_branch=read.base.ref)


MAX_ATTEMPTS: Final = 3
"""Maximum number of attempts to set a final status, or to create or update a comment.

An attempt can fail because another run changes the status or comment, or because a response is lost.
"""
_RUN: Final = re.compile(r"<!-- lookout run (\S{1,200}) -->")
_COMMENT: Final = TypeAdapter(Comment)
_COMMENTS: Final = TypeAdapter(list[Comment])
_USER: Final = TypeAdapter(User)
_STATUSES: Final = TypeAdapter(list[_ListedStatus])
_PULL: Final = TypeAdapter(Pull)


class PullComment(Record):
    """The comment of a gate with the result of a run.

    A run id begins with the start time of the run. A later run therefore has a larger id.
    """

    name: GateName
    run_id: Identifier
    text: str


class CommentStatus(StrEnum):
    """What was done with a comment: for example, it was created or updated."""

    MADE = "made"
    UPDATED = "updated"
    NEWER = "newer"
    """The comment was not changed, because it contains the result of a newer run."""


class CommentResult(NamedTuple):
    """What was done with a comment, and the web address of the comment."""

    done: CommentStatus
    address: str


def format_hidden_gate_mark(name: str) -> str:
    """Return the hidden mark that identifies the comment of the gate ``name``.

    The comment begins with this mark.
    """
    return f"<!-- lookout gate {_escape_dashes(name)} -->"


def format_body(comment: PullComment) -> str:
    """Return the text of the comment, including the hidden marks for its gate and its run."""
    run_mark = f"<!-- lookout run {_escape_dashes(comment.run_id)} -->"
    return f"{format_hidden_gate_mark(comment.name)}\n{run_mark}\n{comment.text}"


def _escape_dashes(name: str) -> str:
    """Return the name with each ``--`` escaped, because some programs end an HTML comment at ``--``."""
    return name.replace("%", "%25").replace("--", "-%2D")


async def post_or_update_comment(api: GitHubApi, pull: PullRequest, comment: PullComment) -> CommentResult:
    """Create the comment, or update it if it exists. Raises `NotifyError`."""
    purpose = build_comment_purpose(f"{pull.repository}#{pull.number}")
    comments = _PullRequestComments(api, pull, purpose)
    for remaining in reversed(range(MAX_ATTEMPTS)):
        try:
            return await comments.create_or_update(comment)
        except (_CommentDeleted, NotifyUnsure):
            if not remaining:
                raise
    raise AssertionError("the last attempt returns or raises")


class _CommentDeleted(NotifyTransient):
    """Raised if the comment was deleted between the search and the change."""


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
        mine = await self._list_own_comments(comment.name)
        if mine:
            return await self._update_oldest_and_delete_others(mine, comment)
        made = await self._create(comment)
        return await self._remove_duplicate_comments(made, comment)

    async def _remove_duplicate_comments(self, made: Comment, comment: PullComment) -> CommentResult:
        """Delete duplicate comments of the gate, if another run created a comment at the same time.

        If ``made``, the comment of this run, is the oldest comment, nothing is changed: the other run then deletes
        its own comment. Otherwise, the oldest comment is updated, and all other comments are deleted. If one of
        them has the result of a newer run, only that comment stays.
        """
        mine = await self._list_own_comments(comment.name)
        if all(own_comment.id >= made.id for own_comment in mine):
            return CommentResult(CommentStatus.MADE, made.html_url)
        return await self._update_oldest_and_delete_others(mine, comment)

    async def _update_oldest_and_delete_others(self, mine: list[Comment], comment: PullComment) -> CommentResult:
        newest = max(mine, key=_parse_run_id)
        if _parse_run_id(newest) > _escape_dashes(comment.run_id):
            await self._delete(own_comment for own_comment in mine if own_comment is not newest)
            return CommentResult(CommentStatus.NEWER, newest.html_url)
        first, *duplicates = sorted(mine, key=lambda own_comment: own_comment.id)
        path = f"{self._comments_path}/{first.id}"
        body = {"body": format_body(comment)}
        try:
            changed = await self._api.write("PATCH", path, body, _COMMENT, self._purpose, is_repeatable=True)
        except NotFound:
            raise _CommentDeleted(
                f"could not {self._purpose.doing}: another program deletes the comment at each attempt"
            ) from None
        await self._delete(duplicates)
        return CommentResult(CommentStatus.UPDATED, changed.html_url)

    async def _delete(self, comments: Iterable[Comment]) -> None:
        for comment in comments:
            await self._api.delete(f"{self._comments_path}/{comment.id}", self._purpose)

    async def _create(self, comment: PullComment) -> Comment:
        body = {"body": format_body(comment)}
        return await self._api.write("POST", self._pull_path, body, _COMMENT, self._purpose, is_repeatable=False)

    async def _list_own_comments(self, name: str) -> list[Comment]:
        comments = await self._api.read_all(self._pull_path, _COMMENTS, self._purpose)
        mark = format_hidden_gate_mark(name)
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
        """Return the user name of the token, or an empty string for the token of an app, which has no user."""
        try:
            return (await self._api.read("/user", _USER, self._purpose)).login
        except (Forbidden, NotFound):
            return ""


def _parse_run_id(comment: Comment) -> str:
    match = _RUN.search(comment.body or "")
    return match[1] if match else ""
