"""The ports of an installation, and the option that limits it to deploys."""

from __future__ import annotations

from typing import Final

from monitors.config.file import Config

ONLY_DEPLOYS: Final = "--deploys"
MAX_RECEIVER_PORT: Final = 65_533
"""Highest port for the receiver, because the receiver of Slack's buttons and the site use the next two ports."""


def choose_site_port(config: Config, port: int) -> int:
    """Return the site's port when deploys are received at ``port``."""
    return config.site.port or port + 2
