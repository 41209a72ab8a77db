"""Posts a run's results to GitHub: the status of its commit and one comment on its pull request.

Errors are returned and not raised: a failed post does not change the results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

from monitors.errors import NotifyError, NotifyTransient
from monitors.github.api import PUBLIC_API, GitHubApi, GitHubRetryPolicy, open_github_api
from monitors.github.pull_requests import (
    CommentResult,
    CommentStatus,
    CommitStatus,
    PullComment,
    State,
    is_git_commit,
    post_comment,
    read_change,
    set_pending_status,
    settle_status,
)
from monitors.records.runs import CaseResult, RunReport, Verdict
from monitors.records.targets import GitChange, PullRequest
from monitors.reports.comment import build_pull_request_comment, format_commit_status
from monitors.reports.format import shorten
from monitors.reports.marked_text import Redact

POST_TIMEOUT_S: Final = 180.0
"""Timeout of all posts of one run, including waits for rate limits."""
MAX_DESCRIPTION_LENGTH: Final = 140
STATES: Final = {Verdict.PASS: State.SUCCESS, Verdict.FAIL: State.FAILURE, Verdict.INCONCLUSIVE: State.ERROR}
"""INCONCLUSIVE is an error and not a failure, because nothing could be decided. Neither is green."""


def build_status_retry_policy(now: Callable[[], datetime]) -> GitHubRetryPolicy:
    """Build the short retry policy for a pending status, so that it does not delay the questions."""
    return replace(build_result_retry_policy(now), tries=2, max_wait_s=5.0, deadline_s=5.0)


def build_result_retry_policy(now: Callable[[], datetime]) -> GitHubRetryPolicy:
    """Build the retry policy for results, with the default waits."""
    return GitHubRetryPolicy(now=lambda: now().timestamp())


@dataclass(frozen=True)
class GitHubDestination:
    """Where one run's results are posted. ``name`` tells the gate from others on the same commit.

    ``commit`` gets a status if it is a full hash, ``pull_request`` a comment.

    ``log`` is a URL that people can open. No text contains the token.
    """

    api_url: str
    token: str = field(repr=False)
    repository: str
    name: str
    patience: GitHubRetryPolicy = field(repr=False)
    commit: str | None = None
    pull_request: PullRequest | None = None
    log: str | None = None

    async def read_change(self) -> tuple[GitChange, tuple[NotifyError, ...]]:
        """Read head and branches of the pull request; what cannot be read is missing, with the errors."""
        pull = self.pull_request
        changes = [GitChange()]

        async def read(api: GitHubApi) -> None:
            if pull is not None:
                changes.append(await read_change(api, pull))

        errors = await self._post_safely(read)
        return changes[-1], errors

    async def post_state(self, state: State, text: str, *, run_id: str | None = None) -> tuple[NotifyError, ...]:
        """Set the commit's status, with ``run_id`` as that run's verdict; return the errors.

        All but a pending state leave a newer run's verdict alone, and a verdict goes before what has none.
        """
        commit = self.commit
        if commit is None or not is_git_commit(commit):
            return ()
        status = CommitStatus(
            repository=self.repository,
            commit=commit,
            name=self.name,
            state=state,
            description=shorten(text, MAX_DESCRIPTION_LENGTH),
            link=self.log or self._build_page_url(commit),
            run_id=run_id,
        )
        post = set_pending_status if state is State.PENDING else settle_status
        return await self._post_safely(lambda api: post(api, status))

    def _build_page_url(self, commit: str) -> str:
        """Return the page on GitHub that a status leads to if the job has no log."""
        parts = urlsplit("https://github.com" if self.api_url.rstrip("/") == PUBLIC_API else self.api_url)
        pull = self.pull_request
        page = f"pull/{pull.number}" if pull else f"commit/{commit}"
        return f"{parts.scheme}://{parts.netloc}/{self.repository}/{page}"

    async def post_results(
        self, report: RunReport, cases: Sequence[CaseResult], redact: Redact
    ) -> tuple[tuple[NotifyError, ...], CommentResult | None]:
        """Post the comment and set the verdict as the status; return the errors and the comment's result.

        A comment or a status of a newer run stays as it is.
        """
        posted: list[CommentResult] = []

        async def comment(api: GitHubApi) -> None:
            if self.pull_request is not None:
                text = build_pull_request_comment(report, cases, redact=redact, name=self.name, log=self.log)
                pull_comment = PullComment(name=self.name, run_id=report.run_id, text=text)
                posted.append(await post_comment(api, self.pull_request, pull_comment))

        errors = await self._post_safely(comment)
        errors += await self.post_state(
            STATES[report.verdict],
            format_commit_status(report, redact=redact),
            run_id=report.run_id,
        )
        return errors, posted[0] if posted else None

    async def _post_safely(self, post: Callable[[GitHubApi], Awaitable[None]]) -> tuple[NotifyError, ...]:
        try:
            async with (
                asyncio.timeout(POST_TIMEOUT_S),
                open_github_api(self.api_url, self.token, self.patience) as api,
            ):
                await post(api)
        except TimeoutError:
            return (NotifyTransient(f"GitHub did not answer within {POST_TIMEOUT_S:g} s"),)
        except NotifyError as error:
            return (error,)
        return ()


def format_comment_result(posted: CommentResult, pull: PullRequest) -> str:
    """Format the result of posting a comment for people."""
    named = f"{pull.repository}#{pull.number}"
    match posted.done:
        case CommentStatus.MADE:
            return f"commented on {named}: {posted.address}"
        case CommentStatus.UPDATED:
            return f"updated the comment on {named}: {posted.address}"
        case CommentStatus.NEWER:
            return f"did not change {named}, because it already has the results of a newer run: {posted.address}"
