"""Runs, and one run: how far it is while it goes on, then its verdict, what broke, and the report that it left."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from pathlib import Path
from typing import Final

from starlette.responses import FileResponse, Response

from deployments.site.masking import mask_all, mask_fields
from deployments.site.page import Page, PageRefused, PageRequest, Paging, missing
from flows.data_folder import RUNS_FOLDER
from flows.verify.run_watch import RunProgress, RunState
from monitors.records.base import Record
from monitors.records.grades import CaseOutcome
from monitors.records.runs import RunReport, Verdict
from monitors.reports.page import page_of
from monitors.reports.write import report_paths
from warehouse.queries.site.runs import (
    ListedCase,
    ListedRun,
    RunFilter,
    cases_page,
    finished_among,
    outcome_counts,
    suites,
)
from warehouse.queries.site.runs import runs_page as runs_in

VERDICTS: Final = tuple(verdict.value for verdict in Verdict)
OUTCOMES: Final = tuple(outcome.value for outcome in CaseOutcome)
LIVE_S: Final = 3
"""Seconds between two looks at a run that goes on."""
CALM_S: Final = 15


class RunsData(Record):
    """A page of the list of runs, and those that have no report yet."""

    unfinished: tuple[RunProgress, ...]
    runs: tuple[ListedRun, ...]
    paging: Paging


class LiveRunData(Record):
    """A run that has no report yet."""

    progress: RunProgress


class RunData(Record):
    """A run with a page of its cases. ``has_report`` says whether its own report is on this machine."""

    report: RunReport
    outcomes: dict[str, int]
    cases: tuple[ListedCase, ...]
    paging: Paging
    has_report: bool


def runs_page(request: PageRequest) -> Page:
    """All runs, newest first."""
    site, paging = request.site, request.paging()
    wanted = RunFilter(
        target=request.choice("target", "Target", site.targets),
        verdict=request.choice("verdict", "Verdict", VERDICTS),
        suite=request.choice("suite", "Suite", suites(site.store)),
        commit=request.text("commit", "Commit begins with"),
    )
    rows, total = runs_in(site.store, wanted, rows=paging.rows, offset=paging.offset)
    unfinished = unreported(request) if paging.number == 1 and wanted == RunFilter(target=wanted.target) else ()
    shown = tuple(run for run in unfinished if wanted.target in {None, run.target})
    data = RunsData(unfinished=shown, runs=rows, paging=paging.of(total))
    return Page("runs.html.j2", "Runs", data, live_s=pause_s(shown))


def unreported(request: PageRequest) -> tuple[RunProgress, ...]:
    """The runs of this data folder that the copy has no report of, masked; none in a copy in files."""
    if request.static is not None:
        return ()
    found = request.site.watch.unfinished(request.site.now())
    known = finished_among(request.site.store, [run.run_id for run in found]) if found else ()
    return tuple(run.mask(request.mask(run.target)) for run in found if run.run_id not in known)


def pause_s(runs: Iterable[RunProgress]) -> int:
    """How long a page that shows these runs may stand before it renews itself."""
    return LIVE_S if any(run.state is not RunState.STOPPED for run in runs) else CALM_S


def run_page(request: PageRequest) -> Page:
    """One run: what it came to and why, and its cases, worst first; before that, how far it is."""
    site, run_id, paging = request.site, request.path["run"], request.paging()
    report = site.store.report(run_id)
    if report is None:
        return _live_page(request, run_id)
    outcome = request.choice("outcome", "Outcome", OUTCOMES)
    cases, total = cases_page(site.store, run_id, outcome, rows=paging.rows, offset=paging.offset)
    mask = request.mask(report.target.name)
    report = mask_all(report, mask)
    folder = site.config.data_folder / RUNS_FOLDER / run_id
    data = RunData(
        report=report,
        outcomes=outcome_counts(site.store, run_id),
        cases=tuple(mask_fields(case, mask, "asked", "reason") for case in cases),
        paging=paging.of(total),
        has_report=report_paths(folder).html.is_file(),
    )
    view = page_of(folder, report, [], redact=mask, settings=site.config.reports)
    return Page("run.html.j2", f"{report.verdict} {run_id}", data, view=view)


def _live_page(request: PageRequest, run_id: str) -> Page:
    progress = request.site.watch.progress(run_id) if request.static is None else None
    if progress is None:
        raise missing(f"No run {run_id[:80]} is in the warehouse, and none goes on in this data folder.")
    title = f"{progress.state.capitalize()}: {run_id}"
    data = LiveRunData(progress=progress.mask(request.mask(progress.target)))
    return Page("live_run.html.j2", title, data, live_s=pause_s([progress]))


def run_report(request: PageRequest) -> Response:
    """The report that the run left, as it stands: one file that runs no script and asks nobody for anything."""
    run_id = request.path["run"]
    file = report_paths(request.site.config.data_folder / RUNS_FOLDER / run_id).html
    if request.site.store.report(run_id) is None or not file.is_file():
        raise missing(
            f"The report of {run_id[:80]} is not on this machine: `lookout report` makes it again where it ran."
        )
    if file.is_symlink():
        raise PageRefused(HTTPStatus.FORBIDDEN, "The report is a link, and what it leads to is not shown.")
    return FileResponse(file, media_type="text/html", headers={"content-security-policy": _policy(file)})


_STYLE_HASH: Final = re.compile(r"'sha256-[A-Za-z0-9+/]{43}='")
_HEAD_CHARACTERS: Final = 2_000


def _policy(file: Path) -> str:
    """The report's own policy, as a header too: its one style sheet by hash, pictures in it, nothing else."""
    with file.open(encoding="utf-8", errors="replace") as report:
        found = _STYLE_HASH.search(report.read(_HEAD_CHARACTERS))
    style = found[0] if found else "'none'"
    return (
        f"default-src 'none'; img-src data:; style-src {style}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; sandbox allow-popups"
    )
