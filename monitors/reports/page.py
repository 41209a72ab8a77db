"""Builds ``report.html``: a complete run in one file that contains no scripts and makes no requests.

The template reads the records in this module.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from markupsafe import Markup

from monitors.records.base import Blame
from monitors.records.comparisons import Comparison, FlakyCase
from monitors.records.exchanges import Exchange, NoAnswer, NoAnswerReason
from monitors.records.explanations import Recheck
from monitors.records.grades import FAILURE_WORDS, CaseOutcome, Criterion
from monitors.records.incidents import Incident
from monitors.records.runs import CaseResult, RunReport, VerdictReason
from monitors.reports.case_view import (
    CaseLink,
    CaseView,
    CaseViewer,
    PictureAlbum,
    build_case_anchor,
    build_case_links,
    format_failing_since,
    map_open_incidents_by_case,
    select_by_outcome_worst_first,
)
from monitors.reports.figures import (
    BreakdownGroup,
    MetricRow,
    TallyRow,
    build_metric_rows,
    build_score_calculation_rows,
    format_changes_since_last_pass,
    format_common_causes,
    format_last_pass_run,
    format_severity_rises,
    group_breakdowns,
    render_latency_histogram,
)
from monitors.reports.format import (
    format_headline,
    shorten,
)
from monitors.reports.invisible import replace_invisible_by_code_points
from monitors.reports.marked_text import Redact, build_case_redactor
from monitors.reports.proof_rows import (
    BalanceRow,
    ChangeRow,
    DetectableDropRow,
    MutationScoreView,
    ScoreRow,
    build_detectable_drop_rows,
    build_mutation_view,
    build_score_rows,
    build_severity_change_rows,
    build_suite_balance_rows,
    format_baseline_run,
    format_best_app_path,
    format_changes_since_unaccepted_run,
    format_comparison_outcome,
    format_language_gap,
    format_no_baseline,
)
from monitors.reports.rechecks import RECHECK_HEADING, format_recheck
from monitors.reports.settings import ReportsSettings
from monitors.reports.templating import render_document
from monitors.reports.triage_summary import (
    Dimension,
    build_triage_dimensions,
    format_criteria,
    list_criteria_shares,
)
from monitors.reports.triage_view import (
    CaseLabels,
    ReportRow,
    build_report_row,
    choose_labels_for_cases,
    extract_asked_text,
    has_only_issues,
)

_MAX_LINKS: Final = 24


@dataclass(frozen=True, slots=True)
class NamedCases:
    """A list of links to cases. ``more`` counts the cases without a link, and ``total`` counts all cases."""

    links: tuple[CaseLink, ...]
    more: int
    total: int


@dataclass(frozen=True, slots=True)
class ChangeView:
    """How the results of one severity changed since the baseline, with links to the changed cases.

    Only cases that both runs asked are included.
    """

    row: ChangeRow
    failing: NamedCases
    fixed: NamedCases


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """The comparison with the baseline. If the comparison was refused, only ``refused`` is set."""

    baseline: str
    refused: tuple[str, ...]
    outcome: str
    scores: tuple[ScoreRow, ...]
    changes: tuple[ChangeView, ...]


@dataclass(frozen=True, slots=True)
class FlakyView:
    """A case that was answered correctly in some of its repeats, but not in all."""

    link: CaseLink
    text: str


@dataclass(frozen=True, slots=True)
class Proof:
    """The page's sections on the baseline, on detectable drops, and on the balance of the suite."""

    comparison: ComparisonView | None
    no_baseline: str
    sights: tuple[DetectableDropRow, ...]
    flaky: tuple[FlakyView, ...]
    flaky_more: int
    shortfalls: tuple[str, ...]
    balance: tuple[BalanceRow, ...]
    beside_metrics: tuple[str, ...]


def build_verdict_evidence_sections(report: RunReport, anchors: Mapping[str, str]) -> Proof:
    """Build the sections with evidence for the verdict. ``anchors`` maps case ids to anchors on the page."""
    sentences = [f"On the same questions, {format_language_gap(gap)}." for gap in report.parity]
    best = format_best_app_path(report.metrics)
    return Proof(
        comparison=_build_comparison_view(report.comparison, report.recheck, anchors)
        if report.comparison
        else None,
        no_baseline=format_no_baseline(report),
        sights=build_detectable_drop_rows(report.sights),
        flaky=tuple(
            FlakyView(build_case_links([case.case_id], anchors)[0], case.text) for case in report.flaky[:_MAX_LINKS]
        ),
        flaky_more=max(0, len(report.flaky) - _MAX_LINKS),
        shortfalls=report.balance.shortfalls if report.balance else (),
        balance=build_suite_balance_rows(report.balance) if report.balance else (),
        beside_metrics=(*sentences, f"{best[0].upper()}{best[1:]}.") if best else tuple(sentences),
    )


