"""Keys and chance: what comes from the environment alone, and what nobody can guess.

Beside `wiring` the only place in the flows that reads them.
"""

from __future__ import annotations

import os

from monitors.errors import ConfigError
from warehouse.retention import SHORTEST_KEY

HUB_VARIABLE = "HF_TOKEN"
AGE_KEY_VARIABLE = "LOOKOUT_AGE_KEY"


def secret(variable: str) -> str:
    """A secret from the environment; `ConfigError` names the variable, never a value."""
    value = os.environ.get(variable)
    if not value:
        raise ConfigError(f"{variable} is not set: secrets come from the environment, never from lookout.toml")
    return value


def age_key() -> bytes:
    """What pseudonyms are made with, the same every time; `ConfigError` when it is missing or could be guessed."""
    key = secret(AGE_KEY_VARIABLE).encode()
    if len(key) < SHORTEST_KEY:
        raise ConfigError(
            f"{AGE_KEY_VARIABLE}: too short; at least {SHORTEST_KEY} characters, and the same every time"
        )
    return key


def fresh_key() -> bytes:
    """A key that nobody keeps: pseudonyms made with it can never be matched to those of another night."""
    return os.urandom(32)


def nonce() -> str:
    """A number that nobody can guess, for the fences of one prompt."""
    return os.urandom(16).hex()


def hub_token() -> str | None:
    """What opens a private Space, from the variable that the Hub's own tools read."""
    return os.environ.get(HUB_VARIABLE)
