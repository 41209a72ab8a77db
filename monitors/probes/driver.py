"""The interface of a driver: it asks the application one conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol
from uuid import uuid4

from monitors.records.base import Record
from monitors.records.exchanges import Channel, Evidence, Timings, WirePayload


class Answer(Record):
    """A whole answer to the last turn. ``earlier`` are the answers to the turns before it."""

    visible_text: str
    earlier: tuple[str, ...] = ()
    wire: WirePayload | None = None
    graded_channel: Channel = Channel.VISIBLE
    timings: Timings
    app_path: str | None = None
    app_version: str | None = None
    evidence: Evidence = Evidence()


class EvidenceFilter(Record):
    """Which evidence of a whole answer to store."""

    screenshot: bool = False
    trace: bool = False


def create_conversation_id() -> str:
    """A conversation's name at an app, never used before. Nothing that Lookout decides depends on it."""
    return uuid4().hex


SelectEvidence = Callable[[Answer], Awaitable[EvidenceFilter]]
"""Asked while the page is still open: the answer may be judged there and then, and be worth a picture."""


async def store_no_evidence(_answer: Answer) -> EvidenceFilter:
    """No answer is worth a picture."""
    return EvidenceFilter()


class ChatDriver(Protocol):
    """Asks the app. One conversation at a time per call; calls may overlap.

    `ask` types each of `turns` in a fresh conversation and returns the last answer. `name` begins the names of
    evidence files. `worth_storing` is called once, with the whole answer, before the page closes; what it selects
    comes back as the answer's evidence. A driver without pages calls it too, and has no picture to give.

    Raises a `ProbeError` when nothing gradable came back, with the partial text and the evidence of the failure.
    """

    async def ask(
        self, turns: tuple[str, ...], *, name: str = "question", worth_storing: SelectEvidence = store_no_evidence
    ) -> Answer:
        """Ask, and wait for the whole answer."""
        ...
