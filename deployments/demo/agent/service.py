"""The triage agent as a service on loopback: a job is started with an issue's address and ends with a report.

``POST /jobs`` (202), ``GET /jobs/ID``, its events as a stream, ``POST /jobs/ID/answer`` while it waits for one,
``DELETE /jobs/ID``, and ``GET /jobs/ID/report``. Run it with ``python -m deployments.demo.agent.service``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, StreamingResponse

from deployments.demo.agent.faults import FaultyAgent, HealthyAgent
from deployments.demo.agent.triage import Action, IssueText, Report, TriageAgent, load_issues, load_repository
from deployments.demo.space import EXIT_USAGE, bound_socket
from flows.terminal import print_text

GITHUB_ISSUE: Final = re.compile(r"https://github\.com/[^/]+/[^/]+/issues/\d+")
MOST_ACTIVE: Final = 10
KEEPALIVE_S: Final = 30.0
ENDS: Final = ("done", "failed", "killed")


@dataclass
class TriageJob:
    """One job: its state, its events so far, and what it waits for."""

    issue: IssueText
    created_at: datetime
    name: str = field(default_factory=lambda: str(uuid4()))
    status: str = "queued"
    node: str = ""
    report: Report | None = None
    events: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    news: asyncio.Event = field(default_factory=asyncio.Event)
    answer: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def says(self, kind: str, **fields: Any) -> None:
        """Adds an event, and wakes those who follow the stream."""
        self.events.append({"type": kind, **fields})
        self.news.set()
        self.news = asyncio.Event()

    def ends(self, status: str) -> None:
        """The last event."""
        self.status, self.node = status, ""
        self.says(f"job.{status}")

    @property
    def state(self) -> Mapping[str, Any]:
        """What ``GET /jobs/ID`` answers. The report is not in it."""
        return {
            "job_id": self.name,
            "status": self.status,
            "issue_url": self.issue.url,
            "issue_title": self.issue.title,
            "repository": "/".join(self.issue.url.split("/")[3:5]),
            "awaiting_human": self.status == "waiting",
            "current_node": self.node,
            "created_at": self.created_at.isoformat(),
        }


class TriageService:
    """Runs the jobs. Each of the agent's actions takes ``pause_s`` seconds."""

    def __init__(self, agent: TriageAgent, pause_s: float, now: Callable[[], datetime]) -> None:
        self._agent = agent
        self._pause_s = pause_s
        self._now = now
        self._issues = load_issues()
        self._jobs: dict[str, TriageJob] = {}

    def start(self, url: object) -> TriageJob:
        """A new job; an `HTTPException` where it cannot be taken."""
        if not isinstance(url, str) or not GITHUB_ISSUE.fullmatch(url):
            raise HTTPException(422, "issue_url must match https://github.com/OWNER/REPO/issues/N")
        if url not in self._issues:
            raise HTTPException(404, "no such issue; this agent knows those of its own repository alone")
        if sum(job.status not in ENDS for job in self._jobs.values()) >= MOST_ACTIVE:
            raise HTTPException(429, f"more than {MOST_ACTIVE} active jobs", headers={"Retry-After": "1"})
        job = TriageJob(self._issues[url], self._now())
        self._jobs[job.name] = job
        job.task = asyncio.create_task(self._work(job))
        return job

    def job(self, name: str) -> TriageJob:
        """A job by its id; HTTP 404 when there is none."""
        if name not in self._jobs:
            raise HTTPException(404, "job not found")
        return self._jobs[name]

    async def _work(self, job: TriageJob) -> None:
        job.status = "running"
        job.says("agent.spawned", agent="investigator")
        actions = self._agent.work(job.issue)
        while True:
            try:
                action = next(actions)
            except StopIteration as finished:
                job.report = finished.value
                break
            await self._do(job, action)
        job.says("agent.done", agent="investigator")
        job.says("graph.node_complete", node="writer")
        job.ends("done")

    async def _do(self, job: TriageJob, action: Action) -> None:
        if action.asks is not None:
            await self._ask(job, action.asks)
            return
        job.node = action.tool
        job.says("agent.tool_call", agent="investigator", call={"name": action.tool, "arguments": action.arguments})
        # The demo's agent takes as long as a real one would.
        await asyncio.sleep(self._pause_s)
        job.says("agent.tool_result", agent="investigator", tool=action.tool)

    async def _ask(self, job: TriageJob, question: str) -> None:
        job.status, job.node = "waiting", "human_input"
        job.says("human_input", question=question)
        await job.answer.wait()
        job.answer.clear()
        job.status = "running"

    def answered(self, job: TriageJob) -> None:
        """The user has answered; HTTP 409 when nothing was asked."""
        if job.status != "waiting":
            raise HTTPException(409, "the job does not wait for an answer")
        job.status = "running"
        job.answer.set()

    def kill(self, job: TriageJob) -> None:
        """Stops a job that is under way."""
        if job.status not in ENDS and job.task is not None:
            job.task.cancel()
            job.ends("killed")


