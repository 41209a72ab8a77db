"""A run's results on GitHub: the status of its commit and one comment on its pull request.

What cannot be posted is returned, never raised: results stay what they are, whoever can read them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from monitors.errors import NotifyError, NotifyTransient
from monitors.github.api import GitHubApi, GitHubRetryPolicy, github_api
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
from monitors.reports.comment import pull_request_comment, status_line
from monitors.reports.format import shortened
from monitors.reports.marked_text import Redact

POSTING_S: Final = 180.0
"""For all of one run's posting: a rate limit that lasts longer is not waited for."""
MOST_DESCRIPTION: Final = 140
STATES: Final = {Verdict.PASS: State.SUCCESS, Verdict.FAIL: State.FAILURE, Verdict.INCONCLUSIVE: State.ERROR}
"""INCONCLUSIVE is an error and not a failure: nothing could be decided. Neither is green."""


def retry_at_start(now: Callable[[], datetime]) -> GitHubRetryPolicy:
    """For a pending status, which is worth little: questions do not wait for it."""
    return replace(retry_at_end(now), tries=2, longest_wait_s=5.0, deadline_s=5.0)


def retry_at_end(now: Callable[[], datetime]) -> GitHubRetryPolicy:
    """For results: they are waited for."""
    return GitHubRetryPolicy(now=lambda: now().timestamp())


@dataclass(frozen=True)
class GitHubPlace:
    """Where one run's results go. ``commit`` gets a status when it is a whole one, ``pull_request`` a comment.

    ``log`` is an address for a person to open. No text holds the token.
    """

    api_url: str
    token: str = field(repr=False)
    repository: str
    target: str
    patience: GitHubRetryPolicy = field(repr=False)
    commit: str | None = None
    pull_request: PullRequest | None = None
    log: str | None = None

    async def say_state(self, state: State, text: str) -> tuple[NotifyError, ...]:
        """Set the commit's status; return why that failed."""
        commit = self.commit
        if commit is None or not is_git_commit(commit):
            return ()
        status = CommitStatus(
            repository=self.repository,
            commit=commit,
            target=self.target,
            state=state,
            description=shortened(text, MOST_DESCRIPTION),
            link=self.log,
        )
        return await self._tried(lambda api: set_status(api, status))

    async def say_results(
        self, report: RunReport, cases: Sequence[CaseResult], redact: Redact
    ) -> tuple[tuple[NotifyError, ...], CommentResult | None]:
        """Post the comment, and set the verdict as the status; return what failed, and the comment's outcome.

        A run older than the comment that is there leaves the pull request alone; it still sets the status of its
        commit.
        """
        posted: list[CommentResult] = []

        async def comment(api: GitHubApi) -> None:
            if self.pull_request is not None:
                text = pull_request_comment(report, cases, redact=redact, log=self.log)
                said = PullComment(target=self.target, run_id=report.run_id, text=text)
                posted.append(await post_comment(api, self.pull_request, said))

        wrong = await self._tried(comment)
        wrong += await self.say_state(STATES[report.verdict], status_line(report, redact=redact))
        return wrong, posted[0] if posted else None

    async def _tried(self, post: Callable[[GitHubApi], Awaitable[None]]) -> tuple[NotifyError, ...]:
        try:
            async with asyncio.timeout(POSTING_S), github_api(self.api_url, self.token, self.patience) as api:
                await post(api)
        except TimeoutError:
            return (NotifyTransient(f"GitHub was too slow: not over after {POSTING_S:g} s"),)
        except NotifyError as error:
            return (error,)
        return ()


def describe_posted(posted: CommentResult, pull: PullRequest) -> str:
    """What became of a comment, for a person."""
    named = f"{pull.repository}#{pull.number}"
    match posted.done:
        case CommentStatus.MADE:
            return f"commented on {named}: {posted.address}"
        case CommentStatus.UPDATED:
            return f"updated the comment on {named}: {posted.address}"
        case CommentStatus.NEWER:
            return f"left {named} alone: a newer run's results are there already: {posted.address}"
