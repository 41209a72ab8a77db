"""Reported deploys, kept before anything is answered, until each has its run: one for each commit of a target.

    deploys/TARGET/COMMIT.json    what was reported; written once, by whoever comes first
    deploys/TARGET/COMMIT.run     what became of it; from then on nothing is left to do
    deploys/TARGET/COMMIT.pull    the pull request it belongs to, where another than the first report told it
    deploys/TARGET/first-look     the poll has looked at this target before

A file for each, not a segment of the journal: whether a commit is new must be decided at once, across processes
and without the warehouse's lock, and a hard link can be made by one process only. They stay for good: neither the
Hub nor GitHub puts a time on what it sends, and what is sent again after a year must still be an old delivery.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from monitors.records.base import Identifier, Record, UtcTime
from monitors.records.deploys import PullRequest, ReportedDeploy
from monitors.records.targets import DeployEvent
from warehouse.segment_store import make_folder, sync_folder, unwritable, write_atomically

FOLDER: Final = "deploys"
"""Inside the data folder."""

_REPORTED: Final = ".json"
_SETTLED: Final = ".run"
_PULL: Final = ".pull"
_FIRST_LOOK: Final = "first-look"

log = logging.getLogger(__name__)


class KeptDeploy(Record):
    """A reported deploy, and since when it is kept."""

    deploy: ReportedDeploy
    kept_at: UtcTime


class Settled(Record):
    """What became of a deploy: its run, or none, for one that was there before anybody watched."""

    run_id: Identifier | None
    at: UtcTime


class KeptDeploys:
    """Those of one data folder. Safe for threads and processes; nobody waits for anybody."""

    def __init__(self, data_folder: Path) -> None:
        self._root = data_folder / FOLDER

    def keep(self, kept: KeptDeploy) -> bool:
        """Make a deploy durable; false when this commit of this target is kept already, whoever reported it.

        The pull request of a later report is kept all the same: whoever polls is often first, and knows of none.
        Raises `WarehouseUnwritable`; then nothing is kept.
        """
        path = self._path(kept.deploy.event, _REPORTED)
        if path.exists():
            self._note_pull_request(kept.deploy)
            return False
        beside = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
        try:
            make_folder(path.parent)
            return _linked(beside, path, kept.model_dump_json().encode())
        except OSError as error:
            raise unwritable(path, error) from error

    def settle(self, event: DeployEvent, settled: Settled) -> None:
        """Note what became of a deploy. Raises `WarehouseUnwritable`."""
        self._write(self._path(event, _SETTLED), settled.model_dump_json())

    def pull_requests(self, target: str, commit: str) -> tuple[PullRequest, ...]:
        """The pull requests that reports of this commit have named so far."""
        reported = self._root / target / f"{commit}{_REPORTED}"
        first = self._read(reported) if reported.exists() else None
        found = [first.deploy.pull_request if first else None, _pull_in(reported.with_suffix(_PULL))]
        return tuple(dict.fromkeys(pull for pull in found if pull is not None))

    def _note_pull_request(self, deploy: ReportedDeploy) -> None:
        pull = deploy.pull_request
        if pull is not None and pull not in self.pull_requests(deploy.event.target, deploy.event.commit):
            self._write(self._path(deploy.event, _PULL), pull.model_dump_json())

    def knows(self, target: str, commit: str) -> bool:
        """Whether this commit was reported before."""
        return (self._root / target / f"{commit}{_REPORTED}").exists()

    def settled(self, event: DeployEvent) -> Settled | None:
        """What became of a deploy; ``None`` while it waits."""
        try:
            return Settled.model_validate_json(self._path(event, _SETTLED).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def waiting(self) -> tuple[KeptDeploy, ...]:
        """What has no run yet, the one that waits longest first."""
        found = (self._read(path) for path in self._unsettled())
        return tuple(sorted((one for one in found if one is not None), key=lambda one: one.kept_at))

    def anything_waits(self) -> bool:
        """Whether `waiting` has any; reads names only."""
        return next(self._unsettled(), None) is not None

    def looked_before(self, target: str) -> bool:
        """Whether the poll has looked at this target before."""
        return (self._root / target / _FIRST_LOOK).exists()

    def note_look(self, target: str) -> None:
        """From now on a commit that nobody reported is a deploy whose word was lost.

        Raises `WarehouseUnwritable`.
        """
        if not self.looked_before(target):
            self._write(self._root / target / _FIRST_LOOK, "")

    def check_writable(self) -> None:
        """Raises `WarehouseUnwritable` when the next deploy could not be kept."""
        self._write(self._root / ".writable", "")

    def _write(self, path: Path, text: str) -> None:
        try:
            make_folder(path.parent)
            write_atomically(path, text.encode())
        except OSError as error:
            raise unwritable(path, error) from error

    def _path(self, event: DeployEvent, suffix: str) -> Path:
        return self._root / event.target / f"{event.commit}{suffix}"

    def _unsettled(self) -> Iterator[Path]:
        for folder in self._root.glob("*/"):
            names = {path.name for path in folder.iterdir()}
            for name in names:
                done = name.removesuffix(_REPORTED) + _SETTLED
                if name.endswith(_REPORTED) and not name.startswith(".") and done not in names:
                    yield folder / name

    def _read(self, path: Path) -> KeptDeploy | None:
        """One that cannot be read is left for a person: it must not keep the others waiting."""
        try:
            return KeptDeploy.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            log.error("%s cannot be read and waits for a person: %s", path, type(error).__name__)  # noqa: TRY400 - no trace helps
            return None


def _pull_in(path: Path) -> PullRequest | None:
    try:
        return PullRequest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def _linked(beside: Path, path: Path, data: bytes) -> bool:
    """Write ``path`` unless it is there: unlike a rename, of two links at once one fails. Raises `OSError`."""
    try:
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        path.hardlink_to(beside)
    except FileExistsError:
        return False
    finally:
        beside.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True
