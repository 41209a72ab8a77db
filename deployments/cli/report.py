"""``lookout report``: write a run's reports again from its results.json, without the application or a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from deployments.cli.data_folder import find_data_folder, load_new_results_into_warehouse, open_warehouse
from deployments.cli.exit_codes import ExitCode
from deployments.cli.gate.verdict import print_verdict
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, FolderOption, JsonOption, VerboseOption
from flows.nightly.format import format_nightly_report
from flows.terminal import print_text, write_json
from flows.terminal_console import make_terminal_console
from flows.waiting import show_waiting
from monitors.alerts.redact import redact
from monitors.errors import ConfigError
from monitors.records.nightly import NightlyReport
from monitors.reports.results_json import read_results
from monitors.reports.write import write_reports
from warehouse.database.store import DATABASE_FILE
from warehouse.queries.traffic import find_nightly_report


def report_command(
    run: Annotated[
        str | None,
        typer.Argument(help="the id of a run or a nightly run, or the folder of a run; default: the newest run"),
    ] = None,
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    data_folder: FolderOption = None,
    verbose: VerboseOption = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Write a run's reports again from its stored results. For a nightly run, print its report."""
    if run is not None and (night := _find_nightly_report(run, config, data_folder)) is not None:
        if as_json:
            write_json(night.model_dump_json() + "\n")
        else:
            print_text("\n".join(format_nightly_report(night)))
        return ExitCode.PASS
    folder = _require_run_folder(run, config, data_folder)
    with show_waiting("Writing the reports"):
        report, cases = read_results(folder / "results.json")
        paths = write_reports(folder, report, cases, redact=redact)
    places = {"html": paths.html, "markdown": paths.markdown, "json": paths.json, "junit": paths.junit}
    if as_json:
        write_json(json.dumps({name: str(path) for name, path in places.items()}) + "\n")
        return ExitCode.PASS
    print_verdict(make_terminal_console(), report, cases=cases, report_page=paths.html, verbose=verbose)
    return ExitCode.PASS


def _find_nightly_report(run: str, config: Path, data_folder: Path | None) -> NightlyReport | None:
    """Return the stored report of a nightly run.

    Returns ``None`` for any other id, or if there is no warehouse.
    """
    folder = find_data_folder(config, data_folder)
    if not (folder / DATABASE_FILE).exists():
        return None
    return find_nightly_report(load_new_results_into_warehouse(open_warehouse(config, data_folder)), run)


def _require_run_folder(run: str | None, config: Path, data_folder: Path | None) -> Path:
    if run is not None and (Path(run) / "results.json").exists():
        return Path(run)
    runs = find_data_folder(config, data_folder) / "runs"
    finished = sorted(path.parent.name for path in runs.glob("*/results.json"))
    if not finished:
        raise ConfigError(f"{runs} has no finished run yet. Start a run with `lookout verify` or `lookout demo`")
    if run is None:
        return runs / finished[-1]
    if run not in finished:
        raise ConfigError(f"{runs} has no finished run {run!r}. The newest runs are {', '.join(finished[-3:])}")
    return runs / run
