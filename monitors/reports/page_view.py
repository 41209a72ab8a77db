"""A whole run as the page shows it: what the template reads, and the order in which it says it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from markupsafe import Markup

from monitors.records.base import Blame
from monitors.records.exchanges import Exchange, NoAnswer, NoAnswerReason
from monitors.records.grades import CaseOutcome
from monitors.records.incidents import Incident
from monitors.records.runs import CaseResult, RunReport, VerdictReason
from monitors.reports.bite_rows import BiteView, bite_view
from monitors.reports.case_links import CaseLink, links_to
from monitors.reports.case_view import CaseView, CaseViewer, anchor_of
from monitors.reports.figure_rows import (
    BreakdownGroup,
    MetricRow,
    TallyRow,
    breakdown_groups,
    metric_rows,
    tally_rows,
)
from monitors.reports.history import known_incidents, since_words
from monitors.reports.masking import Redact, redaction_of
from monitors.reports.ordering import with_outcome
from monitors.reports.plots import latency_histogram
from monitors.reports.proof_view import Proof, proof_of
from monitors.reports.screenshots import PictureAlbum
from monitors.reports.settings import ReportsSettings
from monitors.reports.visible import show_invisible
from monitors.reports.wording import KIND_WORDS, headline, shortened


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

    words: str
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
class Page:
    """Everything on the page."""

    report: RunReport
    previous: RunReport | None
    address: str
    headline: str
    reasons: tuple[ReasonView, ...]
    tallies: tuple[TallyRow, ...]
    metrics: tuple[MetricRow, ...]
    failed: tuple[FailedRow, ...]
    kinds: tuple[KindCount, ...]
    transcripts: tuple[CaseView, ...]
    no_answers: tuple[CaseView, ...]
    no_answers_total: int
    no_answers_of_app: int
    not_asked: tuple[BriefRow, ...]
    untold: tuple[CaseView, ...]
    untold_total: int
    correct: tuple[BriefRow, ...]
    proof: Proof
    bite: BiteView | None
    histogram: Markup | None
    over_objective: int
    breakdowns: tuple[BreakdownGroup, ...]


_MOST_REASON_LINKS: Final = 12
_BRIEF: Final = 120
# A password before the host, or a token behind a question mark, is nobody's to read.
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
) -> Page:
    """The page of one run. At most ``settings.max_transcripts`` cases of each outcome are shown in full."""
    most = settings.max_transcripts
    album = PictureAlbum(folder, most_each=settings.max_screenshot_bytes, most_together=settings.max_embedded_bytes)
    known = known_incidents(incidents)
    viewer = CaseViewer(album, redact, known, report.commit, settings.max_text_characters)
    failed = with_outcome(cases, CaseOutcome.FAILED)
    no_answers = with_outcome(cases, CaseOutcome.NO_ANSWER)
    not_asked, silent = _apart(no_answers)
    untold = with_outcome(cases, CaseOutcome.UNTOLD)
    shown = _anchors(failed[:most], silent[:most], not_asked, untold[:most])
    total_ms = [result.result.timings.total_ms for result in cases if isinstance(result.result, Exchange)]
    objective = report.latency.objective_p50_ms if report.latency else 0.0
    return Page(
        report=report,
        previous=previous,
        address=_NOT_TO_SHOW.sub("", report.target.address),
        headline=redact(headline(report)),
        reasons=tuple(_reason(reason, shown, redact) for reason in report.reasons),
        tallies=tally_rows(report),
        metrics=metric_rows(report.metrics),
        failed=tuple(
            _failed(result, known, report, redact, shown=place < most) for place, result in enumerate(failed)
        ),
        kinds=_kinds(failed),
        transcripts=tuple(viewer.view(result) for result in failed[:most]),
        no_answers=tuple(viewer.view(result) for result in silent[:most]),
        no_answers_total=len(no_answers),
        no_answers_of_app=sum(result.assessment.blame is Blame.APP for result in no_answers),
        not_asked=tuple(_brief(result) for result in not_asked),
        untold=tuple(viewer.view(result) for result in untold[:most]),
        untold_total=len(untold),
        correct=tuple(_brief(result) for result in with_outcome(cases, CaseOutcome.CORRECT)),
        proof=proof_of(report, shown),
        bite=bite_view(report),
        histogram=latency_histogram(total_ms, report.latency) if report.latency and total_ms else None,
        over_objective=sum(value > objective for value in total_ms),
        breakdowns=breakdown_groups(report.breakdowns),
    )


def _apart(no_answers: Sequence[CaseResult]) -> tuple[list[CaseResult], list[CaseResult]]:
    """Those that were not even asked, since the app was known to be down, and the rest, which have evidence."""
    not_asked: list[CaseResult] = []
    silent: list[CaseResult] = []
    for result in no_answers:
        came = result.result
        skipped = isinstance(came, NoAnswer) and came.reason is NoAnswerReason.CIRCUIT_OPEN
        (not_asked if skipped else silent).append(result)
    return not_asked, silent


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
        kinds=", ".join(KIND_WORDS[kind] for kind in found.failure_kinds),
        reason=shortened(show_invisible(safe(found.reason)), _BRIEF),
        asked=shortened(show_invisible(safe(result.case.question)), _BRIEF),
        since=since_words(known.get(result.case.id), report.commit),
        unconfirmed=found.unconfirmed,
        flaky=next((one.words for one in report.flaky if one.case_id == result.case.id), ""),
    )


def _kinds(failed: Sequence[CaseResult]) -> tuple[KindCount, ...]:
    """In the order of the failures themselves: the worst kind first, not the most frequent."""
    counts = Counter(kind for result in failed for kind in result.assessment.failure_kinds)
    return tuple(KindCount(KIND_WORDS[kind], count) for kind, count in counts.items())


def _brief(result: CaseResult) -> BriefRow:
    total_ms = result.result.timings.total_ms if isinstance(result.result, Exchange) else None
    found = result.assessment
    return BriefRow(result.case.id, anchor_of(result), found.severity, found.type, found.language, total_ms)
