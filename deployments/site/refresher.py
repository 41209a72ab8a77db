"""Renew the copy that pages read, in a background thread, so that no page waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from monitors.errors import MonitorError, WarehouseBusy
from warehouse.database.snapshot import Snapshot

WAIT_S: Final = 5.0
"""Timeout while a writer has the warehouse; the copy is tried again later."""
log = logging.getLogger(__name__)


class Refresher:
    """Renew ``snapshot`` every ``every_s`` seconds if the warehouse has changed, and at once after `wake`.

    Copying takes at most a tenth of the time, so a large warehouse is copied less often. ``afterwards`` is called
    each time, also in a thread. ``problem`` says why there is no newer copy; empty without an error.
    """

    def __init__(self, snapshot: Snapshot, every_s: float, afterwards: Callable[[], None] = lambda: None) -> None:
        self.problem = ""
        self._snapshot = snapshot
        self._afterwards = afterwards
        self._every_s = every_s
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def wake(self) -> None:
        """Renew the copy soon. Thread-safe."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wanted.set)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        await self._refresh()
        self._task = asyncio.create_task(self._refresh_forever())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, and close the copy."""
        del kind, error, trace
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._snapshot.close()

    async def _refresh_forever(self) -> None:
        await asyncio.to_thread(self._afterwards)
        pause_s = self._every_s
        while True:
            try:
                async with asyncio.timeout(pause_s):
                    await self._wanted.wait()
            except TimeoutError:
                pass
            self._wanted.clear()
            took_s = await self._refresh()
            pause_s = max(self._every_s, 10 * took_s)

    async def _refresh(self) -> float:
        """Renew the copy and return the seconds it took. An error is logged once, and the copy is tried again."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        problem = ""
        try:
            await asyncio.to_thread(self._snapshot.refresh, WAIT_S)
        except WarehouseBusy as error:
            problem = f"the copy is not renewed: {error}"
        except MonitorError as error:
            problem = f"the copy cannot be renewed: {error}"
        if problem and problem != self.problem:
            log.warning("%s", problem)
        self.problem = problem
        if self._task is not None:  # after the site has started: this may take seconds
            await asyncio.to_thread(self._afterwards)
        return loop.time() - started
