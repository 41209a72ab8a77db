"""Remove old screenshots and traces. Files of failures are stored longer than other files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Self

from pydantic import Field, model_validator

from monitors.probes.browser.evidence import FOLDER
from monitors.probes.job.notes import FOLDER as NOTES_FOLDER
from monitors.records.base import Record

ONLY_FAILURES = "only-failures-left"
"""The name of an empty file in the evidence of a run. The file shows that only the evidence of failures is left."""

EVIDENCE_FILE_NAME = re.compile(r"(?P<case>.+)\.r\d+(\.t\d+)?\.\w+")
FailedCases = Callable[[Path], frozenset[str] | None]
"""A function that returns the ids of the failed cases of a run, or ``None`` if the failures are unknown.

Its argument is the folder of the run.
"""


class EvidenceSettings(Record):
    """Settings in `[evidence]`: for how many days screenshots and traces are stored."""

    days: float = Field(
        default=14,
        ge=1,
        description="number of days for which Lookout stores screenshots and traces of right answers",
    )
    failure_days: float = Field(
        default=90,
        ge=1,
        description="number of days for which Lookout stores screenshots and traces of failures and unfinished "
        "runs",
    )

    @model_validator(mode="after")
    def _check_order_of_days(self) -> Self:
        if self.failure_days < self.days:
            raise ValueError(f"failure_days ({self.failure_days:g}) must not be less than days ({self.days:g})")
        return self


NIGHT_MARK: Final = "-night-"
"""The part of a run folder's name, between the time and the target, that identifies a nightly run."""
NIGHT_REPORTS: Final = frozenset({"report.html", "results.md"})


class RemovedEvidence(Record):
    """The number of removed files, and their total size in bytes."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: RemovedEvidence) -> RemovedEvidence:
        return RemovedEvidence(files=self.files + other.files, bytes=self.bytes + other.bytes)


def remove_old_evidence(
    data_folder: Path, settings: EvidenceSettings, *, now: datetime, failed_cases: FailedCases
) -> RemovedEvidence:
    """Remove evidence that is older than ``settings`` allow. The age of a file is the time since its last change.

    Only files of runs and of `lookout doctor` are removed. Links are not followed. A file that cannot be removed is
    skipped.
    """
    removed = RemovedEvidence()
    for run in _iterate_folders(data_folder / "runs"):
        removed += _remove_old_evidence_of_run(run, settings, now, failed_cases)
    for picture in _iterate_old_files(data_folder / "doctor", now - timedelta(days=settings.days)):
        removed += _remove_file(picture)
    return removed


def remove_old_night_reports(data_folder: Path, before: datetime) -> RemovedEvidence:
    """Remove the reports of nightly runs that were written before the time ``before``.

    These reports quote real users.
    """
    removed = RemovedEvidence()
    for run in _iterate_folders(data_folder / "runs"):
        if NIGHT_MARK in run.name:
            for file in _iterate_old_files(run, before):
                removed += _remove_file(file) if file.name in NIGHT_REPORTS else RemovedEvidence()
    return removed


def _remove_old_evidence_of_run(
    run: Path, settings: EvidenceSettings, now: datetime, failed_cases: FailedCases
) -> RemovedEvidence:
    failure_limit = now - timedelta(days=settings.failure_days)
    removed = RemovedEvidence()
    for folder in (run / FOLDER, run / NOTES_FOLDER):
        for file in _iterate_old_files(folder, failure_limit):
            removed += _remove_file(file)
        _remove_folder_if_empty(folder)
    older_files = list(_iterate_old_files(run / FOLDER, now - timedelta(days=settings.days)))
    marker = run / FOLDER / ONLY_FAILURES
    if not older_files or marker.exists():
        return removed
    failed = failed_cases(run)
    for file in older_files:
        if failed is not None and _parse_case_id(file) not in failed:
            removed += _remove_file(file)
    if failed is not None:
        marker.touch()
    _remove_folder_if_empty(run / FOLDER)
    return removed


def _parse_case_id(file: Path) -> str:
    match = EVIDENCE_FILE_NAME.fullmatch(file.name)
    return match["case"] if match else ""


def _iterate_folders(parent: Path) -> Iterator[Path]:
    if parent.is_dir():
        yield from (folder for folder in sorted(parent.iterdir()) if folder.is_dir() and not folder.is_symlink())


def _iterate_old_files(folder: Path, before: datetime) -> Iterator[Path]:
    if folder.is_symlink() or not folder.is_dir():
        return
    for file in sorted(folder.iterdir()):
        try:
            status = file.lstat()
        except OSError:  # removed meanwhile
            continue
        if file.is_file() and file.name != ONLY_FAILURES and datetime.fromtimestamp(status.st_mtime, UTC) < before:
            yield file


def _remove_file(file: Path) -> RemovedEvidence:
    try:
        size = file.lstat().st_size
        file.unlink()
    except OSError:
        return RemovedEvidence()
    return RemovedEvidence(files=1, bytes=size)


def _remove_folder_if_empty(folder: Path) -> None:
    """Remove ``folder`` if it is empty or contains only the marker file `ONLY_FAILURES`."""
    try:
        if not folder.is_symlink() and {file.name for file in folder.iterdir()} <= {ONLY_FAILURES}:
            (folder / ONLY_FAILURES).unlink(missing_ok=True)
            folder.rmdir()
    except OSError:
        return  # missing, or a file was added meanwhile
