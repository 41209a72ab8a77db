"""One comment for each target on a pull request, found by a hidden mark and updated in place.

What counts as ours: the mark stands at the very beginning, and the author is who we are, or, for a token that may
not ask who it is (a workflow's), a bot. A person who copies the mark is no bot, and a bot that quotes somebody does
not begin with the quotation. Where two runs made a comment at once, the oldest stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

from pydantic import TypeAdapter

from monitors.errors import NotifyTransient, NotifyUnsure
from monitors.github.answers import Comment, User
from monitors.github.api import GitHubApi
from monitors.github.refusals import Forbidden, Gone, Purpose, commenting
from monitors.records.base import Identifier, Record
from monitors.records.deploys import PullRequest

ATTEMPTS: Final = 3
"""A comment may vanish between being found and being changed, and a reply may be lost; both together, twice."""
_RUN: Final = re.compile(r"<!-- lookout run (\S{1,200}) -->")
_COMMENT: Final = TypeAdapter(Comment)
_COMMENTS: Final = TypeAdapter(list[Comment])
_USER: Final = TypeAdapter(User)


class PullComment(Record):
    """What a run has to say of a target. Ids of runs begin with the time they started, so they sort."""

    target: Identifier
    run_id: Identifier
    text: str


class Done(StrEnum):
    """What became of a comment."""

    MADE = "made"
    UPDATED = "updated"
    NEWER = "newer"
    """A run that started later is there already; its results stay."""


class Posted(NamedTuple):
    """What became of a comment, and where it stands."""

    done: Done
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


async def post_comment(api: GitHubApi, pull: PullRequest, comment: PullComment) -> Posted:
    """Make the comment, or update the one there is. Raises `NotifyError`."""
    purpose = commenting(f"{pull.repository}#{pull.number}")
    desk = _Desk(api, pull, purpose)
    for left in reversed(range(ATTEMPTS)):
        try:
            return await desk.put(comment)
        except (_Vanished, NotifyUnsure):
            if not left:
                raise
    raise AssertionError("the last attempt returns or raises")


class _Vanished(NotifyTransient):
    """Somebody deleted the comment between our finding and our changing it."""


class _Desk:
    """The comments of one pull request."""

    def __init__(self, api: GitHubApi, pull: PullRequest, purpose: Purpose) -> None:
        self._api = api
        self._purpose = purpose
        self._on_pull = f"/repos/{pull.repository}/issues/{pull.number}/comments"
        self._one = f"/repos/{pull.repository}/issues/comments"
        self._myself: str | None = None

    async def put(self, comment: PullComment) -> Posted:
        self._myself = self._myself or await self._who_am_i()
        mine = await self._mine(comment.target)
        if mine:
            return await self._update(mine, comment)
        made = await self._make(comment)
        return await self._settle(made, comment)

    async def _settle(self, made: Comment, comment: PullComment) -> Posted:
        """Look again: where another run made one meanwhile, whoever sees both keeps the oldest only."""
        mine = await self._mine(comment.target)
        if all(one.id >= made.id for one in mine):
            return Posted(Done.MADE, made.html_url)
        return await self._update(mine, comment)

    async def _update(self, mine: list[Comment], comment: PullComment) -> Posted:
        newest = max(mine, key=_run_of)
        if _run_of(newest) > _unbroken(comment.run_id):
            await self._delete(one for one in mine if one is not newest)
            return Posted(Done.NEWER, newest.html_url)
        first, *others = sorted(mine, key=lambda one: one.id)
        path = f"{self._one}/{first.id}"
        body = {"body": body_of(comment)}
        try:
            changed = await self._api.write("PATCH", path, body, _COMMENT, self._purpose, twice=True)
        except Gone:
            raise _Vanished(f"could not {self._purpose.doing}: the comment is deleted again and again") from None
        await self._delete(others)
        return Posted(Done.UPDATED, changed.html_url)

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
        """Our login; nothing for a token of an app, which GitHub does not tell who it is."""
        try:
            return (await self._api.read("/user", _USER, self._purpose)).login
        except (Forbidden, Gone):
            return ""


def _run_of(comment: Comment) -> str:
    found = _RUN.search(comment.body or "")
    return found[1] if found else ""
