"""Posts a run's results to GitHub: the status of the commit and one comment on the pull request.

The functions return errors instead of raising them, because the results stay valid even if a post fails.
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
    post_or_update_comment,
    read_head_and_branches,
    set_final_status_unless_newer,
    set_pending_status,
)
from monitors.records.runs import CaseResult, RunReport, Verdict
from monitors.records.targets import GitChange, PullRequest
from monitors.reports.comment import build_pull_request_comment, format_commit_status
from monitors.reports.format import shorten
from monitors.reports.marked_text import Redact

POST_TIMEOUT_S: Final = 180.0
"""Time limit in seconds for all posts of one run together, including waits for rate limits."""
MAX_DESCRIPTION_LENGTH: Final = 140
STATES: Final = {Verdict.PASS: State.SUCCESS, Verdict.FAIL: State.FAILURE, Verdict.INCONCLUSIVE: State.ERROR}
"""GitHub's state for each verdict.

INCONCLUSIVE becomes "error", because the run could not decide. FAIL becomes "failure".
"""


def build_status_retry_policy(now: Callable[[], datetime]) -> GitHubRetryPolicy:
    """Build the retry policy for a pending status.

    The waits are short, because the run asks no questions until the status is posted.
    """
    return replace(build_result_retry_policy(now), tries=2, max_wait_s=5.0, deadline_s=5.0)


def build_result_retry_policy(now: Callable[[], datetime]) -> GitHubRetryPolicy:
    """Build the retry policy for results, with the default waits."""
    return GitHubRetryPolicy(now=lambda: now().timestamp())


@dataclass(frozen=True)
class GitHubDestination:
    """The commit and the pull request to which one run's results are posted.

    ``commit`` gets a status if it is a full hash, and ``pull_request`` gets a comment. ``name`` distinguishes this
    gate from other gates on the same commit. ``log`` is the URL of the job's log.
    """

    api_url: str
    token: str = field(repr=False)
    repository: str
    name: str
    retry_policy: GitHubRetryPolicy = field(repr=False)
    commit: str | None = None
    pull_request: PullRequest | None = None
    log: str | None = None

    async def read_pull_request_change(self) -> tuple[GitChange, tuple[NotifyError, ...]]:
        """Read the head commit and the branches of the pull request. Also return the errors of the requests."""
        pull = self.pull_request
        changes = [GitChange()]

        async def read(api: GitHubApi) -> None:
            if pull is not None:
                changes.append(await read_head_and_branches(api, pull))

        errors = await self._call_and_return_errors(read)
        return changes[-1], errors

    async def post_commit_status(
        self, state: State, text: str, *, run_id: str | None = None
    ) -> tuple[NotifyError, ...]:
        """Set the status of the commit and return the errors. ``run_id`` is the run with the verdict.

        A final state does not replace the verdict of a newer run. A state without a verdict never replaces a
        verdict.
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
            link=self.log or self._build_github_page_url(commit),
            run_id=run_id,
        )
        post = set_pending_status if state is State.PENDING else set_final_status_unless_newer
        return await self._call_and_return_errors(lambda api: post(api, status))

    def _build_github_page_url(self, commit: str) -> str:
        """Build the URL of the commit or pull request on GitHub, for a status whose job has no log."""
        parts = urlsplit("https://github.com" if self.api_url.rstrip("/") == PUBLIC_API else self.api_url)
        pull = self.pull_request
        page = f"pull/{pull.number}" if pull else f"commit/{commit}"
        return f"{parts.scheme}://{parts.netloc}/{self.repository}/{page}"

    async def post_comment_and_verdict(
        self, report: RunReport, cases: Sequence[CaseResult], redact: Redact
    ) -> tuple[tuple[NotifyError, ...], CommentResult | None]:
        """Post the comment and set the verdict as the status.

        Return the errors, and what was done with the comment.

        The results of a newer run are not replaced.
        """
        posted: list[CommentResult] = []

        async def comment(api: GitHubApi) -> None:
            if self.pull_request is not None:
                text = build_pull_request_comment(report, cases, redact=redact, name=self.name, log=self.log)
                pull_comment = PullComment(name=self.name, run_id=report.run_id, text=text)
                posted.append(await post_or_update_comment(api, self.pull_request, pull_comment))

        errors = await self._call_and_return_errors(comment)
        errors += await self.post_commit_status(
            STATES[report.verdict],
            format_commit_status(report, redact=redact),
            run_id=report.run_id,
        )
        return errors, posted[0] if posted else None

    async def _call_and_return_errors(
        self, post: Callable[[GitHubApi], Awaitable[None]]
    ) -> tuple[NotifyError, ...]:
        try:
            async with (
                asyncio.timeout(POST_TIMEOUT_S),
                open_github_api(self.api_url, self.token, self.retry_policy) as api,
            ):
                await post(api)
        except TimeoutError:
            return (NotifyTransient(f"GitHub did not answer within {POST_TIMEOUT_S:g} s"),)
        except NotifyError as error:
            return (error,)
        return ()


def format_comment_result(posted: CommentResult, pull: PullRequest) -> str:
    """Format a sentence that says whether the comment was posted, updated, or not changed."""
    named = f"{pull.repository}#{pull.number}"
    match posted.done:
        case CommentStatus.MADE:
            return f"commented on {named}: {posted.address}"
        case CommentStatus.UPDATED:
            return f"updated the comment on {named}: {posted.address}"
        case CommentStatus.NEWER:
            return f"did not change the comment on {named}, because it shows a newer run: {posted.address}"
