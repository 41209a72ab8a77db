"""Posts a run's results to the pull requests of its staging deploy: first "pending", and at the end the verdict.

The webhook delivery about the deploy names the pull request. The target must have a trigger with the repository of
the pull request. Results are posted before the run is stored as finished. If the process is killed before it posts
the results, the run is resumed later and posts them then. A pull request gets one comment, which later runs update.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final, cast

from prefect.blocks.system import Secret

from flows.alerting.faults import Fault, notify_fault
from flows.deploys.github_results import GitHubDestination, build_result_retry_policy, build_status_retry_policy
from flows.deploys.queue import DeployQueue
from flows.verify.run_state import LiveRun
from monitors.alerts.redact import build_redactor
from monitors.config.file import Config
from monitors.config.sections import DeploySender
from monitors.errors import ConfigError, MonitorError
from monitors.github.actions import API_VARIABLE, TOKEN_VARIABLE
from monitors.github.api import GitHubRetryPolicy, GitHubSettings
from monitors.github.pull_requests import State, build_gate_name
from monitors.records.runs import RunReport
from monitors.records.targets import Environment, PullRequest

NOT_POSTED: Final = "ResultsNotPosted"
"""The name of the fault that is reported if results could not be posted to a pull request."""


class NotForPosting(MonitorError):
    """Raised if results cannot be posted to a pull request. The message says what to do."""


@asynccontextmanager
async def post_pending_or_error_status(run: LiveRun) -> AsyncGenerator[None]:
    """Post the status "pending" before the ``with`` block, and "error" if the block raises an exception."""
    await _post_state_to_pull_requests(run, State.PENDING, "Lookout is asking the gold questions")
    try:
        yield
    except Exception:  # GitHub shows a pending check until it gets a final status; the error is raised again
        await _post_state_to_pull_requests(run, State.ERROR, "Lookout itself failed and notified its owners")
        raise


async def post_results_to_pull_requests(run: LiveRun, report: RunReport) -> None:
    """Post the comment and the verdict to every pull request of this run. Report failed posts as a fault."""
    patterns = run.context.configured.graders.account_patterns
    for pull in await _select_pull_requests_to_post(run):
        try:
            destination = await _build_github_destination(run, pull, build_result_retry_policy(run.context.now))
            errors, _ = await destination.post_comment_and_verdict(
                report, run.results, build_redactor(patterns, strict=True)
            )
        except MonitorError as error:
            errors = (error,)
        if errors:
            named = f"{pull.repository}#{pull.number}"
            why = "; ".join(str(error) for error in errors)
            await notify_fault(
                run.context.notifier, Fault(NOT_POSTED, f"Lookout could not post the results to {named}: {why}")
            )


async def _post_state_to_pull_requests(run: LiveRun, state: State, text: str) -> None:
    for pull in await _select_pull_requests_to_post(run):
        try:
            await (
                await _build_github_destination(run, pull, build_status_retry_policy(run.context.now))
            ).post_commit_status(state, text)
        except MonitorError:
            continue  # post_results_to_pull_requests gets the same error and reports it


async def _select_pull_requests_to_post(run: LiveRun) -> tuple[PullRequest, ...]:
    """Select the pull requests that get the results.

    None are selected unless the target is a staging target and ``github.post_results`` is on.
    """
    context = run.context
    if context.target.environment is not Environment.STAGING or not context.config.github.post_results:
        return ()
    return await asyncio.to_thread(collect_pull_requests_of_run, run)


def collect_pull_requests_of_run(run: LiveRun) -> tuple[PullRequest, ...]:
    """Collect the pull requests from the run's request and from the webhook deliveries of its commit."""
    context = run.context
    pulls: list[PullRequest | None] = [context.request.pull_request, context.start.pull_request]
    if context.start.commit is not None:
        deploys = DeployQueue(context.config.data_folder)
        pulls += deploys.list_pull_requests(context.target.name, context.start.commit)
    return tuple(dict.fromkeys(pull for pull in pulls if pull is not None))


async def _build_github_destination(
    run: LiveRun, pull: PullRequest, retry_policy: GitHubRetryPolicy
) -> GitHubDestination:
    """Build the destination of results for one pull request.

    Raises `NotForPosting` if the repository is not configured or there is no token.
    """
    context = run.context
    if pull.repository.casefold() not in list_repositories_for_results(context.config, context.target.name):
        raise NotForPosting(
            f"Lookout posts results only to configured repositories. Add {pull.repository} to [[deploys.triggers]] "
            f"of {context.target.name} in lookout.toml"
        )
    variables, config_path = context.environment, context.request.config_path
    folder = (config_path or context.configured.suite).absolute().parent
    return GitHubDestination(
        api_url=variables.get(API_VARIABLE) or context.config.github.api_url,
        token=await load_github_token(context.config.github, variables),
        repository=pull.repository,
        name=build_gate_name(context.target.name, context.configured.suite, config_folder=folder, workspace=None),
        retry_policy=retry_policy,
        commit=run.commit,
        pull_request=pull,
    )


def list_repositories_for_results(config: Config, target: str) -> frozenset[str]:
    """List the configured repositories, in lower case, whose pull requests can get this target's results."""
    return frozenset(
        trigger.repository.casefold()
        for trigger in config.deploys.triggers
        if trigger.target == target and trigger.provider is not DeploySender.HUGGINGFACE
    )


async def load_github_token(settings: GitHubSettings, variables: Mapping[str, str]) -> str:
    """Load the GitHub token from the environment or from the configured Prefect block. Raises `NotForPosting`."""
    token = variables.get(TOKEN_VARIABLE)
    if token:
        return token
    if settings.token_block is None:
        raise NotForPosting(
            f"there is no GitHub token. Set {TOKEN_VARIABLE} in the environment of the runs, or set "
            "github.token_block in lookout.toml to a Prefect Secret block. The token needs `pull-requests: write` "
            "and `statuses: write`"
        )
    try:
        block = cast("Secret[str]", await Secret.aload(settings.token_block))
        return _require_nonempty_string(block.get())
    except (ConfigError, ValueError) as error:
        raise NotForPosting(
            f"github.token_block: Prefect has no Secret block {settings.token_block!r} with a token "
            f"({type(error).__name__}); create the block, or correct its name"
        ) from None


def _require_nonempty_string(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError("not a text")
    return value
