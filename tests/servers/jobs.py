"""An agent behind a job API. Words in the question select how the job behaves.

`looks 4`: the job is done at the fourth poll (default 2). `never`: it runs forever. `fails`: it ends without a
report. `lost`: it is unknown after the first poll. `hiccup 3`: three polls get HTTP 500. `busy`: one poll gets HTTP
429. `page`: one poll gets a proxy's page. `wall`: a poll gets HTTP 401. `once`: the start request returns the
report. `huge`: the report has 3 MB. `prose`: the report is not JSON. `later`: the report exists only from the
second request for it. `dies`: the event stream breaks off in the middle. `silent`: the stream has no events.
`refuse`: the start request gets HTTP 503. `elsewhere`: the start request returns an address on another host.
`nameless`: the start request returns no id. `asks 2`: the job stops twice with a question until it gets an answer.
In addition, `slowly`: the two polls after an answer still report the question; `mute`: the state does not contain
the question; `deaf 1`: one answer gets HTTP 503; `waiting`: the state contains only the status "waiting".
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.servers.threaded_server import ThreadedServer

STEPS = [
    {"name": "grep", "args": {"pattern": "NullPointer"}},
    {"name": "read", "args": {"file": "claims/intake.py"}},
    {"name": "blame", "args": {"line": 42}},
]


def report_on(question: str) -> str:
    """Return a report that contains the question, so that a test can detect mixed-up reports."""
    return f"Root cause of {question!r}: claims/intake.py line 42 reads a limit that is not set.\u2028Severity 3."


def _waiting(job: Started, asked: str | None) -> dict[str, Any]:
    """Return the state of a job whose agent waits for an answer to the question ``asked``."""
    if job.is_to("waiting"):
        return {"status": "waiting"}
    return {"status": "awaiting_input"} if job.is_to("mute") else {"status": "awaiting_input", "question": asked}


@dataclass
class Started:
    """A job that the server started, with the number of its polls."""

    question: str
    conversation: str
    before: list[dict[str, str]]
    looks: int = 0
    report_looks: int = 0
    answers: list[str] = field(default_factory=list)
    deaf: int = 0
    stale: int = 0
    answered: asyncio.Event = field(default_factory=asyncio.Event)

    def number(self, word: str, otherwise: int) -> int:
        """Return the number after ``word`` in the question, or ``otherwise`` if the word is missing."""
        match = re.search(rf"\b{word} (\d+)", self.question)
        return int(match[1]) if match else otherwise

    def is_to(self, word: str) -> bool:
        """Return whether the question contains ``word``, which selects a behaviour."""
        return re.search(rf"\b{word}\b", self.question) is not None

    @property
    def asks(self) -> str | None:
        """Return the question whose answer the job waits for, or ``None`` if the job does not wait."""
        number = len(self.answers) + 1
        return f"Question {number}: which version?" if number <= self.number("asks", 0) else None


@dataclass
class Seen:
    """The requests that the server received."""

    keys: list[str] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    paths: Counter[str] = field(default_factory=Counter)


class Jobs(ThreadedServer):
    """A job API: ``POST /jobs``, ``GET /jobs/ID``, ``…/events``, ``…/report``.

    ``POST …/cancel`` and ``…/answer`` cancel a job or answer its question. ``POST /stream`` starts a job and
    streams its events.
    """

    def __init__(self) -> None:
        super().__init__()
        self.jobs: dict[str, Started] = {}
        self.seen = Seen()
        self._looked = threading.Condition()

    def wait_for(self, name: str, looks: int) -> None:
        """Block until the job ``name`` has been polled ``looks`` times, or for at most 60 seconds."""
        with self._looked:
            self._looked.wait_for(lambda: name in self.jobs and self.jobs[name].looks >= looks, timeout=60)

    def application(self) -> web.Application:
        application = web.Application(middlewares=[self._noted])
        application.router.add_post("/jobs", self._start)
        application.router.add_get("/jobs/{id}", self._state)
        application.router.add_get("/jobs/{id}/events", self._events)
        application.router.add_get("/jobs/{id}/report", self._report)
        application.router.add_post("/jobs/{id}/cancel", self._cancel)
        application.router.add_post("/jobs/{id}/answer", self._answer)
        application.router.add_post("/stream", self._start_streaming)
        return application

    @web.middleware
    async def _noted(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.seen.paths[f"{request.method} {request.path}"] += 1
        self.seen.authorizations.append(request.headers.get("Authorization"))
        return await handler(request)

    async def _begun(self, request: web.Request) -> tuple[str, Started]:
        body = await request.json()
        self.seen.keys.append(request.headers["Idempotency-Key"])
        name = f"job/{len(self.jobs) + 1}"  # a slash: ids are the app's own affair
        started = Started(body["question"], body.get("session", ""), body.get("before", []))
        if not started.is_to("refuse"):
            self.jobs[name] = started
        return name, started

    async def _start(self, request: web.Request) -> web.Response:
        name, job = await self._begun(request)
        if job.is_to("refuse"):
            return web.json_response({"error": "no worker is free"}, status=503)
        if job.is_to("once"):
            return web.json_response(self._finished(name, job))
        host = "http://127.0.0.1:1" if job.is_to("elsewhere") else ""
        where = f"{host}/jobs/{name.replace('/', '%2F')}"
        receipt = {"status": "queued"} if job.is_to("nameless") else {"id": name, "status": "queued"}
        return web.json_response(receipt, status=202, headers={"Location": where})

    def _finished(self, name: str, job: Started) -> dict[str, Any]:
        return {
            "id": name,
            "status": "Completed",
            "report": report_on(job.question),
            "model": "primary",
            "ms": 1234,
            "hops": 7,
            "steps": STEPS,
            "files": ["claims/intake.py"],
        }

    def _found(self, request: web.Request) -> tuple[str, Started]:
        name = request.match_info["id"]
        if name not in self.jobs:
            raise web.HTTPNotFound
        return name, self.jobs[name]

    async def _state(self, request: web.Request) -> web.Response:
        name, job = self._found(request)
        with self._looked:
            job.looks += 1
            self._looked.notify_all()
        fault = self._planned_fault(job)
        if fault is not None:
            return fault
        if job.asks or job.stale:
            asked = job.asks if not job.stale else f"Question {len(job.answers)}: which version?"
            job.stale = max(0, job.stale - 1)
            return web.json_response({"id": name, **_waiting(job, asked)})
        if job.is_to("never") or job.looks < job.number("looks", 2) + job.number("hiccup", 0):
            return web.json_response({"id": name, "status": "running", "steps": STEPS[: job.looks]})
        if job.is_to("fails"):
            return web.json_response({"id": name, "status": "FAILED", "error": {"message": "no such repository"}})
        return web.json_response(self._finished(name, job))

    def _planned_fault(self, job: Started) -> web.Response | None:
        if job.is_to("lost") and job.looks > 1:
            return web.json_response({}, status=404)
        if job.is_to("wall"):
            return web.json_response({}, status=401)
        if job.looks <= job.number("hiccup", 0):
            return web.Response(status=500, text="worker restarting")
        if job.is_to("busy") and job.looks == 1:
            return web.Response(status=429, headers={"Retry-After": "0"})
        if job.is_to("page") and job.looks == 1:
            return web.Response(text="<html>one moment</html>", content_type="text/html")
        return None

    async def _report(self, request: web.Request) -> web.Response:
        name, job = self._found(request)
        job.report_looks += 1
        if job.is_to("later") and job.report_looks == 1:
            raise web.HTTPNotFound
        if job.is_to("prose"):
            return web.Response(text=f"# Report\n\n{report_on(job.question)}", content_type="text/markdown")
        document = self._finished(name, job)
        return web.json_response(document | {"report": "x" * 3_000_000} if job.is_to("huge") else document)

    async def _answer(self, request: web.Request) -> web.Response:
        _, job = self._found(request)
        if job.deaf < job.number("deaf", 0):
            job.deaf += 1
            return web.json_response({}, status=503)
        if not job.asks:
            return web.json_response({"detail": "it does not wait"}, status=409)
        job.answers.append((await request.json())["answer"])
        job.stale = 2 if job.is_to("slowly") else 0
        job.answered.set()
        return web.json_response({"status": "running"})

    async def _cancel(self, request: web.Request) -> web.Response:
        name, _ = self._found(request)
        self.seen.cancelled.append(name)
        return web.json_response({})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        return await self._stream(request, *self._found(request))

    async def _start_streaming(self, request: web.Request) -> web.StreamResponse:
        return await self._stream(request, *await self._begun(request))

    async def _stream(self, request: web.Request, name: str, job: Started) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if job.is_to("silent"):
            async with asyncio.timeout(60):
                await self.closing.wait()
        for number in range(1, len(job.answers) + 1):  # a stream starts again for each new reader
            await self._event(
                response, "human_input", {"id": name, "question": f"Question {number}: which version?"}
            )
        for number, step in enumerate(STEPS):
            if job.is_to("dies") and number == 2:
                assert request.transport is not None
                request.transport.abort()
                return response
            await self._event(response, "step", {"id": name, "status": "running", "step": step})
            while number == 0 and job.asks:
                job.answered.clear()
                await self._event(response, "human_input", {"id": name, "question": job.asks})
                await job.answered.wait()
        await response.write(b": still here\n\nevent: note\ndata: no json\n\n")
        if job.is_to("fails"):
            await self._event(response, "failed", {"error": "no such repository"})
        elif job.is_to("bare"):
            await self._event(response, "done", {})
            job.looks = 99
        else:
            await self._event(response, "done", self._finished(name, job))
        return response

    async def _event(self, response: web.StreamResponse, name: str, data: dict[str, Any]) -> None:
        await response.write(f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode())
