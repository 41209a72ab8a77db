"""The pull request that a staging deploy belongs to hears of its run: pending at the start, the verdict at the end.

Where it belongs is told by the delivery; that it may be written to, by the configuration: its repository must be
one that a trigger of the target names. Posted before the run is noted as done: a run that is killed before posts
when it is finished by the next, and as the comment is updated in place, it stands there once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final, cast

from prefect.blocks.system import Secret

from flows.github_posts import GitHubPlace
from flows.kept_deploys import KeptDeploys
from flows.live_run import LiveRun
from flows.monitor_fault import Fault, tell_fault
from flows.wiring import environment, utc_now
from monitors.alerts.redact import redact
from monitors.config import Config
from monitors.errors import ConfigError, MonitorError
from monitors.github.api import Patience
from monitors.github.settings import GitHubSettings
from monitors.github.statuses import State
from monitors.github.workflow import API_VARIABLE, TOKEN_VARIABLE
from monitors.records.deploys import PullRequest
from monitors.records.runs import RunReport
from monitors.records.targets import Environment
from monitors.trigger_settings import Provider

NOT_POSTED: Final = "ResultsNotPosted"
"""The fault of a pull request that did not get its results."""
AT_START: Final = Patience(now=lambda: utc_now().timestamp(), tries=2, longest_wait_s=5.0, deadline_s=5.0)
"""That a run is pending is worth little: questions do not wait for it."""
AT_END: Final = Patience(now=lambda: utc_now().timestamp())


class NotForPosting(MonitorError):
    """The results could not be posted where they belong; the text says what to do."""


@asynccontextmanager
async def followed(run: LiveRun) -> AsyncGenerator[None]:
    """Say that the run is pending, and, when it breaks, that it broke. What cannot be said is said at the end."""
    await _say_state(run, State.PENDING, "asking the gold questions")
    try:
        yield
    except Exception:
        await _say_state(run, State.ERROR, "the monitor itself failed; its owners were told")
        raise


async def post_results(run: LiveRun, report: RunReport) -> None:
    """Comment and status on every pull request of this run; what could not be posted is a fault of the monitor."""
    patterns = run.wired.configured.graders.account_patterns
    for pull in await _pulls(run):
        try:
            place = await _place(run, pull, AT_END)
            wrong, _ = await place.say_results(
                report, run.results, lambda text: redact(text, account_patterns=patterns)
            )
        except MonitorError as error:
            wrong = (error,)
        if wrong:
            named = f"{pull.repository}#{pull.number}"
            why = "; ".join(str(one) for one in wrong)
            await tell_fault(run.wired.desk, Fault(NOT_POSTED, f"The results are not on {named}: {why}"))


async def _say_state(run: LiveRun, state: State, words: str) -> None:
    for pull in await _pulls(run):
        try:
            await (await _place(run, pull, AT_START)).say_state(state, words)
        except MonitorError:
            continue  # post_results meets the same and tells it


async def _pulls(run: LiveRun) -> tuple[PullRequest, ...]:
    """Where results go: production's go nowhere."""
    wired = run.wired
    if wired.target.environment is not Environment.STAGING or not wired.config.github.post_results:
        return ()
    return await asyncio.to_thread(pulls_of, run)


def pulls_of(run: LiveRun) -> tuple[PullRequest, ...]:
    """A run's pull requests, each once: as it was asked for, as it began, as deliveries told since."""
    wired = run.wired
    told: list[PullRequest | None] = [wired.request.pull_request, wired.start.pull_request]
    if wired.start.commit is not None:
        kept = KeptDeploys(wired.config.data_folder)
        told += kept.pull_requests(wired.target.name, wired.start.commit)
    return tuple(dict.fromkeys(pull for pull in told if pull is not None))


async def _place(run: LiveRun, pull: PullRequest, patience: Patience) -> GitHubPlace:
    """Raises `NotForPosting` for a repository that is none of ours, and where there is no token."""
    wired = run.wired
    if pull.repository.casefold() not in repositories_of(wired.config, wired.target.name):
        raise NotForPosting(
            f"no [[deploys.triggers]] of {wired.target.name} names the repository {pull.repository}; results go "
            "to no other"
        )
    variables = environment()
    return GitHubPlace(
        api_url=variables.get(API_VARIABLE) or wired.config.github.api_url,
        token=await token_of(wired.config.github, variables),
        repository=pull.repository,
        target=wired.target.name,
        patience=patience,
        commit=run.commit,
        pull_request=pull,
    )


def repositories_of(config: Config, target: str) -> frozenset[str]:
    """The repositories whose pull requests may get this target's results, in small letters: hosts ignore case."""
    return frozenset(
        row.repository.casefold()
        for row in config.deploys.triggers
        if row.target == target and row.provider is not Provider.HUGGINGFACE
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
