"""Limit a receiver's connections that have not sent a complete request head.

A connection without a complete head after a few seconds is closed, and one address may have only a few of
them. So idle or slow connections do not block genuine deliveries or `/healthz`.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from uvicorn.server import ServerState

HEAD_TIMEOUT_S: Final = 5.0
"""From the connection, or the first byte of a further request, to the end of the head. GitHub sends it at once."""
MAX_PER_PEER: Final = 64
"""Connections of one address without a head; a proxy in front of the receiver sends the head immediately."""
MIN_AGE_TO_CLOSE_S: Final = 1.0
"""Younger connections are not closed when there are too many: they may be a burst of genuine ones."""
MAX_WITHOUT_HEAD: Final = 1_024
OPEN_FILES_LIMIT: Final = 8_192
"""Limit of open files that the process sets: the usual 1,024 is too low for a burst of a thousand deliveries."""


class PendingConnections:
    """The connections of one server that have not sent their head, the longest waiting one first."""

    def __init__(self) -> None:
        self._since: dict[BoundedProtocol, float] = {}
        self._of_peer: Counter[str] = Counter()

    def begin(self, connection: BoundedProtocol, now_s: float) -> None:
        """Add a connection that waits for its head; if too many wait, close those that wait longest."""
        if connection in self._since:
            return
        self._since[connection] = now_s
        self._of_peer[connection.peer] += 1
        if self._of_peer[connection.peer] > MAX_PER_PEER:
            for waiting in [
                waiting for waiting, since_s in self._since.items() if now_s - since_s > MIN_AGE_TO_CLOSE_S
            ]:
                if waiting.peer == connection.peer and self._of_peer[waiting.peer] > MAX_PER_PEER:
                    self.end(waiting)
                    waiting.drop()
        if len(self._since) > MAX_WITHOUT_HEAD:
            oldest = next(iter(self._since))
            self.end(oldest)
            oldest.drop()

    def end(self, connection: BoundedProtocol) -> None:
        """Remove a connection: its head arrived, or it was closed."""
        if self._since.pop(connection, None) is not None:
            self._of_peer[connection.peer] -= 1
            if not self._of_peer[connection.peer]:
                del self._of_peer[connection.peer]


_heads: WeakKeyDictionary[ServerState, PendingConnections] = WeakKeyDictionary()


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP with a deadline for each head."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._heads = _heads.setdefault(self.server_state, PendingConnections())
        self._answering: object = None
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def peer(self) -> str:
        """The client's address."""
        return self.client[0] if self.client else ""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the deadline of its first head."""
        super().connection_made(transport)
        self._start_waiting()

    def data_received(self, data: bytes) -> None:
        """Start the deadline of a further request on the same connection at its first byte."""
        if self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._start_waiting()
        super().data_received(data)
        if self.cycle is not self._answering:
            self._answering = self.cycle
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting for a head."""
        self._stop_waiting()
        super().connection_lost(exc)

    def drop(self) -> None:
        """Close the connection without an answer."""
        if self.transport is not None:
            self.transport.abort()

    def _start_waiting(self) -> None:
        self._deadline = self.loop.call_later(HEAD_TIMEOUT_S, self.drop)
        self._heads.begin(self, self.loop.time())

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._heads.end(self)


def raise_file_limit() -> None:
    """Raise the limit of open files to `OPEN_FILES_LIMIT`, as far as the system permits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = OPEN_FILES_LIMIT if hard == resource.RLIM_INFINITY else min(OPEN_FILES_LIMIT, hard)
    if soft < limit:
        # A container may refuse it; the limit stays then.
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
