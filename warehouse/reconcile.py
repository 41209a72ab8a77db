"""What two detectors of one target found in a span of time: the guard's entries, the nights, where they meet."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Final

from monitors.records.estimates import StratumTold
from monitors.records.nights import NightReport
from monitors.records.reconciliation import (
    FoundReply,
    GuardCounts,
    NightCounts,
    OverlapCounts,
    ReconciliationCounts,
)
from warehouse.drawn_replies import DrawnReply, Span, StratumKey, drawn_replies, seen_by_stratum
from warehouse.held_back import HeldBack, held_back_entries, matched
from warehouse.nights import recent_nights
from warehouse.store import READ_WAIT_S, Store

MOST_NIGHTS: Final = 400
"""A year of nights and some more."""
NO_NIGHT: Final = "no night of live traffic was graded in this time"
NO_JUDGE: Final = "no judge looked at these nights, and no rule can tell whether a reply is made up"


def reconciliation_counts(
    store: Store, target: str, since: datetime, until: datetime, *, wait_s: float = READ_WAIT_S
) -> ReconciliationCounts:
    """Counts of both detectors for the same time: the part of ``since`` to ``until`` that the nights cover.

    Only the newest nights that one and the same judge graded are taken. Without any, the guard is counted for the
    whole time. Only entries that people were told of count: what stood in the log before is of no known time.
    Raises `WarehouseDamaged` for a night's report of another form.
    """
    nights, left_out = _nights(store, target, since, until, wait_s)
    if nights:
        since = max(since, min(one.since for one in nights))
        until = min(until, max(one.until for one in nights))
    span = Span(target, since, until, [one.run_id for one in nights])
    entries = held_back_entries(store, target, since, until, wait_s=wait_s)
    drawn = drawn_replies(store, span, wait_s=wait_s)
    pairs = matched(entries, [(one.completed_at, one.user_text) for one in drawn])
    same = {place: entry for entry, place in pairs if _same(entry.blocked_reply, drawn[place].reply_text)}
    return ReconciliationCounts(
        target=target,
        since=since,
        until=until,
        guard=_guard(entries),
        night=_night(nights, seen_by_stratum(store, span, wait_s=wait_s), drawn, same),
        overlap=_overlap(len(pairs), drawn, same),
        nights_left_out=left_out,
    )


def _nights(
    store: Store, target: str, since: datetime, until: datetime, wait_s: float
) -> tuple[Sequence[NightReport], int]:
    """The newest nights that one judge graded without a break, so that no time between them is left out."""
    found = recent_nights(store, target, MOST_NIGHTS, wait_s=wait_s)
    within = [one for one in found if one.since < until and since < one.until]
    alike = list(takewhile(lambda one: one.graded_by == within[0].graded_by, within))
    return alike, len(within) - len(alike)


def _guard(entries: Sequence[HeldBack]) -> GuardCounts:
    said = Counter(one.verdict for one in entries)
    return GuardCounts(entries=len(entries), right=said["right"], wrong=said["wrong"])


def _night(
    nights: Sequence[NightReport],
    seen: Mapping[StratumKey, tuple[int, int]],
    drawn: Sequence[DrawnReply],
    held_back: Mapping[int, HeldBack],
) -> NightCounts:
    """What the nights found in what was served: a reply that was held back was not, though it may be stored."""
    if not nights:
        return NightCounts(why_none=NO_NIGHT)
    served: dict[tuple[StratumKey, tuple[str, str]], list[str]] = defaultdict(list)
    for place, one in enumerate(drawn):
        served[one.stratum, one.conversation] += [] if place in held_back else [one.facts]
    told, failures = Counter[StratumKey](), Counter[StratumKey]()
    for (stratum, _), facts in served.items():
        failures[stratum] += "no" in facts
        told[stratum] += "no" in facts or all(each == "yes" for each in facts)
    lineages = {lineage.model_dump_json(): lineage for one in nights for lineage in one.judging.lineages}
    return NightCounts(
        nights=len(nights),
        strata=tuple(
            StratumTold(stratum=key[1], conversations=there, drawn=taken, told=told[key], failures=failures[key])
            for key, (there, taken) in seen.items()
        ),
        bad_replies=sum(facts.count("no") for facts in served.values()),
        lineages=tuple(lineages[key] for key in sorted(lineages)),
        why_none="" if lineages else NO_JUDGE,
    )


def _overlap(matched_count: int, drawn: Sequence[DrawnReply], same: Mapping[int, HeldBack]) -> OverlapCounts:
    """What people called a false alarm is no bad reply, whatever the night says of it."""
    found = (
        FoundReply(held_back=place in same, inclusion_probability=one.inclusion_probability)
        for place, one in enumerate(drawn)
        if one.facts == "no" and not (place in same and same[place].verdict == "wrong")
    )
    return OverlapCounts(matched=matched_count, same_reply=len(same), found=tuple(found))


def _same(blocked: str | None, replied: str) -> bool:
    """Whether this is the reply that was held back, and not what was served in its place."""
    return blocked is not None and blocked.split() == replied.split() != []
