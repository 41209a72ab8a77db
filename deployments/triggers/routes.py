"""Finds the targets of a deploy by comparing the delivery's payload with the configured triggers.

Only the triggers name targets; a payload cannot choose a target. The senders' secrets come from the environment.
Each sender has one secret, or several during a rotation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from pydantic import ValidationError

from deployments.triggers.delivery import (
    DeliveryRejected,
    Deploys,
    IgnoreReason,
    NotForUs,
    ParsedDelivery,
    RejectionReason,
)
from monitors.config.sections import DeploySender, TriggerSettings
from monitors.errors import ConfigError
from monitors.records.targets import DeployEvent, PullRequest, ReportedDeploy

SECRET_VARIABLES: Final[Mapping[DeploySender, str]] = {
    DeploySender.GITHUB: "LOOKOUT_GITHUB_WEBHOOK_SECRET",
    DeploySender.HUGGINGFACE: "LOOKOUT_HUGGINGFACE_WEBHOOK_SECRET",
    DeploySender.STANDARD: "LOOKOUT_STANDARD_WEBHOOK_SECRET",
}
MIN_SECRET_CHARACTERS: Final = 16
"""Minimum length of a secret in characters. A shorter secret could be guessed and is refused."""

Secrets = Mapping[DeploySender, tuple[str, ...]]


def load_secrets(providers: Collection[DeploySender], environment: Mapping[str, str]) -> Secrets:
    """Load the secrets of every sender that has a trigger.

    A variable contains one secret or, during a rotation, several secrets separated by commas, which are all valid.
    Raises a `ConfigError` with the name of a variable whose secret is missing or too short. The error contains no
    secret.
    """
    return {provider: _read_secrets(SECRET_VARIABLES[provider], environment) for provider in sorted(providers)}


def list_unused_secret_variables(
    providers: Collection[DeploySender], environment: Mapping[str, str]
) -> tuple[str, ...]:
    """List the variables that contain a secret for a sender without a trigger."""
    return tuple(
        name for sender, name in SECRET_VARIABLES.items() if sender not in providers and environment.get(name)
    )


def _read_secrets(variable: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    secrets = tuple(secret.strip() for secret in environment.get(variable, "").split(",") if secret.strip())
    if not secrets:
        raise ConfigError(
            f"{variable} is not set. Lookout needs it to verify webhook deliveries. Set it to the webhook's "
            "secret. While you change the secret, set the new and the old secret, separated by a comma"
        )
    if any(len(secret) < MIN_SECRET_CHARACTERS for secret in secrets):
        raise ConfigError(f"a secret in {variable} is too short; use at least {MIN_SECRET_CHARACTERS} characters")
    return secrets


class DeployClaim(NamedTuple):
    """The facts about a deploy in a payload. A field is ``None`` if the payload does not have it."""

    repository: str
    commit: str
    at: datetime | None
    event: str | None = None
    branch: str | None = None
    environment: str | None = None
    workflow: str | None = None
    pull_request: int | None = None
    deployment: str | None = None


Matcher = Callable[[TriggerSettings, DeployClaim], bool]


def _is_environment_accepted(row: TriggerSettings, report: DeployClaim) -> bool:
    """Return whether a trigger accepts a deploy's environment. GitHub ignores case in environment names."""
    return row.environment is None or row.environment.casefold() == (report.environment or "").casefold()


_MATCHERS: Sequence[tuple[IgnoreReason, Matcher]] = (
    (IgnoreReason.REPOSITORY, lambda row, report: row.repository.casefold() == report.repository.casefold()),
    (IgnoreReason.EVENT, lambda row, report: row.event_name in (None, report.event)),
    (IgnoreReason.BRANCH, lambda row, report: row.branch_filter in (None, report.branch)),
    (IgnoreReason.ENVIRONMENT, _is_environment_accepted),
    (IgnoreReason.WORKFLOW, lambda row, report: row.workflow in (None, report.workflow)),
)
"""The conditions of a trigger, in the order in which they are checked.

If no trigger matches a delivery, the reported reason is the first condition after which no trigger remains. Names
of repositories and environments are not case-sensitive.
"""


class Routes:
    """The configured triggers of one sender."""

    def __init__(self, provider: DeploySender, triggers: Sequence[TriggerSettings]) -> None:
        self.provider = provider
        self._triggers = tuple(row for row in triggers if row.provider is provider)

    def match_deploy_to_triggers(self, report: DeployClaim, *, received_at: datetime) -> ParsedDelivery:
        """Return a deploy for every target with a matching trigger. Each target occurs once.

        Raises `DeliveryRejected` if a name is invalid.
        """
        matching = self._triggers
        for reason, matches in _MATCHERS:
            matching = tuple(row for row in matching if matches(row, report))
            if not matching:
                return NotForUs(reason)
        targets = dict.fromkeys(row.target for row in matching)
        try:
            return Deploys(tuple(self._build_deploy(target, report, received_at) for target in targets))
        except ValidationError:
            raise DeliveryRejected(
                RejectionReason.MALFORMED, "the commit, environment or pull request in the payload is not valid"
            ) from None

    def _build_deploy(self, target: str, report: DeployClaim, received_at: datetime) -> ReportedDeploy:
        """Build the record of a target's deploy.

        A time after ``received_at`` is replaced by ``received_at``, because a sender's clock can be ahead.
        """
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
            deployment=report.deployment,
        )
