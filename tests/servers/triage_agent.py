"""A service that triages issues: a job starts with the URL of an issue and ends with a report.

``POST /jobs`` starts a job or returns the existing job of the issue (202; 422 for an invalid issue, 429 if ten jobs
are active). ``GET /jobs/ID`` returns its state (404 for an unknown id), ``/jobs/ID/stream`` its events, and
``POST /graphql`` its report, which the test sets for each issue. A job is done at the second poll, or at the end of
its stream.
"""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web

from tests.servers.threaded_server import ThreadedServer

MAX_ACTIVE = 10
GITHUB_ISSUE = re.compile(r"https://github\.com/[^/]+/[^/]+/issues/\d+")
JOB_QUERY = re.compile(
    r'\bjob\s*\(\s*jobId:\s*(?:"(?P<id>(?:[^"\\]|\\.)*)"|\$(?P<name>\w+))\s*\)\s*\{(?P<fields>[^}]*)\}'
)
GRAPHQL_FIELDS = (
    "severity",
    "recommendedFix",
    "relevantFiles",
    "githubComment",
    "ticketTitle",
    "status",
    "rootCause",
)
Event = Mapping[str, object]


@dataclass
class StartedJob:
    """A triage job that the server started."""

    issue: str
    created_at: datetime
    polls: int = 0
    done: bool = False
    streams: int = 0


@dataclass
class Requests:
    """The requests that the server received."""

    paths: list[str] = field(default_factory=list[str])
    queries: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    headers: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])


class TriageAgent(ThreadedServer):
    """The triage service.

    ``reports``, ``steps``, ``events`` and ``langsmith_urls`` (the URLs of the traces) are keyed by issue. Unless
    ``graphql_only`` is true, the state of a finished job also contains its report and steps. The stream of a job
    sends its events and then ``job.done``, or breaks off before ``job.done`` if the issue is in ``breaks``. The
    next ``busy`` start requests get HTTP 429, and the next ``resolver_errors`` queries fail in a resolver. Polls do
    not finish a job before ``may_end`` returns true.
    """

    def __init__(
        self,
        reports: Mapping[str, object],
        steps: Mapping[str, list[str]] | None = None,
        *,
        events: Mapping[str, Sequence[Event]] | None = None,
        graphql_only: bool = False,
    ) -> None:
        super().__init__()
        self.reports = reports
        self.steps = steps or {}
        self.events = events or {}
        self.graphql_only = graphql_only
        self.langsmith_urls: Mapping[str, str] = {}
        self.breaks: set[str] = set()
        self.started: list[str] = []
        self.jobs: dict[str, StartedJob] = {}
        self.asked = Requests()
        self.busy = 0
        self.resolver_errors = 0
        self.query_refused_with = 200
        self.may_end: Callable[[], bool] = lambda: True

    def application(self) -> web.Application:
        application = web.Application(middlewares=[self._noted])
        application.router.add_post("/jobs", self._start)
        application.router.add_get("/jobs/{id}", self._state)
        application.router.add_get("/jobs/{id}/stream", self._stream)
        application.router.add_post("/graphql", self._graphql)
        return application

    def age(self, hours: float) -> None:
        """Make all jobs ``hours`` hours older."""
        for job in self.jobs.values():
            job.created_at -= timedelta(hours=hours)

    @web.middleware
    async def _noted(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked.paths.append(f"{request.method} {request.path}")
        self.asked.headers.append(dict(request.headers))
        return await handler(request)

    async def _start(self, request: web.Request) -> web.Response:
        issue = (await request.json())["issue_url"]
        if not GITHUB_ISSUE.fullmatch(issue):
            return web.json_response({"detail": "issue_url should match the pattern"}, status=422)
        job_id = next((name for name, job in self.jobs.items() if job.issue == issue), None)
        if job_id is not None:
            return web.json_response({"job_id": job_id, "status": "queued"}, status=202)
        active = sum(not job.done for job in self.jobs.values())
        if self.busy or active >= MAX_ACTIVE:
            self.busy = max(0, self.busy - 1)
            return web.json_response({"detail": "Active job limit (10) exceeded"}, status=429)
        name = str(uuid.uuid4())
        self.started.append(issue)
        self.jobs[name] = StartedJob(issue, datetime.now(UTC))
        return web.json_response({"job_id": name, "status": "queued"}, status=202)

    def _found(self, request: web.Request) -> tuple[str, StartedJob]:
        name = request.match_info["id"]
        if name not in self.jobs:
            raise web.HTTPNotFound(text='{"detail": "Job not found"}', content_type="application/json")
        return name, self.jobs[name]

    async def _state(self, request: web.Request) -> web.Response:
        name, job = self._found(request)
        job.done = job.done or (job.polls > 0 and self.may_end())
        job.polls += 1
        state: dict[str, Any] = {
            "job_id": name,
            "status": "done" if job.done else "running",
            "issue_url": job.issue,
            "langsmith_url": self.langsmith_urls.get(job.issue, ""),
            "awaiting_human": False,
            "current_node": "" if job.done else "investigator",
            "created_at": job.created_at.isoformat(),
        }
        if job.done and not self.graphql_only:
            state |= {"report": self.reports[job.issue]}
            state["steps"] = [{"name": step} for step in self.steps.get(job.issue, [])]
        return web.json_response(state)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        _, job = self._found(request)
        job.streams += 1
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b":keepalive\n\n")
        for number, event in enumerate(self.events.get(job.issue, ()), start=1):
            await response.write(f"id: {number}\ndata: {json.dumps(event)}\n\n".encode())
            await asyncio.sleep(0)
        if job.issue in self.breaks:
            assert request.transport is not None
            request.transport.abort()
            return response
        job.done = True
        await response.write(b'id: 99\ndata: {"type": "job.done"}\n\n')
        return response

    async def _graphql(self, request: web.Request) -> web.Response:
        asked = await request.json()
        self.asked.queries.append(asked)
        query = JOB_QUERY.search(str(asked.get("query", "")))
        wanted = query["fields"].split() if query else []
        wrong = next((name for name in wanted if name not in GRAPHQL_FIELDS), None)
        if query is None or wrong:
            text = f"Cannot query field '{wrong}' on type 'Job'." if wrong else "Syntax Error: Unexpected Name."
            return web.json_response({"errors": [{"message": text}]}, status=self.query_refused_with)
        name = query["id"] if query["id"] is not None else asked.get("variables", {}).get(query["name"])
        if self.resolver_errors or name not in self.jobs:
            self.resolver_errors = max(0, self.resolver_errors - 1)
            text = "Job not found" if name not in self.jobs else "worker restarting"
            return web.json_response({"data": None, "errors": [{"message": text, "path": ["job"]}]})
        return web.json_response({"data": {"job": {field: self._value(name, field) for field in wanted}}})

    def _value(self, name: str, field_name: str) -> object:
        """Return the value of the GraphQL field ``field_name`` of the job ``name``.

        Fields of the report are empty until the job is done, because their types are not nullable.
        """
        job = self.jobs[name]
        if field_name == "status":
            return "done" if job.done else "running"
        report = self.reports[job.issue]
        fields = {_camel(key): value for key, value in report.items()} if isinstance(report, dict) else {}
        return fields.get(field_name, [] if field_name == "relevantFiles" else "") if job.done else ""


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
