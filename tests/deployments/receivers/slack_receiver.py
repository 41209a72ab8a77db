"""Starts the receiver of Slack's button presses on a real port on loopback, in the event loop of the test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
import uvicorn

from deployments.receivers.slack_actions import PATH, ActionWorker, build_application
from flows.alerting.notifier import OperatorActions
from flows.alerting.pipeline import notify
from monitors.alerts.sender import AlertSender
from monitors.alerts.slack.client import SlackReply
from tests.flows.operator_actions import Clock, build_notifier
from tests.monitors.alerts.sample_observations import observation
from tests.servers.slack_interaction import SIGNING_SECRET, form_of, signed


@dataclass
class Receiver:
    """A running receiver: its address, and a method that presses a button."""

    url: str
    client: httpx.AsyncClient
    aftermath: ActionWorker
    clock: Clock

    async def post(self, body: bytes, headers: dict[str, str]) -> httpx.Response:
        return await self.client.post(self.url + PATH, content=body, headers=headers)

    async def press(self, payload: object) -> httpx.Response:
        """Send a button press as Slack does, and wait until its action is done."""
        body = form_of(payload)
        answer = await self.post(body, signed(body, self.clock()))
        await self.aftermath.wait_until_idle()
        return answer


@asynccontextmanager
async def receiver(
    people: OperatorActions,
    clock: Clock,
    sender: AlertSender | None,
    *,
    secrets: tuple[str, ...] = (SIGNING_SECRET,),
) -> AsyncGenerator[Receiver]:
    aftermath = ActionWorker(people, sender=sender, reply=SlackReply(people.settings), retry_pause_s=0.01)
    app = build_application(secrets=secrets, now=clock, worker=aftermath)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on"))
    door = socket.create_server(("127.0.0.1", 0))  # accepts connections before the server is ready
    port = door.getsockname()[1]
    serving = asyncio.create_task(server.serve(sockets=[door]))
    async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
        yield Receiver(f"http://127.0.0.1:{port}", client, aftermath, clock)
    server.should_exit = True
    await serving


async def page(people, clock, *seen):
    (alert,) = await notify(build_notifier(people, clock), seen or (observation(),))
    return alert


def states(people):
    return [one.state for one in people.store.load_incidents("demo").values()]


def pressed(people):
    return people.store.query("select kind, done_by from actions order by id").rows
