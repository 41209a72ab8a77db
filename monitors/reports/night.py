"""Builds the report of a nightly run on live traffic, as a page and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from monitors.records.grades import CaseOutcome
from monitors.records.nightly import NightlyReport
from monitors.records.runs import CaseResult
from monitors.reports.case_view import CaseView, CaseViewer, PictureAlbum, select_by_outcome_worst_first
from monitors.reports.format import escape_markdown, format_code_span, format_moment
from monitors.reports.markdown import format_failures
from monitors.reports.marked_text import Redact
from monitors.reports.page import FailedRow, KindCount, build_failed_row, count_failure_kinds
from monitors.reports.settings import ReportsSettings
from monitors.reports.templating import render_document
from monitors.reports.triage_view import CaseLabels, choose_labels_for_cases
from monitors.reports.write import build_report_paths
from monitors.storage import write_atomically

_MAX_EXAMPLE_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class RateText:
    """A sentence about a rate. ``share`` is the rate as text, and ``rest`` is the rest of the sentence."""

    name: str
    share: str
    rest: str


@dataclass(frozen=True, slots=True)
class CensusText:
    """The texts about one kind of finding that rules counted in all conversations, with a redacted example."""

    name: str
    count: str
    period: str = ""
    asked: str = ""
    answered: str = ""


@dataclass(frozen=True, slots=True)
class NightText:
    """The sentences of the report on a nightly run. ``lines`` contains the same results for the terminal."""

    rates: tuple[RateText, ...]
    census: tuple[CensusText, ...]
    shortfalls: tuple[str, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NightPage:
    """The content of the page about a nightly run.

    ``transcripts`` contains the worst of the ``failed_total`` failed conversations.
    """

    report: NightlyReport
    state: str
    text: NightText
    failed: tuple[FailedRow, ...]
    failed_total: int
    kinds: tuple[KindCount, ...]
    labels: CaseLabels
    transcripts: tuple[CaseView, ...]


def write_night_reports(
    folder: Path,
    report: NightlyReport,
    cases: Sequence[CaseResult],
    text: NightText,
    *,
    redact: Redact,
    settings: ReportsSettings,
) -> None:
    """Write ``report.html`` and ``results.md`` of a nightly run into its folder. Each file is written atomically.

    ``redact`` masks personal data. Raises ``WarehouseUnwritable`` with the name of the file if the folder cannot be
    written.
    """
    failed, paths = select_by_outcome_worst_first(cases, CaseOutcome.FAILED), build_report_paths(folder)
    markdown = _build_night_markdown(report, failed, text, redact, settings.max_markdown_failures)
    write_atomically(paths.markdown, markdown)
    album = PictureAlbum(folder, max_each_bytes=0, max_total_bytes=0)  # real conversations have no screenshots
    viewer = CaseViewer(album, redact, {}, None, settings.max_text_characters, {})
    page = _build_night_page(report, failed, text, viewer, settings.max_transcripts)
    write_atomically(paths.html, render_document("night.html.j2", page=page))


def _build_night_page(
    report: NightlyReport, failed: Sequence[CaseResult], text: NightText, viewer: CaseViewer, limit: int
) -> NightPage:
    return NightPage(
        report=report,
        state=report.state,
        text=text,
        failed=tuple(build_failed_row(case, viewer.redact, {}, commit=None, shown=True) for case in failed[:limit]),
        failed_total=len(failed),
        kinds=count_failure_kinds(failed),
        labels=choose_labels_for_cases(failed),
        transcripts=tuple(viewer.build_case_view(case) for case in failed[:limit]),
    )


def _build_night_markdown(
    report: NightlyReport, failed: Sequence[CaseResult], text: NightText, redact: Redact, limit: int
) -> str:
    sections = [
        _format_head(report, text),
        _format_census(text),
        format_failures(failed, redact, limit, incidents={}, commit=None),
        ("## Other findings", "", *(f"- {escape_markdown(line)}" for line in text.lines)),
    ]
    return "\n\n".join("\n".join(lines) for lines in map(list, sections) if lines) + "\n"


def _format_head(report: NightlyReport, text: NightText) -> Iterator[str]:
    yield f"# {report.state}: {escape_markdown(report.target)}, nightly run until {format_moment(report.until)}"
    yield ""
    for rate in text.rates:
        yield f"- {rate.name}: **{escape_markdown(rate.share)}**{escape_markdown(rate.rest)}"
    yield from (f"- **Incomplete: {escape_markdown(line)}.**" for line in text.shortfalls)


def _format_census(text: NightText) -> Iterator[str]:
    if not text.census:
        return
    yield "## Found by rules in all conversations"
    yield ""
    yield "| what | found | when | first example |"
    yield "| --- | --- | --- | --- |"
    for row in text.census:
        example = " → ".join(
            format_code_span(excerpt, _MAX_EXAMPLE_CHARACTERS) for excerpt in (row.asked, row.answered) if row.asked
        )
        yield f"| {row.name} | {row.count} | {row.period} | {example} |"