def _build_comparison_view(
    compared: Comparison, recheck: Recheck | None, anchors: Mapping[str, str]
) -> ComparisonView:
    rows = build_severity_change_rows(compared)
    return ComparisonView(
        baseline=format_baseline_run(compared),
        refused=(*compared.refused, *format_changes_since_unaccepted_run(compared, max_ids=_MAX_LINKS)),
        outcome=format_comparison_outcome(compared, recheck),
        scores=build_score_rows(compared),
        changes=tuple(
            ChangeView(
                row, _build_first_case_links(row.failing, anchors), _build_first_case_links(row.fixed, anchors)
            )
            for row in rows
        ),
    )


def _build_first_case_links(case_ids: Sequence[str], anchors: Mapping[str, str]) -> NamedCases:
    shown = build_case_links(case_ids[:_MAX_LINKS], anchors)
    return NamedCases(shown, len(case_ids) - len(shown), len(case_ids))


@dataclass(frozen=True, slots=True)
class ReasonView:
    """A reason for the verdict, with links to its cases. ``more`` is the number of cases without a link."""

    kind: str
    text: str
    decisive: bool
    links: tuple[CaseLink, ...]
    more: int


# The fields are not in a base class with CaseView, because these texts are single lines in a table.
@dataclass(frozen=True, slots=True)
class FailedRow:
    """A failed case as one line. ``anchor`` is empty if the page does not contain the transcript of the case."""

    id: str
    anchor: str
    severity: int
    kinds: str
    reason: str
    asked: str
    since: str
    unconfirmed: bool
    flaky: str


@dataclass(frozen=True, slots=True)
class KindCount:
    """The number of failed cases with one failure kind."""

    text: str
    count: int


@dataclass(frozen=True, slots=True)
class BriefRow:
    """A case as one line on the page, without its question and answer."""

    id: str
    anchor: str
    severity: int
    type: str
    language: str
    total_ms: float | None


@dataclass(frozen=True, slots=True)
class IssuesSection:
    """The page's sections on issues and on an agent's reports.

    ``labels`` contains the page's words for a question and a reply. ``criteria`` maps each criterion to its label
    and to the share of reports that meet the criterion. ``criteria_text`` is one line with the same shares.
    """

    dimensions: tuple[Dimension, ...]
    labels: CaseLabels
    criteria: Mapping[Criterion, tuple[str, str]]
    criteria_text: str
    reports: tuple[ReportRow, ...]
    correct: tuple[CaseView, ...]


@dataclass(frozen=True, slots=True)
class ExplainedFailures:
    """Possible reasons for the failures: common conditions, rechecks, and changes since the last PASS."""

    in_common: tuple[str, ...]
    asked_again: tuple[str, ...]
    asked_again_title: str
    changes: tuple[str, ...]
    last_pass: str


@dataclass(frozen=True, slots=True)
class ReportPage:
    """The content of ``report.html``."""

    report: RunReport
    previous: RunReport | None
    address: str
    headline: str
    reasons: tuple[ReasonView, ...]
    tallies: tuple[TallyRow, ...]
    raised: str
    metrics: tuple[MetricRow, ...]
    failed: tuple[FailedRow, ...]
    kinds: tuple[KindCount, ...]
    explained: ExplainedFailures
    transcripts: tuple[CaseView, ...]
    no_answers: tuple[CaseView, ...]
    no_answers_total: int
    no_answers_of_app: int
    not_asked: tuple[BriefRow, ...]
    ungraded: tuple[CaseView, ...]
    ungraded_total: int
    correct: tuple[BriefRow, ...]
    issues: IssuesSection
    proof: Proof
    mutation_score: MutationScoreView | None
    histogram: Markup | None
    over_objective: int
    breakdowns: tuple[BreakdownGroup, ...]


