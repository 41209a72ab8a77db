"""Asks GitHub which commit is deployed, because GitHub does not repeat a failed webhook delivery.

This module polls targets that have no Hugging Face Space and whose triggers use GitHub deployments. Targets with a
Space are polled at the Hub. The environment variable ``GITHUB_TOKEN`` contains the token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from monitors.config.file import Config
from monitors.config.sections import DeploySender, GitHubEvent, TriggerSettings
from monitors.github.actions import API_VARIABLE, TOKEN_VARIABLE
from monitors.github.api import GitHubRetryPolicy, open_github_api
from monitors.github.deployments import Deployment, find_newest_success

GITHUB_TIMEOUT_S: Final = 20.0
"""Timeout of one poll in seconds. It is shorter than the minute between two polls."""


def select_triggers_polled_at_github(config: Config) -> dict[str, TriggerSettings]:
    """Select each target's first trigger that uses GitHub deployments. Targets with a Space are not included."""
    triggers: dict[str, TriggerSettings] = {}
    for trigger in config.deploys.triggers:
        hears = trigger.provider is DeploySender.GITHUB and trigger.event_name == GitHubEvent.DEPLOYMENT_STATUS
        if hears and trigger.target in config.targets and config.targets[trigger.target].space is None:
            triggers.setdefault(trigger.target, trigger)
    return triggers


async def find_newest_successful_deployment(
    config: Config, trigger: TriggerSettings, variables: Mapping[str, str], now: Callable[[], datetime]
) -> Deployment | None:
    """Return the newest successful deployment at GitHub, or ``None`` if there is none. Raises `NotifyError`."""
    retry_policy = GitHubRetryPolicy(now=lambda: now().timestamp(), max_wait_s=GITHUB_TIMEOUT_S, tries=2)
    api_url = variables.get(API_VARIABLE) or config.github.api_url
    async with open_github_api(api_url, variables[TOKEN_VARIABLE], retry_policy) as api:
        return await find_newest_success(
            api, trigger.repository, environment=trigger.environment, branch=trigger.branch_filter
        )
