"""A run's results weighed or written again: from a run's results.json, with no page and no server."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rich.console import Console

from deployments.data_folder import data_folder_of
from deployments.exit_codes import ExitCode
from deployments.verdict_text import print_verdict
from monitors.alerts.redact import redact
from monitors.errors import ConfigError
from monitors.gate.assess import assess
from monitors.gate.evaluate import RunFacts, evaluate
from monitors.gate.settings import GateSettings
from monitors.records.baselines import Baseline
from monitors.records.runs import CaseResult, RunReport
from monitors.reports.results_json import read_results
from monitors.reports.write import write_reports


def weighed_again(
    results: Path, settings: GateSettings, baseline: Baseline | None
) -> tuple[RunReport, tuple[CaseResult, ...]]:
    """The run of a results.json under these settings and today's severities. Raises `ConfigError`."""
    recorded, cases = read_results(results)
    again = tuple(_assessed_again(case) for case in cases)
    return evaluate(_facts(recorded), again, settings, baseline=baseline), again


def _assessed_again(result: CaseResult) -> CaseResult:
    """The same grades under today's severity table."""
    assessment = assess(result.case, result.result, result.assessment.grades)
    kept = assessment.model_copy(update={"unconfirmed": result.assessment.unconfirmed})
    return result.model_copy(update={"assessment": kept})


def _facts(report: RunReport) -> RunFacts:
    return RunFacts(
        run_id=report.run_id,
        target=report.target,
        suite_name=report.suite_name,
        suite_sha256=report.suite_sha256,
        planned=report.coverage.asked,
        commit=report.commit,
        started_at=report.started_at,
        finished_at=report.finished_at,
        interrupted=report.interrupted,
        resumed_cases=report.resumed_cases,
        judging=report.judging,
        pull_request=report.pull_request,
    )


def report_command(run: str | None, config: Path, *, data_folder: Path | None, as_json: bool) -> ExitCode:
    """Write a run's reports anew from its results.json."""
    folder = _run_folder(run, config, data_folder)
    report, cases = read_results(folder / "results.json")
    paths = write_reports(folder, report, cases, redact=redact)
    places = {"html": paths.html, "markdown": paths.markdown, "json": paths.json, "junit": paths.junit}
    if as_json:
        sys.stdout.write(json.dumps({name: str(path) for name, path in places.items()}) + "\n")
        return ExitCode.PASS
    print_verdict(Console(), report, report_page=paths.html)
    return ExitCode.PASS


def _run_folder(run: str | None, config: Path, data_folder: Path | None) -> Path:
    if run is not None and (Path(run) / "results.json").exists():
        return Path(run)
    runs = data_folder_of(config, data_folder) / "runs"
    finished = sorted(path.parent.name for path in runs.glob("*/results.json"))
    if not finished:
        raise ConfigError(f"{runs}: no run has finished here yet; `lookout verify` or `lookout demo` makes one")
    if run is None:
        return runs / finished[-1]
    if run not in finished:
        raise ConfigError(f"{runs}: no finished run {run!r}; the newest are {', '.join(finished[-3:])}")
    return runs / run
