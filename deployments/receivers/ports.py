"""Whether something can listen on a port: asked before anything is started or announced."""

from __future__ import annotations

import socket

from monitors.errors import ConfigError


def check_free(host: str, port: int, what: str, option: str = "--port") -> None:
    """Raise `ConfigError` when ``what`` cannot listen there; ``option`` is how another port is named."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise ConfigError(
                f"{what} cannot listen on port {port} ({why.lower()}); stop what holds it, or name another one: "
                f"{option}"
            ) from None
