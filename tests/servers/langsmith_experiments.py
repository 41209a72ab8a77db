"""A local server with LangSmith's API for datasets and experiments as its SDK (0.15) calls it.

It extends `LangSmithDatasetServer`, and creates and changes projects (``/sessions``), ``/runs`` and ``/feedback``.
Each received object is validated with the SDK's own models. A run or feedback without its project gets HTTP 501,
and an id that exists gets HTTP 409.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web
from langsmith import schemas

from tests.servers.langsmith_datasets import TENANT, LangSmithDatasetServer


class LangSmithExperimentServer(LangSmithDatasetServer):
    """A server with ``projects``, ``runs`` and ``feedback`` by id. ``extended`` are runs with longer retention."""

    def __init__(self, *, key: str, port: int = 0) -> None:
        super().__init__(key=key, port=port)
        self.projects: dict[str, dict[str, Any]] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        self.feedback: dict[str, dict[str, Any]] = {}
        self.extended: list[str] = []

    def application(self) -> web.Application:
        """Return the routes of the API."""
        application = super().application()
        route = application.router
        route.add_post("/sessions", self._create_project)
        route.add_patch("/sessions/{id}", self._update_project)
        route.add_post("/runs", self._create_run)
        route.add_patch("/runs/{id}", self._update_run)
        route.add_post("/feedback", self._create_feedback)
        route.add_patch("/feedback/{id}", self._update_feedback)
        return application

    def restart(self, *, late: int = 0, multipart: bool = True) -> None:
        """Remove all data and faults."""
        super().restart(late=late, multipart=multipart)
        for stored in (self.projects, self.runs, self.feedback, self.extended):
            stored.clear()

    def scores(self, run_id: str) -> dict[str, float | None]:
        """Return the scores of a run by feedback key. Raises `AssertionError` if two scores have the same key."""
        given = [score for score in self.feedback.values() if score["run_id"] == run_id]
        assert len({score["key"] for score in given}) == len(given), given
        return {score["key"]: score.get("score") for score in given}

    async def _sessions(self, _request: web.Request) -> web.Response:
        projects = [project for project in self.projects.values() if project["name"] == _request.query.get("name")]
        return web.json_response(projects)

    async def _create_project(self, request: web.Request) -> web.Response:
        given = await request.json()
        if given["id"] in self.projects or any(
            project["name"] == given["name"] for project in self.projects.values()
        ):
            return web.json_response({"detail": "Session already exists."}, status=409)
        made = given | {"tenant_id": TENANT}
        schemas.TracerSession(**made)
        self.projects[given["id"]] = made
        return web.json_response(made)

    async def _update_project(self, request: web.Request) -> web.Response:
        project = self.projects.get(request.match_info["id"])
        if project is None:
            return web.json_response({}, status=404)
        project.update({key: value for key, value in (await request.json()).items() if value is not None})
        schemas.TracerSession(**project)
        return web.json_response(project)

    async def _create_run(self, request: web.Request) -> web.Response:
        given = await request.json()
        if given.get("session_id") not in self.projects:
            return web.json_response({"detail": "session_id is required"}, status=501)
        schemas.RunBase.model_validate(given)
        if given["id"] in self.runs:
            return web.json_response({"detail": "Run already exists"}, status=409)
        self.runs[given["id"]] = given
        return web.json_response({}, status=202)

    async def _update_run(self, request: web.Request) -> web.Response:
        run = self.runs.get(request.match_info["id"])
        if run is None:
            return web.json_response({}, status=404)
        run.update(await request.json())
        schemas.RunBase.model_validate(run)
        return web.json_response({}, status=202)

    async def _create_feedback(self, request: web.Request) -> web.Response:
        given = await request.json()
        schemas.FeedbackCreate.model_validate({"trace_id": None} | given)
        if given.get("session_id") not in self.projects:
            return web.json_response({"detail": "session_id is required"}, status=501)
        if given["run_id"] not in self.runs:
            return web.json_response({"detail": "Run not found"}, status=404)
        if given.get("extend_trace_retention", True):
            self.extended.append(given["run_id"])
        if given["id"] in self.feedback:
            return web.json_response({"detail": "exists"}, status=409)
        self.feedback[given["id"]] = given
        return web.json_response(given)

    async def _update_feedback(self, request: web.Request) -> web.Response:
        score = self.feedback.get(request.match_info["id"])
        if score is None:
            return web.json_response({}, status=404)
        score.update(await request.json())
        return web.json_response(score)