_MAX_REASON_LINKS: Final = 12
_MAX_BRIEF_CHARACTERS: Final = 120
_OUTCOMES: Final = (CaseOutcome.FAILED, CaseOutcome.NO_ANSWER, CaseOutcome.UNGRADED, CaseOutcome.CORRECT)
# User and password before the host, and a token in the query string, are removed.
_SECRETS_IN_URL: Final = re.compile(r"(?<=//)[^/@]*@|[?#].*")


def build_report_page(
    folder: Path,
    report: RunReport,
    cases: Sequence[CaseResult],
    *,
    redact: Redact,
    settings: ReportsSettings,
    incidents: Iterable[Incident] = (),
    previous: RunReport | None = None,
) -> ReportPage:
    """Build the page of a run. At most ``settings.max_transcripts`` cases of each outcome are shown in full."""
    limit = settings.max_transcripts
    album = PictureAlbum(
        folder, max_each_bytes=settings.max_screenshot_bytes, max_total_bytes=settings.max_embedded_bytes
    )
    open_incidents = map_open_incidents_by_case(incidents)
    rated = {rating.case_id: rating.rating for rating in report.rubric.ratings} if report.rubric else {}
    viewer = CaseViewer(album, redact, open_incidents, report.commit, settings.max_text_characters, rated)
    failed, no_answers, ungraded, correct = (select_by_outcome_worst_first(cases, outcome) for outcome in _OUTCOMES)
    not_asked, unanswered = _separate_not_asked(no_answers)
    reports, rest = _separate_first_issue_reports(correct, limit)
    anchors = _map_case_ids_to_anchors(failed[:limit], unanswered[:limit], not_asked, ungraded[:limit], reports)
    total_ms = [result.result.timings.total_ms for result in cases if isinstance(result.result, Exchange)]
    return ReportPage(
        report=report,
        previous=previous,
        address=_SECRETS_IN_URL.sub("", report.target.address),
        headline=redact(format_headline(report)),
        reasons=tuple(_build_reason_view(reason, anchors, redact) for reason in report.reasons),
        tallies=build_score_calculation_rows(report),
        raised=format_severity_rises(report),
        metrics=build_metric_rows(
            [metric for metric in report.metrics if metric.total or not has_only_issues(cases)]
        ),
        failed=tuple(
            build_failed_row(
                result, redact, open_incidents, commit=report.commit, flaky=report.flaky, shown=place < limit
            )
            for place, result in enumerate(failed)
        ),
        kinds=count_failure_kinds(failed),
        explained=_build_explained_failures(report, redact),
        transcripts=tuple(viewer.build_case_view(result) for result in failed[:limit]),
        no_answers=tuple(viewer.build_case_view(result) for result in unanswered[:limit]),
        no_answers_total=len(no_answers),
        no_answers_of_app=sum(result.assessment.blame is Blame.APP for result in no_answers),
        not_asked=tuple(_build_brief_row(result) for result in not_asked),
        ungraded=tuple(viewer.build_case_view(result) for result in ungraded[:limit]),
        ungraded_total=len(ungraded),
        correct=tuple(_build_brief_row(result) for result in rest),
        issues=_build_issues_section(report, [*failed, *no_answers, *ungraded, *correct], anchors, viewer, reports),
        proof=build_verdict_evidence_sections(report, anchors),
        mutation_score=build_mutation_view(report),
        histogram=render_latency_histogram(total_ms, report.latency) if report.latency and total_ms else None,
        over_objective=sum(value > report.latency.objective_p50_ms for value in total_ms) if report.latency else 0,
        breakdowns=group_breakdowns(report.breakdowns),
    )


def _build_explained_failures(report: RunReport, redact: Redact) -> ExplainedFailures:
    return ExplainedFailures(
        in_common=tuple(redact(cause) for cause in format_common_causes(report.first_look)),
        asked_again=tuple(redact(line) for line in format_recheck(report.recheck)),
        asked_again_title=RECHECK_HEADING,
        changes=tuple(redact(change) for change in format_changes_since_last_pass(report.what_changed)),
        last_pass=redact(format_last_pass_run(report.what_changed)) if report.what_changed else "",
    )


def _separate_not_asked(no_answers: Sequence[CaseResult]) -> tuple[list[CaseResult], list[CaseResult]]:
    """Divide the cases without an answer into two lists: cases that were not asked, and cases that were asked.

    A case was not asked if the circuit breaker was open, because the app was down.
    """
    not_asked: list[CaseResult] = []
    unanswered: list[CaseResult] = []
    for result in no_answers:
        response = result.result
        skipped = isinstance(response, NoAnswer) and response.reason is NoAnswerReason.CIRCUIT_OPEN
        (not_asked if skipped else unanswered).append(result)
    return not_asked, unanswered


