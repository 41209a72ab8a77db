"""Limits on connections to a receiver or to the site that have not sent a complete request.

A connection is closed if it has not sent a complete head or body after a few seconds. The number of such
connections per client is limited. Therefore idle or slow connections do not block genuine deliveries, people or
`/healthz`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from monitors.plural import plural

if TYPE_CHECKING:
    from starlette.types import ASGIApp
    from uvicorn._types import HTTPScope
    from uvicorn.server import ServerState

HEAD_TIMEOUT_S: Final = 5.0
"""Maximum time for the head of a request, in seconds.

The time begins when the connection is made or, for a later request, with the first byte of its head.
"""
MAX_PER_PEER: Final = 64
"""Maximum number of connections of one client that have not sent a complete head.

The site has the same limit for bodies. A proxy in front of Lookout does not reach the limit, because it sends head
and body immediately.
"""
MIN_AGE_TO_CLOSE_S: Final = 1.0
"""Minimum age in seconds at which a connection may be closed because its client has too many connections.

Younger connections may be genuine.
"""
DEFAULT_BACKLOG: Final = 128
"""Maximum number of connections that asyncio accepts before it handles any of them.

The number must be less than `RESERVED_FILES`. Otherwise many simultaneous connections could use up the reserved
files.
"""
RESERVED_FILES: Final = 256
"""The number of open files that connections cannot use.

The process needs these files for its log, journal and warehouse.
"""
MIN_CONNECTIONS: Final = 64
BODY_TIMEOUT_S: Final = 10.0
"""Maximum time from the end of a request's head to the end of its body, in seconds.

Receivers have shorter limits.
"""
REPEAT_S: Final = 60.0
NOISY_MESSAGES: Final = ("out of system resource", "Too many open files")
STARTUP_FAILURE: Final = 3
"""The exit code if the server cannot start. uvicorn uses the same code."""
OPEN_FILES_LIMIT: Final = 8_192
"""The limit of open files that the process sets for itself.

