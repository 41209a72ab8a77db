"""Reads each new conversation from all sources once for a nightly run, and collects possible samples."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Container, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from flows.nightly.census import CHUNK_SIZE, CensusPool, SourceCensus
from flows.nightly.format import SOURCE_WARNING_KINDS
from monitors.errors import SourceUnavailable
from monitors.records.nightly import NightlyReport
from monitors.records.traffic import Conversation, SourceWarning, UnusableReason, Watermark
from monitors.sources.intake import IntakeDecision, IntakeWindow, advance_watermark, compute_intake_window
from monitors.sources.sampling.sample import Candidates
from monitors.sources.traffic.source import TrafficSource

MAX_WARNINGS: Final = 20
"""Maximum number of warnings that a nightly run stores as text. The count includes all warnings."""


# This class collects the fields of NightlyIntake while the sources are read.
@dataclass
class NightlyRead:
    """The new conversations of all sources. Their original texts are never written to disk."""

    since: datetime
    until: datetime
    candidates: Candidates
    tallies: dict[str, SourceCensus] = field(default_factory=dict[str, SourceCensus])
    known: int = 0
    repeated: int = 0
    issues: list[SourceWarning] = field(default_factory=list[SourceWarning])
    """The first few warnings. Warnings about a whole source come before warnings about an item."""
    issue_count: int = 0
    unusable: Counter[UnusableReason] = field(default_factory=Counter[UnusableReason])
    watermarks: list[Watermark] = field(default_factory=list[Watermark])
    interrupted: list[str] = field(default_factory=list[str])

    @property
    def count(self) -> int:
        """The number of new conversations."""
        return sum(len(tally.intake) for tally in self.tallies.values())

    def add_source(self, name: str, read: SourceRead) -> None:
        """Add the result of reading one source."""
        self.tallies[name] = read.tally
        self.candidates.merge(read.tally.candidates)
        self.known += read.tally.counts[IntakeDecision.TAKEN_EARLIER]
        self.repeated += read.tally.counts[IntakeDecision.DUPLICATE] + read.tally.counts[IntakeDecision.REPLACED]
        changed = read.tally.intake.build_duplicate_id_warnings()
        self.issues = _select_first_warnings([*self.issues, *read.issues, *changed])
        self.issue_count += read.issue_count + len(changed)
        self.unusable += read.unusable


class SourceRead:
    """Reads one source of conversations."""

    def __init__(self, tally: SourceCensus, mark: Watermark | None) -> None:
        self.tally, self._mark = tally, mark
        self.issues: list[SourceWarning] = []
        self.issue_count = 0
        self.unusable = Counter[UnusableReason]()

    async def read(self, source: TrafficSource, span: IntakeWindow, pool: CensusPool) -> None:
        """Read the whole source and classify each new conversation. Raises `SourceUnavailable`."""
        waiting: deque[tuple[Conversation, IntakeDecision]] = deque()
        chunks = self._read_conversation_chunks(source, span, waiting)
        async with aclosing(pool.classify(chunks)) as given:
            async for _, verdicts in given:
                for verdict in verdicts:
                    self.tally.record(*waiting.popleft(), verdict)

    async def _read_conversation_chunks(
        self, source: TrafficSource, span: IntakeWindow, waiting: deque[tuple[Conversation, IntakeDecision]]
    ) -> AsyncIterator[Sequence[bytes]]:
        chunk: list[bytes] = []
        async for item in source.read_conversations(span.since, span.until):
            if isinstance(item, SourceWarning):
                # An earlier nightly run has reported the warnings about items before the watermark.
                if item.at is None or self._mark is None or item.at >= self._mark.completed_to:
                    self.issues = _select_first_warnings([*self.issues, item])
                    self.issue_count += 1
                    if item.reason is not None:
                        self.unusable[item.reason] += 1
                continue
            written = item.model_dump_json().encode()
            offer = self.tally.intake.offer(item, written)
            self.tally.counts[offer] += 1
            if offer in (IntakeDecision.TAKEN, IntakeDecision.REPLACED):
                waiting.append((item, offer))
                chunk.append(written)
            if len(chunk) == CHUNK_SIZE:
                yield chunk
                chunk = []
        if chunk:
            yield chunk


def _select_first_warnings(issues: Sequence[SourceWarning]) -> list[SourceWarning]:
    """Select the warnings to store: the first `MAX_WARNINGS` in this order.

    First warnings about whole sources, then warnings about items that should be conversations, then warnings about
    items without a conversation.
    """
    return sorted(
        issues,
        key=lambda warning: (
            warning.kind not in SOURCE_WARNING_KINDS,
            warning.reason is UnusableReason.NO_CONVERSATION,
        ),
    )[:MAX_WARNINGS]


class _UnionContainer:
    """The union of several containers. Their items are not copied."""

    def __init__(self, *places: Container[object]) -> None:
        self._places = places

    def __contains__(self, conversation_id: object) -> bool:
        return any(conversation_id in place for place in self._places)


@dataclass(frozen=True)
class LookbackWindow:
    """How far back a nightly run reads.

    ``late`` is the maximum delay before a conversation appears in its source. ``first`` is the period that the
    first nightly run reads.
    """

    late: timedelta
    first: timedelta


async def read_traffic(
    sources: Mapping[str, TrafficSource],
    marks: Mapping[str, Watermark],
    known_ids: Mapping[str, Container[object]],
    spans: Mapping[str, IntakeWindow],
    *,
    new_sample: Callable[[], Candidates],
    pool: CensusPool,
) -> NightlyRead:
    """Read every source from its watermark, the time up to which earlier nightly runs have read the source.

    ``known_ids`` are the ids of conversations that earlier nightly runs have read, by source. If a source cannot be
    read to its end, this run uses nothing from this source, and the next nightly run reads the source again. If two
    sources have a conversation with the same id, the conversation counts once.
    """
    since, until = min(span.since for span in spans.values()), max(span.until for span in spans.values())
    nightly_read = NightlyRead(since=since, until=until, candidates=new_sample())
    for name, source in sources.items():
        taken = _UnionContainer(known_ids.get(name, ()), *(tally.intake for tally in nightly_read.tallies.values()))
        read = SourceRead(SourceCensus(taken, new_sample()), marks.get(name))
        try:
            await read.read(source, spans[name], pool)
        except SourceUnavailable as error:
            nightly_read.interrupted.append(f"{name}: {error}")
            nightly_read.watermarks.append(
                marks.get(name) or Watermark(source=name, completed_to=spans[name].since)
            )
            continue
        nightly_read.add_source(name, read)
        nightly_read.watermarks.append(advance_watermark(marks.get(name), name, spans[name]))
    return nightly_read


def build_intake_window(mark: Watermark | None, until: datetime, reach: LookbackWindow) -> IntakeWindow:
    """Compute the period for which one source is read."""
    return compute_intake_window(mark, until, max_delay=reach.late, first_period=reach.first)


def collect_newest_watermarks(earlier: Sequence[NightlyReport]) -> Mapping[str, Watermark]:
    """Collect the newest watermark of each source by name. ``earlier`` has the newest report first."""
    marks: dict[str, Watermark] = {}
    for report in earlier:
        for mark in report.watermarks:
            marks.setdefault(mark.source, mark)
    return marks
