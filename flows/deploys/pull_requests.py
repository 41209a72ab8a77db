"""Posts a run's results to the pull requests of its staging deploy: pending at the start, the verdict at the end.

The delivery names the pull request; the configuration allows writing to it: a trigger of the target must name its
repository. Results are posted before the run is noted as done. A run that is killed before that posts when the next
one finishes it, and as the comment is updated in place, it stands there once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final, cast

from prefect.blocks.system import Secret

from flows.alerting.faults import Fault, notify_fault
from flows.deploys.github_results import GitHubPlace, retry_at_end, retry_at_start
from flows.deploys.queue import DeployQueue
from flows.verify.run_state import LiveRun
from monitors.alerts.redact import redact
from monitors.config.file import Config
from monitors.config.sections import DeploySender
from monitors.errors import ConfigError, MonitorError
from monitors.github.actions import API_VARIABLE, TOKEN_VARIABLE
from monitors.github.api import GitHubRetryPolicy, GitHubSettings
from monitors.github.pull_requests import State
from monitors.records.runs import RunReport
from monitors.records.targets import Environment, PullRequest

NOT_POSTED: Final = "ResultsNotPosted"
"""The fault of a pull request that did not get its results."""


class NotForPosting(MonitorError):
    """The results could not be posted where they belong; the text says what to do."""


@asynccontextmanager
async def followed(run: LiveRun) -> AsyncGenerator[None]:
    """Post that the run is pending, and, when it breaks, that it broke. Failed posts are reported at the end."""
    await _say_state(run, State.PENDING, "asking the gold questions")
    try:
        yield
    except Exception:  # GitHub shows a pending check until it gets an end, whatever broke; raised again
        await _say_state(run, State.ERROR, "the monitor itself failed; Lookout notified its owners")
        raise


async def post_results(run: LiveRun, report: RunReport) -> None:
    """Post comment and status on every pull request of this run; report what could not be posted as a fault."""
    patterns = run.context.configured.graders.account_patterns
    for pull in await _pulls(run):
        try:
            place = await _place(run, pull, retry_at_end(run.context.now))
            wrong, _ = await place.say_results(
                report, run.results, lambda text: redact(text, account_patterns=patterns)
            )
        except MonitorError as error:
            wrong = (error,)
        if wrong:
            named = f"{pull.repository}#{pull.number}"
            why = "; ".join(str(one) for one in wrong)
            await notify_fault(run.context.notifier, Fault(NOT_POSTED, f"The results are not on {named}: {why}"))


async def _say_state(run: LiveRun, state: State, text: str) -> None:
    for pull in await _pulls(run):
        try:
            await (await _place(run, pull, retry_at_start(run.context.now))).say_state(state, text)
        except MonitorError:
            continue  # post_results meets the same and reports it


async def _pulls(run: LiveRun) -> tuple[PullRequest, ...]:
    """The pull requests that get the results; results of production go nowhere."""
    context = run.context
    if context.target.environment is not Environment.STAGING or not context.config.github.post_results:
        return ()
    return await asyncio.to_thread(pulls_of, run)


def pulls_of(run: LiveRun) -> tuple[PullRequest, ...]:
    """A run's pull requests, each once: those of its request, of its start, and of deliveries since."""
    context = run.context
    pulls: list[PullRequest | None] = [context.request.pull_request, context.start.pull_request]
    if context.start.commit is not None:
        deploys = DeployQueue(context.config.data_folder)
        pulls += deploys.pull_requests(context.target.name, context.start.commit)
    return tuple(dict.fromkeys(pull for pull in pulls if pull is not None))


async def _place(run: LiveRun, pull: PullRequest, patience: GitHubRetryPolicy) -> GitHubPlace:
    """Where results go. Raises `NotForPosting` for a foreign repository, and where there is no token."""
    context = run.context
    if pull.repository.casefold() not in repositories_of(context.config, context.target.name):
        raise NotForPosting(
            f"no [[deploys.triggers]] of {context.target.name} names the repository {pull.repository}; results go "
            "to no other"
        )
    variables = context.environment
    return GitHubPlace(
        api_url=variables.get(API_VARIABLE) or context.config.github.api_url,
        token=await token_of(context.config.github, variables),
        repository=pull.repository,
        target=context.target.name,
        patience=patience,
        commit=run.commit,
        pull_request=pull,
    )


def repositories_of(config: Config, target: str) -> frozenset[str]:
    """The repositories whose pull requests may get this target's results, in small letters: hosts ignore case."""
    return frozenset(
        row.repository.casefold()
        for row in config.deploys.triggers
        if row.target == target and row.provider is not DeploySender.HUGGINGFACE
    )


async def token_of(settings: GitHubSettings, variables: Mapping[str, str]) -> str:
    """The token, from the environment or the Prefect block that the settings name. Raises `NotForPosting`."""
    token = variables.get(TOKEN_VARIABLE)
    if token:
        return token
    if settings.token_block is None:
        raise NotForPosting(
            f"there is no token: set {TOKEN_VARIABLE} where runs are worked on, or name a Prefect Secret block as "
            "github.token_block in lookout.toml; it needs `pull-requests: write` and `statuses: write`"
        )
    try:
        block = cast("Secret[str]", await Secret.aload(settings.token_block))
        return _text(block.get())
    except (ConfigError, ValueError) as error:
        raise NotForPosting(
            f"github.token_block: Prefect has no Secret block {settings.token_block!r} with a text "
            f"({type(error).__name__})"
        ) from None


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError("not a text")
    return value