The usual limit of 1,024 is too low for 1,000 simultaneous deliveries.
"""


class PendingConnections:
    """The connections to one server that have not sent a complete head or body yet, longest-waiting first."""

    def __init__(self) -> None:
        self._waiting: dict[BoundedProtocol, tuple[float, str | None]] = {}
        self._of_peer: Counter[str] = Counter()

    def add_and_close_excess_connections(self, connection: BoundedProtocol, peer: str | None, now_s: float) -> None:
        """Add a client's connection. If too many of the client's connections wait, close the longest-waiting ones.

        Connections that are younger than `MIN_AGE_TO_CLOSE_S` stay open. ``peer`` is ``None`` for a client without
        a limit.
        """
        if connection in self._waiting:
            return
        self._waiting[connection] = now_s, peer
        if peer is None:
            return
        self._of_peer[peer] += 1
        if self._of_peer[peer] > MAX_PER_PEER:
            own = [(waiting, since_s) for waiting, (since_s, client) in self._waiting.items() if client == peer]
            for waiting, since_s in own[: len(own) - MAX_PER_PEER]:
                if now_s - since_s > MIN_AGE_TO_CLOSE_S:
                    self._close(waiting)

    @property
    def oldest_waiting_since_s(self) -> float:
        """Return the time at which the longest-waiting connection began to wait, on the event loop's clock.

        The time is infinite if no connection waits.
        """
        return next((since_s for since_s, _ in self._waiting.values()), math.inf)

    def close_oldest(self) -> None:
        """Close the connection that waits longest, if there is one."""
        if self._waiting:
            self._close(next(iter(self._waiting)))

    def remove(self, connection: BoundedProtocol) -> None:
        """Remove a connection that has sent its complete head or body, or that was closed."""
        _, peer = self._waiting.pop(connection, (0.0, None))
        if peer is not None:
            self._of_peer[peer] -= 1
            if not self._of_peer[peer]:
                del self._of_peer[peer]

    def _close(self, connection: BoundedProtocol) -> None:
        self.remove(connection)
        connection.close_without_answer()


@dataclass(frozen=True)
class _Pending:
    heads: PendingConnections = field(default_factory=PendingConnections)
    bodies: PendingConnections = field(default_factory=PendingConnections)

    def close_oldest(self) -> None:
        """Close the connection that waits longest for a head or a body."""
        min(self.heads, self.bodies, key=lambda waiting: waiting.oldest_waiting_since_s).close_oldest()


_pending: WeakKeyDictionary[ServerState, _Pending] = WeakKeyDictionary()


class BoundedProtocol(H11Protocol):
    """uvicorn's HTTP protocol with a deadline for each head and each body.

    The deadline of a body applies even if the application does not read the body.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._pending = _pending.setdefault(self.server_state, _Pending())
        self._answering: object = None
        self._head_deadline: asyncio.TimerHandle | None = None
        self._body_deadline: asyncio.TimerHandle | None = None

    @property
    def peer(self) -> str:
        """Return the address of the peer: the client or a proxy."""
        return self.client[0] if self.client else ""

    def find_limited_client(self, scope: HTTPScope) -> str | None:
        """Return the client whose unfinished bodies are limited, or ``None`` for no limit.

        A receiver has no limit for each client, because a proxy or GitHub may send a thousand deliveries at the
        same time. The site overrides this method.
        """
        del scope
        return None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the deadline of the first head. If too many connections are open, close the longest-waiting one."""
        super().connection_made(transport)
        self._start_head_deadline()
        if len(self.connections) > compute_max_connections():
            self._pending.close_oldest()

    def data_received(self, data: bytes) -> None:
        """Process received bytes. Start and stop the deadlines for the head and the body of the request.

        The time for a later head begins with its first byte. The time for a body begins after its head.
        """
        if self._head_deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._start_head_deadline()
        super().data_received(data)
        if self.cycle is not self._answering:
            self._answering = self.cycle
            self._cancel_head_deadline()
        if self.cycle is not None and self.cycle.more_body:
            self._start_body_deadline(self.cycle.scope)
        else:
            self._cancel_body_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadlines, because the connection is closed."""
        self._cancel_head_deadline()
        self._cancel_body_deadline()
        super().connection_lost(exc)

    def close_without_answer(self) -> None:
        """Close the connection without a response."""
        if self.transport is not None:
            self.transport.abort()

    def _start_head_deadline(self) -> None:
        self._head_deadline = self.loop.call_later(HEAD_TIMEOUT_S, self.close_without_answer)
        self._pending.heads.add_and_close_excess_connections(self, self.peer, self.loop.time())

    def _cancel_head_deadline(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None
        self._pending.heads.remove(self)

    def _start_body_deadline(self, scope: HTTPScope) -> None:
        if self._body_deadline is None:
            self._body_deadline = self.loop.call_later(BODY_TIMEOUT_S, self.close_without_answer)
            self._pending.bodies.add_and_close_excess_connections(
                self, self.find_limited_client(scope), self.loop.time()
            )

    def _cancel_body_deadline(self) -> None:
        if self._body_deadline is not None:
            self._body_deadline.cancel()
            self._body_deadline = None
        self._pending.bodies.remove(self)


class PeerBoundedProtocol(BoundedProtocol):
    """A `BoundedProtocol` that also limits the unfinished bodies of each peer, such as Slack or a proxy."""

    def find_limited_client(self, scope: HTTPScope) -> str:
        """Return the peer of the connection."""
        del scope
        return self.peer


class RepeatFilter(logging.Filter):
    """A log filter that writes a repeated message from `NOISY_MESSAGES` at most once in `REPEAT_S` seconds.

    The next such line contains the number of skipped repeats. All other messages are written unchanged.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._last: dict[str, float] = {}
        self._repeats: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write the record. Cut a message from `NOISY_MESSAGES` to its first line.

        The traceback after such a message is also removed, because the traceback does not help to find the cause.
        """
        if not any(text in record.getMessage() for text in NOISY_MESSAGES):
            return True
        text, now_s = record.getMessage().splitlines()[0], self._monotonic()
        if now_s - self._last.get(text, -REPEAT_S) < REPEAT_S:
            self._repeats[text] += 1
            return False
        count, self._last[text] = self._repeats.pop(text, 0), now_s
        repeats = f" (repeated {plural(count, 'time')} since the last line)" if count else ""
        record.msg, record.args, record.exc_info, record.exc_text = f"{text}{repeats}", (), None, None
        return True


def build_bounded_server(
    application: ASGIApp,
    *,
    host: str,
    port: int,
    protocol: type[BoundedProtocol],
    stop_timeout_s: int,
    backlog: int = DEFAULT_BACKLOG,
    **options: Any,
) -> uvicorn.Server:
    """Build a server for ``application`` that limits connections according to ``protocol``.

    Also raise the process's limit of open files, and limit repeated log lines. ``backlog`` is the maximum number of
    connections that wait to be accepted, and the maximum number that asyncio accepts in a row. ``options`` are
    passed to uvicorn.
    """
    raise_file_limit()
    limit_repeated_log_lines()
    return uvicorn.Server(
        uvicorn.Config(
            application,
            host=host,
            port=port,
            http=protocol,
            backlog=backlog,
            timeout_graceful_shutdown=stop_timeout_s,
            log_level="warning",
            access_log=False,
            server_header=False,
            **options,
        )
    )


def serve_until_signal(server: uvicorn.Server) -> None:
    """Serve until SIGTERM or SIGINT. After the server has stopped, uvicorn raises the signal again.

    If the server cannot start, end the process with `STARTUP_FAILURE`.
    """
    server.run()
    if not server.started:
        sys.exit(STARTUP_FAILURE)


def limit_repeated_log_lines(monotonic: Callable[[], float] = time.monotonic) -> None:
    """Limit the messages that asyncio logs for each connection while the process cannot open more files."""
    logging.getLogger("asyncio").addFilter(RepeatFilter(monotonic))


def compute_max_connections() -> int:
    """Return the maximum number of open connections.

    This is the process's limit of open files minus `RESERVED_FILES`, but at least `MIN_CONNECTIONS`.
    """
    return max(MIN_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVED_FILES)


def raise_file_limit() -> None:
    """Raise the limit of open files to `OPEN_FILES_LIMIT`, or as far as the system permits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = OPEN_FILES_LIMIT if hard == resource.RLIM_INFINITY else min(OPEN_FILES_LIMIT, hard)
    if soft < limit:
        # A container may refuse the change. Then the limit does not change.
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
