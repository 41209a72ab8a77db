"""A background task that processes waiting work when another task wakes it, and tries failed work again later."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from types import TracebackType
from typing import Self


class Worker(ABC):
    """A task that runs during the ``async with`` block. It begins with work that a killed process left unfinished.

    If work fails, the task tries again after ``first_pause_s`` seconds. This pause doubles after each failure, up
    to ``max_pause_s``. If ``interval_s`` is set, the task also calls `work` at least once in this interval.
    """

    def __init__(self, *, first_pause_s: float, max_pause_s: float, interval_s: float | None = None) -> None:
        self._first_pause_s = first_pause_s
        self._max_pause_s = max_pause_s
        self._interval_s = interval_s
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    async def work(self) -> bool:
        """Process the waiting work. Return whether all work is done.

        Implementations must not raise an error, because an error would end the task.
        """

    def wake(self) -> None:
        """Wake the task, because new work is waiting."""
        self._idle.clear()
        self._news.set()

    async def wait_until_idle(self) -> None:
        """Wait until all work is done."""
        await self._idle.wait()

    async def __aenter__(self) -> Self:
        self.wake()
        self._task = asyncio.create_task(self.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the task. Work that is still waiting is done by the next process."""
        del kind, error, trace
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def run(self) -> None:
        """Process waiting work after each `wake` or interval, until the task is cancelled."""
        pause_s = self._first_pause_s
        while True:
            with suppress(TimeoutError):  # after the interval, work even without `wake`
                async with asyncio.timeout(self._interval_s):
                    await self._news.wait()
            self._news.clear()
            if not await self.work():
                # Work that failed is tried again after a growing pause.
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, self._max_pause_s)
                self._news.set()
                continue
            pause_s = self._first_pause_s
            if not self._news.is_set():
                self._idle.set()
