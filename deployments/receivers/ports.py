"""Checks whether a port is free before anything is started or announced."""

from __future__ import annotations

import socket

from monitors.errors import ConfigError


def require_free_port(host: str, port: int, service: str, option: str = "--port") -> None:
    """Raise `ConfigError` if ``service`` cannot listen on the port.

    The error names ``option``, with which the user can choose another port.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise ConfigError(
                f"{service} cannot listen on port {port} ({why.lower()}). Stop the program that uses this port, or "
                f"choose another port with {option}"
            ) from None
