"""What the environment gives: keys, tokens, randomness and the ids that are made of it.

A function that takes an ``environment`` reads no other, and a key goes straight into the client that needs it.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping

from flows.clock import utc_now
from flows.verify.run_folder import build_run_id
from monitors.errors import ConfigError
from warehouse.database.retention import MIN_KEY_LENGTH

HUB_VARIABLE = "HF_TOKEN"


AGE_KEY_VARIABLE = "LOOKOUT_AGE_KEY"


def load_secret(variable: str) -> str:
    """A secret from the environment; `ConfigError` names the variable, never a value."""
    value = os.environ.get(variable)
    if not value:
        raise ConfigError(f"{variable} is not set: secrets come from the environment, never from lookout.toml")
    return value


def load_age_key() -> bytes:
    """The key that makes pseudonyms, always the same; `ConfigError` when it is missing or could be guessed."""
    key = load_secret(AGE_KEY_VARIABLE).encode()
    if len(key) < MIN_KEY_LENGTH:
        raise ConfigError(
            f"{AGE_KEY_VARIABLE}: too short; at least {MIN_KEY_LENGTH} characters, and the same every time"
        )
    return key


def generate_key() -> bytes:
    """A key that nobody stores: its pseudonyms can never be matched to those of another nightly run."""
    return os.urandom(32)


def generate_nonce() -> str:
    """A number that nobody can guess, for the fences of one prompt."""
    return os.urandom(16).hex()


def get_hub_token() -> str | None:
    """The token that opens a private Space, from the variable that the Hub's own tools read."""
    return os.environ.get(HUB_VARIABLE)


def get_environment() -> MutableMapping[str, str]:
    """The real environment: keys go from here into the clients that need them."""
    return os.environ


def generate_run_id(target: str) -> str:
    """A new run's id, by the real clock and chance."""
    return build_run_id(target, utc_now(), os.urandom(3))
