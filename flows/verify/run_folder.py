"""The folder of a verification run, with the data that another process needs to resume the run.

The request of a run contains no secrets, because Prefect stores and shows the request.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TextIO

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from monitors.config.file import Config
from monitors.errors import WarehouseUnwritable
from monitors.records.base import Identifier, Record, Sha256, UtcTime
from monitors.records.targets import GitChange, PullRequest, Target
from monitors.storage import write_atomically
from warehouse.data_folder import open_lock_handle

AUTO: Final = "auto"
NO_BASELINE: Final = "none"


class VerifyRequest(BaseModel):
    """A request to verify one target, with the configuration or the path of a lookout.toml.

    ``commit`` is the deploy to verify, if known. ``fresh`` starts a new run even if an earlier run could be
    resumed. The results of a staging target are posted to ``pull_request``. ``baseline`` is the run to compare
    with: a run's id, the path of a results.json, ``none``, or ``auto`` for the last accepted run of the target
    branch. ``change`` is the change that a CI job checks.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: Identifier
    config_path: Path | None = None
    config: Config | None = None
    commit: Identifier | None = None
    fresh: bool = Field(default=False)
    pull_request: PullRequest | None = None
    change: GitChange | None = None
    baseline: str = Field(default=AUTO, min_length=1)

    @model_validator(mode="after")
    def _has_one_configuration(self) -> Self:
        if (self.config_path is None) == (self.config is None):
            raise ValueError("set either `config_path` or `config`")
        return self


START_FILE = "run.json"
LOCK_FILE = "run.lock"
ALIVE_FILE = "run.alive"
"""Name of a second lock file. The process that works on the run locks this file.

Other processes test this lock instead of the lock of `LOCK_FILE`.
"""
DONE_FILE = "done"
"""Name of the file that is written last, after reports and alerts.

If the file is missing, a later run sends the alerts.
"""

RESUME_WITHIN = timedelta(hours=1)
"""Maximum age of a stopped run that can be resumed, counted from its start. Older answers are not used."""


class RunStart(Record):
    """How a run started.

    Two runs ask the same questions if target, suite, commit, head of the change and settings are the same.
    ``settings_sha256`` is the hash of the settings that affect answers and grades. ``serving`` is the commit that
    the target served, if known. The results are posted to ``pull_request``, even if another process finishes the
    run. ``planned`` is the number of results including repeats, or ``None`` if an older Lookout version wrote the
    file.
    """

    run_id: Identifier
    target: Target
    suite_sha256: Sha256
    commit: Identifier | None
    started_at: UtcTime
    pull_request: PullRequest | None = None
    planned: int | None = None
    change: GitChange | None = None
    settings_sha256: Sha256 | None = None
    serving: str | None = None

    @property
    def _question_key(self) -> tuple[object, ...]:
        head = self.change.head if self.change else None
        return self.target, self.suite_sha256, self.settings_sha256, self.commit, head

    def with_build_commit(self, commit: str | None) -> Self:
        """Return a copy with the commit that the target serves."""
        return self.model_copy(update={"serving": commit})

    def asks_same_questions(self, other: RunStart) -> bool:
        """Return whether ``other`` asks the same questions about the same deploy."""
        return self._question_key == other._question_key


def build_run_id(target: str, now: datetime, random_bytes: bytes) -> str:
    """Build a run id that contains the target. Run ids of a target sort by start time.

    The last six hexadecimal digits are the millisecond and a part of ``random_bytes``.
    """
    return f"{now:%Y%m%dT%H%M%SZ}-{target}-{now.microsecond // 1000:03x}{random_bytes.hex()[-3:]}"


@dataclass
class RunFolder:
    """The folder of a run, locked by this process. The lock ends when the ``with`` block or the process ends.

    ``resumed`` is true if another process started the run.
    """

    start: RunStart
    folder: Path
    resumed: bool
    lock: TextIO
    alive: TextIO

    def store_build_commit(self, commit: str | None) -> None:
        """Store the commit that the target serves, so that only a run of the same build can resume this run."""
        if commit != self.start.serving:
            self.start = self.start.with_build_commit(commit)
            _write_run_start(self.folder, self.start)

    def mark_finished(self) -> None:
        """Mark the run as finished, so that the next run starts a new folder."""
        (self.folder / DONE_FILE).touch()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del kind, error, trace
        self.alive.close()
        self.lock.close()


def begin_run(runs: Path, start: RunStart) -> RunFolder:
    """Create the run's folder, lock it and store how the run started. Raises `WarehouseUnwritable`."""
    folder = runs / start.run_id
    lock = _try_lock_run_folder(folder, runs.parent)
    if lock is None:
        raise WarehouseUnwritable(f"{folder}: another process is working on this run")
    _write_run_start(folder, start)
    return RunFolder(start, folder, resumed=False, lock=lock, alive=_lock_alive_file(folder, runs.parent))


def _write_run_start(folder: Path, start: RunStart) -> None:
    write_atomically(folder / START_FILE, start.model_dump_json(), within=folder.parent.parent)


def is_run_complete(folder: Path) -> bool:
    """Return whether the run in ``folder`` is finished."""
    return (folder / DONE_FILE).exists()


def has_live_process(folder: Path) -> bool:
    """Return whether an active process works on the run in ``folder``."""
    try:
        with (folder / ALIVE_FILE).open(encoding="utf-8") as alive:
            fcntl.flock(alive, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def find_run_to_resume(
    runs: Path, wanted: RunStart, is_same_build: Callable[[RunStart], bool] = lambda _: True
) -> RunFolder | None:
    """Find and lock the newest stopped run with the same questions. Return ``None`` if no run can be resumed.

    ``is_same_build`` returns whether the target still serves the build of the stopped run. A run is skipped if
    another process works on it, or if a finished run of the target is newer.
    """
    for start_file in sorted(runs.glob(f"*/{START_FILE}"), reverse=True):
        start = read_run_start(start_file.parent)
        if start is None or abs(wanted.started_at - start.started_at) > RESUME_WITHIN:
            continue
        if start.target.name == wanted.target.name and is_run_complete(start_file.parent):
            return None
        if not start.asks_same_questions(wanted) or not is_same_build(start):
            continue
        lock = _try_lock_run_folder(start_file.parent, runs.parent)
        if lock is None:
            continue
        if not is_run_complete(start_file.parent):  # checked under the lock, since the run may have just ended
            alive = _lock_alive_file(start_file.parent, runs.parent)
            return RunFolder(start, start_file.parent, resumed=True, lock=lock, alive=alive)
        lock.close()
    return None


def _try_lock_run_folder(folder: Path, data_folder: Path) -> TextIO | None:
    lock = open_lock_handle(folder / LOCK_FILE, within=data_folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def _lock_alive_file(folder: Path, data_folder: Path) -> TextIO:
    """Lock the file `ALIVE_FILE`. The function waits only while `has_live_process` tests the lock."""
    alive = open_lock_handle(folder / ALIVE_FILE, within=data_folder)
    fcntl.flock(alive, fcntl.LOCK_EX)
    return alive


def read_run_start(folder: Path) -> RunStart | None:
    """Read how the run in ``folder`` started. Return ``None`` if the file is missing or damaged."""
    try:
        return RunStart.model_validate_json((folder / START_FILE).read_text(encoding="utf-8"))
    except (OSError, ValidationError):
        return None
