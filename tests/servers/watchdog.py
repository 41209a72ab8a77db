"""A watchdog of the healthchecks kind on loopback: takes pings, and says when it would raise its alarm."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from aiohttp import web

from tests.servers.threaded_server import ThreadedServer

CHECK = "/ping/a-secret-check"


class Ping(NamedTuple):
    """One ping: ``kind`` is what follows the check's address."""

    kind: str
    rid: str
    body: str
    at_s: float


class Watchdog(ThreadedServer):
    """Answers every ping with ``status`` and keeps it."""

    def __init__(self, status: int = 200) -> None:
        super().__init__()
        self.status = status
        self.pings: list[Ping] = []
        self._came = threading.Condition()

    @property
    def check(self) -> str:
        """The secret address."""
        return self.url + CHECK

    @property
    def kinds(self) -> list[str]:
        """What the pings said, oldest first."""
        return [ping.kind for ping in self.pings]

    def wait_for(self, kind: str, count: int = 1, timeout_s: float = 60.0) -> bool:
        """Block until ``count`` pings of this kind have come; false when they did not in time."""
        with self._came:
            return self._came.wait_for(lambda: self.kinds.count(kind) >= count, timeout_s)

    def alarm(self, at_s: float, *, period_s: float, grace_s: float) -> bool:
        """Whether it rings at ``at_s``: the last word was a failure, or no success came for period and grace."""
        notified = [ping for ping in self.pings if ping.kind in {"", "/fail"}]
        return not notified or notified[-1].kind == "/fail" or at_s - notified[-1].at_s > period_s + grace_s

    def application(self) -> web.Application:
        """Takes any check's pings."""
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
