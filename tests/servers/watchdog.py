"""A watchdog like healthchecks on the loopback interface that receives pings and can compute its alarm."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from aiohttp import web

from tests.servers.threaded_server import ThreadedServer

CHECK = "/ping/a-secret-check"


class Ping(NamedTuple):
    """One ping; ``kind`` is the part of the path after the check's address."""

    kind: str
    rid: str
    body: str
    at_s: float


class Watchdog(ThreadedServer):
    """A watchdog that answers every ping with ``status`` and stores it."""

    def __init__(self, status: int = 200) -> None:
        super().__init__()
        self.status = status
        self.pings: list[Ping] = []
        self._came = threading.Condition()

    @property
    def check(self) -> str:
        """Return the secret address of the check."""
        return self.url + CHECK

    @property
    def kinds(self) -> list[str]:
        """Return the kinds of the pings, oldest first."""
        return [ping.kind for ping in self.pings]

    def wait_for(self, kind: str, count: int = 1, timeout_s: float = 60.0) -> bool:
        """Block until ``count`` pings of this kind were received; return false after ``timeout_s`` seconds."""
        with self._came:
            return self._came.wait_for(lambda: self.kinds.count(kind) >= count, timeout_s)

    def alarm(self, at_s: float, *, period_s: float, grace_s: float) -> bool:
        """Return whether the alarm is on at ``at_s``.

        It is on if the last ping was a failure, or if no success came for the period and the grace time.
        """
        notified = [ping for ping in self.pings if ping.kind in {"", "/fail"}]
        return not notified or notified[-1].kind == "/fail" or at_s - notified[-1].at_s > period_s + grace_s

    def application(self) -> web.Application:
        """Return the routes, which accept the pings of any check."""
        app = web.Application()
        app.router.add_post("/{tail:.*}", self._take)
        return app

    async def _take(self, request: web.Request) -> web.Response:
        kind = next((end for end in ("/start", "/fail") if request.path.endswith(end)), "")
        ping = Ping(kind, request.query["rid"], await request.text(), time.monotonic())
        with self._came:
            self.pings.append(ping)
            self._came.notify_all()
        return web.Response(status=self.status)
