"""The run that another is held against: one that is named, or the last accepted one of the base branch."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from flows.live_run import LiveRun
from flows.request import AUTO, NO_BASELINE
from flows.wiring import runs_folder
from monitors.errors import ConfigError, WarehouseError
from monitors.gate.baseline import baseline_of
from monitors.records.baselines import Baseline
from monitors.reports.results_json import read_results
from warehouse.baselines import last_accepted

RESULTS_FILE: Final = "results.json"


def find_baseline(run: LiveRun) -> Baseline | None:
    """The baseline of a run that was graded; ``None`` without any. Raises `ConfigError` as `named_baseline` does.

    A warehouse that cannot be read has none: a run without comparison is better than no run.
    """
    wired = run.wired
    if wired.request.baseline != AUTO:
        return named_baseline(wired.request.baseline, runs_folder(wired.config))
    try:
        return last_accepted(
            wired.store,
            wired.target.name,
            wired.target.environment,
            wired.suite.sha256,
            lineages=run.judging.lineages if run.judging else (),
            before=wired.run_id,
        )
    except WarehouseError:
        return None


def named_baseline(named: str, runs: Path) -> Baseline | None:
    """The run of a results.json, or of a run's id in the folder of ``runs``; ``None`` where none is wanted.

    `AUTO` names no run: it is looked for once the judges are known. Raises `ConfigError` for what is not there or
    no result: that is told before anything is asked.
    """
    if named in (AUTO, NO_BASELINE):
        return None
    places = (Path(named), runs / named / RESULTS_FILE)
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        raise ConfigError(
            f"--baseline {named}: neither a file nor a finished run in {runs}; accepted: {AUTO} (the last accepted "
            f"run), {NO_BASELINE}, a run's id, the path of its {RESULTS_FILE}"
        )
    return baseline_of(*read_results(file))
