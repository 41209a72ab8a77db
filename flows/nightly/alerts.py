"""Builds the observations and faults of a nightly run: failures by kind, drift, wrong verdicts, unread sources.

An observation is a fact that a run noticed. `flows.alerting.pipeline` decides whether the observation causes an
alert.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from flows.alerting.faults import Fault
from flows.nightly.format import (
    SOURCE_WARNING_KINDS,
    count_unusable_and_find_first,
    format_report_ratings,
    format_unusable_reasons,
)
from monitors.alerts.observe import (
    ObservationContext,
    build_drift_observation,
    build_monitor_fault_observation,
    build_severe_failure_observations,
    build_void_judge_observation,
    compute_fingerprint,
)
from monitors.alerts.redact import build_redacted_excerpt
from monitors.alerts.settings import AlertSettings
from monitors.alerts.traffic_census import (
    CensusSeverity,
    Ending,
    NightlyCensus,
    build_census_case_id,
    build_census_observations,
    find_ended_census_incidents,
)
from monitors.alerts.wording import FAILURE_TITLES, TRAFFIC_CASE
from monitors.gate.assess import decide_severity
from monitors.plural import plural
from monitors.records.base import Severity
from monitors.records.estimates import RateEstimate
from monitors.records.exchanges import Exchange
from monitors.records.grades import TRAFFIC_ROW, FailureKind
from monitors.records.incidents import Incident, IncidentKind, Observation
from monitors.records.nightly import CensusExample, CensusKind, NightlyReport
from monitors.records.runs import CaseResult, Judging
from monitors.stats.drift import RECOVERED_PREFIX

SOURCE_UNREAD: Final = "TrafficUnread"
ITEMS_UNREADABLE: Final = "TrafficItemsUnreadable"
MAYBE_TRUNCATED: Final = "TrafficMaybeCut"
NOTHING_READ: Final = "TrafficNothingRead"
SCORES_UNWRITTEN: Final = "TrafficScoresUnwritten"
JUDGE_SILENT: Final = "TrafficJudgeSilent"
NIGHT_FAULTS: Final = {
    SOURCE_UNREAD: "Lookout read all sources of the night's traffic again.",
    ITEMS_UNREADABLE: "Lookout read all items of the night's traffic again.",
    MAYBE_TRUNCATED: "The export of the traffic is complete again.",
    NOTHING_READ: "The night's traffic has conversations again.",
    SCORES_UNWRITTEN: "Lookout wrote the night's scores back to the platform again.",
    JUDGE_SILENT: "The judge answers again.",
}
"""Maps the name of each fault of a nightly run to the message that is sent when the fault has ended."""

GRADED_AGAIN_TEXT: Final = "Lookout graded the night's traffic again."
RESOLVED_TEXT: Final = "No sampled conversation of the last week failed in this way."
METRIC: Final = "failures in live traffic"
USEFULNESS_METRIC: Final = "usefulness of live reports"
MAX_KINDS: Final = 3
"""Maximum number of failure kinds in a drift alert."""
CENSUS_FAILURE_KINDS: Final = frozenset(kind.failure_kind for kind in CensusKind if kind.failure_kind is not None)
"""Failure kinds that rules check in every conversation. Therefore alerts about the sample exclude them."""
RULE_FAILURE_KINDS: Final = frozenset(
    {
        FailureKind.PII_DISCLOSURE,
        FailureKind.ERROR_LEAK,
        FailureKind.MISSING_CITATION,
        FailureKind.WRONG_CITATION,
        FailureKind.WRONG_LANGUAGE,
    }
)
"""Failure kinds that rules can find in every sampled reply. All other kinds need a check of the facts."""
RESOLVE_AFTER: Final = timedelta(days=7)
"""If no nightly run found a failure kind in this period, the incident about this kind is resolved."""


def build_traffic_observations(
    results: Sequence[CaseResult], report: NightlyReport, context: ObservationContext, settings: AlertSettings
) -> tuple[Observation, ...]:
    """Build one observation for each failure kind in the sample, with an example and the estimated rate."""
    observations = build_severe_failure_observations(
        results,
        target=context.target,
        run_id=context.run_id,
        seen_at=context.seen_at,
        settings=settings,
        commit=context.commit,
        account_patterns=context.account_patterns,
    )
    first: dict[FailureKind, Observation] = {}
    for observation in observations:
        if observation.failure_kind is not None and observation.failure_kind not in CENSUS_FAILURE_KINDS:
            first.setdefault(observation.failure_kind, observation)
    return tuple(
        example.to_rate_example(
            compute_fingerprint(report.target, IncidentKind.CASE_FAILURE, build_traffic_case_id(kind)),
            build_traffic_case_id(kind),
            build_redacted_excerpt(f"{_format_frequency(kind, report)}. {example.reason}", limit=500),
        )
        for kind, example in first.items()
    )


def build_traffic_case_id(kind: FailureKind) -> str:
    """Build the case id for a failure kind. All conversations with this kind belong to the same incident."""
    return f"{TRAFFIC_CASE}{kind.value}"


def _format_frequency(kind: FailureKind, report: NightlyReport) -> str:
    kind_rate = next(candidate for candidate in report.kinds if candidate.kind is kind)
    sampled = f"{kind_rate.failures:,} of {plural(report.sampled, 'conversation')} sampled from {report.read:,}"
    return (
        f"{sampled}, estimated {kind_rate.rate.text} of all"
        if isinstance(kind_rate.rate, RateEstimate)
        else sampled
    )


def find_resolved_case_ids(
    open_incidents: Sequence[Incident], report: NightlyReport, earlier: Sequence[NightlyReport], now: datetime
) -> frozenset[str]:
    """Find the case ids of open incidents about failure kinds that nightly runs no longer find.

    An incident has ended if its failure kind was last seen at least `RESOLVE_AFTER` ago, and if enough nightly runs
    since then could have found this kind. Failure kinds that rules check in every conversation are not included.
    """
    found_cases = {build_traffic_case_id(incident.kind) for incident in report.kinds} | {
        build_census_case_id(kind) for kind in CensusKind
    }
    resolved: set[str] = set()
    for incident in open_incidents:
        if (
            incident.case_id is None
            or not incident.case_id.startswith(TRAFFIC_CASE)
            or incident.case_id in found_cases
        ):
            continue
        since = [nightly for nightly in (report, *earlier) if nightly.finished_at > incident.last_seen_at]
        could_find = [nightly for nightly in since if _can_find_kind(incident.failure_kind, nightly)]
        if now - incident.last_seen_at >= RESOLVE_AFTER and len(could_find) >= RESOLVE_AFTER.days:
            resolved.add(incident.case_id)
    return frozenset(resolved)


def _can_find_kind(kind: FailureKind | None, nightly: NightlyReport) -> bool:
    return (
        nightly.sampled > 0
        if kind in RULE_FAILURE_KINDS
        else nightly.facts.total > 0 and not nightly.judging.has_too_few_verdicts
    )


def build_drift_observations(
    report: NightlyReport, results: Sequence[CaseResult], context: ObservationContext, settings: AlertSettings
) -> Iterator[Observation]:
    """Build an observation of drift if the failure rate is higher than in earlier nightly runs.

    The observation contains an example from the sample, if there is one.
    """
    reading = report.drift_reading
    if reading is not None and reading.drifted and reading.is_worse:
        kinds = [kind_rate for kind_rate in report.kinds if kind_rate.kind not in CENSUS_FAILURE_KINDS][:MAX_KINDS]
        named = ", ".join(
            f"{FAILURE_TITLES[kind_rate.kind]} ({kind_rate.failures:,} of {report.sampled:,} sampled)"
            for kind_rate in kinds
        )
        found_text = f" Failures of this night: {named}." if named else ""
        detail = f"Failures in live traffic: {reading.text}.{found_text}"
        example = _find_example_exchange([kind_rate.kind for kind_rate in kinds], results)
        if example is None:
            yield build_drift_observation(context, metric=METRIC, detail=detail)
            return
        shorten = partial(
            build_redacted_excerpt, limit=settings.excerpt_characters, account_patterns=context.account_patterns
        )
        asked, answered = shorten(example.turns[-1]), shorten(example.graded_text)
        yield build_drift_observation(context, metric=METRIC, detail=detail, asked=asked, answered=answered)


def build_low_rating_observations(
    report: NightlyReport, context: ObservationContext, *, floor: float
) -> Iterator[Observation]:
    """Build an observation if the average rating of the sampled issue reports is below ``floor``."""
    if report.reports is not None and has_low_ratings(report, floor):
        detail = f"The average rating of live reports is below {floor:g}: {format_report_ratings(report.reports)}."
        yield build_drift_observation(context, metric=USEFULNESS_METRIC, detail=detail)


def has_low_ratings(report: NightlyReport, floor: float) -> bool:
    """Return whether the average rating of the sampled issue reports is below ``floor``."""
    return report.reports is not None and report.reports.mean is not None and report.reports.mean < floor


def _find_example_exchange(kinds: Sequence[FailureKind], results: Sequence[CaseResult]) -> Exchange | None:
    """Find an exchange in the sample that has one of the failure kinds ``kinds``, to use as an example.

    The kinds are tried in the given order. Return ``None`` if no exchange has one of them.
    """
    for kind in kinds:
        for result in results:
            if kind in result.assessment.failure_kinds and isinstance(result.result, Exchange):
                return result.result
    return None


def build_nightly_census_observations(
    report: NightlyReport,
    earlier: Sequence[NightlyReport],
    examples: Sequence[CensusExample],
    *,
    context: ObservationContext,
    settings: AlertSettings,
    severity: Severity,
) -> Iterator[Observation]:
    """Build one observation for each failure kind that rules found in the conversations of this nightly run."""
    grades = {kind: _decide_census_severity(kind, severity) for kind in CensusKind}
    nightly_runs = _list_earlier_censuses(report, earlier)
    return build_census_observations(
        _build_census_from_report(report), nightly_runs, examples, at=context, settings=settings, grades=grades
    )


def find_incidents_resolved_by_census(
    report: NightlyReport, earlier: Sequence[NightlyReport], open_incidents: Sequence[Incident]
) -> Iterator[Ending]:
    """Find the open incidents that have ended, because rules no longer find their failure kinds."""
    return find_ended_census_incidents(
        _build_census_from_report(report), _list_earlier_censuses(report, earlier), open_incidents
    )


def _list_earlier_censuses(report: NightlyReport, earlier: Sequence[NightlyReport]) -> list[NightlyCensus]:
    """List the censuses of the nightly runs that were due before this run, oldest first."""
    return [
        _build_census_from_report(nightly)
        for nightly in reversed(earlier)
        if nightly.census and nightly.due_at < report.due_at
    ]


def _build_census_from_report(report: NightlyReport) -> NightlyCensus:
    return NightlyCensus(due_at=report.due_at, rates=report.census, whole=not report.interrupted)


def _decide_census_severity(kind: CensusKind, severity: Severity) -> CensusSeverity:
    if not kind.always_fails:
        return CensusSeverity(Severity.MAJOR, None)
    if kind.failure_kind is None:
        return CensusSeverity(severity, None)
    return CensusSeverity(*decide_severity(severity, [kind.failure_kind], case_row=TRAFFIC_ROW))


def format_drift_recovery(report: NightlyReport) -> str:
    """Format the message which says that the failure rate is normal again.

    Return an empty string if this run does not show that the rate is normal again.
    """
    reading = report.drift_reading
    if reading is None or reading.drifted or not reading.reason.startswith(RECOVERED_PREFIX):
        return ""
    return f"Failures in live traffic: {reading.reason}."


def build_unreliable_judge_observations(text: str, context: ObservationContext) -> Iterator[Observation]:
    """Yield an observation if the judge graded known answers incorrectly. Yield nothing if ``text`` is empty."""
    if text:
        yield build_void_judge_observation(context, detail=text)


def find_incident_kinds_to_resolve(report: NightlyReport) -> frozenset[IncidentKind]:
    """Return the incident kinds that this run resolves: ``JUDGE_VOID`` if all verdicts of the judge are valid."""
    believed = report.judging.judged and not report.judging.void_groups
    return frozenset({IncidentKind.JUDGE_VOID}) if believed else frozenset()


def find_judge_faults(judging: Judging) -> Iterator[Fault]:
    """Yield a fault if the judge was asked and gave too few verdicts."""
    if judging.has_too_few_verdicts:
        reasons = "; ".join(judging.ungraded_because[:2]) or "the judge gave no reason"
        asked = judging.needed_judge_count - judging.void_grades
        yield Fault(
            JUDGE_SILENT,
            f"The judge graded {judging.judged:,} of {plural(asked, 'reply', 'replies')} that needed it: "
            f"{reasons}. The rates that need a judge are unknown for this night. The drift test skipped this "
            "night.",
        )


def find_nightly_faults(report: NightlyReport) -> tuple[Fault, ...]:
    """Find the faults that occurred while sources were read or replies were judged.

    Each kind of fault occurs at most once.
    """
    faults: list[Fault] = []
    if report.interrupted:
        faults.append(
            Fault(
                SOURCE_UNREAD, (f"Lookout did not read all traffic of the night: {'; '.join(report.interrupted)}.")
            )
        )
    truncated = next((warning for warning in report.issues if warning.kind in SOURCE_WARNING_KINDS), None)
    if truncated is not None:
        faults.append(Fault(MAYBE_TRUNCATED, f"{truncated.place}: {truncated.detail}."))
    unusable, first = count_unusable_and_find_first(report)
    if first is not None:
        faults.append(
            Fault(
                ITEMS_UNREADABLE,
                f"Lookout could not use {plural(unusable, 'item')} of the night's "
                f"traffic{format_unusable_reasons(report)}. The first is at {first.place}: {first.detail}",
            )
        )
    if not report.read and not report.interrupted:
        known_text = (
            f" Earlier nights already graded the conversations since {report.since:%Y-%m-%d %H:%M} UTC "
            f"({report.known:,} in total)."
        )
        faults.append(
            Fault(
                NOTHING_READ,
                f"The source has no new conversations until {report.until:%Y-%m-%d %H:%M} "
                f"UTC.{known_text if report.known else ''} Check that the application still stores its "
                "conversations, and that the configured source is correct.",
            )
        )
    return (*faults, *find_judge_faults(report.judging))


def build_fault_observations(faults: Sequence[Fault], context: ObservationContext) -> Iterator[Observation]:
    """Convert faults of Lookout to observations."""
    for fault in faults:
        yield build_monitor_fault_observation(context, fault_name=fault.name, detail=fault.detail)
