"""Define the interface of drivers.

A driver sends the turns of one conversation to the app and returns the answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, Self
from uuid import uuid4

from monitors.records.base import Record
from monitors.records.exchanges import Channel, Evidence, Timings, WirePayload


# Has fields of Exchange. A driver does not know the run, the case and the repeat, which an Exchange also needs.
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

    def with_evidence_files(self, files: Evidence) -> Self:
        """Return the answer with ``files``, the evidence files that were stored after the answer was read."""
        return self.model_copy(update={"evidence": files.with_samples_and_texts_from(self.evidence)})


class EvidenceFilter(Record):
    """The kinds of evidence that are stored for one answer."""

    screenshot: bool = False
    trace: bool = False


def create_conversation_id() -> str:
    """Return a new unique id that identifies a conversation to the app. Lookout itself does not use the id."""
    return uuid4().hex


SelectEvidence = Callable[[Answer], Awaitable[EvidenceFilter]]
"""A function that decides which evidence is stored for an answer. It is called while the page is still open."""


async def select_no_evidence(_answer: Answer) -> EvidenceFilter:
    """Return a filter that stores no evidence."""
    return EvidenceFilter()


class ChatDriver(Protocol):
    """The interface of drivers. Each call of `ask` is one conversation, and calls may run at the same time.

    `ask` sends all `turns` in a new conversation and returns the last answer. The names of evidence files start
    with `name`. `select_evidence` is called once with the complete answer, and the evidence that it selects is
    returned with the answer.

    Raises a `ProbeError` with the partial text and the evidence if no complete answer arrived.
    """

    async def ask(
        self,
        turns: tuple[str, ...],
        *,
        name: str = "question",
        select_evidence: SelectEvidence = select_no_evidence,
    ) -> Answer:
        """Send the turns and wait for the complete answer."""
        ...
