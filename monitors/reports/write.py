"""All reports of one run, written into its folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from monitors.records.incidents import Incident
from monitors.records.runs import CaseResult, RunReport
from monitors.reports.junit import junit_xml
from monitors.reports.markdown import markdown_report
from monitors.reports.marked_text import Redact
from monitors.reports.page import html_report, page_of
from monitors.reports.results_json import hallucination_lines, results_json
from monitors.reports.settings import ReportsSettings
from monitors.storage import write_atomically

_REMEMBERED: Final = 4_096


@dataclass(frozen=True, slots=True)
class ReportPaths:
    """Where the reports of a run stand; ``html`` is the one a person opens."""

    html: Path
    markdown: Path
    json: Path
    hallucinations: Path
    junit: Path


def report_paths(folder: Path) -> ReportPaths:
    """The reports' places in a run's folder, written or not."""
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
    """Writes every report of a run into its folder, each file whole or not at all, and says where.

    ``redact`` masks personal data in everything but ``results.json``, which is the raw record. ``incidents``, where
    known, say since which deploy a case fails; ``previous`` is the run before. Screenshots and traces are found
    below ``folder``. ``results.json`` comes first: the others can be made again from it.

    Raises ``WarehouseUnwritable`` naming the file when the folder cannot be written.
    """
    chosen = settings or ReportsSettings()
    once = lru_cache(maxsize=_REMEMBERED)(redact)  # five reports show the same texts
    paths = report_paths(folder)
    write_atomically(paths.json, results_json(report, cases))
    write_atomically(paths.hallucinations, hallucination_lines(report, cases, redact=once))
    write_atomically(paths.junit, junit_xml(report, cases, redact=once))
    summary = markdown_report(
        report,
        cases,
        redact=once,
        most_failures=chosen.max_markdown_failures,
        incidents=incidents,
        previous=previous,
    )
    write_atomically(paths.markdown, summary)
    page = page_of(folder, report, cases, redact=once, settings=chosen, incidents=incidents, previous=previous)
    write_atomically(paths.html, html_report(page))
    return paths
