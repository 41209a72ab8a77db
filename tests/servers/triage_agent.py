"""An agent that triages issues, as a service: a job is started with an issue's address and ends with a report.

What it reports of which issue is told to it; every poll but the first finds the job done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from tests.servers.threaded import ThreadedServer


class TriageAgent(ThreadedServer):
    """``POST /jobs`` with ``issue_url``; ``GET /jobs/ID`` has the state, the steps and, in the end, the report."""

    def __init__(self, reports: Mapping[str, object], steps: Mapping[str, list[str]] | None = None) -> None:
        super().__init__()
        self.reports = reports
        self.steps = steps or {}
        self.started: list[str] = []
        self._polled: set[str] = set()

    def application(self) -> web.Application:
        application = web.Application()
        application.router.add_post("/jobs", self._start)
        application.router.add_get("/jobs/{id}", self._state)
        return application

    async def _start(self, request: web.Request) -> web.Response:
        self.started.append((await request.json())["issue_url"])
        return web.json_response({"job_id": str(len(self.started)), "status": "queued"}, status=202)

    async def _state(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        issue = self.started[int(name) - 1]
        state: dict[str, Any] = {"job_id": name, "status": "running"}
        if name in self._polled:
            state |= {"status": "done", "report": self.reports[issue]}
            state["steps"] = [{"name": step} for step in self.steps.get(issue, [])]
        self._polled.add(name)
        return web.json_response(state)
