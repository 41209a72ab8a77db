"""What a night looks at: new conversations of all sources, each once, and the ones that are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from monitors.errors import SourceUnavailable
from monitors.records.nights import NightReport
from monitors.records.traffic import Conversation, SourceNotice, Watermark
from monitors.sources.fresh import Night, fresh, moved, night
from monitors.sources.traffic import TrafficSource

MOST_NOTICES: Final = 20
"""Kept of a night with their words; all are counted."""


@dataclass
class NightRead:
    """Everything new, with the source of each by id. Texts are as they were said: they never leave memory."""

    since: datetime
    until: datetime
    conversations: list[Conversation] = field(default_factory=list[Conversation])
    source_of: dict[str, str] = field(default_factory=dict[str, str])
    known: int = 0
    notices: list[SourceNotice] = field(default_factory=list[SourceNotice])
    watermarks: list[Watermark] = field(default_factory=list[Watermark])
    interrupted: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Reach:
    """How far back a night reads: what may come late, and how long the first night is."""

    late: timedelta
    first: timedelta


async def read_night(
    sources: Mapping[str, TrafficSource],
    marks: Mapping[str, Watermark],
    known: Mapping[str, AbstractSet[str]],
    until: datetime,
    reach: Reach,
) -> NightRead:
    """Read every source from its watermark up to ``until``; ``known`` are ids that earlier nights took, by source.

    A source that cannot be read keeps its watermark (one that never was read gets the beginning of what it was
    asked for), and what came of it until then is not used: the next night reads it whole. The same id in two
    sources is one conversation.
    """
    windows = {name: window(marks.get(name), until, reach) for name in sources}
    found = NightRead(since=min(one.since for one in windows.values()), until=until)
    for name, source in sources.items():
        try:
            read, notices = await _read(source, windows[name])
        except SourceUnavailable as error:
            found.interrupted.append(f"{name}: {error}")
            found.watermarks.append(marks.get(name) or Watermark(source=name, completed_to=windows[name].since))
            continue
        taken = fresh(read, known.get(name, frozenset()) | found.source_of.keys())
        found.conversations += taken.taken
        found.source_of |= {one.id: name for one in taken.taken}
        found.known += taken.known
        found.notices += [*notices, *taken.notices]
        found.watermarks.append(moved(marks.get(name), name, windows[name]))
    return found


def window(mark: Watermark | None, until: datetime, reach: Reach) -> Night:
    """What is read of one source."""
    return night(mark, until, late_by=reach.late, first=reach.first)


async def _read(source: TrafficSource, span: Night) -> tuple[Sequence[Conversation], Sequence[SourceNotice]]:
    conversations: list[Conversation] = []
    notices: list[SourceNotice] = []
    async for item in source.read(span.since, span.until):
        match item:
            case SourceNotice():
                notices.append(item)
            case Conversation():
                conversations.append(item)
    return conversations, notices


def watermarks_of(earlier: Sequence[NightReport]) -> Mapping[str, Watermark]:
    """The newest watermark of each source, by name; ``earlier`` nights come newest first."""
    marks: dict[str, Watermark] = {}
    for report in earlier:
        for mark in report.watermarks:
            marks.setdefault(mark.source, mark)
    return marks
