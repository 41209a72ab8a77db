"""Makes the runs of kept deploys, beside the answering: whatever Prefect does, no sender waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import Final, Self

from prefect.client.orchestration import PrefectClient

from deployments.webhook_metrics import ReceiverMetrics
from flows.deploy_runs import RunNotMade, RunPlan, Started, start_waiting
from flows.kept_deploys import KeptDeploys
from monitors.errors import MonitorError
from warehouse.journal import Journal

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
"""Between two tries while Prefect is away, doubled each time: a restart of its server takes 15 s."""

log = logging.getLogger(__name__)


class Starter:
    """A task of its own from the moment it is entered. What an earlier, killed receiver left comes first.

    ``prefect_api`` tells where Prefect's API answers now, ``None`` when nowhere: it may be started later.
    """

    def __init__(
        self,
        kept: KeptDeploys,
        journal: Journal,
        plan: RunPlan,
        *,
        prefect_api: Callable[[], str | None],
        metrics: ReceiverMetrics,
        now: Callable[[], datetime],
        first_pause_s: float = FIRST_PAUSE_S,
    ) -> None:
        self.kept = kept
        self.prefect_api = prefect_api
        self._journal = journal
        self._plan = plan
        self._metrics = metrics
        self._now = now
        self._first_pause_s = first_pause_s
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Something new is kept."""
        self._idle.clear()
        self._news.set()

    async def settled(self) -> None:
        """Wait until everything that was kept so far has its run."""
        await self._idle.wait()

    async def __aenter__(self) -> Self:
        self.wake()
        self._worker = asyncio.create_task(self._work())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; what waits is taken up by the next receiver, or by the poll."""
        del kind, error, trace
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)

    async def _work(self) -> None:
        pause_s = self._first_pause_s
        while True:
            await self._news.wait()
            self._news.clear()
            if await self._start_safely():
                pause_s = self._first_pause_s
                if not self._news.is_set():
                    self._idle.set()
            else:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                self._news.set()

    async def _start_safely(self) -> bool:
        """Whether nothing waits any more. One trouble must not end the receiver: what is kept is tried again."""
        try:
            started = await self._start()
        except MonitorError as error:
            started = Started((), (RunNotMade(str(error)),))
        except Exception as error:  # noqa: BLE001 - the text of an error that nobody foresaw may hold a secret
            started = Started((), (RunNotMade(f"this is a fault of Lookout itself: {type(error).__name__}"),))
        self._metrics.started(started)
        for why in dict.fromkeys(str(failure) for failure in started.failed):
            log.warning("a deploy waits for its run: %s", why)
        return not started.failed

    async def _start(self) -> Started:
        if not await asyncio.to_thread(self.kept.anything_waits):
            return Started((), ())
        api = await asyncio.to_thread(self.prefect_api)
        if api is None:
            raise RunNotMade(
                "no Prefect server is running; `prefect.api_url` or PREFECT_API_URL names one of yours"
            )
        async with PrefectClient(api) as client:
            return await start_waiting(client, self.kept, self._journal, self._plan, now=self._now)
