"""Which targets a deploy is about: the configuration decides, never the payload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from pydantic import ValidationError

from deployments.triggers.delivery import Deploys, Ignored, NotForUs, Parsed, Refusal, Refused
from monitors.records.deploys import PullRequest, ReportedDeploy
from monitors.records.targets import DeployEvent
from monitors.trigger_settings import Provider, TriggerSettings


class Told(NamedTuple):
    """What a payload tells of a deploy; ``None`` where it is silent. ``at`` is when it says it was."""

    repository: str
    commit: str
    at: datetime | None
    event: str | None = None
    branch: str | None = None
    environment: str | None = None
    workflow: str | None = None
    pull_request: int | None = None


Test = Callable[[TriggerSettings, Told], bool]

_TESTS: Sequence[tuple[Ignored, Test]] = (
    (Ignored.REPOSITORY, lambda row, told: row.repository.casefold() == told.repository.casefold()),
    (Ignored.EVENT, lambda row, told: row.event_name in (None, told.event)),
    (Ignored.BRANCH, lambda row, told: row.branch_name in (None, told.branch)),
    (Ignored.ENVIRONMENT, lambda row, told: row.environment in (None, told.environment)),
    (Ignored.WORKFLOW, lambda row, told: row.workflow in (None, told.workflow)),
)
"""Asked in this order; the one that leaves no trigger is the reason that is given. Hosts ignore case in names."""


class Routes:
    """The triggers of one sender."""

    def __init__(self, provider: Provider, triggers: Sequence[TriggerSettings]) -> None:
        self.provider = provider
        self._triggers = tuple(row for row in triggers if row.provider is provider)

    def route(self, told: Told, *, received_at: datetime) -> Parsed:
        """A deploy for every target that a trigger names, each once. Raises `Refused` for names that are none."""
        left = self._triggers
        for why, holds in _TESTS:
            left = tuple(row for row in left if holds(row, told))
            if not left:
                return NotForUs(why)
        targets = dict.fromkeys(row.target for row in left)
        try:
            return Deploys(tuple(self._deploy(target, told, received_at) for target in targets))
        except ValidationError:
            raise Refused(Refusal.MALFORMED, "a commit, environment or pull request has no usable name") from None

    def _deploy(self, target: str, told: Told, received_at: datetime) -> ReportedDeploy:
        """A deploy is never later than the word of it: a sender's clock that is ahead is not believed."""
        return ReportedDeploy(
            event=DeployEvent(
                target=target,
                commit=told.commit,
                occurred_at=min(told.at or received_at, received_at),
                reported_by=self.provider.value,
            ),
            environment=told.environment,
            pull_request=PullRequest(repository=told.repository, number=told.pull_request)
            if told.pull_request is not None
            else None,
        )
