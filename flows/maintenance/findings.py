"""Collects the results of maintenance, and builds the faults that maintenance reports.

This module also removes old screenshots, traces and reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final

from flows.alerting.faults import Fault
from monitors.config.file import Config
from monitors.errors import ConfigError
from monitors.plural import plural
from monitors.probes.evidence_age import RemovedEvidence, remove_old_evidence, remove_old_night_reports
from monitors.records.grades import CaseOutcome
from monitors.reports.results_json import read_results
from warehouse.database.check import CheckProblemKind, CheckReport
from warehouse.database.load import LoadReport
from warehouse.database.parquet import ExportReport
from warehouse.database.retention import AgeReport, CompactReport


def remove_old_evidence_and_reports(config: Config, *, now: datetime) -> RemovedEvidence:
    """Remove old screenshots and traces according to ``[evidence]``, and old reports of nightly runs."""
    removed = remove_old_evidence(
        config.data_folder, config.evidence, now=now, failed_cases=find_ids_of_cases_not_correct
    )
    days = config.warehouse.personal_data_days
    if days is not None:
        removed += remove_old_night_reports(config.data_folder, now - timedelta(days=days))
    return removed


def find_ids_of_cases_not_correct(run: Path) -> frozenset[str] | None:
    """Find the ids of the cases that a run did not grade as correct.

    Return ``None`` if the results cannot be read.
    """
    try:
        _, results = read_results(run / "results.json")
    except ConfigError:
        return None
    return frozenset(result.case.id for result in results if result.assessment.outcome is not CaseOutcome.CORRECT)


REPAIRED_BY_REBUILD: Final = frozenset({CheckProblemKind.FILE_DAMAGED, CheckProblemKind.TABLE_DIFFERS})
"""Kinds of problems that a rebuild from the journal repairs. A rebuild cannot restore a missing segment."""

ROWS_CAME_BACK: Final = "RowsCameBack"


class WarehouseHealth(StrEnum):
    """The health of the warehouse, which is also the name of the flow's state."""

    SOUND = "Sound"
    RESTORED = "Restored"
    """Missing or damaged data was restored from the journal."""

    BUSY = "Busy"
    """Another process had locked the warehouse file. No data is lost, and the next maintenance tries again."""

    INCOMPLETE = "Incomplete"
    """A stage of the maintenance failed."""

    DAMAGED = "Damaged"
    """There is a problem that only a person can repair."""


@dataclass(slots=True)
class Upkeep:
    """The results of all stages of the maintenance. A result is ``None`` if the stage did not run or failed.

    ``faults`` contains the faults to report to people.
    """

    loaded: LoadReport | None = None
    rebuilt: LoadReport | None = None
    exported: ExportReport | None = None
    aged: AgeReport | None = None
    compacted: CompactReport | None = None
    checked: CheckReport | None = None
    pictures: RemovedEvidence | None = None
    busy: bool = False
    faults: list[Fault] = field(default_factory=list[Fault])
    is_damaged: bool = False
    """Whether there is damage that maintenance did not repair."""

    @property
    def health(self) -> WarehouseHealth:
        """The health of the warehouse after all stages."""
        if self.is_damaged:
            return WarehouseHealth.DAMAGED
        if self.rebuilt or (self.loaded and self.loaded.restored):
            return WarehouseHealth.RESTORED
        if self.busy:
            return WarehouseHealth.BUSY
        return WarehouseHealth.INCOMPLETE if self.faults else WarehouseHealth.SOUND

    def describe(self) -> str:
        """Describe the maintenance in one line, for Prefect's UI."""
        return "; ".join([*_format_upkeep(self), *(f"{fault.name}: {fault.detail}" for fault in self.faults)])


def build_load_faults(report: LoadReport) -> list[Fault]:
    """Build the faults that a load found: damaged segments, restored rows, and segments of a newer version."""
    faults = [Fault("WarehouseDamaged", str(error)) for error in report.errors()]
    if report.restored:
        detail = (
            f"The warehouse file lost {plural(report.restored, 'loaded segment')}, because its log was damaged, "
            "perhaps by a crash of"
        )
        faults.append(
            Fault(ROWS_CAME_BACK, f"{detail} the machine. Lookout restored the lost data from the journal.")
        )
    if report.too_new:
        detail = (
            f"Lookout cannot load {plural(report.too_new, 'segment')} of a newer version of Lookout. Update "
            "Lookout."
        )
        faults.append(Fault("SchemaTooNew", detail))
    return faults


def build_check_faults(report: CheckReport) -> list[Fault]:
    """Build one fault for each kind of problem. The text describes the first problem and counts all others."""
    kinds: dict[str, list[str]] = {}
    for problem in report.problems:
        kinds.setdefault(problem.kind.value, []).append(problem.text)
    return [Fault(kind, _format_first_and_count(texts)) for kind, texts in kinds.items()]


def _format_first_and_count(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{texts[0]} (and {len(texts) - 1} more; run `lookout warehouse check`)"


def _format_upkeep(done: Upkeep) -> Iterator[str]:
    if done.loaded:
        yield f"{plural(done.loaded.segments, 'segment')} loaded"
    if done.rebuilt:
        yield f"rebuilt from {plural(done.rebuilt.segments, 'segment')}"
    if done.exported:
        yield f"{plural(done.exported.rows, 'row')} exported"
    if done.aged:
        yield f"{plural(done.aged.segments, 'segment')} aged"
    if done.compacted:
        yield f"{plural(done.compacted.segments, 'segment')} compacted"
    if done.checked:
        yield f"{plural(done.checked.loaded, 'segment')} checked"
    if done.pictures and done.pictures.files:
        yield f"{plural(done.pictures.files, 'picture or trace', 'pictures and traces')} removed"
