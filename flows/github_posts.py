"""A run's results on GitHub: the status of its commit and one comment on its pull request.

What cannot be posted is returned, and never raised: results are what they are, whoever can read them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from monitors.errors import NotifyError, NotifyTransient
from monitors.github.api import GitHubApi, Patience, github_api
from monitors.github.comments import Done, Posted, PullComment, post_comment
from monitors.github.statuses import CommitStatus, State, is_git_commit, set_status
from monitors.records.deploys import PullRequest
from monitors.records.runs import CaseResult, RunReport, Verdict
from monitors.reports.comment import pull_request_comment, status_line
from monitors.reports.masking import Redact
from monitors.reports.wording import shortened

POSTING_S: Final = 180.0
"""For all of one run's posting: a limit of rate that lasts longer is not waited for."""
MOST_DESCRIPTION: Final = 140
STATES: Final = {Verdict.PASS: State.SUCCESS, Verdict.FAIL: State.FAILURE, Verdict.INCONCLUSIVE: State.ERROR}
"""INCONCLUSIVE is an error and not a failure: nobody could tell. Neither is green."""


@dataclass(frozen=True)
class GitHubPlace:
    """Where one run's results go. ``commit`` gets a status when it is a whole one, ``pull_request`` a comment.

    ``log`` is an address that a person opens. The token is in no text of this.
    """

    api_url: str
    token: str = field(repr=False)
    repository: str
    target: str
    patience: Patience = field(repr=False)
    commit: str | None = None
    pull_request: PullRequest | None = None
    log: str | None = None

    async def say_state(self, state: State, words: str) -> tuple[NotifyError, ...]:
        """Set the commit's status; returns why it could not be."""
        commit = self.commit
        if commit is None or not is_git_commit(commit):
            return ()
        status = CommitStatus(
            repository=self.repository,
            commit=commit,
            target=self.target,
            state=state,
            description=shortened(words, MOST_DESCRIPTION),
            link=self.log,
        )
        return await self._tried(lambda api: set_status(api, status))

    async def say_results(
        self, report: RunReport, cases: Sequence[CaseResult], redact: Redact
    ) -> tuple[tuple[NotifyError, ...], Posted | None]:
        """The comment, and the verdict as the status; returns what could not be posted, and what became of it.

        A run that is older than what stands there says nothing more of the pull request; of its commit it does.
        """
        posted: list[Posted] = []

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


def words_of(posted: Posted, pull: PullRequest) -> str:
    """What became of a comment, for a person."""
    named = f"{pull.repository}#{pull.number}"
    match posted.done:
        case Done.MADE:
            return f"commented on {named}: {posted.address}"
        case Done.UPDATED:
            return f"updated the comment on {named}: {posted.address}"
        case Done.NEWER:
            return f"left {named} alone: a newer run's results are there already: {posted.address}"
