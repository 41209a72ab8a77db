"""A run's folder: its start is noted there, so that a stopped run is found again and finished, by one process."""

from __future__ import annotations

import fcntl
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from pydantic import ValidationError

from monitors.errors import WarehouseUnwritable
from monitors.records.base import Identifier, Record, Sha256, UtcTime
from monitors.records.deploys import PullRequest
from monitors.records.targets import Target
from monitors.reports.atomic import write_atomically

START_FILE = "run.json"
LOCK_FILE = "run.lock"
DONE_FILE = "done"
"""Written last: the reports stand and people were told. A run that was killed between the two tells them yet."""

RESUME_WITHIN = timedelta(hours=1)
"""How long a stopped run may be finished by the next one; after that its answers are too old."""


class RunStart(Record):
    """What a run set out to do. Two runs with the same target, suite and commit ask the same questions.

    ``pull_request`` is who waits for the answer: whoever finishes a stopped run owes it there too.
    """

    run_id: Identifier
    target: Target
    suite_sha256: Sha256
    commit: Identifier | None
    started_at: UtcTime
    pull_request: PullRequest | None = None

    def same_question(self, other: RunStart) -> bool:
        """Whether ``other``'s answers are answers to this run's questions."""
        return (self.target, self.suite_sha256, self.commit) == (other.target, other.suite_sha256, other.commit)


def new_run_id(target: str, now: datetime, chance: bytes) -> str:
    """An id that sorts by time and names its target; ``chance`` keeps two runs of one second apart."""
    return f"{now:%Y%m%dT%H%M%SZ}-{target}-{chance.hex()}"


@dataclass(frozen=True)
class Begun:
    """A run that this process has to itself: the lock on its folder ends with the process, however that ends.

    ``resumed`` is true when another process began it. As a context manager it gives the lock back.
    """

    start: RunStart
    folder: Path
    resumed: bool
    lock: TextIO

    def finish(self) -> None:
        """Note that nothing is left to do: the next run starts anew."""
        (self.folder / DONE_FILE).touch()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del kind, error, trace
        self.lock.close()


def begin(runs: Path, start: RunStart) -> Begun:
    """Make the run's folder and note its start. Raises `WarehouseUnwritable`."""
    folder = runs / start.run_id
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = _locked(folder)
        if lock is None:
            raise WarehouseUnwritable(f"{folder}: another process has this run to itself")
        write_atomically(folder / START_FILE, [start.model_dump_json()])
    except OSError as error:
        raise WarehouseUnwritable(
            f"{folder}: cannot be written ({error.strerror}); set data_folder in lookout.toml to a folder that can"
        ) from error
    return Begun(start, folder, resumed=False, lock=lock)


def unfinished(runs: Path, wanted: RunStart) -> Begun | None:
    """The newest stopped run that asked the same questions lately, if it can be finished now.

    A run that another living process is at is not stopped.
    """
    for note in sorted(runs.glob(f"*/{START_FILE}"), reverse=True):
        start = _read(note)
        if start is None or wanted.started_at - start.started_at > RESUME_WITHIN:
            continue
        if not start.same_question(wanted):
            continue
        lock = _locked(note.parent)
        if lock is None:
            continue
        if not (note.parent / DONE_FILE).exists():  # looked at under the lock: it may have ended just now
            return Begun(start, note.parent, resumed=True, lock=lock)
        lock.close()
    return None


def _locked(folder: Path) -> TextIO | None:
    lock = (folder / LOCK_FILE).open("a", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def _read(note: Path) -> RunStart | None:
    try:
        return RunStart.model_validate_json(note.read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        return None
