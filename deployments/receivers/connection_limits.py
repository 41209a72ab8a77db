"""Limits the connections of a receiver by what they do and not by how many there are.

A connection that sends no whole head within a few seconds is closed, whoever it is; one address may have only so
many of them. So neither idle connections nor slow ones take the place of a genuine delivery, and `/healthz` answers
whatever the others do.
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

HEAD_DEADLINE_S: Final = 5.0
"""From the connection, or the first byte of a further request, to the end of the head. GitHub sends it at once."""
MOST_OF_A_PEER: Final = 64
"""Connections of one address without a head; a proxy in front of the receiver sends the head at once."""
PATIENCE_S: Final = 1.0
"""A connection this young is not closed for being one of many: a burst of genuine ones comes like that."""
MOST_WITHOUT_HEAD: Final = 1_024
FILES: Final = 8_192
"""Open files that the process asks for: the usual 1,024 would end a burst of a thousand deliveries."""


class Heads:
    """The connections of one server whose head has not come, the one that waits longest first."""

    def __init__(self) -> None:
        self._since: dict[BoundedProtocol, float] = {}
        self._of_peer: Counter[str] = Counter()

    def begin(self, connection: BoundedProtocol, now_s: float) -> None:
        """Wait for a head; where too many wait, close those that wait longest."""
        if connection in self._since:
            return
        self._since[connection] = now_s
        self._of_peer[connection.peer] += 1
        if self._of_peer[connection.peer] > MOST_OF_A_PEER:
            for one in [one for one, since_s in self._since.items() if now_s - since_s > PATIENCE_S]:
                if one.peer == connection.peer and self._of_peer[one.peer] > MOST_OF_A_PEER:
                    self.end(one)
                    one.drop()
        if len(self._since) > MOST_WITHOUT_HEAD:
            oldest = next(iter(self._since))
            self.end(oldest)
            oldest.drop()

    def end(self, connection: BoundedProtocol) -> None:
        """Stop waiting: its head came, or the connection is gone."""
        if self._since.pop(connection, None) is not None:
            self._of_peer[connection.peer] -= 1
            if not self._of_peer[connection.peer]:
                del self._of_peer[connection.peer]


_heads: WeakKeyDictionary[ServerState, Heads] = WeakKeyDictionary()


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP with a deadline for each head."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._heads = _heads.setdefault(self.server_state, Heads())
        self._answering: object = None
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def peer(self) -> str:
        """The address that it comes from."""
        return self.client[0] if self.client else ""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the deadline of its first head."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Start the deadline of a further request on the same connection at its first byte."""
        if self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._await_head()
        super().data_received(data)
        if self.cycle is not self._answering:
            self._answering = self.cycle
            self._head_came()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting for a head."""
        self._head_came()
        super().connection_lost(exc)

    def drop(self) -> None:
        """Close it without an answer: a sender that waits so long reads none."""
        if self.transport is not None:
            self.transport.abort()

    def _await_head(self) -> None:
        self._deadline = self.loop.call_later(HEAD_DEADLINE_S, self.drop)
        self._heads.begin(self, self.loop.time())

    def _head_came(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._heads.end(self)


def allow_files() -> None:
    """Raise the limit of open files to `FILES`, as far as the system lets this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft < wanted:
        # A container may refuse it; the limit stays then.
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
