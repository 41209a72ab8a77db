"""Posts a run's results to GitHub: the status of its commit and one comment on its pull request.

Errors are returned and not raised: a failed post does not change the results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from monitors.errors import NotifyError, NotifyTransient
from monitors.github.api import GitHubApi, GitHubRetryPolicy, open_github_api
from monitors.github.pull_requests import (
    CommentResult,
    CommentStatus,
    CommitStatus,
    PullComment,
    State,
    is_git_commit,
    post_comment,
    set_status,
)
from monitors.records.runs import CaseResult, RunReport, Verdict
from monitors.records.targets import PullRequest
from monitors.reports.comment import build_pull_request_comment, format_status
from monitors.reports.format import shorten
from monitors.reports.marked_text import Redact

POST_TIMEOUT_S: Final = 180.0
"""For all posts of one run, including waits for rate limits."""
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
    """Where one run's results are posted.

    ``commit`` gets a status if it is a full hash, ``pull_request`` a comment.

    ``log`` is a URL that people can open. No text contains the token.
    """

    api_url: str
    token: str = field(repr=False)
    repository: str
    target: str
    patience: GitHubRetryPolicy = field(repr=False)
    commit: str | None = None
    pull_request: PullRequest | None = None
    log: str | None = None

    async def post_state(self, state: State, text: str) -> tuple[NotifyError, ...]:
        """Set the commit's status; return the errors."""
        commit = self.commit
        if commit is None or not is_git_commit(commit):
            return ()
        status = CommitStatus(
            repository=self.repository,
            commit=commit,
            target=self.target,
            state=state,
            description=shorten(text, MAX_DESCRIPTION_LENGTH),
            link=self.log,
        )
        return await self._post_safely(lambda api: set_status(api, status))

    async def post_results(
        self, report: RunReport, cases: Sequence[CaseResult], redact: Redact
    ) -> tuple[tuple[NotifyError, ...], CommentResult | None]:
        """Post the comment and set the verdict as the status; return the errors and the comment's result.

        If the existing comment is of a newer run, it stays as it is; the status of the commit is set anyway.
        """
        posted: list[CommentResult] = []

        async def comment(api: GitHubApi) -> None:
            if self.pull_request is not None:
                text = build_pull_request_comment(report, cases, redact=redact, log=self.log)
                pull_comment = PullComment(target=self.target, run_id=report.run_id, text=text)
                posted.append(await post_comment(api, self.pull_request, pull_comment))

        errors = await self._post_safely(comment)
        errors += await self.post_state(STATES[report.verdict], format_status(report, redact=redact))
        return errors, posted[0] if posted else None

    async def _post_safely(self, post: Callable[[GitHubApi], Awaitable[None]]) -> tuple[NotifyError, ...]:
        try:
            async with (
                asyncio.timeout(POST_TIMEOUT_S),
                open_github_api(self.api_url, self.token, self.patience) as api,
            ):
                await post(api)
        except TimeoutError:
            return (NotifyTransient(f"GitHub was too slow: not over after {POST_TIMEOUT_S:g} s"),)
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
            return f"left {named} alone: a newer run's results are there already: {posted.address}"
