"""The page of all runs, and the page of one run with its progress or its verdict and cases."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from pathlib import Path
from typing import Final

from starlette.responses import FileResponse, Response

from deployments.site.masking import mask_all_texts, mask_fields
from deployments.site.page import Page, PageRefused, PageRequest, Paging, build_not_found_error
from flows.data_folder import RUNS_FOLDER
from flows.verify.run_watch import RunProgress, RunState
from monitors.records.base import Record
from monitors.records.grades import CaseOutcome
from monitors.records.runs import RunReport, Verdict
from monitors.reports.page import build_report_page
from monitors.reports.write import build_report_paths
from warehouse.queries.site.nightly import load_nightly_report
from warehouse.queries.site.runs import (
    ListedCase,
    ListedRun,
    RunFilter,
    count_outcomes,
    list_suites,
    load_cases_page,
    select_finished_runs,
)
from warehouse.queries.site.runs import load_runs_page as runs_in

VERDICTS: Final = tuple(verdict.value for verdict in Verdict)
OUTCOMES: Final = tuple(outcome.value for outcome in CaseOutcome)
LIVE_REFRESH_S: Final = 3
"""The number of seconds after which a page with an active run is reloaded."""
IDLE_REFRESH_S: Final = 15


class RunsData(Record):
    """One page of the list of finished runs, and the runs that have no report yet."""

    unfinished: tuple[RunProgress, ...]
    runs: tuple[ListedRun, ...]
    paging: Paging


class LiveRunData(Record):
    """The progress of a run that has no report yet."""

    progress: RunProgress


class RunData(Record):
    """A run with one page of its cases. ``has_report`` is true if its report file is on this machine."""

    report: RunReport
    outcomes: dict[str, int]
    cases: tuple[ListedCase, ...]
    paging: Paging
    has_report: bool


def build_runs_page(request: PageRequest) -> Page:
    """Build the list of all runs, newest first."""
    site, paging = request.site, request.read_paging()
    run_filter = RunFilter(
        target=request.read_and_show_choice_filter("target", "Target", site.targets),
        verdict=request.read_and_show_choice_filter("verdict", "Verdict", VERDICTS),
        suite=request.read_and_show_choice_filter("suite", "Suite", list_suites(site.store)),
        commit=request.read_and_show_text_filter("commit", "Commit begins with"),
    )
    rows, total = runs_in(site.store, run_filter, rows=paging.rows, offset=paging.offset)
    unfinished = (
        load_unfinished_runs(request)
        if paging.number == 1 and run_filter == RunFilter(target=run_filter.target)
        else ()
    )
    shown = tuple(run for run in unfinished if run_filter.target in {None, run.target})
    data = RunsData(unfinished=shown, runs=rows, paging=paging.with_total(total))
    return Page("runs.html.j2", "Runs", data, live_s=compute_refresh_s(shown))


def load_unfinished_runs(request: PageRequest) -> tuple[RunProgress, ...]:
    """Load the runs of this data folder that have no report yet. Returns nothing in a static export."""
    if request.static is not None:
        return ()
    unfinished = request.site.watch.list_recent_unfinished_runs(request.site.now())
    reported_ids = (
        select_finished_runs(request.site.store, [run.run_id for run in unfinished]) if unfinished else ()
    )
    return tuple(
        run.mask(request.build_redactor(run.target)) for run in unfinished if run.run_id not in reported_ids
    )


def compute_refresh_s(runs: Iterable[RunProgress]) -> int:
    """Return the number of seconds after which a page with these runs is reloaded."""
    return LIVE_REFRESH_S if any(run.state is not RunState.STOPPED for run in runs) else IDLE_REFRESH_S


def build_run_page(request: PageRequest) -> Page:
    """Build the page of a run.

    It shows the progress while the run is active. Afterwards, it shows the verdict and the cases, worst first.
    """
    site, run_id, paging = request.site, request.path["run"], request.read_paging()
    report = site.store.find_report(run_id)
    if report is None:
        return _build_live_page(request, run_id)
    outcome = request.read_and_show_choice_filter("outcome", "Outcome", OUTCOMES)
    cases, total = load_cases_page(site.store, run_id, outcome, rows=paging.rows, offset=paging.offset)
    mask = request.build_redactor(report.target.name)
    report = mask_all_texts(report, mask)
    folder = site.config.data_folder / RUNS_FOLDER / run_id
    data = RunData(
        report=report,
        outcomes=count_outcomes(site.store, run_id),
        cases=tuple(mask_fields(case, mask, "asked", "reason") for case in cases),
        paging=paging.with_total(total),
        has_report=build_report_paths(folder).html.is_file(),
    )
    view = build_report_page(folder, report, [], redact=mask, settings=site.config.reports)
    return Page("run.html.j2", f"{report.verdict} {run_id}", data, view=view)


def _build_live_page(request: PageRequest, run_id: str) -> Page:
    progress = request.site.watch.load_progress(run_id) if request.static is None else None
    if progress is None:
        raise build_not_found_error(
            f"Run {run_id[:80]} is not in the warehouse, and this data folder has no active run with this name."
        )
    title = f"{progress.state.capitalize()}: {run_id}"
    data = LiveRunData(progress=progress.mask(request.build_redactor(progress.target)))
    return Page("live_run.html.j2", title, data, live_s=compute_refresh_s([progress]))


def serve_run_report(request: PageRequest) -> Response:
    """Serve the report file of a run or a nightly run."""
    run_id = request.path["run"]
    file = build_report_paths(request.site.config.data_folder / RUNS_FOLDER / run_id).html
    store = request.site.store
    is_known = store.find_report(run_id) is not None or load_nightly_report(store, run_id) is not None
    if not is_known or not file.is_file():
        raise build_not_found_error(
            f"The report of {run_id[:80]} is not on this machine. To write it again, run `lookout report` on the "
            "machine of the run."
        )
    if file.is_symlink():
        raise PageRefused(
            HTTPStatus.FORBIDDEN, "This report is a symbolic link. The site does not show the target of a link."
        )
    return FileResponse(
        file, media_type="text/html", headers={"content-security-policy": _build_content_security_policy(file)}
    )


_STYLE_HASH: Final = re.compile(r"'sha256-[A-Za-z0-9+/]{43}='")
_HEAD_CHARACTERS: Final = 2_000


def _build_content_security_policy(file: Path) -> str:
    """Build the content security policy of a report.

    The policy allows only the report's style sheet and embedded pictures.
    """
    with file.open(encoding="utf-8", errors="replace") as report:
        match = _STYLE_HASH.search(report.read(_HEAD_CHARACTERS))
    style = match[0] if match else "'none'"
    return (
        f"default-src 'none'; img-src data:; style-src {style}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; sandbox allow-popups"
    )
