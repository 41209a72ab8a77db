"""What people hear of a nightly run: failures of severity 3 by kind, drift, a fooled judge, unread sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from flows.alerting.faults import Fault
from flows.nightly.format import ABOUT_ALL, unusable_of
from monitors.alerts.observe import (
    ObservationContext,
    drift,
    fingerprint,
    judge_void,
    monitor_fault,
    observe_cases,
)
from monitors.alerts.redact import excerpt
from monitors.alerts.settings import AlertSettings
from monitors.alerts.traffic_census import (
    CensusSeverity,
    Ending,
    NightlyCensus,
    census_case,
    census_observations,
    census_over,
)
from monitors.alerts.wording import FAILURE_TITLES, TRAFFIC_CASE
from monitors.gate.assess import severity_of
from monitors.plural import plural
from monitors.records.base import Severity
from monitors.records.estimates import RateEstimate
from monitors.records.exchanges import Exchange
from monitors.records.grades import TRAFFIC_ROW, FailureKind
from monitors.records.incidents import Incident, IncidentKind, Observation
from monitors.records.nightly import CensusExample, CensusKind, NightlyReport
from monitors.records.runs import CaseResult, Judging
from monitors.stats.drift import BACK

SOURCE_UNREAD: Final = "TrafficUnread"
ITEMS_UNREADABLE: Final = "TrafficItemsUnreadable"
MAYBE_CUT: Final = "TrafficMaybeCut"
NOTHING_READ: Final = "TrafficNothingRead"
SCORES_UNWRITTEN: Final = "TrafficScoresUnwritten"
JUDGE_SILENT: Final = "TrafficJudgeSilent"
NIGHT_FAULTS: Final = {
    SOURCE_UNREAD: "All sources of the night's traffic could be read.",
    ITEMS_UNREADABLE: "All items of the night's traffic could be used.",
    MAYBE_CUT: "The export says where it ends.",
    NOTHING_READ: "There were conversations in the night's traffic again.",
    SCORES_UNWRITTEN: "The night's scores could be written back.",
    JUDGE_SILENT: "The judge answers again.",
}
"""What can go wrong with a nightly run, and what is said once it is over."""

GRADED_AGAIN: Final = "The night's traffic could be graded again."
WEEK_WITHOUT: Final = "No sample of the last week had a conversation that failed in this way."
METRIC: Final = "failures in live traffic"
MOST_KINDS: Final = 3
"""Kinds of failure that a message of drift names."""
BY_CENSUS: Final = frozenset(kind.failure_kind for kind in CensusKind if kind.failure_kind is not None)
"""Kinds of failure that rules check in every conversation: no alert reports what a sample says of them."""
FOUND_BY_RULE: Final = frozenset(
    {
        FailureKind.PII_DISCLOSURE,
        FailureKind.ERROR_LEAK,
        FailureKind.MISSING_CITATION,
        FailureKind.WRONG_CITATION,
        FailureKind.WRONG_LANGUAGE,
    }
)
"""Kinds that rules find in every sampled reply; another one is found only where a fact was checked."""
QUIET: Final = timedelta(days=7)
"""A kind of failure that a week of nightly runs did not sample again is over: one sample alone proves nothing."""


def seen_in_traffic(
    results: Sequence[CaseResult], report: NightlyReport, at: ObservationContext, settings: AlertSettings
) -> tuple[Observation, ...]:
    """One observation for each kind of failure that alerts: an example, how often, and the estimate for all."""
    every = observe_cases(
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
        if one.failure_kind is not None and one.failure_kind not in BY_CENSUS:
            first.setdefault(one.failure_kind, one)
    return tuple(
        example.as_rate(
            fingerprint(report.target, IncidentKind.CASE_FAILURE, traffic_case(kind)),
            traffic_case(kind),
            excerpt(f"{_how_often(kind, report)}. {example.reason}", limit=500),
        )
        for kind, example in first.items()
    )


def traffic_case(kind: FailureKind) -> str:
    """The case id of a kind of failure: all conversations that failed in this way are one incident."""
    return f"{TRAFFIC_CASE}{kind.value}"


def _how_often(kind: FailureKind, report: NightlyReport) -> str:
    found = next(one for one in report.kinds if one.kind is kind)
    sampled = f"{found.failures:,} of {plural(report.sampled, 'conversation')} sampled from {report.read:,}"
    return f"{sampled}, estimated {found.rate.text} of all" if isinstance(found.rate, RateEstimate) else sampled


def traffic_over(
    open_ones: Sequence[Incident], report: NightlyReport, earlier: Sequence[NightlyReport], now: datetime
) -> frozenset[str]:
    """Kinds of failure absent from a week of nightly runs that could have found them. The census ends its own."""
    found = {traffic_case(one.kind) for one in report.kinds} | {census_case(kind) for kind in CensusKind}
    over: set[str] = set()
    for one in open_ones:
        if one.case_id is None or not one.case_id.startswith(TRAFFIC_CASE) or one.case_id in found:
            continue
        since = [nightly for nightly in (report, *earlier) if nightly.finished_at > one.last_seen_at]
        could = [nightly for nightly in since if _could_find(one.failure_kind, nightly)]
        if now - one.last_seen_at >= QUIET and len(could) >= QUIET.days:
            over.add(one.case_id)
    return frozenset(over)


def _could_find(kind: FailureKind | None, nightly: NightlyReport) -> bool:
    return (
        nightly.sampled > 0 if kind in FOUND_BY_RULE else nightly.facts.total > 0 and not nightly.judging.is_short
    )


def drifted(
    report: NightlyReport, results: Sequence[CaseResult], at: ObservationContext, settings: AlertSettings
) -> Iterator[Observation]:
    """A rate of failures that rose against the nightly runs before, with an example; a fall wakes nobody."""
    reading = report.drift_reading
    if reading is not None and reading.drifted and reading.worse:
        kinds = [one for one in report.kinds if one.kind not in BY_CENSUS][:MOST_KINDS]
        named = ", ".join(
            f"{FAILURE_TITLES[one.kind]} ({one.failures:,} of {report.sampled:,} sampled)" for one in kinds
        )
        most = f" Found in this night: {named}." if named else ""
        detail = f"Failures in live traffic: {reading.text}.{most}"
        example = _find_example([one.kind for one in kinds], results)
        if example is None:
            yield drift(at, metric=METRIC, detail=detail)
            return
        shorten = partial(excerpt, limit=settings.excerpt_characters, account_patterns=at.account_patterns)
        asked, answered = shorten(example.turns[-1]), shorten(example.graded_text)
        yield drift(at, metric=METRIC, detail=detail, asked=asked, answered=answered)


def _find_example(kinds: Sequence[FailureKind], results: Sequence[CaseResult]) -> Exchange | None:
    """One conversation of the most frequent kind that has one."""
    for kind in kinds:
        for result in results:
            if kind in result.assessment.failure_kinds and isinstance(result.result, Exchange):
                return result.result
    return None


def seen_by_census(
    report: NightlyReport,
    earlier: Sequence[NightlyReport],
    examples: Sequence[CensusExample],
    *,
    at: ObservationContext,
    settings: AlertSettings,
    severity: Severity,
) -> Iterator[Observation]:
    """What rules found in all conversations: one observation for each kind that people must hear of."""
    grades = {kind: _grade(kind, severity) for kind in CensusKind}
    nightly_runs = _before(report, earlier)
    return census_observations(_census(report), nightly_runs, examples, at=at, settings=settings, grades=grades)


def over_by_census(
    report: NightlyReport, earlier: Sequence[NightlyReport], open_ones: Sequence[Incident]
) -> Iterator[Ending]:
    """What the census shows to be over."""
    return census_over(_census(report), _before(report, earlier), open_ones)


def _before(report: NightlyReport, earlier: Sequence[NightlyReport]) -> list[NightlyCensus]:
    """The nightly runs before this one that had a census, oldest first. One graded late ignores later ones."""
    return [_census(one) for one in reversed(earlier) if one.census and one.due_at < report.due_at]


def _census(report: NightlyReport) -> NightlyCensus:
    return NightlyCensus(due_at=report.due_at, rates=report.census, whole=not report.interrupted)


def _grade(kind: CensusKind, severity: Severity) -> CensusSeverity:
    if not kind.always_fails:
        return CensusSeverity(Severity.WRONG, None)
    if kind.failure_kind is None:
        return CensusSeverity(severity, None)
    return CensusSeverity(*severity_of(severity, [kind.failure_kind], case_row=TRAFFIC_ROW))


def drift_ended(report: NightlyReport) -> str:
    """The text once the rate is back where it was; empty where this nightly run does not show that."""
    reading = report.drift_reading
    if reading is None or reading.drifted or not reading.reason.startswith(BACK):
        return ""
    return f"Failures in live traffic: {reading.reason}."


def void(text: str, at: ObservationContext) -> Iterator[Observation]:
    """A judge that missed its canaries."""
    if text:
        yield judge_void(at, detail=text)


def cleared_by(report: NightlyReport) -> frozenset[IncidentKind]:
    """What this nightly run proved absent: a fooled judge. A judge that gave no verdict proves nothing."""
    believed = report.judging.judged and not report.judging.void_groups
    return frozenset({IncidentKind.JUDGE_VOID}) if believed else frozenset()


def judge_silent(judging: Judging) -> Iterator[Fault]:
    """A judge that is configured, was asked and gave no verdict, or too few."""
    if judging.is_short:
        because = "; ".join(judging.ungraded_because[:2]) or "it gave no reason"
        asked = judging.reached_judge - judging.void_grades
        yield Fault(
            JUDGE_SILENT,
            f"The judge graded {judging.judged:,} of {plural(asked, 'reply', 'replies')} that it was asked about: "
            f"{because}. What needs it is unknown for this night, and the drift test did not count the night.",
        )


def faults(report: NightlyReport) -> tuple[Fault, ...]:
    """What went wrong with reading, one fault of each kind."""
    found: list[Fault] = []
    if report.interrupted:
        found.append(Fault(SOURCE_UNREAD, f"Not all of the night was read: {'; '.join(report.interrupted)}."))
    cut = next((one for one in report.issues if one.kind in ABOUT_ALL), None)
    if cut is not None:
        found.append(Fault(MAYBE_CUT, f"{cut.place}: {cut.detail}."))
    unusable, first = unusable_of(report)
    if first is not None:
        found.append(
            Fault(
                ITEMS_UNREADABLE,
                f"{plural(unusable, 'item')} of the night's traffic could not be used, the first at "
                f"{first.place}: {first.detail}",
            )
        )
    if not report.read and not report.interrupted:
        known = f" What it holds since {report.since:%Y-%m-%d %H:%M} UTC was graded already ({report.known:,})."
        found.append(
            Fault(
                NOTHING_READ,
                f"The source holds no new conversation until {report.until:%Y-%m-%d %H:%M} UTC."
                f"{known if report.known else ''} See whether the application still keeps its conversations, and "
                "whether the source is the right one.",
            )
        )
    return (*found, *judge_silent(report.judging))


def fault_observations(found: Sequence[Fault], at: ObservationContext) -> Iterator[Observation]:
    """Faults as observations of the monitor."""
    for fault in found:
        yield monitor_fault(at, what=fault.what, detail=fault.detail)
