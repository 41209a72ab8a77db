"""``report.html``: a whole run in one file that asks nobody for anything, opens from disk, and runs no script.

The page's records are what the template reads, in the order in which it says it, with what the verdict rests on.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment
from markupsafe import Markup

from monitors.records.base import Blame
from monitors.records.comparisons import Comparison, FlakyCase
from monitors.records.exchanges import Exchange, NoAnswer, NoAnswerReason
from monitors.records.explanations import Recheck
from monitors.records.grades import FAILURE_WORDS, CaseOutcome
from monitors.records.incidents import Incident
from monitors.records.runs import CaseResult, RunReport, VerdictReason
from monitors.reports.case_view import (
    CaseLink,
    CaseView,
    CaseViewer,
    PictureAlbum,
    anchor_of,
    format_since,
    known_incidents,
    links_to,
    with_outcome,
)
from monitors.reports.figures import (
    BreakdownGroup,
    MetricRow,
    TallyRow,
    breakdown_groups,
    format_causes,
    format_changes,
    format_last_pass,
    format_raised,
    latency_histogram,
    metric_rows,
    tally_rows,
)
from monitors.reports.format import (
    headline,
    shortened,
)
from monitors.reports.invisible import show_invisible
from monitors.reports.marked_text import Redact, redaction_of
from monitors.reports.proof_rows import (
    BalanceRow,
    ChangeRow,
    DetectableDropRow,
    MutationScoreView,
    ScoreRow,
    balance_rows,
    change_rows,
    format_baseline,
    format_change,
    format_no_baseline,
    format_outcome,
    format_parity,
    format_path,
    mutation_view,
    score_rows,
    sight_rows,
)
from monitors.reports.rechecks import IS_IT_STILL_SO, format_recheck
from monitors.reports.settings import ReportsSettings
from monitors.reports.templating import style_sheet, template_environment
from monitors.reports.triage_summary import Dimension, dimensions
from monitors.reports.triage_view import CaseLabels, ReportRow, asked_text, case_labels, only_issues, report_row

_MOST_LINKS: Final = 24


@dataclass(frozen=True, slots=True)
class Named:
    """Cases with links, of which ``more`` are not named. ``total`` counts all."""

    links: tuple[CaseLink, ...]
    more: int
    total: int


@dataclass(frozen=True, slots=True)
class ChangeView:
    """The shared cases of one severity, with links to those that came out differently."""

    row: ChangeRow
    failing: Named
    fixed: Named


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """A run beside its baseline; ``refused`` says why it is not, and what changed; then the rest is empty."""

    baseline: str
    refused: tuple[str, ...]
    outcome: str
    scores: tuple[ScoreRow, ...]
    changes: tuple[ChangeView, ...]


@dataclass(frozen=True, slots=True)
class FlakyView:
    """A case that was right only sometimes."""

    link: CaseLink
    text: str


@dataclass(frozen=True, slots=True)
class Proof:
    """The page's sections on the baseline, on what could have been seen, and on balance."""

    comparison: ComparisonView | None
    no_baseline: str
    sights: tuple[DetectableDropRow, ...]
    flaky: tuple[FlakyView, ...]
    flaky_more: int
    shortfalls: tuple[str, ...]
    balance: tuple[BalanceRow, ...]
    beside_metrics: tuple[str, ...]


def proof_of(report: RunReport, anchors: Mapping[str, str]) -> Proof:
    """``anchors`` says where a case is shown."""
    return Proof(
        comparison=_comparison(report.comparison, report.recheck, anchors) if report.comparison else None,
        no_baseline=format_no_baseline(report),
        sights=sight_rows(report.sights),
        flaky=tuple(_flaky(one, anchors) for one in report.flaky[:_MOST_LINKS]),
        flaky_more=max(0, len(report.flaky) - _MOST_LINKS),
        shortfalls=report.balance.shortfalls if report.balance else (),
        balance=balance_rows(report.balance) if report.balance else (),
        beside_metrics=_beside_metrics(report),
    )


def _beside_metrics(report: RunReport) -> tuple[str, ...]:
    said = [f"The same questions, {format_parity(gap)}." for gap in report.parity]
    best = format_path(report.metrics)
    return (*said, f"{best[0].upper()}{best[1:]}.") if best else tuple(said)


def _comparison(compared: Comparison, recheck: Recheck | None, anchors: Mapping[str, str]) -> ComparisonView:
    rows = change_rows(compared)
    return ComparisonView(
        baseline=format_baseline(compared),
        refused=(*compared.refused, *format_change(compared, most_ids=_MOST_LINKS)),
        outcome=format_outcome(compared, recheck),
        scores=score_rows(compared),
        changes=tuple(ChangeView(row, _named(row.failing, anchors), _named(row.fixed, anchors)) for row in rows),
    )


def _named(case_ids: Sequence[str], anchors: Mapping[str, str]) -> Named:
    shown = links_to(case_ids[:_MOST_LINKS], anchors)
    return Named(shown, len(case_ids) - len(shown), len(case_ids))


