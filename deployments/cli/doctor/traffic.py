"""Functions that read conversations and unusable items of live traffic, as a nightly run does, and show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from flows.nightly.context import build_traffic_sources
from flows.nightly.format import REASON_WORDS
from monitors.alerts.redact import build_redacted_excerpt
from monitors.config.file import TargetConfig
from monitors.errors import MonitorError
from monitors.plural import plural
from monitors.records.traffic import Conversation, SourceWarning, UnusableReason
from monitors.sources.settings import NightlySettings
from monitors.sources.traffic.settings import FileTraffic
from monitors.sources.traffic.source import TrafficSource

SHOWN: Final = 3
MAX_READ: Final = 2_000
"""Maximum number of conversations and warnings that are read from one source."""
RECENT: Final = timedelta(days=7)
"""Maximum age of the conversations that are read over the network."""
MAX_TEXT_LENGTH: Final = 200


@dataclass
class TrafficSample:
    """The first few conversations of a source, the first unusable item per reason, and the number of all items."""

    source: str
    read: int = 0
    conversations: list[Conversation] = field(default_factory=list[Conversation])
    unusable: Counter[UnusableReason | None] = field(default_factory=Counter[UnusableReason | None])
    examples: dict[UnusableReason | None, SourceWarning] = field(
        default_factory=dict[UnusableReason | None, SourceWarning]
    )
    error: str | None = None

    def add(self, record: Conversation | SourceWarning) -> None:
        """Count a record: a conversation, or a warning about an unusable item.

        Only the first few conversations, and the first unusable item for each reason, are stored.
        """
        if isinstance(record, SourceWarning):
            self.unusable[record.reason] += 1
            self.examples.setdefault(record.reason, record)
            return
        self.read += 1
        if len(self.conversations) < SHOWN:
            self.conversations.append(record)


async def read_first_traffic_items(
    configured: TargetConfig, settings: NightlySettings, now: datetime
) -> list[TrafficSample]:
    """Read the first few items of each source of a target."""
    samples: list[TrafficSample] = []
    for name, source in build_traffic_sources(configured, settings).items():
        is_file = isinstance(settings.sources[name], FileTraffic)
        since = datetime.min.replace(tzinfo=UTC) if is_file else now - RECENT
        samples.append(await _read_traffic_sample(TrafficSample(name), source, since, now + timedelta(days=1)))
    return samples


async def _read_traffic_sample(
    sample: TrafficSample, source: TrafficSource, since: datetime, until: datetime
) -> TrafficSample:
    try:
        async with aclosing(source.read_conversations(since, until)) as records:
            async for record in records:
                sample.add(record)
                if sample.read + sample.unusable.total() >= MAX_READ:
                    break
    except MonitorError as error:
        sample.error = str(error)
    return sample


def format_traffic(samples: Sequence[TrafficSample], account_patterns: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield a name and a line of text for each row about the samples. Texts are redacted and shortened."""
    for sample in samples:
        more = " among the first items" if sample.read + sample.unusable.total() >= MAX_READ else ""
        yield "traffic", f"source {sample.source}: {plural(sample.read, 'conversation')}{more}"
        if sample.error:
            yield "", f"Lookout cannot read this source: {sample.error}"
        for conversation in sample.conversations:
            yield from _format_conversation(conversation, account_patterns)
        for reason, warning in sample.examples.items():
            words = REASON_WORDS.get(reason, "not usable") if reason else "not usable"
            yield (
                "not read",
                f"{sample.unusable[reason]:,} {words}. The first is at {warning.place}: {warning.detail}",
            )


def _format_conversation(conversation: Conversation, account_patterns: Sequence[str]) -> Iterator[tuple[str, str]]:
    def make_redacted_excerpt(text: str) -> str:
        return build_redacted_excerpt(text, limit=MAX_TEXT_LENGTH, account_patterns=account_patterns)

    last = conversation.turns[-1]
    turns = plural(len(conversation.turns), "turn")
    yield "read as", f"{conversation.completed_at:%Y-%m-%d %H:%M:%S} UTC, {turns}. The last turn:"
    yield "  asked", make_redacted_excerpt(last.user_text)
    yield "  answer", make_redacted_excerpt(last.reply_text) or "the application gave no answer"
    for passage in last.context[:SHOWN]:
        yield "  passage", make_redacted_excerpt(passage)
