"""Renews the copy of the warehouse that pages read, in the background, so that no page waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from monitors.errors import MonitorError, WarehouseBusy
from warehouse.database.snapshot import Snapshot

WAIT_S: Final = 5.0
"""Maximum wait for the warehouse in seconds. If the warehouse is still busy then, the copy is renewed later."""
log = logging.getLogger(__name__)


class Refresher:
    """Renews ``snapshot`` every ``every_s`` seconds if the warehouse has changed, and soon after `wake`.

    A large warehouse is copied less often, so that copying takes at most a tenth of the time. ``afterwards`` is
    called after each copy. ``problem`` is the reason why the last copy failed; it is empty if the copy succeeded.
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
        """Request a new copy soon. Any thread may call this."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wanted.set)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        await self._refresh_copy_and_time_it()
        self._task = asyncio.create_task(self._refresh_forever())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop renewing, and close the copy."""
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
            took_s = await self._refresh_copy_and_time_it()
            pause_s = max(self._every_s, 10 * took_s)

    async def _refresh_copy_and_time_it(self) -> float:
        """Renew the copy, and return the duration in seconds. An error that repeats is logged only once."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        problem = ""
        try:
            await asyncio.to_thread(self._snapshot.refresh, WAIT_S)
        except WarehouseBusy as error:
            problem = f"the site's copy of the warehouse was not renewed: {error}"
        except MonitorError as error:
            problem = f"the site's copy of the warehouse cannot be renewed: {error}"
        if problem and problem != self.problem:
            log.warning("%s", problem)
        self.problem = problem
        if self._task is not None:  # after the start of the site, because this may take seconds
            await asyncio.to_thread(self._afterwards)
        return loop.time() - started
