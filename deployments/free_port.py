"""A port that nobody listens on."""

from __future__ import annotations

import socket


def free_port(host: str, preferred: int) -> int:
    """``preferred`` when it is free, else one that the system picks."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError(f"no free port on {host}")
