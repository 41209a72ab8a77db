"""What a night's care of the warehouse found, and what follows from it: pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from flows.monitor_fault import Fault
from monitors.probes.evidence_age import AgedEvidence
from warehouse.check import CheckReport
from warehouse.compact import CompactReport
from warehouse.copies import TroubleKind
from warehouse.export import ExportReport
from warehouse.load import LoadReport
from warehouse.retention import AgeReport

MENDED_BY_REBUILD: Final = frozenset({TroubleKind.FILE_DAMAGED, TroubleKind.TABLE_DIFFERS})
"""Where the journal has everything. A lost segment is not among them: a rebuild would lose its rows as well."""

ROWS_CAME_BACK: Final = "RowsCameBack"


class Standing(StrEnum):
    """How the warehouse stands; the flow's state is named after it."""

    SOUND = "Sound"
    RESTORED = "Restored"
    """Something was lost or damaged, and is back from the journal."""

    BUSY = "Busy"
    """Another process kept the file all the time; nothing is lost, and the next night tries again."""

    INCOMPLETE = "Incomplete"
    """A stage could not do its work."""

    DAMAGED = "Damaged"
    """Something is wrong that only a person can mend."""


@dataclass(slots=True)
class Upkeep:
    """What each stage did; ``None`` where it was not asked to, or could not. ``faults`` are for people."""

    loaded: LoadReport | None = None
    rebuilt: LoadReport | None = None
    exported: ExportReport | None = None
    aged: AgeReport | None = None
    compacted: CompactReport | None = None
    checked: CheckReport | None = None
    pictures: AgedEvidence | None = None
    busy: bool = False
    faults: list[Fault] = field(default_factory=list[Fault])
    hurt: bool = False
    """Whether anything is wrong that the night did not mend."""

    @property
    def standing(self) -> Standing:
        """The worst that was met."""
        if self.hurt:
            return Standing.DAMAGED
        if self.rebuilt or (self.loaded and self.loaded.restored):
            return Standing.RESTORED
        if self.busy:
            return Standing.BUSY
        return Standing.INCOMPLETE if self.faults else Standing.SOUND

    def in_words(self) -> str:
        """One line for Prefect's page."""
        return "; ".join([*_words(self), *(f"{fault.what}: {fault.detail}" for fault in self.faults)])


def faults_of_load(report: LoadReport) -> list[Fault]:
    """What the monitor's owners must know of a load: damaged segments, rows that had been lost."""
    found = [Fault("WarehouseDamaged", str(error)) for error in report.errors()]
    if report.restored:
        detail = f"{report.restored} loaded segments had gone from the file (its log was torn, by a crash of the"
        found.append(Fault(ROWS_CAME_BACK, f"{detail} machine perhaps); the journal had them, they are back."))
    if report.too_new:
        detail = f"{report.too_new} segments were written by a newer Lookout and wait: update this one."
        found.append(Fault("SchemaTooNew", detail))
    return found


def faults_of_check(report: CheckReport) -> list[Fault]:
    """One fault per kind of trouble, with the first of them in words."""
    kinds: dict[str, list[str]] = {}
    for trouble in report.troubles:
        kinds.setdefault(trouble.kind.value, []).append(trouble.text)
    return [Fault(kind, _first(texts)) for kind, texts in kinds.items()]


def _first(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{texts[0]} (and {len(texts) - 1} more: `lookout warehouse check`)"


def _words(done: Upkeep) -> Iterator[str]:
    if done.loaded:
        yield f"{done.loaded.segments} segments loaded"
    if done.rebuilt:
        yield f"rebuilt from {done.rebuilt.segments} segments"
    if done.exported:
        yield f"{done.exported.rows} rows exported"
    if done.aged:
        yield f"{done.aged.segments} segments aged"
    if done.compacted:
        yield f"{done.compacted.segments} segments compacted"
    if done.checked:
        yield f"{done.checked.loaded} segments checked"
    if done.pictures and done.pictures.files:
        yield f"{done.pictures.files} pictures and traces aged out"
