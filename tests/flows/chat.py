"""A local chat API with answers that a test controls, and a suite and configuration for it."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.servers.threaded_server import ThreadedServer

RIGHT = "The waiting period is 24 months. [Source: Gold, clause 4.2]"
ASKED_ONCE = "[recheck]\ntimes = 0\n"
"""Settings that disable the recheck of failed cases, for tests of other features."""


class Chat(ThreadedServer):
    """A chat API that gives ``answers`` in turn. Each is a text, a whole JSON body, or ``None`` for no answer.

    ``by_question`` maps questions to their answers, and has priority. From question number ``held_from`` on
    (counted from 1), answers wait for the event ``released``. ``version`` is the build that the API reports. If
    ``hidden_polls`` is set, it first responds to so many requests for the build with HTTP 503. ``limit`` is a
    number of questions and a time in seconds: further questions in that time get HTTP 429. ``refusal`` selects the
    format of Retry-After in this response, ``seconds`` or ``date``, or ``page`` for no Retry-After.
    """

    def __init__(self, *answers: str | dict[str, Any] | None) -> None:
        super().__init__()
        self.answers = answers or (RIGHT,)
        self.by_question: dict[str, str] = {}
        self.asked = 0
        self.version: str | None = None
        self.hidden_polls = 0
        self.limit: tuple[int, float] | None = None
        self.refusal = "seconds"
        self.refused = 0
        self._taken: list[float] = []
        self.held_from: int | None = None
        self.released = threading.Event()
        self._came = threading.Condition()

    def wait_for(self, count: int, timeout_s: float = 120.0) -> bool:
        """Wait until ``count`` questions have arrived. Return ``False`` after ``timeout_s`` seconds."""
        with self._came:
            return self._came.wait_for(lambda: self.asked >= count, timeout_s)

    def application(self) -> web.Application:
        """Return the application with the routes of the chat and its version."""
        app = web.Application()
        app.router.add_post("/chat", self._chat)
        app.router.add_get("/version", self._version)
        return app

    def _take_or_wait_s(self) -> float:
        """Count the question and return 0 if the limit allows it. Otherwise, return the seconds to wait."""
        if self.limit is None:
            return 0.0
        count, window_s = self.limit
        now = time.monotonic()
        self._taken = [moment for moment in self._taken if now - moment < window_s]
        if len(self._taken) < count:
            self._taken.append(now)
            return 0.0
        return self._taken[0] + window_s - now

    async def _version(self, request: web.Request) -> web.Response:
        del request
        self.hidden_polls -= 1
        if self.version is None or self.hidden_polls >= 0:
            return web.Response(status=503)
        return web.json_response({"sha": self.version})

    async def _chat(self, request: web.Request) -> web.Response:
        question = json.loads(await request.read())["question"]
        wait_s = self._take_or_wait_s()
        if wait_s:
            self.refused += 1
            seconds = math.ceil(wait_s)
            after = {"seconds": str(seconds), "date": formatdate(time.time() + seconds, usegmt=True), "page": ""}
            headers = {"Retry-After": after[self.refusal]} if after[self.refusal] else {}
            return web.Response(status=429, text="<h1>Slow down</h1>", content_type="text/html", headers=headers)
        with self._came:
            self.asked += 1
            self._came.notify_all()
        if self.held_from is not None and self.asked >= self.held_from:
            await asyncio.to_thread(self.released.wait)
        answer = self.by_question.get(question) or self.answers[(self.asked - 1) % len(self.answers)]
        if answer is None:
            await self.closing.wait()
        return web.json_response(answer if isinstance(answer, dict) else {"answer": answer})


def watched(folder: Path, chat: Chat, *, cases: int = 4, gold: str = "24 months", more: str = "") -> Path:
    """Write a ``lookout.toml`` with the target ``demo`` at ``chat``, and a suite of ``cases`` severity-3 cases."""
    suite = folder / "suite.jsonl"
    lines = [
        {
            "id": f"waiting-{number}",
            "question": f"What is the waiting period of plan {number}?",
            "gold": gold,
            "expected_refusal": False,
            "severity": 3,
            "language": "en",
            "type": "waiting_period",
            "provenance": {"pipeline": "template"},
        }
        for number in range(cases)
    ]
    suite.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    path = folder / "lookout.toml"
    once = "" if "[recheck]" in more else ASKED_ONCE
    path.write_text(
        f'data_folder = "data"\n[targets.demo]\nurl = "{chat.url}/chat"\nsuite = "suite.jsonl"\n'
        '[targets.demo.probe]\ndriver = "json"\nconcurrency = 1\nattempts = 1\nanswer_deadline_s = 600\n'
        f"{once}[gate]\nmin_severity_3_cases = 0\n{more}",
        encoding="utf-8",
    )
    return path
