"""A server for the triage agent on loopback. A job starts with an issue's address and ends with a report.

The routes are ``POST /jobs`` (202), ``GET /jobs/ID``, its events as a stream, ``POST /jobs/ID/answer`` while the
job waits for an answer, ``DELETE /jobs/ID``, and ``GET /jobs/ID/report``. Run the server with ``python -m
deployments.demo.agent.service``.
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
from deployments.demo.space import EXIT_USAGE, listen_or_exit
from flows.terminal import print_text

GITHUB_ISSUE: Final = re.compile(r"https://github\.com/[^/]+/[^/]+/issues/\d+")
MAX_ACTIVE_JOBS: Final = 10
KEEPALIVE_S: Final = 30.0
FINAL_STATUSES: Final = ("done", "failed", "killed")


@dataclass
class TriageJob:
    """A job with its state and its events. ``answer`` is set when the user has answered the agent's question."""

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

    def add_event(self, kind: str, **fields: Any) -> None:
        """Add an event, and send it to the readers of the event stream."""
        self.events.append({"type": kind, **fields})
        self.news.set()
        self.news = asyncio.Event()

    def finish(self, status: str) -> None:
        """Set the final status and add the last event."""
        self.status, self.node = status, ""
        self.add_event(f"job.{status}")

    @property
    def state(self) -> Mapping[str, Any]:
        """Return the response to ``GET /jobs/ID``, without the report."""
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
    """The jobs of the agent, and the actions on them. Each action of the agent takes ``pause_s`` seconds."""

    def __init__(self, agent: TriageAgent, pause_s: float, now: Callable[[], datetime]) -> None:
        self._agent = agent
        self._pause_s = pause_s
        self._now = now
        self._issues = load_issues()
        self._jobs: dict[str, TriageJob] = {}

    def start(self, url: object) -> TriageJob:
        """Start a new job. Raises `HTTPException` if the job is refused."""
        if not isinstance(url, str) or not GITHUB_ISSUE.fullmatch(url):
            raise HTTPException(422, "issue_url must match https://github.com/OWNER/REPO/issues/N")
        if url not in self._issues:
            raise HTTPException(
                404, "the issue does not exist. This agent knows only the issues of its own repository"
            )
        if sum(job.status not in FINAL_STATUSES for job in self._jobs.values()) >= MAX_ACTIVE_JOBS:
            raise HTTPException(
                429,
                f"there are already {MAX_ACTIVE_JOBS} active jobs; try again later",
                headers={"Retry-After": "1"},
            )
        job = TriageJob(self._issues[url], self._now())
        self._jobs[job.name] = job
        job.task = asyncio.create_task(self._run_job(job))
        return job

    def require_job_by_id(self, name: str) -> TriageJob:
        """Find a job by its id. Raises HTTP 404 if there is no such job."""
        if name not in self._jobs:
            raise HTTPException(404, "job not found")
        return self._jobs[name]

    async def _run_job(self, job: TriageJob) -> None:
        job.status = "running"
        job.add_event("agent.spawned", agent="investigator")
        actions = self._agent.work(job.issue)
        while True:
            try:
                action = next(actions)
            except StopIteration as finished:
                job.report = finished.value
                break
            await self._perform_action(job, action)
        job.add_event("agent.done", agent="investigator")
        job.add_event("graph.node_complete", node="writer")
        job.finish("done")

    async def _perform_action(self, job: TriageJob, action: Action) -> None:
        if action.question is not None:
            await self._ask_user_and_wait(job, action.question)
            return
        job.node = action.tool
        job.add_event(
            "agent.tool_call", agent="investigator", call={"name": action.tool, "arguments": action.arguments}
        )
        # The demo's agent takes as long as a real agent.
        await asyncio.sleep(self._pause_s)
        job.add_event("agent.tool_result", agent="investigator", tool=action.tool)

    async def _ask_user_and_wait(self, job: TriageJob, question: str) -> None:
        job.status, job.node = "waiting", "human_input"
        job.add_event("human_input", question=question)
        await job.answer.wait()
        job.answer.clear()
        job.status = "running"

    def resume_job_after_answer(self, job: TriageJob) -> None:
        """Accept the user's answer and continue the job. Raises HTTP 409 if the job does not wait for an answer."""
        if job.status != "waiting":
            raise HTTPException(409, "the job is not waiting for an answer")
        job.status = "running"
        job.answer.set()

    def kill(self, job: TriageJob) -> None:
        """Stop a running job."""
        if job.status not in FINAL_STATUSES and job.task is not None:
            job.task.cancel()
            job.finish("killed")


