"""The ports of an installation, and the option that limits it to deploys."""

from __future__ import annotations

from typing import Final

from monitors.config.file import Config

ONLY_DEPLOYS: Final = "--deploys"
MAX_RECEIVER_PORT: Final = 65_533
"""Highest port for the deploy receiver. The Slack button receiver and the site use the next two ports."""


def choose_site_port(config: Config, port: int) -> int:
    """Return the site's configured port or, without one, the deploy receiver's ``port`` plus 2."""
    return config.site.port or port + 2