def _flaky(one: FlakyCase, anchors: Mapping[str, str]) -> FlakyView:
    (link,) = links_to([one.case_id], anchors)
    return FlakyView(link, one.text)


@dataclass(frozen=True, slots=True)
class ReasonView:
    """A reason with links to its cases; ``more`` counts those that are not named."""

    kind: str
    text: str
    decisive: bool
    links: tuple[CaseLink, ...]
    more: int


@dataclass(frozen=True, slots=True)
class FailedRow:
    """A failing case in one line. ``anchor`` is empty where its transcript is not on the page."""

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
    """How many failing cases showed a failure kind."""

    text: str
    count: int


@dataclass(frozen=True, slots=True)
class BriefRow:
    """A case with nothing to show beyond itself, in one line: correct, or not asked."""

    id: str
    anchor: str
    severity: int
    type: str
    language: str
    total_ms: float | None


@dataclass(frozen=True, slots=True)
class IssuesSection:
    """What a run on issues has beside the rest: its dimensions, all reports in a list, the correct ones in full.

    ``labels`` are the words for what was asked and what came back, of any run.
    """

    dimensions: tuple[Dimension, ...]
    labels: CaseLabels
    reports: tuple[ReportRow, ...]
    correct: tuple[CaseView, ...]


@dataclass(frozen=True, slots=True)
class ExplainedFailures:
    """Why it broke, as far as anything is known: lines of what the failures share, of asking again, of changes."""

    in_common: tuple[str, ...]
    asked_again: tuple[str, ...]
    asked_again_title: str
    changes: tuple[str, ...]
    last_pass: str


@dataclass(frozen=True, slots=True)
class ReportPage:
    """Everything on the page."""

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


_MOST_REASON_LINKS: Final = 12
_BRIEF: Final = 120
_OUTCOMES: Final = (CaseOutcome.FAILED, CaseOutcome.NO_ANSWER, CaseOutcome.UNGRADED, CaseOutcome.CORRECT)
# Nobody may read a password before the host, or a token behind a question mark.
_NOT_TO_SHOW: Final = re.compile(r"(?<=//)[^/@]*@|[?#].*")


def page_of(
    folder: Path,
    report: RunReport,
    cases: Sequence[CaseResult],
    *,
    redact: Redact,
    settings: ReportsSettings,
    incidents: Iterable[Incident] = (),
    previous: RunReport | None = None,
) -> ReportPage:
    """The page of one run. At most ``settings.max_transcripts`` cases of each outcome are shown in full."""
    most = settings.max_transcripts
    album = PictureAlbum(folder, most_each=settings.max_screenshot_bytes, most_together=settings.max_embedded_bytes)
    known = known_incidents(incidents)
    rated = {one.case_id: one.rating for one in report.rubric.ratings} if report.rubric else {}
    viewer = CaseViewer(album, redact, known, report.commit, settings.max_text_characters, rated)
    failed, no_answers, ungraded, correct = (with_outcome(cases, one) for one in _OUTCOMES)
    not_asked, silent = _apart(no_answers)
    reports, others = _correct_reports(correct, most)
    shown = _anchors(failed[:most], silent[:most], not_asked, ungraded[:most], reports)
    total_ms = [result.result.timings.total_ms for result in cases if isinstance(result.result, Exchange)]
    return ReportPage(
        report=report,
        previous=previous,
        address=_NOT_TO_SHOW.sub("", report.target.address),
        headline=redact(headline(report)),
        reasons=tuple(_reason(reason, shown, redact) for reason in report.reasons),
        tallies=tally_rows(report),
        raised=format_raised(report),
        metrics=metric_rows([one for one in report.metrics if one.total or not only_issues(cases)]),
        failed=tuple(_failed(one, known, report, redact, shown=place < most) for place, one in enumerate(failed)),
        kinds=_kinds(failed),
        explained=_explained(report, redact),
        transcripts=tuple(viewer.view(result) for result in failed[:most]),
        no_answers=tuple(viewer.view(result) for result in silent[:most]),
        no_answers_total=len(no_answers),
        no_answers_of_app=sum(result.assessment.blame is Blame.APP for result in no_answers),
        not_asked=tuple(_brief(result) for result in not_asked),
        ungraded=tuple(viewer.view(result) for result in ungraded[:most]),
        ungraded_total=len(ungraded),
        correct=tuple(_brief(result) for result in others),
        issues=_issues(report, [*failed, *no_answers, *ungraded, *correct], shown, viewer, reports),
        proof=proof_of(report, shown),
        mutation_score=mutation_view(report),
        histogram=latency_histogram(total_ms, report.latency) if report.latency and total_ms else None,
        over_objective=_over_objective(report, total_ms),
        breakdowns=breakdown_groups(report.breakdowns),
    )