async def stream_events(job: TriageJob) -> AsyncIterator[str]:
    """Stream a job's events from the first to the last. Comment lines keep the connection open."""
    sent = 0
    while True:
        news = job.news
        for event in job.events[sent:]:
            sent += 1
            yield f"id: {sent}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n"
        if job.status in FINAL_STATUSES and sent == len(job.events):
            return
        try:
            async with asyncio.timeout(KEEPALIVE_S):
                await news.wait()
        except TimeoutError:
            yield ": alive\n\n"


def build_app(service: TriageService, commit: str) -> FastAPI:
    """Build the application with its routes."""
    app = FastAPI(openapi_url=None)

    async def version(_request: Request) -> JSONResponse:
        return JSONResponse({"sha": commit, "status": "ok"})

    async def start(request: Request) -> JSONResponse:
        body = await _read_json_object(request)
        job = service.start(body.get("issue_url"))
        return JSONResponse({"job_id": job.name, "status": "queued"}, 202)

    async def state(request: Request) -> JSONResponse:
        return JSONResponse(service.require_job_by_id(request.path_params["name"]).state)

    async def events(request: Request) -> StreamingResponse:
        job = service.require_job_by_id(request.path_params["name"])
        return StreamingResponse(stream_events(job), media_type="text/event-stream")

    async def answer(request: Request) -> JSONResponse:
        job = service.require_job_by_id(request.path_params["name"])
        await _read_json_object(request)
        service.resume_job_after_answer(job)
        return JSONResponse({"job_id": job.name, "status": job.status})

    async def kill(request: Request) -> JSONResponse:
        job = service.require_job_by_id(request.path_params["name"])
        service.kill(job)
        return JSONResponse({"job_id": job.name, "status": job.status})

    async def report(request: Request) -> JSONResponse:
        job = service.require_job_by_id(request.path_params["name"])
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


async def _read_json_object(request: Request) -> Mapping[str, Any]:
    try:
        body = await request.json()
    except ValueError as error:
        raise HTTPException(422, "the body is not JSON") from error
    if not isinstance(body, dict):
        raise HTTPException(422, "the body is not a JSON object")
    return body


def _parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m deployments.demo.agent.service", description="Serve the demo's triage agent."
    )
    parser.add_argument("--port", type=int, default=7861, help="port on 127.0.0.1; 0 for a free port")
    parser.add_argument("--faults", action="store_true", help="plant the faults")
    parser.add_argument(
        "--pause-s", type=float, default=0.3, help=("duration of a tool call in seconds (default 0.3)")
    )
    parser.add_argument("--commit", default="demo", help="the commit hash to return at /version")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Serve until interrupted. Return exit code 2 if the port cannot be used."""
    arguments = _parse_arguments(argv)
    try:
        listener = listen_or_exit(arguments.port)
    except SystemExit as error:
        print_text(f"error: {error}", err=True)
        return EXIT_USAGE
    agent = TriageAgent(load_repository(), FaultyAgent() if arguments.faults else HealthyAgent())
    service = TriageService(agent, arguments.pause_s, lambda: datetime.now(UTC))
    config = uvicorn.Config(build_app(service, arguments.commit), log_level="warning", timeout_graceful_shutdown=2)
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C ends the service
        uvicorn.Server(config).run(sockets=[listener])
    return 0


if __name__ == "__main__":
    sys.exit(main())
