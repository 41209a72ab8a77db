"""Which commit GitHub says is deployed: the backstop for `deployment_status` deliveries that never came.

GitHub does not send a failed delivery again by itself. The Hub is polled for a target with a Space; GitHub is
polled here for the other targets whose triggers listen to its deployments, with the token in ``GITHUB_TOKEN``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from monitors.config.file import Config
from monitors.config.sections import DeploySender, GitHubEvent, TriggerSettings
from monitors.github.actions import API_VARIABLE, TOKEN_VARIABLE
from monitors.github.api import GitHubRetryPolicy, github_api
from monitors.github.deployments import newest_success

PATIENCE_S: Final = 20.0
"""For one poll: the next comes a minute later."""


def polled_triggers(config: Config) -> dict[str, TriggerSettings]:
    """The first trigger of each target that hears of GitHub's deployments and has no Space."""
    found: dict[str, TriggerSettings] = {}
    for row in config.deploys.triggers:
        hears = row.provider is DeploySender.GITHUB and row.event_name == GitHubEvent.DEPLOYMENT_STATUS
        if hears and row.target in config.targets and config.targets[row.target].space is None:
            found.setdefault(row.target, row)
    return found


async def deployed_commit(
    config: Config, row: TriggerSettings, variables: Mapping[str, str], now: Callable[[], datetime]
) -> str | None:
    """The commit of the newest deployment that succeeded; ``None`` where there is none. Raises `NotifyError`."""
    patience = GitHubRetryPolicy(now=lambda: now().timestamp(), longest_wait_s=PATIENCE_S, tries=2)
    api_url = variables.get(API_VARIABLE) or config.github.api_url
    async with github_api(api_url, variables[TOKEN_VARIABLE], patience) as api:
        found = await newest_success(api, row.repository, environment=row.environment, branch=row.branch_name)
    return found.commit if found is not None else None
