"""Reads keys and tokens from the environment, and generates random values and run ids."""

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
    """Load a secret from the environment. Raises `ConfigError` if the variable is not set."""
    value = os.environ.get(variable)
    if not value:
        raise ConfigError(f"{variable} is not set; set secrets in the environment, never in lookout.toml")
    return value


def load_pseudonym_key() -> bytes:
    """Load the key that turns ids into pseudonyms. Raises `ConfigError` if the key is unusable."""
    key = load_secret(AGE_KEY_VARIABLE).encode()
    if len(key) < MIN_KEY_LENGTH:
        raise ConfigError(
            f"{AGE_KEY_VARIABLE} is too short: use at least {MIN_KEY_LENGTH} characters, and never change the key"
        )
    return key


def generate_random_key() -> bytes:
    """Generate a random key that is never stored, so that each nightly run uses different pseudonyms."""
    return os.urandom(32)


def generate_nonce() -> str:
    """Generate a random hexadecimal number."""
    return os.urandom(16).hex()


def get_hub_token() -> str | None:
    """Return the token for private Spaces from ``HF_TOKEN``, or ``None`` if the variable is not set."""
    return os.environ.get(HUB_VARIABLE)


def get_environment() -> MutableMapping[str, str]:
    """Return the environment of this process."""
    return os.environ


def generate_run_id(target: str) -> str:
    """Generate the id of a new run from the current time and random bytes."""
    return build_run_id(target, utc_now(), os.urandom(3))
