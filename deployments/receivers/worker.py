"""A task that works off what waits each time it is woken, and tries again after a pause where something is left."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Worker(ABC):
    """Runs from the moment it is entered, and begins with what an earlier, killed one left.

    A pause between two tries is ``first_pause_s`` at first, doubled each time up to ``longest_pause_s``.
    """

    def __init__(self, *, first_pause_s: float, longest_pause_s: float) -> None:
        self._first_pause_s = first_pause_s
        self._longest_pause_s = longest_pause_s
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    async def work(self) -> bool:
        """Work off what waits; whether nothing waits any more. Raises nothing: an error would end the task."""

    def wake(self) -> None:
        """Something new waits."""
        self._idle.clear()
        self._news.set()

    async def settled(self) -> None:
        """Wait until everything that waited so far is done."""
        await self._idle.wait()

    async def __aenter__(self) -> Self:
        self.wake()
        self._task = asyncio.create_task(self.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; the next to come takes up what waits."""
        del kind, error, trace
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def run(self) -> None:
        """Work until cancelled."""
        pause_s = self._first_pause_s
        while True:
            await self._news.wait()
            self._news.clear()
            if not await self.work():
                # What failed is tried again after a growing pause.
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, self._longest_pause_s)
                self._news.set()
                continue
            pause_s = self._first_pause_s
            if not self._news.is_set():
                self._idle.set()