def _explained(report: RunReport, redact: Redact) -> ExplainedFailures:
    return ExplainedFailures(
        in_common=tuple(redact(cause) for cause in format_causes(report.first_look)),
        asked_again=tuple(redact(line) for line in format_recheck(report.recheck)),
        asked_again_title=IS_IT_STILL_SO,
        changes=tuple(redact(change) for change in format_changes(report.what_changed)),
        last_pass=redact(format_last_pass(report.what_changed)) if report.what_changed else "",
    )


def _over_objective(report: RunReport, total_ms: Iterable[float]) -> int:
    return sum(value > report.latency.objective_p50_ms for value in total_ms) if report.latency else 0


def _apart(no_answers: Sequence[CaseResult]) -> tuple[list[CaseResult], list[CaseResult]]:
    """The cases that were not even asked, since the app was known to be down, and the rest, which have evidence."""
    not_asked: list[CaseResult] = []
    silent: list[CaseResult] = []
    for result in no_answers:
        came = result.result
        skipped = isinstance(came, NoAnswer) and came.reason is NoAnswerReason.CIRCUIT_OPEN
        (not_asked if skipped else silent).append(result)
    return not_asked, silent


def _correct_reports(correct: Sequence[CaseResult], most: int) -> tuple[list[CaseResult], list[CaseResult]]:
    """The reports among what is correct, which have more to them than their result, and the rest."""
    reports = [place for place, result in enumerate(correct) if result.case.triage is not None][:most]
    rest = sorted(set(range(len(correct))) - set(reports))
    return [correct[place] for place in reports], [correct[place] for place in rest]


def _anchors(*lists: Sequence[CaseResult]) -> dict[str, str]:
    """Where a case is shown; of several repeats the worst, which comes first."""
    anchors: dict[str, str] = {}
    for results in lists:
        for result in results:
            anchors.setdefault(result.case.id, anchor_of(result))
    return anchors


def _reason(reason: VerdictReason, anchors: Mapping[str, str], redact: Redact) -> ReasonView:
    links = links_to(reason.case_ids[:_MOST_REASON_LINKS], anchors)
    kind = reason.kind.replace("_", " ")
    return ReasonView(kind, redact(reason.text), reason.decisive, links, len(reason.case_ids) - len(links))


def _failed(
    result: CaseResult, known: Mapping[str, Incident], report: RunReport, redact: Redact, *, shown: bool
) -> FailedRow:
    found, safe = result.assessment, redaction_of(result, redact)
    return FailedRow(
        id=result.case.id,
        anchor=anchor_of(result) if shown else "",
        severity=found.severity,
        kinds=", ".join(FAILURE_WORDS[kind] for kind in found.failure_kinds),
        reason=shortened(show_invisible(safe(found.reason)), _BRIEF),
        asked=shortened(show_invisible(safe(asked_text(result))), _BRIEF),
        since=format_since(known.get(result.case.id), report.commit),
        unconfirmed=found.unconfirmed,
        flaky=next((one.text for one in report.flaky if one.case_id == result.case.id), ""),
    )


def _issues(
    report: RunReport,
    worst_first: Sequence[CaseResult],
    shown: Mapping[str, str],
    viewer: CaseViewer,
    correct: Sequence[CaseResult],
) -> IssuesSection:
    return IssuesSection(
        dimensions(report),
        case_labels(worst_first),
        tuple(_report_rows(worst_first, shown, viewer)),
        tuple(viewer.view(result) for result in correct),
    )


def _report_rows(
    cases: Iterable[CaseResult], anchors: Mapping[str, str], viewer: CaseViewer
) -> Iterator[ReportRow]:
    for result in cases:
        if result.case.triage is not None:
            anchor, counted = anchors.get(result.case.id, ""), viewer.ratings.get(result.case.id)
            yield report_row(result, result.case.triage, viewer.redact, anchor=anchor, counted=counted)


def _kinds(failed: Sequence[CaseResult]) -> tuple[KindCount, ...]:
    """In the order of the failures themselves: the worst kind first, not the most frequent."""
    counts = Counter(kind for result in failed for kind in result.assessment.failure_kinds)
    return tuple(KindCount(FAILURE_WORDS[kind], count) for kind, count in counts.items())


def _brief(result: CaseResult) -> BriefRow:
    total_ms = result.result.timings.total_ms if isinstance(result.result, Exchange) else None
    found = result.assessment
    return BriefRow(result.case.id, anchor_of(result), found.severity, found.type, found.language, total_ms)


def html_report(page: ReportPage) -> Iterator[str]:
    """The page in pieces.

    Everything is escaped by the template engine. Beside that a policy in the page itself allows its one style sheet
    (by its hash) and embedded pictures, and nothing else: no script, no request, no form, no frame.
    """
    style = style_sheet()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    template = _templates().get_template("report.html.j2")
    # The style sheet is our own file, not a value.
    return template.generate(page=page, report=page.report, style=Markup(style), policy=policy)  # noqa: S704 - see above


@cache
def _templates() -> Environment:
    return template_environment()
