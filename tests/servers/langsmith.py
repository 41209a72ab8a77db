"""A local server with the part of LangSmith's API that its SDK (0.15) needs for runs and feedback.

``/info``, ``/sessions`` (projects by name), ``/api/v2/runs/query`` (pages with a cursor, runs by their start, only
the selected properties), ``/feedback`` (409 for an existing id) and ``PATCH /feedback/{id}``.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from aiohttp import web
from langsmith.schemas import FeedbackCreate

from tests.servers.threaded_server import ThreadedServer

PROJECT = uuid.UUID("11111111-2222-4333-8444-555555555555")
PRODUCTION = uuid.UUID("99999999-2222-4333-8444-555555555555")


class LangSmithServer(ThreadedServer):
    """A LangSmith server whose project ``bot`` contains ``runs``.

    ``faults`` maps a path to the statuses of its next responses. ``projects`` maps the names of all projects that
    the key can see to their ids. ``trees`` contains the runs of each trace, by trace id; each run has a
    ``project_id``. The next ``late`` queries for a trace find nothing. After them, each query finds only as many of
    the last runs as the next number in ``portions``. ``extended`` contains the runs whose traces are retained
    longer because of feedback, which costs money. ``updates`` contains the received changes of feedback.
    """

    def __init__(self, runs: list[dict[str, Any]], *, key: str) -> None:
        super().__init__()
        self.runs = runs
        self.key = key
        self.faults: dict[str, list[int]] = {}
        self.feedback: dict[str, dict[str, Any]] = {}
        self.extended: list[str] = []
        self.updates: list[dict[str, Any]] = []
        self.queries: list[dict[str, Any]] = []
        self.lost_replies = 0
        self.circle = False
        self.hanging = False
        self.projects = {"bot": str(PROJECT)}
        self.trees: dict[str, list[dict[str, Any]]] = {}
        self.late = 0
        self.portions: list[int] = []

    def application(self) -> web.Application:
        """Return the routes of the API."""
        application = web.Application(middlewares=[self._watched])
        application.router.add_get("/info", self._info)
        application.router.add_get("/sessions", self._sessions)
        application.router.add_post("/api/v2/runs/query", self._query)
        application.router.add_post("/feedback", self._create)
        application.router.add_patch("/feedback/{id}", self._update)
        return application

    @property
    def _watched(self) -> Any:
        @web.middleware
        async def watched(
            request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
        ) -> web.StreamResponse:
            if request.headers.get("x-api-key") != self.key:
                return web.json_response({"detail": "Invalid token"}, status=401)
            if self.hanging:
                await self.closing.wait()
            faults = self.faults.get(request.path)
            return web.json_response({}, status=faults.pop(0)) if faults else await handler(request)

        return watched

    async def _info(self, _request: web.Request) -> web.Response:
        return web.json_response({"version": "0.16.20", "instance_flags": {}})

    async def _sessions(self, request: web.Request) -> web.Response:
        name = request.query.get("name", "")
        project = {"id": self.projects.get(name), "name": name, "tenant_id": str(PROJECT)}
        return web.json_response([project | {"reference_dataset_id": None}] if name in self.projects else [])

    async def _query(self, request: web.Request) -> web.Response:
        asked = await request.json()
        self.queries.append(asked)
        if "trace_id" in asked:
            return self._tree(asked)
        if asked["project_ids"] != [str(PROJECT)] or not asked["is_root"]:
            return web.json_response({"detail": "no such project"}, status=422)
        since, until = (datetime.fromisoformat(asked[name]) for name in ("min_start_time", "max_start_time"))
        matching = [run for run in self.runs if since <= datetime.fromisoformat(run["start_time"]) < until]
        start = int(asked.get("cursor", "0"))
        end = start + asked.get("page_size", 100)
        names = {name.lower() for name in asked.get("selects", ["ID"])}
        items = [{name: value for name, value in run.items() if name in names} for run in matching[start:end]]
        after = str(start) if self.circle else str(end) if end < len(matching) else None
        return web.json_response({"items": items, "next_cursor": after})

    def _tree(self, asked: dict[str, Any]) -> web.Response:
        if self.late:
            self.late -= 1
            return web.json_response({"items": [], "next_cursor": None})
        stored = self.trees.get(asked["trace_id"], [])
        if self.portions:
            stored = stored[-self.portions.pop(0) :]
        runs = [run for run in stored if run["project_id"] in asked["project_ids"]]
        start, size = int(asked.get("cursor", "0")), asked["page_size"]
        names = {name.lower() for name in asked["selects"]}
        items = [{key: value for key, value in run.items() if key in names} for run in runs[start : start + size]]
        after = str(start + size) if start + size < len(runs) else None
        return web.json_response({"items": items, "next_cursor": after})

    async def _create(self, request: web.Request) -> web.StreamResponse:
        given = await request.json()
        FeedbackCreate.model_validate({"trace_id": None} | given)
        if given.get("extend_trace_retention", True):
            self.extended.append(given["run_id"])
        if given["session_id"] != str(PROJECT):
            return web.json_response({"detail": "no such project"}, status=422)
        if given["id"] in self.feedback:
            return web.json_response({"detail": "exists"}, status=409)
        self.feedback[given["id"]] = given
        if self.lost_replies:
            self.lost_replies -= 1
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(given)

    async def _update(self, request: web.Request) -> web.Response:
        score = self.feedback.get(request.match_info["id"])
        if score is None:
            return web.json_response({}, status=404)
        given = await request.json()
        self.updates.append(given)
        score.update(given)
        return web.json_response(score)
