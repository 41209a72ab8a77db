"""Writes all reports of one run into its folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from monitors.records.incidents import Incident
from monitors.records.runs import CaseResult, RunReport
from monitors.reports.junit import build_junit_xml
from monitors.reports.markdown import build_markdown_report
from monitors.reports.marked_text import Redact
from monitors.reports.page import build_report_page, render_report_html
from monitors.reports.results_json import format_failures_as_hallucination_log, format_results_json
from monitors.reports.settings import ReportsSettings
from monitors.storage import write_atomically

_CACHE_SIZE: Final = 4_096


@dataclass(frozen=True, slots=True)
class ReportPaths:
    """The paths of a run's reports. ``html`` is the human-readable report."""

    html: Path
    markdown: Path
    json: Path
    hallucinations: Path
    junit: Path


def build_report_paths(folder: Path) -> ReportPaths:
    """Return the paths of the reports in a run's folder, even if the files do not exist."""
    return ReportPaths(
        html=folder / "report.html",
        markdown=folder / "results.md",
        json=folder / "results.json",
        hallucinations=folder / "hallucinations.jsonl",
        junit=folder / "junit.xml",
    )


def write_reports(
    folder: Path,
    report: RunReport,
    cases: Sequence[CaseResult],
    *,
    redact: Redact,
    settings: ReportsSettings | None = None,
    incidents: Sequence[Incident] = (),
    previous: RunReport | None = None,
) -> ReportPaths:
    """Write every report of a run into its folder. Return the paths of the reports.

    ``redact`` masks personal data in all reports except ``results.json``. ``incidents`` are used to state since
    which deploy a case has been failing. ``previous`` is the previous run. Each file is written atomically.
    ``results.json`` is written first, because all other reports can be built from it. Raises
    ``WarehouseUnwritable`` if the folder cannot be written.
    """
    used_settings = settings or ReportsSettings()
    cached_redact = lru_cache(maxsize=_CACHE_SIZE)(redact)  # five reports contain the same texts
    paths = build_report_paths(folder)
    write_atomically(paths.json, format_results_json(report, cases))
    write_atomically(
        paths.hallucinations, format_failures_as_hallucination_log(report, cases, redact=cached_redact)
    )
    write_atomically(paths.junit, build_junit_xml(report, cases, redact=cached_redact))
    summary = build_markdown_report(
        report,
        cases,
        redact=cached_redact,
        max_failures=used_settings.max_markdown_failures,
        incidents=incidents,
        previous=previous,
    )
    write_atomically(paths.markdown, summary)
    page = build_report_page(
        folder, report, cases, redact=cached_redact, settings=used_settings, incidents=incidents, previous=previous
    )
    write_atomically(paths.html, render_report_html(page))
    return paths
