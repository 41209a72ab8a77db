"""Pictures and traces age out (V7); the journal and the reports stay. What shows a failure is stored for longer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from monitors.probes.browser.evidence import FOLDER
from monitors.probes.job.notes import FOLDER as NOTES_FOLDER
from monitors.records.base import Record

ONLY_FAILURES = "only-failures-left"
"""An empty file in a run's evidence: nothing is due before its failures are, so nobody needs to check again."""

NAMED = re.compile(r"(?P<case>.+)\.r\d+(\.t\d+)?\.\w+")
FailedCases = Callable[[Path], frozenset[str] | None]
"""The ids of the cases of a run's folder that were not right; ``None`` when that cannot be known."""


class EvidenceSettings(Record):
    """`[evidence]`: how long pictures and traces are stored. The journal is not touched."""

    days: float = Field(
        default=14, ge=1, description="days for which screenshots and traces of right answers are kept"
    )
    failure_days: float = Field(
        default=90, ge=1, description="days for those of failures, and of runs that were never finished"
    )

    @model_validator(mode="after")
    def _failures_last(self) -> Self:
        if self.failure_days < self.days:
            raise ValueError(f"failure_days ({self.failure_days:g}) must not be less than days ({self.days:g})")
        return self


class AgedEvidence(Record):
    """What went: files, and bytes they had."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: AgedEvidence) -> AgedEvidence:
        return AgedEvidence(files=self.files + other.files, bytes=self.bytes + other.bytes)


def age_evidence(
    data_folder: Path, settings: EvidenceSettings, *, now: datetime, failed_cases: FailedCases
) -> AgedEvidence:
    """Remove what is older than ``settings`` say at ``now``, by the files' own times.

    Only files that runs and `lookout doctor` put there are touched: never a link's goal, never a folder that is not
    empty. A file that somebody else removes meanwhile, or that may not be removed, is passed over.
    """
    gone = AgedEvidence()
    for run in _folders(data_folder / "runs"):
        gone += _age_run(run, settings, now, failed_cases)
    for picture in _old(data_folder / "doctor", now - timedelta(days=settings.days)):
        gone += _removed(picture)
    return gone


def _age_run(run: Path, settings: EvidenceSettings, now: datetime, failed_cases: FailedCases) -> AgedEvidence:
    last = now - timedelta(days=settings.failure_days)
    gone = AgedEvidence()
    for folder in (run / FOLDER, run / NOTES_FOLDER):
        for file in _old(folder, last):
            gone += _removed(file)
        _remove_when_empty(folder)
    right = list(_old(run / FOLDER, now - timedelta(days=settings.days)))
    marker = run / FOLDER / ONLY_FAILURES
    if not right or marker.exists():
        return gone
    failed = failed_cases(run)
    for file in right:
        if failed is not None and _case_of(file) not in failed:
            gone += _removed(file)
    if failed is not None:
        marker.touch()
    _remove_when_empty(run / FOLDER)
    return gone


def _case_of(file: Path) -> str:
    found = NAMED.fullmatch(file.name)
    return found["case"] if found else ""


def _folders(parent: Path) -> Iterator[Path]:
    if parent.is_dir():
        yield from (folder for folder in sorted(parent.iterdir()) if folder.is_dir() and not folder.is_symlink())


def _old(folder: Path, before: datetime) -> Iterator[Path]:
    if folder.is_symlink() or not folder.is_dir():
        return
    for file in sorted(folder.iterdir()):
        try:
            found = file.lstat()
        except OSError:  # gone meanwhile
            continue
        if file.is_file() and file.name != ONLY_FAILURES and datetime.fromtimestamp(found.st_mtime, UTC) < before:
            yield file


def _removed(file: Path) -> AgedEvidence:
    try:
        size = file.lstat().st_size
        file.unlink()
    except OSError:
        return AgedEvidence()
    return AgedEvidence(files=1, bytes=size)


def _remove_when_empty(folder: Path) -> None:
    """Takes the folder away, when nothing but the marker is in it."""
    try:
        if not folder.is_symlink() and {file.name for file in folder.iterdir()} <= {ONLY_FAILURES}:
            (folder / ONLY_FAILURES).unlink(missing_ok=True)
            folder.rmdir()
    except OSError:
        return  # not there, or something came meanwhile