def _separate_first_issue_reports(
    correct: Sequence[CaseResult], limit: int
) -> tuple[list[CaseResult], list[CaseResult]]:
    """Divide the correct cases into two lists.

    The first list contains at most ``limit`` reports on issues, which are shown in full. The second list
    contains all other cases.
    """
    reports = [place for place, result in enumerate(correct) if result.case.triage is not None][:limit]
    rest = sorted(set(range(len(correct))) - set(reports))
    return [correct[place] for place in reports], [correct[place] for place in rest]


def _map_case_ids_to_anchors(*lists: Sequence[CaseResult]) -> dict[str, str]:
    """Map case ids to anchors on the page. If a case has several results, the first (worst) result is used."""
    anchors: dict[str, str] = {}
    for results in lists:
        for result in results:
            anchors.setdefault(result.case.id, build_case_anchor(result))
    return anchors


def _build_reason_view(reason: VerdictReason, anchors: Mapping[str, str], redact: Redact) -> ReasonView:
    links = build_case_links(reason.case_ids[:_MAX_REASON_LINKS], anchors)
    kind = reason.kind.replace("_", " ")
    return ReasonView(kind, redact(reason.text), reason.decisive, links, len(reason.case_ids) - len(links))


def build_failed_row(
    result: CaseResult,
    redact: Redact,
    open_incidents: Mapping[str, Incident],
    *,
    commit: str | None,
    flaky: Sequence[FlakyCase] = (),
    shown: bool,
) -> FailedRow:
    """Build the row of a failed case. ``shown`` is true if the page contains the transcript of the case."""
    assessment, safe = result.assessment, build_case_redactor(result, redact)
    return FailedRow(
        id=result.case.id,
        anchor=build_case_anchor(result) if shown else "",
        severity=assessment.severity,
        kinds=", ".join(FAILURE_WORDS[kind] for kind in assessment.failure_kinds),
        reason=shorten(replace_invisible_by_code_points(safe(assessment.reason)), _MAX_BRIEF_CHARACTERS),
        asked=shorten(replace_invisible_by_code_points(safe(extract_asked_text(result))), _MAX_BRIEF_CHARACTERS),
        since=format_failing_since(open_incidents.get(result.case.id), commit),
        unconfirmed=assessment.unconfirmed,
        flaky=next((case.text for case in flaky if case.case_id == result.case.id), ""),
    )


def _build_issues_section(
    report: RunReport,
    worst_first: Sequence[CaseResult],
    anchors: Mapping[str, str],
    viewer: CaseViewer,
    correct: Sequence[CaseResult],
) -> IssuesSection:
    return IssuesSection(
        build_triage_dimensions(report),
        choose_labels_for_cases(worst_first),
        list_criteria_shares(report),
        format_criteria(report),
        tuple(_build_report_rows(worst_first, anchors, viewer)),
        tuple(viewer.build_case_view(result) for result in correct),
    )


def _build_report_rows(
    cases: Iterable[CaseResult], anchors: Mapping[str, str], viewer: CaseViewer
) -> Iterator[ReportRow]:
    for result in cases:
        if result.case.triage is not None:
            anchor, counted = anchors.get(result.case.id, ""), viewer.ratings.get(result.case.id)
            yield build_report_row(result, result.case.triage, viewer.redact, anchor=anchor, counted=counted)


def count_failure_kinds(failed: Sequence[CaseResult]) -> tuple[KindCount, ...]:
    """Count the failed cases by kind. The worst kind comes first, as in the list of failures."""
    counts = Counter(kind for result in failed for kind in result.assessment.failure_kinds)
    return tuple(KindCount(FAILURE_WORDS[kind], count) for kind, count in counts.items())


def _build_brief_row(result: CaseResult) -> BriefRow:
    total_ms = result.result.timings.total_ms if isinstance(result.result, Exchange) else None
    assessment = result.assessment
    return BriefRow(
        result.case.id,
        build_case_anchor(result),
        assessment.severity,
        assessment.type,
        assessment.language,
        total_ms,
    )


def render_report_html(page: ReportPage) -> Iterator[str]:
    """Yield the HTML of the page piece by piece."""
    return render_document("report.html.j2", page=page, report=page.report)
