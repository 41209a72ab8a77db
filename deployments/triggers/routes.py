"""The routes of a deploy: the configuration decides which targets it is about, never the payload.

The senders' secrets come from the environment: one, or several while they are changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from pydantic import ValidationError

from deployments.triggers.delivery import DeliveryRejected, Deploys, Ignored, NotForUs, Parsed, RejectionReason
from monitors.config.sections import DeploySender, TriggerSettings
from monitors.errors import ConfigError
from monitors.records.targets import DeployEvent, PullRequest, ReportedDeploy

VARIABLES: Final[Mapping[DeploySender, str]] = {
    DeploySender.GITHUB: "LOOKOUT_GITHUB_WEBHOOK_SECRET",
    DeploySender.HUGGINGFACE: "LOOKOUT_HUGGINGFACE_WEBHOOK_SECRET",
    DeploySender.STANDARD: "LOOKOUT_STANDARD_WEBHOOK_SECRET",
}
SHORTEST_SECRET: Final = 16
"""Characters: shorter ones can be tried out."""

Secrets = Mapping[DeploySender, tuple[str, ...]]


def secrets_for(providers: Collection[DeploySender], environment: Mapping[str, str]) -> Secrets:
    """The secrets of every sender that a trigger listens to.

    A variable holds one secret, or several with a comma between them while they are changed: each is valid. Raises
    `ConfigError` with the variable's name for one that is missing or could be guessed; the text holds no secret.
    """
    return {provider: _secrets_in(VARIABLES[provider], environment) for provider in sorted(providers)}


def unused_variables(providers: Collection[DeploySender], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Variables that are set though no trigger listens to their sender."""
    return tuple(name for one, name in VARIABLES.items() if one not in providers and environment.get(name))


def _secrets_in(variable: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    found = tuple(secret.strip() for secret in environment.get(variable, "").split(",") if secret.strip())
    if not found:
        raise ConfigError(
            f"{variable} is not set: without it nobody can tell the sender's deliveries from anybody's. Put the "
            "webhook's secret there; while you change it, the new and the old one with a comma"
        )
    if any(len(secret) < SHORTEST_SECRET for secret in found):
        raise ConfigError(f"{variable}: a secret of fewer than {SHORTEST_SECRET} characters can be guessed")
    return found


class DeployClaim(NamedTuple):
    """What a payload says of a deploy; ``None`` where it is silent. ``at`` is when it says the deploy was."""

    repository: str
    commit: str
    at: datetime | None
    event: str | None = None
    branch: str | None = None
    environment: str | None = None
    workflow: str | None = None
    pull_request: int | None = None


Test = Callable[[TriggerSettings, DeployClaim], bool]

_TESTS: Sequence[tuple[Ignored, Test]] = (
    (Ignored.REPOSITORY, lambda row, report: row.repository.casefold() == report.repository.casefold()),
    (Ignored.EVENT, lambda row, report: row.event_name in (None, report.event)),
    (Ignored.BRANCH, lambda row, report: row.branch_name in (None, report.branch)),
    (Ignored.ENVIRONMENT, lambda row, report: row.environment in (None, report.environment)),
    (Ignored.WORKFLOW, lambda row, report: row.workflow in (None, report.workflow)),
)
"""Asked in this order; the test that leaves no trigger is the reason that is given. Hosts ignore case in names."""


class Routes:
    """The triggers of one sender."""

    def __init__(self, provider: DeploySender, triggers: Sequence[TriggerSettings]) -> None:
        self.provider = provider
        self._triggers = tuple(row for row in triggers if row.provider is provider)

    def route(self, report: DeployClaim, *, received_at: datetime) -> Parsed:
        """A deploy for every target that a trigger names, each once.

        Raises `DeliveryRejected` for names that are none.
        """
        left = self._triggers
        for why, holds in _TESTS:
            left = tuple(row for row in left if holds(row, report))
            if not left:
                return NotForUs(why)
        targets = dict.fromkeys(row.target for row in left)
        try:
            return Deploys(tuple(self._deploy(target, report, received_at) for target in targets))
        except ValidationError:
            raise DeliveryRejected(
                RejectionReason.MALFORMED, "a commit, environment or pull request has no usable name"
            ) from None

    def _deploy(self, target: str, report: DeployClaim, received_at: datetime) -> ReportedDeploy:
        """A target's deploy. It is never later than its report: a sender's clock that is ahead is not believed."""
        return ReportedDeploy(
            event=DeployEvent(
                target=target,
                commit=report.commit,
                occurred_at=min(report.at or received_at, received_at),
                reported_by=self.provider.value,
            ),
            environment=report.environment,
            pull_request=PullRequest(repository=report.repository, number=report.pull_request)
            if report.pull_request is not None
            else None,
        )
