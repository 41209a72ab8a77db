"""The run that another is held against: one that is named, or the last accepted one of the base branch.

Accepted is a finished run with the verdict PASS that belonged to no pull request: what another pull request would
bring is not what this one changes. Where there is one over the same suite, by the same judges, it is taken; else
the newest, and the comparison says what differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from flows.kept_deploys import KeptDeploys
from flows.live_run import LiveRun
from flows.request import AUTO, NO_BASELINE
from flows.run_folder import START_FILE, RunStart
from flows.wiring import runs_folder
from monitors.errors import ConfigError, WarehouseError
from monitors.records.base import Sha256
from monitors.records.baselines import Asked, Baseline
from monitors.records.grades import Assessment, JudgeLineage
from monitors.records.judging import Judging
from monitors.records.runs import RunReport
from monitors.reports.results_json import read_results
from warehouse.rows import AssessmentRow
from warehouse.store import Store

RESULTS_FILE: Final = "results.json"
LOOKED_AT: Final = 50
"""Accepted runs that are looked at, newest first: further back they say little of today's base."""

_ACCEPTED: Final = (
    "select report from runs where target = $target and not interrupted and verdict = 'PASS'"
    " and run_id is distinct from $run order by suite_sha256 = $suite desc, finished_at desc, run_id desc"
    " limit $most"
)


class Wanted(NamedTuple):
    """The run that looks for a baseline."""

    run_id: str
    target: str
    suite_sha256: Sha256
    judging: Judging | None


class Baselines:
    """Where earlier runs are found: the warehouse, the journal and the runs' folders of one data folder."""

    def __init__(self, store: Store, runs: Path, kept: KeptDeploys) -> None:
        self._store = store
        self._runs = runs
        self._kept = kept

    def check(self, named: str) -> None:
        """Raises `ConfigError` for a named run or file that is not there: before anything is asked."""
        if named not in (AUTO, NO_BASELINE):
            self._named(named)

    def find(self, named: str, wanted: Wanted) -> Baseline | None:
        """The baseline; ``None`` without any. Raises `ConfigError` for a named one that is not there.

        A warehouse that cannot be read has none: a run without comparison is better than no run.
        """
        if named == NO_BASELINE:
            return None
        if named != AUTO:
            return self._named(named)
        try:
            return self._last_accepted(wanted)
        except WarehouseError:
            return None

    def _named(self, named: str) -> Baseline:
        """A path, or the id of a run of this data folder."""
        if Path(named).is_file():
            return baseline_in(Path(named))
        try:
            found = self._of(self._store.report(named))
        except WarehouseError:
            found = None
        if found is None and (self._runs / named / RESULTS_FILE).is_file():
            found = baseline_in(self._runs / named / RESULTS_FILE)
        if found is None:
            raise ConfigError(
                f"--baseline {named}: neither a file nor a finished run of {self._runs.parent}; accepted: {AUTO}, "
                f"{NO_BASELINE}, a run's id, the path of its {RESULTS_FILE}"
            )
        return found

    def _last_accepted(self, wanted: Wanted) -> Baseline | None:
        bound = {"target": wanted.target, "run": wanted.run_id, "suite": wanted.suite_sha256, "most": LOOKED_AT}
        rows = self._store.query(_ACCEPTED, bound).rows
        reports = [
            report for row in rows if (report := _report(str(row[0]))) and not self._was_a_pull_request(report)
        ]
        for report in _best_first(reports, wanted):
            found = self._of(report)
            if found is not None:
                return found
        return None

    def _of(self, report: RunReport | None) -> Baseline | None:
        """With what each question came to, as the journal has it, else the run's own file."""
        if report is None:
            return None
        rows = self._store.journal.read_run(report.run_id)
        latest = {(row.row.case_id, row.row.repeat): row.row for row in rows if isinstance(row, AssessmentRow)}
        if latest:
            return Baseline(report=report, asked=tuple(map(asked_of, latest.values())))
        file = self._runs / report.run_id / RESULTS_FILE
        return baseline_in(file) if file.is_file() else None

    def _was_a_pull_request(self, report: RunReport) -> bool:
        try:
            note = (self._runs / report.run_id / START_FILE).read_text(encoding="utf-8")
            if RunStart.model_validate_json(note).pull_request is not None:
                return True
        except (OSError, ValidationError):
            pass  # worked on elsewhere: what was reported of its deploy may still tell
        return report.commit is not None and bool(self._kept.pull_requests(report.target.name, report.commit))


def baseline_in(file: Path) -> Baseline:
    """The run of a results.json. Raises `ConfigError`."""
    report, cases = read_results(file)
    return Baseline(report=report, asked=tuple(asked_of(case.assessment) for case in cases))


def asked_of(assessment: Assessment) -> Asked:
    """What one asking came to."""
    return Asked(
        case_id=assessment.case_id,
        repeat=assessment.repeat,
        outcome=assessment.outcome,
        blame=assessment.blame,
    )


def find_baseline(run: LiveRun) -> Baseline | None:
    """The run that this one is held against."""
    wired = run.wired
    wanted = Wanted(wired.run_id, wired.target.name, wired.suite.sha256, run.judging)
    return baselines_of(run).find(wired.request.baseline, wanted)


def baselines_of(run: LiveRun) -> Baselines:
    """Where this run's baseline is looked for."""
    config = run.wired.config
    return Baselines(run.wired.store, runs_folder(config), KeptDeploys(config.data_folder))


def _best_first(reports: Sequence[RunReport], wanted: Wanted) -> Iterator[RunReport]:
    """Those that can be compared before those that cannot; within each the newest first, as they came."""
    judges = _judges(wanted.judging)

    def fits(report: RunReport) -> bool:
        was = _judges(report.judging)
        return report.suite_sha256 == wanted.suite_sha256 and (not judges or not was or was == judges)

    yield from sorted(reports, key=lambda report: not fits(report))


def _judges(judging: Judging | None) -> frozenset[JudgeLineage]:
    return frozenset(judging.lineages) if judging else frozenset()


def _report(text: str) -> RunReport | None:
    """``None`` for one that an older Lookout wrote in another form: there are others."""
    try:
        return RunReport.model_validate_json(text)
    except ValidationError:
        return None
