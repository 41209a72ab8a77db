"""What two detectors found and missed, in words for somebody who meets these figures for the first time."""

from __future__ import annotations

from collections.abc import Iterator

from monitors.records.estimates import RateEstimate
from monitors.records.reconciliation import Interval, Reconciliation, Told


def reconciliation_lines(found: Reconciliation) -> Iterator[str]:
    """A line a fact; the first names target and time. What is not known says why."""
    counts = found.counts
    yield f"{counts.target}, {counts.since:%Y-%m-%d %H:%M} to {counts.until:%Y-%m-%d %H:%M} UTC"
    yield f"  {_guard(found)}"
    yield from (f"  {line}" for line in _served(found))
    yield f"  The guard's recall (of all that was bad, the share that it held back): {_recall(found)}."
    yield f"  What neither saw: {_missed(found)}."
    if isinstance(found.judge_blind, Interval):
        yield f"  Even if the judge looked at all, it would pass {_about(found.judge_blind)} bad ones."
    yield f"  Two detectors on the same replies: {_two(found)}."
    yield from (f"  Note: {note}." for note in _notes(found))


def _guard(found: Reconciliation) -> str:
    guard = found.counts.guard
    held = f"The guard held back {_counted(guard.entries, 'reply', 'replies')}"
    if not guard.entries:
        return f"{held}."
    if not isinstance(found.precision, Interval):
        alarms = f"; people called {guard.wrong:,} of them false alarms" if guard.wrong else ""
        return f"{held}{alarms} → precision unknown, because {found.precision.why}."
    rightly = _about(found.held_back_rightly)
    return (
        f"{held}; people called {guard.wrong:,} of {guard.labelled:,} false alarms → precision "
        f"{_percent(found.precision)}: {rightly} were rightly held back."
    )


def _served(found: Reconciliation) -> Iterator[str]:
    night, flagged = found.counts.night, found.flagged
    if not isinstance(flagged, RateEstimate):
        yield f"What was served: unknown, because {flagged.why}."
        return
    coverage = f" (told of {100 * flagged.coverage:.0f} % of them)" if flagged.coverage < 1 else ""
    yield (
        f"Of {_counted(night.conversations, 'conversation')} in {_counted(night.nights, 'night')} "
        f"the judge looked at {night.told:,} and called {night.found:,} bad → {flagged.text} of all{coverage}."
    )
    if found.corrected:
        record = f"people reviewed {found.reviewed_wrong:,.0f} wrong and {found.reviewed_right:,.0f} right answers"
        bad = _about(found.served_bad)
        yield f"With the judge's own errors taken out ({record}): {bad} bad conversations served."


def _recall(found: Reconciliation) -> str:
    if not isinstance(found.recall, Interval):
        return f"unknown, because {found.recall.why}"
    as_said = "" if found.corrected else ", by the judge's word alone"
    return f"{_percent(found.recall)}{as_said}"


def _missed(found: Reconciliation) -> str:
    if not isinstance(found.missed, Interval):
        return f"unknown, because {found.missed.why}"
    served = _counted(found.counts.night.conversations, "conversation")
    return f"about {found.missed.value:,.0f} of {served} {_limits(found.missed)}"


def _two(found: Reconciliation) -> str:
    if not isinstance(found.total_bad, Interval):
        return f"unknown, because {found.total_bad.why}"
    both = found.counts.overlap.both
    return f"{both:,} were found by both → {_about(found.total_bad)} bad replies in all, held back or served"


def _notes(found: Reconciliation) -> Iterator[str]:
    """What a reader must know to weigh the figures."""
    counts = found.counts
    night = counts.night
    yield f"brackets hold the truth in about {100 * found.confidence:.0f} of 100 such reports, not in the others"
    if counts.guard.labelled:
        yield "precision takes the entries that people labelled as a fair part of all"
    if found.corrected:
        yield "the judge is taken to err on live traffic as it did on the answers that people reviewed"
    if night.bad_replies > night.found:
        yield (
            f"the {night.found:,} bad conversations hold {night.bad_replies:,} bad replies, and the guard counts "
            "replies: its recall is somewhat lower than said"
        )
    if counts.overlap.matched:
        yield (
            f"{_counted(counts.overlap.matched, 'entry', 'entries')} met a drawn conversation; in "
            f"{counts.overlap.same_reply:,} the night saw the very reply that was held back"
        )
    if isinstance(found.total_bad, Interval):
        yield "two detectors that stumble over the same replies make that total too low"
    if counts.nights_left_out:
        yield f"{_counted(counts.nights_left_out, 'earlier night')} left out: another judge graded them"


def _about(told: Told) -> str:
    assert isinstance(told, Interval)
    return f"about {told.value:,.0f} {_limits(told)}"


def _limits(told: Interval) -> str:
    return f"[{told.low:,.0f}, {told.high:,.0f}]"


def _percent(told: Interval) -> str:
    return f"{100 * told.value:.0f} % [{100 * told.low:.0f}, {100 * told.high:.0f}]"


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
