"""Starts the deploy receiver on a real port on loopback, in the event loop of the test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import httpx
import uvicorn

from deployments.receivers.connection_limits import BoundedProtocol
from deployments.receivers.deploys import ReceiverMetrics, RunStarter, build_application
from deployments.receivers.readiness import Readiness
from deployments.triggers.delivery import TriggerParser
from flows.alerting.notifier import Notifier
from flows.deploys.queue import DeployQueue
from flows.deploys.runs import RunPlan
from tests.deployments.triggers.senders import (
    NOW,
    github,
    github_headers,
    hub,
    hub_headers,
    raw,
    standard,
    standard_headers,
)
from tests.warehouse.temporary_stores import store_in

DEPLOYMENT = "nobody/registered"


@dataclass
class Receiver:
    """A running receiver: its address, a client, and its queue of deploys."""

    url: str
    client: httpx.AsyncClient
    queue: DeployQueue
    starter: RunStarter

    async def post(self, provider: str, body: bytes, headers: object) -> httpx.Response:
        return await self.client.post(f"{self.url}/deploys/{provider}", content=body, headers=headers)

    async def by_github(self, payload: object, event: str = "deployment_status") -> httpx.Response:
        body = raw(payload)
        return await self.post("github", body, github_headers(body, event))

    async def by_hub(self, payload: object) -> httpx.Response:
        return await self.post("huggingface", raw(payload), hub_headers())

    async def by_standard(self, payload: object, at: datetime = NOW) -> httpx.Response:
        body = raw(payload)
        return await self.post("standard", body, standard_headers(body, at))

    async def metric(self, line: str) -> float:
        """Return the value of the ``/metrics`` line that begins with ``line``, or 0 if there is no such line."""
        text = (await self.client.get(f"{self.url}/metrics")).text
        found = [one for one in text.splitlines() if one.startswith(line)]
        return float(found[0].rpartition(" ")[2]) if found else 0.0

    def commits(self) -> list[str]:
        """Return the commits for which a run is still pending."""
        return [one.deploy.event.commit for one in self.queue.list_waiting_deploys()]


def refuse_notifier(target: str) -> Notifier:
    """Raise `AssertionError`, because no run of these tests is killed and nobody must be notified."""
    raise AssertionError(target)


@asynccontextmanager
async def receiver(
    folder: Path,
    *,
    parsers: Sequence[TriggerParser] | None = None,
    prefect_api: Callable[[], str | None] = lambda: None,
    deployment: str = DEPLOYMENT,
    now: Callable[[], datetime] = lambda: NOW,
) -> AsyncGenerator[Receiver]:
    """Start a receiver for the target ``bot`` that has one trigger for each kind of sender.

    By default, there is no Prefect server.
    """
    queue, metrics = DeployQueue(folder), ReceiverMetrics()
    plan = RunPlan(deployment=deployment, config_path=folder / "lookout.toml")
    journal = store_in(folder).journal
    starter = RunStarter(
        queue,
        journal,
        plan,
        prefect_api=prefect_api,
        metrics=metrics,
        now=now,
        build_notifier=refuse_notifier,
        first_pause_s=0.2,
    )
    known = parsers if parsers is not None else (github(), hub(), standard())
    app = build_application(known, starter, metrics, Readiness(queue, journal, prefect_api, deployment), now=now)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on", http=BoundedProtocol, backlog=2048))
    door = socket.create_server(("127.0.0.1", 0))  # accepts connections before the server is ready
    serving = asyncio.create_task(server.serve(sockets=[door]))
    async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
        yield Receiver(f"http://127.0.0.1:{door.getsockname()[1]}", client, queue, starter)
    server.should_exit = True
    await serving


async def each_sender(door: Receiver, body: bytes) -> AsyncGenerator[httpx.Response]:
    """Send the same body with valid signatures, as every sender and as every event. Yield the responses."""
    yield await door.by_github(body)
    yield await door.by_github(body, "push")
    yield await door.by_github(body, "workflow_run")
    yield await door.by_hub(body)
    yield await door.by_standard(body)
