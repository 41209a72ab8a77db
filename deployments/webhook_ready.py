"""Is the receiver of any use now? Deploys can be kept, and Prefect answers; its secrets it had when it started."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Final

import httpx

from flows.kept_deploys import KeptDeploys
from monitors.errors import WarehouseUnwritable
from monitors.records.base import Record

VALID_S: Final = 2.0
"""How long one look is good for: strangers who ask often must not write to the disk as often."""
HEALTH_DEADLINE_S: Final = 2.0


class Standing(Record):
    """What a look found. ``secrets`` is true for as long as the process lives: without them it does not start."""

    keeps_deploys: bool
    prefect_answers: bool
    secrets: bool = True

    @property
    def ready(self) -> bool:
        """Whether a deploy that is sent now has its run soon."""
        return self.keeps_deploys and self.prefect_answers and self.secrets


class Readiness:
    """Looks, at most every other second."""

    def __init__(self, kept: KeptDeploys, prefect_api: Callable[[], str | None]) -> None:
        self._kept = kept
        self._prefect_api = prefect_api
        self._looking = asyncio.Lock()
        self._seen: tuple[float, Standing] | None = None

    async def look(self) -> Standing:
        """How it stands."""
        async with self._looking:
            if self._seen is not None and monotonic() - self._seen[0] < VALID_S:
                return self._seen[1]
            keeps, answers = await asyncio.gather(asyncio.to_thread(self._keeps), self._prefect_answers())
            standing = Standing(keeps_deploys=keeps, prefect_answers=answers)
            self._seen = (monotonic(), standing)
            return standing

    def _keeps(self) -> bool:
        try:
            self._kept.check_writable()
        except WarehouseUnwritable:
            return False
        return True

    async def _prefect_answers(self) -> bool:
        api = await asyncio.to_thread(self._prefect_api)
        if api is None:
            return False
        try:
            async with httpx.AsyncClient(timeout=HEALTH_DEADLINE_S, trust_env=not _is_local(api)) as client:
                return (await client.get(f"{api.rstrip('/')}/health")).is_success
        except httpx.HTTPError:
            return False


def _is_local(api: str) -> bool:
    """A proxy stands between us and other machines, never between us and ourselves."""
    return httpx.URL(api).host in ("127.0.0.1", "localhost", "::1")
