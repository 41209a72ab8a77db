"""A run's folder: its start is noted there, so that a stopped run is found again and finished."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from pydantic import ValidationError

from monitors.errors import WarehouseUnwritable
from monitors.records.base import Identifier, Record, Sha256, UtcTime
from monitors.records.targets import Target

START_FILE = "run.json"
RESULTS_FILE = "results.json"
RESUME_WITHIN = timedelta(hours=1)
"""How long a stopped run may be finished by the next one; after that its answers are too old."""


class RunStart(Record):
    """What a run set out to do. Two runs with the same target, suite and commit ask the same questions."""

    run_id: Identifier
    target: Target
    suite_sha256: Sha256
    commit: Identifier | None
    started_at: UtcTime

    def same_question(self, other: RunStart) -> bool:
        """Whether ``other``'s answers are answers to this run's questions."""
        return (self.target, self.suite_sha256, self.commit) == (other.target, other.suite_sha256, other.commit)


def new_run_id(target: str, now: datetime, chance: bytes) -> str:
    """An id that sorts by time and names its target; ``chance`` keeps two runs of one second apart."""
    return f"{now:%Y%m%dT%H%M%SZ}-{target}-{chance.hex()}"


def begin(runs: Path, start: RunStart) -> Path:
    """Make the run's folder and note its start."""
    folder = runs / start.run_id
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / START_FILE).write_text(start.model_dump_json(), encoding="utf-8")
    except OSError as error:
        raise WarehouseUnwritable(
            f"{folder}: cannot be written ({error.strerror}); set data_folder in lookout.toml to a folder that can"
        ) from error
    return folder


def unfinished(runs: Path, wanted: RunStart) -> RunStart | None:
    """The newest stopped run that asked the same questions lately, if it can be finished now."""
    for note in sorted(runs.glob(f"*/{START_FILE}"), reverse=True):
        start = _read(note)
        if start is None or wanted.started_at - start.started_at > RESUME_WITHIN:
            continue
        if (note.parent / RESULTS_FILE).exists():
            continue
        if start.same_question(wanted):
            return start
    return None


def _read(note: Path) -> RunStart | None:
    try:
        return RunStart.model_validate_json(note.read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        return None
