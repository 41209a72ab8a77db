"""A local monitoring service such as Healthchecks, which receives pings and decides whether to raise an alarm."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from aiohttp import web

from tests.servers.threaded_server import ThreadedServer

CHECK = "/ping/a-secret-check"


class Ping(NamedTuple):
    """A received ping. ``kind`` is ``/start``, ``/fail``, or empty for a success."""

    kind: str
    rid: str
    body: str
    at_s: float


class Watchdog(ThreadedServer):
    """A watchdog server that stores every ping and answers it with the HTTP status ``status``."""

    def __init__(self, status: int = 200) -> None:
        super().__init__()
        self.status = status
        self.pings: list[Ping] = []
        self._came = threading.Condition()

    @property
    def check(self) -> str:
        """Return the secret URL to which pings of the check are sent."""
        return self.url + CHECK

    @property
    def kinds(self) -> list[str]:
        """Return the kinds of the pings, oldest first."""
        return [ping.kind for ping in self.pings]

    def wait_for(self, kind: str, count: int = 1, timeout_s: float = 60.0) -> bool:
        """Block until ``count`` pings of this kind have arrived. Return false after ``timeout_s`` seconds."""
        with self._came:
            return self._came.wait_for(lambda: self.kinds.count(kind) >= count, timeout_s)

    def alarm(self, at_s: float, *, period_s: float, grace_s: float) -> bool:
        """Return whether the watchdog raises an alarm at the time ``at_s``.

        It raises an alarm if the last result was a failure, or if no result arrived in the period plus the grace
        time.
        """
        notified = [ping for ping in self.pings if ping.kind in {"", "/fail"}]
        return not notified or notified[-1].kind == "/fail" or at_s - notified[-1].at_s > period_s + grace_s

    def application(self) -> web.Application:
        """Return the application, which accepts pings at any path."""
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
