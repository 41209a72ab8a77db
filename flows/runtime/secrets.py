"""Keys and tokens from the environment, random values and run ids.

A function with a parameter ``environment`` reads no other one, and a key is passed directly to the client that
needs it.
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
    """Load a secret from the environment. Raises `ConfigError` if it is not set."""
    value = os.environ.get(variable)
    if not value:
        raise ConfigError(f"{variable} is not set; set secrets in the environment, never in lookout.toml")
    return value


def load_age_key() -> bytes:
    """Load the key for pseudonyms. Raises `ConfigError` when it is missing or too short."""
    key = load_secret(AGE_KEY_VARIABLE).encode()
    if len(key) < MIN_KEY_LENGTH:
        raise ConfigError(
            f"{AGE_KEY_VARIABLE} is too short; use at least {MIN_KEY_LENGTH} characters, and never change the key"
        )
    return key


def generate_key() -> bytes:
    """Generate a key that is not stored, so that its pseudonyms are valid for one nightly run only."""
    return os.urandom(32)


def generate_nonce() -> str:
    """Generate an unpredictable hexadecimal number, for the fences of one prompt."""
    return os.urandom(16).hex()


def get_hub_token() -> str | None:
    """Return the token for private Spaces, from the variable that the Hub's own tools read.

    ``None`` without one.
    """
    return os.environ.get(HUB_VARIABLE)


def get_environment() -> MutableMapping[str, str]:
    """Return the environment of this process."""
    return os.environ


def generate_run_id(target: str) -> str:
    """Generate the id of a new run, with the current time and random bytes."""
    return build_run_id(target, utc_now(), os.urandom(3))
