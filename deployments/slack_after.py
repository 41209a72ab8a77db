"""What follows a press, once Slack has its answer: carried out, and shown in the message."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Final, Self

from deployments.slack_payload import Click
from flows.messages_again import as_it_stands, outcome_of, recent_outcomes, show_again
from flows.people import People, act, catch_up
from monitors.alerts.sender import AlertSender
from monitors.alerts.slack_reply import SlackReply
from monitors.errors import MonitorError, NotifyError
from monitors.records.people import ActionEffect, ActionOutcome

AGAIN_S: Final = 5.0
"""Between two tries while a writer has the warehouse."""
LOCK_WAIT_S: Final = 5.0
"""Short, so that the receiver can be stopped at any time: what is kept waits in the journal."""
MOST_WAITING: Final = 1_000
"""Presses that can be answered later; beyond, the oldest is only carried out."""

Work = Callable[[], Awaitable[None]]

log = logging.getLogger(__name__)


class Aftermath:
    """Carries out presses in a task of its own, from the moment it is entered; what a killed one left comes first.

    ``sender`` edits messages with a bot token. Without one the press's own address must do, which Slack forgets
    after half an hour.
    """

    def __init__(
        self, people: People, *, sender: AlertSender | None, reply: SlackReply, again_s: float = AGAIN_S
    ) -> None:
        self._people = people
        self._sender = sender
        self._reply = reply
        self._again_s = again_s
        self._waiting: OrderedDict[str, Click] = OrderedDict()
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._worker: asyncio.Task[None] | None = None

    def keep(self, click: Click) -> None:
        """Make a press durable; may be called in a thread. `wake` follows in the loop."""
        act(self._people, click.action)

    def wake(self, clicks: Sequence[Click] = ()) -> None:
        """``clicks`` are kept: carry them out."""
        self._waiting.update({click.action.id: click for click in clicks})
        while len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)
        self._idle.clear()
        self._news.set()

    async def settled(self) -> None:
        """Wait until everything that was kept so far is carried out and shown."""
        await self._idle.wait()

    async def __aenter__(self) -> Self:
        self.wake()
        self._worker = asyncio.create_task(self._work())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; what is kept and not carried out is so by the next to come."""
        del kind, error, trace
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)

    async def _work(self) -> None:
        await self._safely(self._show_what_was_left)
        while True:
            await self._news.wait()
            self._news.clear()
            if not await self._safely(self._carry_out):
                await asyncio.sleep(self._again_s)
                self._news.set()
            elif not self._news.is_set():
                self._idle.set()

    async def _safely(self, work: Work) -> bool:
        """One trouble must not end the receiver: what is kept waits, and is tried again."""
        try:
            await work()
        except MonitorError as error:
            log.warning("a press waits: %s", error)
            return False
        except Exception:
            log.exception("a press waits: this is a fault of Lookout itself")
            return False
        return True

    async def _show_what_was_left(self) -> None:
        """A receiver that was killed may have carried out a press without showing it."""
        await asyncio.to_thread(catch_up, self._people, wait_s=LOCK_WAIT_S)
        for outcome in await asyncio.to_thread(recent_outcomes, self._people):
            await self._show(outcome, None)

    async def _carry_out(self) -> None:
        carried = await asyncio.to_thread(catch_up, self._people, wait_s=LOCK_WAIT_S)
        for failure in carried.failed:
            log.error("a press could not be carried out and waits: %s", failure)
        for action_id, click in list(self._waiting.items()):
            outcome = await asyncio.to_thread(outcome_of, self._people, action_id)
            if outcome is not None:
                await self._show(outcome, click.response_url)
                self._waiting.pop(action_id, None)

    async def _show(self, outcome: ActionOutcome, response_url: str | None) -> None:
        """In the message for all, or in a whisper to the one whose press changed nothing."""
        try:
            if outcome.effect is not ActionEffect.DONE:
                if response_url:
                    await self._reply.whisper(response_url, outcome.text)
                return
            failed = await show_again(self._people, self._sender, [outcome]) if self._sender else ("no token",)
            if failed and response_url:
                await self._show_by_reply(outcome, response_url)
        except NotifyError as error:
            log.warning("what came of a press is not shown: %s", error)

    async def _show_by_reply(self, outcome: ActionOutcome, response_url: str) -> None:
        click = self._waiting.get(outcome.action_id)
        alert_id = click.action.alert_id if click else None
        alert = await asyncio.to_thread(as_it_stands, self._people, alert_id) if alert_id else None
        if alert is not None:
            await self._reply.replace(response_url, alert)