async def stream(job: TriageJob) -> AsyncIterator[str]:
    """A job's events from the first on, until it ends; a comment now and then shows that the server lives."""
    sent = 0
    while True:
        news = job.news
        for event in job.events[sent:]:
            sent += 1
            yield f"id: {sent}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n"
        if job.status in ENDS and sent == len(job.events):
            return
        try:
            async with asyncio.timeout(KEEPALIVE_S):
                await news.wait()
        except TimeoutError:
            yield ": alive\n\n"


def build_app(service: TriageService, commit: str) -> FastAPI:
    """The routes."""
    app = FastAPI(openapi_url=None)

    async def version(_request: Request) -> JSONResponse:
        return JSONResponse({"sha": commit, "status": "ok"})

    async def start(request: Request) -> JSONResponse:
        body = await _object_of(request)
        job = service.start(body.get("issue_url"))
        return JSONResponse({"job_id": job.name, "status": "queued"}, 202)

    async def state(request: Request) -> JSONResponse:
        return JSONResponse(service.job(request.path_params["name"]).state)

    async def events(request: Request) -> StreamingResponse:
        job = service.job(request.path_params["name"])
        return StreamingResponse(stream(job), media_type="text/event-stream")

    async def answer(request: Request) -> JSONResponse:
        job = service.job(request.path_params["name"])
        await _object_of(request)
        service.answered(job)
        return JSONResponse({"job_id": job.name, "status": job.status})

    async def kill(request: Request) -> JSONResponse:
        job = service.job(request.path_params["name"])
        service.kill(job)
        return JSONResponse({"job_id": job.name, "status": job.status})

    async def report(request: Request) -> JSONResponse:
        job = service.job(request.path_params["name"])
        if job.report is None:
            raise HTTPException(404, "there is no report yet")
        return JSONResponse(job.report.model_dump(mode="json"))

    routes = (
        ("GET", "/version", version),
        ("GET", "/health", version),
        ("POST", "/jobs", start),
        ("GET", "/jobs/{name}", state),
        ("DELETE", "/jobs/{name}", kill),
        ("GET", "/jobs/{name}/stream", events),
        ("POST", "/jobs/{name}/answer", answer),
        ("GET", "/jobs/{name}/report", report),
    )
    for method, path, endpoint in routes:
        app.add_route(path, endpoint, methods=[method])
    return app


async def _object_of(request: Request) -> Mapping[str, Any]:
    try:
        body = await request.json()
    except ValueError as error:
        raise HTTPException(422, "the body is no JSON") from error
    if not isinstance(body, dict):
        raise HTTPException(422, "the body is no JSON object")
    return body


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m deployments.demo.agent.service", description="Serve the demo's triage agent."
    )
    parser.add_argument("--port", type=int, default=7861, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--faults", action="store_true", help="plant the faults")
    parser.add_argument("--pause-s", type=float, default=0.3, help="seconds that a tool takes (default 0.3)")
    parser.add_argument("--commit", default="demo", help="what /version gives as sha")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Serve until interrupted, which is no failure. Exit code 2 when the port cannot be used."""
    arguments = _arguments(argv)
    try:
        listener = bound_socket(arguments.port)
    except SystemExit as trouble:
        print_text(f"error: {trouble}", err=True)
        return EXIT_USAGE
    agent = TriageAgent(load_repository(), FaultyAgent() if arguments.faults else HealthyAgent())
    service = TriageService(agent, arguments.pause_s, lambda: datetime.now(UTC))
    config = uvicorn.Config(build_app(service, arguments.commit), log_level="warning", timeout_graceful_shutdown=2)
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is how a person ends it
        uvicorn.Server(config).run(sockets=[listener])
    return 0


if __name__ == "__main__":
    sys.exit(main())
