"""A severity-3 failure is told while the run goes on: the first at once, the next ones together, in its message."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final, Self

from flows.live_run import LiveRun
from flows.monitor_fault import fault_of
from flows.notify import Notice, tell
from monitors.alerts.events import Sighting
from monitors.alerts.observe import observations
from monitors.records.incidents import Observation
from monitors.records.runs import CaseResult

PAUSE_S: Final = 60.0
"""After a page, further failures are collected this long: the first second matters, the tenth message does not."""


class EarlyPages:
    """Tells what is severe from a task of its own, so that asking never waits for Slack.

    What is left when the run ends is told with everything else, so an error here loses nothing; it becomes a
    fault of the run, which is told then too.
    """

    def __init__(self, run: LiveRun, at: Sighting) -> None:
        self._run = run
        self._at = at
        self._waiting: list[Observation] = []
        self._news = asyncio.Event()
        self._sender: asyncio.Task[None] | None = None
        self._message: asyncio.Task[object] | None = None

    def told(self, result: CaseResult) -> None:
        """Look at one result."""
        seen = observations(
            [result],
            target=self._at.target,
            run_id=self._at.run_id,
            seen_at=result.result.asked_at,
            commit=self._at.commit,
            settings=self._run.wired.config.alerts,
            account_patterns=self._at.account_patterns,
        )
        if seen:
            self._waiting.extend(seen)
            self._news.set()

    async def __aenter__(self) -> Self:
        self._sender = asyncio.create_task(self._send_as_it_comes())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop collecting; a message that is under way is finished."""
        del kind, error, trace
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.gather(self._sender, return_exceptions=True)
        await self._settle()

    async def _send_as_it_comes(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            batch, self._waiting = self._waiting, []
            notice = Notice(commit=self._at.commit)
            self._message = asyncio.create_task(tell(self._run.wired.desk, batch, notice=notice))
            await asyncio.wait({self._message})
            await self._settle()
            await asyncio.sleep(PAUSE_S)

    async def _settle(self) -> None:
        """Let the message under way end; what stopped it is a fault of the run."""
        if self._message is None:
            return
        (outcome,) = await asyncio.gather(self._message, return_exceptions=True)
        self._message = None
        if isinstance(outcome, Exception):
            self._run.faults.append(fault_of(outcome))
