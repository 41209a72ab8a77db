"""Is the receiver of any use now? It polls what must work until a reported deploy is verified."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from time import monotonic
from typing import Final, NamedTuple

import httpx
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import DeploymentStatus
from prefect.client.schemas.responses import DeploymentResponse
from prefect.exceptions import ObjectNotFound, PrefectException

from flows.clock import utc_now
from flows.deploys.queue import DeployQueue
from monitors.errors import WarehouseUnwritable
from monitors.records.base import Record
from warehouse.journal.journal import Journal

VALID_S: Final = 2.0
"""How long one poll is good for: strangers who ask often must not write to the disk as often."""
HEALTH_DEADLINE_S: Final = 2.0
ASK_DEADLINE_S: Final = 5.0
POLLED_WITHIN: Final = timedelta(seconds=45)
"""Prefect's runners and workers ask for due runs every 10 to 15 s, those of ``lookout up`` every 2 s."""


class ReadinessStatus(Record):
    """What a poll found. ``secrets`` is true for as long as the process lives: without them it does not start.

    ``runner_alive``: somebody asks Prefect for the due runs of the deployment that is started after a deploy.
    """

    keeps_deploys: bool
    journal_writable: bool
    prefect_answers: bool
    deployment_registered: bool
    runner_alive: bool
    secrets: bool = True

    @property
    def ready(self) -> bool:
        """Whether a deploy that is reported now is verified soon."""
        return all(self.model_dump().values())


class _Prefect(NamedTuple):
    """What Prefect says of itself and of the deployment."""

    answers: bool = False
    registered: bool = False
    served: bool = False


class Readiness:
    """Polls at most every other second. ``deployment`` is what a deploy starts, as ``flow/name``."""

    def __init__(
        self, deploys: DeployQueue, journal: Journal, prefect_api: Callable[[], str | None], deployment: str
    ) -> None:
        self._deploys = deploys
        self._journal = journal
        self._prefect_api = prefect_api
        self._deployment = deployment
        self._looking = asyncio.Lock()
        self._seen: tuple[float, ReadinessStatus] | None = None

    async def poll(self) -> ReadinessStatus:
        """The current status."""
        async with self._looking:
            if self._seen is not None and monotonic() - self._seen[0] < VALID_S:
                return self._seen[1]
            keeps, writes, prefect = await asyncio.gather(
                asyncio.to_thread(_holds, self._deploys.check_writable),
                asyncio.to_thread(_holds, self._journal.check_writable),
                self._ask_prefect(),
            )
            standing = ReadinessStatus(
                keeps_deploys=keeps,
                journal_writable=writes,
                prefect_answers=prefect.answers,
                deployment_registered=prefect.registered,
                runner_alive=prefect.served,
            )
            self._seen = (monotonic(), standing)
            return standing

    async def _ask_prefect(self) -> _Prefect:
        api = await asyncio.to_thread(self._prefect_api)
        if api is None or not await answers(api):
            return _Prefect()
        try:
            found = await deployment_at(api, self._deployment)
        except (httpx.HTTPError, PrefectException, TimeoutError, OSError):
            return _Prefect(answers=True)
        return _Prefect(
            answers=True, registered=found is not None, served=found is not None and _is_served(found, api)
        )


async def answers(api: str) -> bool:
    """Whether a Prefect server answers at this address of its API."""
    try:
        async with httpx.AsyncClient(timeout=HEALTH_DEADLINE_S, trust_env=not _is_local(api)) as client:
            return (await client.get(f"{api.rstrip('/')}/health")).is_success
    except httpx.HTTPError:
        return False


async def deployment_at(api: str, deployment: str) -> DeploymentResponse | None:
    """The deployment ``flow/name`` of a server that answers; ``None`` where it is not registered.

    Raises what Prefect's client raises, and `TimeoutError`, when the server does not say.
    """
    async with asyncio.timeout(ASK_DEADLINE_S), PrefectClient(api) as client:
        try:
            return await client.read_deployment_by_name(deployment)
        except ObjectNotFound:
            return None


def _holds(check: Callable[[], None]) -> bool:
    try:
        check()
    except WarehouseUnwritable:
        return False
    return True


def _is_served(found: DeploymentResponse, api: str) -> bool:
    """Whether somebody asks for its runs. The server itself notices a minute late that nobody does.

    The time of the last request is compared with our own clock only where the server has the same one.
    """
    if found.status is not DeploymentStatus.READY or found.last_polled is None:
        return False
    return not _is_local(api) or utc_now() - found.last_polled < POLLED_WITHIN


def _is_local(api: str) -> bool:
    """Whether the API is on this machine: a proxy stands only between us and other machines."""
    return httpx.URL(api).host in ("127.0.0.1", "localhost", "::1")
