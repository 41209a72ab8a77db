"""Reported deploys, stored before the sender gets an answer, until each has its run: one for each commit.

    deploys/TARGET/COMMIT.json    what was reported; written once, by whoever comes first
    deploys/TARGET/COMMIT.run     what became of it; from then on nothing is left to do
    deploys/TARGET/COMMIT.pull    the pull request it belongs to, where a later report named it
    deploys/TARGET/first-poll     the poll has seen this target before

A file for each, not a segment of the journal: whether a commit is new must be decided at once, across processes and
without the warehouse's lock, and only one process can make a hard link. The files stay for good: neither the Hub
nor GitHub puts a time on a delivery, and one that is sent again after a year must still count as old.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from monitors.records.base import Identifier, Record, UtcTime
from monitors.records.targets import DeployEvent, PullRequest, ReportedDeploy
from monitors.storage import write_atomically, write_once

FOLDER: Final = "deploys"
"""Inside the data folder."""

_REPORTED: Final = ".json"
_SETTLED: Final = ".run"
_PULL: Final = ".pull"
_FIRST_POLL: Final = "first-poll"

log = logging.getLogger(__name__)


class QueuedDeploy(Record):
    """A reported deploy, and since when it is stored."""

    deploy: ReportedDeploy
    stored_at: UtcTime


class DeployOutcome(Record):
    """What became of a deploy: its run, or none, for a commit that ran before anybody watched."""

    run_id: Identifier | None
    at: UtcTime


class DeployQueue:
    """The deploys of one data folder. Safe for threads and processes; nobody waits for anybody."""

    def __init__(self, data_folder: Path) -> None:
        self._root = data_folder / FOLDER

    def save(self, deploy: QueuedDeploy) -> bool:
        """Make a deploy durable; false when this commit of this target is stored already, whoever reported it.

        The pull request of a later report is stored all the same: the poll is often first, and knows of none.
        Raises `WarehouseUnwritable`; then nothing is stored.
        """
        path = self._path(deploy.deploy.event, _REPORTED)
        if path.exists():
            self._note_pull_request(deploy.deploy)
            return False
        return write_once(path, deploy.model_dump_json(), within=self._root.parent)

    def settle(self, event: DeployEvent, settled: DeployOutcome) -> None:
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

    def settled(self, event: DeployEvent) -> DeployOutcome | None:
        """What became of a deploy; ``None`` while it waits."""
        try:
            return DeployOutcome.model_validate_json(self._path(event, _SETTLED).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def waiting(self) -> tuple[QueuedDeploy, ...]:
        """The deploys without a run, the one that waits longest first."""
        found = (self._read(path) for path in self._unsettled())
        return tuple(sorted((one for one in found if one is not None), key=lambda one: one.stored_at))

    def anything_waits(self) -> bool:
        """Whether `waiting` has any; reads names only."""
        return next(self._unsettled(), None) is not None

    def polled_before(self, target: str) -> bool:
        """Whether the poll has seen this target before."""
        return (self._root / target / _FIRST_POLL).exists()

    def note_poll(self, target: str) -> None:
        """Note the first poll: from now on a commit that nobody reported is a deploy whose delivery is missing.

        Raises `WarehouseUnwritable`.
        """
        if not self.polled_before(target):
            self._write(self._root / target / _FIRST_POLL, "")

    def check_writable(self) -> None:
        """Raises `WarehouseUnwritable` when the next deploy could not be stored."""
        self._write(self._root / ".writable", "")

    def _write(self, path: Path, text: str) -> None:
        write_atomically(path, text, within=self._root.parent)

    def _path(self, event: DeployEvent, suffix: str) -> Path:
        return self._root / event.target / f"{event.commit}{suffix}"

    def _unsettled(self) -> Iterator[Path]:
        for folder in self._root.glob("*/"):
            names = {path.name for path in folder.iterdir()}
            for name in names:
                done = name.removesuffix(_REPORTED) + _SETTLED
                if name.endswith(_REPORTED) and not name.startswith(".") and done not in names:
                    yield folder / name

    def _read(self, path: Path) -> QueuedDeploy | None:
        """The deploy of a file. One that cannot be read is left for a person: the others must not wait for it."""
        try:
            return QueuedDeploy.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            log.error("%s cannot be read and waits for a person: %s", path, type(error).__name__)  # noqa: TRY400 - no trace helps
            return None


def _pull_in(path: Path) -> PullRequest | None:
    try:
        return PullRequest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
