"""The senders' secrets: from the environment, one or several while they are changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from monitors.errors import ConfigError
from monitors.trigger_settings import Provider

VARIABLES: Final[Mapping[Provider, str]] = {
    Provider.GITHUB: "LOOKOUT_GITHUB_WEBHOOK_SECRET",
    Provider.HUGGINGFACE: "LOOKOUT_HUGGINGFACE_WEBHOOK_SECRET",
    Provider.STANDARD: "LOOKOUT_STANDARD_WEBHOOK_SECRET",
}
SHORTEST_SECRET: Final = 16
"""Characters: shorter ones can be tried out."""

Secrets = Mapping[Provider, tuple[str, ...]]


def secrets_for(providers: Collection[Provider], environment: Mapping[str, str]) -> Secrets:
    """The secrets of every sender that a trigger listens to.

    A variable holds one secret, or several with a comma between them while they are changed: each is valid. Raises
    `ConfigError` with the variable's name for one that is missing or could be guessed; the text holds no secret.
    """
    return {provider: _secrets_in(VARIABLES[provider], environment) for provider in sorted(providers)}


def unused_variables(providers: Collection[Provider], environment: Mapping[str, str]) -> tuple[str, ...]:
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
