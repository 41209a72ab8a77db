"""What people hear of a night: failures of severity 3 by kind, drift, a judge that was fooled, sources unread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from flows.monitor_fault import Fault
from monitors.alerts.events import Sighting, drift, judge_void, monitor_fault
from monitors.alerts.excerpt import excerpt
from monitors.alerts.fingerprint import fingerprint
from monitors.alerts.observe import observations
from monitors.alerts.settings import AlertSettings
from monitors.records.estimates import RateEstimate
from monitors.records.grades import FailureKind
from monitors.records.incidents import Incident, IncidentKind, Observation
from monitors.records.nights import NightReport
from monitors.records.runs import CaseResult

SOURCE_UNREAD: Final = "TrafficUnread"
ITEMS_UNREADABLE: Final = "TrafficItemsUnreadable"
NOTHING_READ: Final = "TrafficNothingRead"
SCORES_UNWRITTEN: Final = "TrafficScoresUnwritten"
NIGHT_FAULTS: Final = {
    SOURCE_UNREAD: "All sources of the night's traffic could be read.",
    ITEMS_UNREADABLE: "All items of the night's traffic could be used.",
    NOTHING_READ: "There were conversations in the night's traffic again.",
    SCORES_UNWRITTEN: "The night's scores could be written back.",
}
"""What can go wrong with a night, and what is said once it is over."""

WEEK_WITHOUT: Final = "No night of the last week has drawn a conversation that failed so."
METRIC: Final = "failures in live traffic"
QUIET: Final = timedelta(days=7)
"""A kind of failure that a week of nights did not draw again is over: one night's sample alone proves nothing."""


def seen_in_traffic(
    results: Sequence[CaseResult], report: NightReport, at: Sighting, settings: AlertSettings
) -> tuple[Observation, ...]:
    """One observation for each kind of failure that pages: an example, how often, and the estimate for all."""
    every = observations(
        results,
        target=at.target,
        run_id=at.run_id,
        seen_at=at.seen_at,
        settings=settings,
        commit=at.commit,
        account_patterns=at.account_patterns,
    )
    first: dict[FailureKind, Observation] = {}
    for one in every:
        if one.failure_kind is not None:
            first.setdefault(one.failure_kind, one)
    return tuple(_of_kind(kind, one, report) for kind, one in first.items())


def _of_kind(kind: FailureKind, example: Observation, report: NightReport) -> Observation:
    return example.model_copy(
        update={
            "fingerprint": fingerprint(report.target, IncidentKind.CASE_FAILURE, traffic_case(kind)),
            "case_id": traffic_case(kind),
            "expected": None,
            "reason": excerpt(f"{_how_often(kind, report)}. {example.reason}", limit=500),
        }
    )


def traffic_case(kind: FailureKind) -> str:
    """Stands in a case's place: all conversations that failed in this way are one incident."""
    return f"live-traffic:{kind.value}"


def _how_often(kind: FailureKind, report: NightReport) -> str:
    found = next(one for one in report.kinds if one.kind is kind)
    drawn = f"{found.failures:,} of {report.drawn:,} conversations drawn from {report.read:,}"
    return f"{drawn}, estimated {found.rate.text} of all" if isinstance(found.rate, RateEstimate) else drawn


def traffic_over(open_ones: Sequence[Incident], report: NightReport, now: datetime) -> frozenset[str]:
    """Kinds of failure, as cases, that no night has drawn for a week."""
    found = {traffic_case(one.kind) for one in report.kinds}
    return frozenset(
        one.case_id
        for one in open_ones
        if one.case_id is not None
        and one.case_id.startswith("live-traffic:")
        and one.case_id not in found
        and now - one.last_seen_at >= QUIET
    )


def night_fault_fingerprints(target: str) -> tuple[str, ...]:
    """Faults that only a night can say are over: a run that asks the application knows nothing of them."""
    return tuple(fingerprint(target, IncidentKind.MONITOR_FAULT, what) for what in NIGHT_FAULTS)


def drifted(report: NightReport, at: Sighting) -> Iterator[Observation]:
    """A rate of failures that moved up against the nights before; for the better wakes nobody."""
    reading = report.drift_reading
    if reading is not None and reading.drifted and reading.worse:
        yield drift(at, metric=METRIC, detail=f"Failures in live traffic: {reading.text}")


def void(text: str, at: Sighting) -> Iterator[Observation]:
    """A judge that missed its canaries."""
    if text:
        yield judge_void(at, detail=text)


def cleared_by(report: NightReport) -> frozenset[IncidentKind]:
    """What this night proved absent: drift, a judge that is fooled."""
    cleared: set[IncidentKind] = set()
    if report.drift_reading is not None and not report.drift_reading.drifted:
        cleared.add(IncidentKind.DRIFT)
    if report.judging.groups and not report.judging.void_groups:
        cleared.add(IncidentKind.JUDGE_VOID)
    return frozenset(cleared)


def faults(report: NightReport) -> tuple[Fault, ...]:
    """What went wrong with reading, one fault of each kind."""
    found: list[Fault] = []
    if report.interrupted:
        found.append(Fault(SOURCE_UNREAD, f"Not all of the night was read: {'; '.join(report.interrupted)}."))
    if report.notice_count:
        first = report.notices[0]
        found.append(
            Fault(
                ITEMS_UNREADABLE,
                f"{report.notice_count:,} items of the night's traffic could not be used, the first at "
                f"{first.place}: {first.detail}",
            )
        )
    if not report.read and not report.interrupted:
        since = f"{report.since:%Y-%m-%d %H:%M}"
        found.append(
            Fault(
                NOTHING_READ,
                f"No conversation since {since} UTC was found ({report.known:,} were known): see whether the "
                "application still keeps them, and whether the source is the right one.",
            )
        )
    return tuple(found)


def told_as_faults(found: Sequence[Fault], at: Sighting) -> Iterator[Observation]:
    """Faults as observations of the monitor."""
    for fault in found:
        yield monitor_fault(at, what=fault.what, detail=fault.detail)
