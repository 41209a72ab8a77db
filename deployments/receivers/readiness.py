"""Readiness checks of the receiver: whether everything works that is needed to verify a reported deploy."""

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

MAX_STATUS_AGE_S: Final = 2.0
"""Maximum age in seconds of a status that is reused. Without reuse, each request would write to the disk."""
HEALTH_TIMEOUT_S: Final = 2.0
PREFECT_TIMEOUT_S: Final = 5.0
MAX_POLL_AGE: Final = timedelta(seconds=45)
"""A runner counts as alive if it polled Prefect for due runs within this time.

Prefect's runners and workers poll every 10 to 15 s. The runner of ``lookout up`` polls every 8 s.
"""


class ReadinessStatus(Record):
    """The result of a readiness check.

    ``secrets`` is always true, because without secrets the process does not start. ``runner_alive`` is true if a
    runner polls Prefect for due runs of the Prefect deployment that verifies deploys.
    """

    keeps_deploys: bool
    journal_writable: bool
    prefect_answers: bool
    deployment_registered: bool
    runner_alive: bool
    secrets: bool = True

    @property
    def ready(self) -> bool:
        """Return whether a deploy that is reported now will be verified soon."""
        return all(self.model_dump().values())


class _Prefect(NamedTuple):
    """The state of Prefect: whether it answers, has the deployment, and is polled for the deployment's runs."""

    answers: bool = False
    registered: bool = False
    served: bool = False


class Readiness:
    """Checks readiness at most every two seconds.

    ``deployment`` is the Prefect deployment that verifies deploys, as ``flow/name``.
    """

    def __init__(
        self, deploys: DeployQueue, journal: Journal, prefect_api: Callable[[], str | None], deployment: str
    ) -> None:
        self._deploys = deploys
        self._journal = journal
        self._prefect_api = prefect_api
        self._deployment = deployment
        self._lock = asyncio.Lock()
        self._last_status: tuple[float, ReadinessStatus] | None = None

    async def get_recent_readiness_status(self) -> ReadinessStatus:
        """Return a readiness status that is at most two seconds old."""
        async with self._lock:
            if self._last_status is not None and monotonic() - self._last_status[0] < MAX_STATUS_AGE_S:
                return self._last_status[1]
            keeps, writes, prefect = await asyncio.gather(
                asyncio.to_thread(_is_writable, self._deploys.require_writable),
                asyncio.to_thread(_is_writable, self._journal.require_writable),
                self._check_prefect_readiness(),
            )
            status = ReadinessStatus(
                keeps_deploys=keeps,
                journal_writable=writes,
                prefect_answers=prefect.answers,
                deployment_registered=prefect.registered,
                runner_alive=prefect.served,
            )
            self._last_status = (monotonic(), status)
            return status

    async def _check_prefect_readiness(self) -> _Prefect:
        api = await asyncio.to_thread(self._prefect_api)
        if api is None or not await is_prefect_up(api):
            return _Prefect()
        try:
            registered = await find_prefect_deployment(api, self._deployment)
        except (httpx.HTTPError, PrefectException, TimeoutError, OSError):
            return _Prefect(answers=True)
        return _Prefect(
            answers=True,
            registered=registered is not None,
            served=registered is not None and _has_live_runner(registered, api),
        )


async def is_prefect_up(api: str) -> bool:
    """Return whether a Prefect server answers at this API address."""
    try:
        async with httpx.AsyncClient(timeout=HEALTH_TIMEOUT_S, trust_env=not _is_local(api)) as client:
            return (await client.get(f"{api.rstrip('/')}/health")).is_success
    except httpx.HTTPError:
        return False


async def find_prefect_deployment(api: str, deployment: str) -> DeploymentResponse | None:
    """Find the deployment ``flow/name`` on a server. Returns ``None`` if the deployment is not registered.

    If the server does not answer, raises `TimeoutError` or the errors of Prefect's client.
    """
    async with asyncio.timeout(PREFECT_TIMEOUT_S), PrefectClient(api) as client:
        try:
            return await client.read_deployment_by_name(deployment)
        except ObjectNotFound:
            return None


def _is_writable(check: Callable[[], None]) -> bool:
    try:
        check()
    except WarehouseUnwritable:
        return False
    return True


def _has_live_runner(deployment: DeploymentResponse, api: str) -> bool:
    """Return whether a runner regularly polls Prefect for the deployment's runs.

    The Prefect server detects a dead runner only after a minute. Therefore the age of the runner's last request is
    also checked if the server is on this machine. With a server on another machine, the clocks may differ.
    """
    if deployment.status is not DeploymentStatus.READY or deployment.last_polled is None:
        return False
    return not _is_local(api) or utc_now() - deployment.last_polled < MAX_POLL_AGE


def _is_local(api: str) -> bool:
    """Return whether the API is on this machine. Requests to a local API must not go through a proxy."""
    return httpx.URL(api).host in ("127.0.0.1", "localhost", "::1")
