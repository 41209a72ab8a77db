"""The interface of a driver: it sends one conversation to the application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol
from uuid import uuid4

from monitors.records.base import Record
from monitors.records.exchanges import Channel, Evidence, Timings, WirePayload


class Answer(Record):
    """A complete answer to the last turn. ``earlier`` are the answers to the earlier turns."""

    visible_text: str
    earlier: tuple[str, ...] = ()
    wire: WirePayload | None = None
    graded_channel: Channel = Channel.VISIBLE
    timings: Timings
    app_path: str | None = None
    app_version: str | None = None
    evidence: Evidence = Evidence()


class EvidenceFilter(Record):
    """Which evidence of an answer to store."""

    screenshot: bool = False
    trace: bool = False


def create_conversation_id() -> str:
    """Return a new unique id for a conversation at an app. Lookout makes no decision from it."""
    return uuid4().hex


SelectEvidence = Callable[[Answer], Awaitable[EvidenceFilter]]
"""Called while the page is still open, so that the answer can be graded and a screenshot taken."""


async def store_no_evidence(_answer: Answer) -> EvidenceFilter:
    """Store no evidence for any answer."""
    return EvidenceFilter()


class ChatDriver(Protocol):
    """Send one conversation to the app per call; calls may overlap.

    `ask` sends each of `turns` in a new conversation and returns the last answer. `name` is the prefix of
    evidence files. `worth_storing` is called once, with the complete answer, before the page closes. The evidence
    that it selects is returned with the answer. A driver without pages also calls it, but has no screenshot.

    Raises a `ProbeError` with the partial text and the evidence if no gradable answer arrived.
    """

    async def ask(
        self, turns: tuple[str, ...], *, name: str = "question", worth_storing: SelectEvidence = store_no_evidence
    ) -> Answer:
        """Send the turns and wait for the complete answer."""
        ...
