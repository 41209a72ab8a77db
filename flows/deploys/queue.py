"""A queue of reported deploys. Each is stored before the sender gets an answer and waits until it has its run.

    deploys/TARGET/COMMIT.json    the report; written once, by the first process
    deploys/TARGET/COMMIT.run     the outcome: its run; the deploy no longer waits
    deploys/TARGET/COMMIT.open    its newest run, until that has ended; the only one that is deleted
    deploys/TARGET/COMMIT.pull    its pull request, if a later report named it
    deploys/TARGET/first-poll     the poll has polled this target before

Each is a file and not a segment of the journal: whether a commit is new must be decided at once, across processes
and without the warehouse's lock, and only one process can create a hard link. The reports are never deleted:
neither the Hub nor GitHub dates a delivery, and one that is repeated after a year must still count as old.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, ValidationError

from monitors.records.base import Identifier, Record, Sha256, UtcTime
from monitors.records.targets import DeployEvent, PullRequest, ReportedDeploy
from monitors.storage import write_atomically, write_once

FOLDER: Final = "deploys"
"""Inside the data folder."""

_REPORTED: Final = ".json"
_OUTCOME: Final = ".run"
_PULL: Final = ".pull"
_OPEN: Final = ".open"
_FIRST_POLL: Final = "first-poll"

log = logging.getLogger(__name__)


class QueuedDeploy(Record):
    """A reported deploy, with the time when it was stored."""

    deploy: ReportedDeploy
    stored_at: UtcTime


class DeployOutcome(Record):
    """The run of a deploy; ``None`` for a commit that ran before the first poll."""

    run_id: Identifier | None
    at: UtcTime


class DeployAttempt(Record):
    """The run of a deploy that has not ended yet, and the settings with which it was started.

    ``number`` is 1 for the first run. ``plan_sha256`` is the digest of configuration and version.
    """

    run_id: Identifier
    number: Annotated[int, Field(ge=1)]
    plan_sha256: Sha256


class DeployQueue:
    """The queued deploys of one data folder. Safe for threads and processes, without locks."""

    def __init__(self, data_folder: Path) -> None:
        self._root = data_folder / FOLDER

    def save(self, deploy: QueuedDeploy) -> bool:
        """Store a deploy durably; return false if this commit of this target is stored already.

        The pull request of a later report is stored anyway: the poll is often first and knows no pull request.
        Raises `WarehouseUnwritable`; then nothing is stored.
        """
        path = self._path(deploy.deploy.event, _REPORTED)
        if path.exists():
            self._note_pull_request(deploy.deploy)
            return False
        return write_once(path, deploy.model_dump_json(), within=self._root.parent)

    def store_outcome(self, event: DeployEvent, outcome: DeployOutcome) -> None:
        """Store the outcome of a deploy. Raises `WarehouseUnwritable`."""
        self._write(self._path(event, _OUTCOME), outcome.model_dump_json())

    def store_attempt(self, event: DeployEvent, attempt: DeployAttempt) -> None:
        """Store the newest run of a deploy. Raises `WarehouseUnwritable`."""
        self._write(self._path(event, _OPEN), attempt.model_dump_json())

    def end_attempt(self, event: DeployEvent) -> None:
        """Store that the run has ended, or that nobody waits for it any more."""
        self._path(event, _OPEN).unlink(missing_ok=True)

    def has_attempts(self) -> bool:
        """Whether `list_attempts` has any; reads names only."""
        return next(self._root.glob(f"*/*{_OPEN}"), None) is not None

    def list_attempts(self) -> tuple[tuple[QueuedDeploy, DeployAttempt], ...]:
        """Return the deploys whose run has not ended, with that run."""
        attempts: list[tuple[QueuedDeploy, DeployAttempt]] = []
        for path in sorted(self._root.glob(f"*/*{_OPEN}")):
            deploy = self._read_deploy(path.with_suffix(_REPORTED))
            try:
                attempt = DeployAttempt.model_validate_json(path.read_bytes())
            except (OSError, ValidationError) as error:
                log.error("%s cannot be read: %s", path, type(error).__name__)  # noqa: TRY400 - no trace helps
                continue
            if deploy is not None:
                attempts.append((deploy, attempt))
        return tuple(attempts)

    def find_newest(self, target: str) -> QueuedDeploy | None:
        """Find the deploy of ``target`` that was stored last; ``None`` without any."""
        paths = (self._root / target).glob(f"*{_REPORTED}")
        deploys = [deploy for path in paths if (deploy := self._read_deploy(path)) is not None]
        return max(deploys, key=lambda deploy: deploy.stored_at, default=None)

    def pull_requests(self, target: str, commit: str) -> tuple[PullRequest, ...]:
        """Return the pull requests that the reports of this commit named."""
        reported = self._root / target / f"{commit}{_REPORTED}"
        first = self._read_deploy(reported) if reported.exists() else None
        pulls = [first.deploy.pull_request if first else None, _read_pull_request(reported.with_suffix(_PULL))]
        return tuple(dict.fromkeys(pull for pull in pulls if pull is not None))

    def _note_pull_request(self, deploy: ReportedDeploy) -> None:
        pull = deploy.pull_request
        if pull is not None and pull not in self.pull_requests(deploy.event.target, deploy.event.commit):
            self._write(self._path(deploy.event, _PULL), pull.model_dump_json())

    def has_commit(self, target: str, commit: str) -> bool:
        """Whether this commit was reported before."""
        return (self._root / target / f"{commit}{_REPORTED}").exists()

    def list_open_deploys(self) -> tuple[QueuedDeploy, ...]:
        """Return the deploys without an outcome, oldest first."""
        deploys = (self._read_deploy(path) for path in self._list_waiting_paths())
        return tuple(
            sorted((deploy for deploy in deploys if deploy is not None), key=lambda deploy: deploy.stored_at)
        )

    def has_open_deploys(self) -> bool:
        """Whether `list_open_deploys` has any; reads names only."""
        return next(self._list_waiting_paths(), None) is not None

    def has_polled(self, target: str) -> bool:
        """Whether the poll has polled this target before."""
        return (self._root / target / _FIRST_POLL).exists()

    def note_poll(self, target: str) -> None:
        """Store that this target was polled: from now on an unreported commit is a deploy with a missing delivery.

        Raises `WarehouseUnwritable`.
        """
        if not self.has_polled(target):
            self._write(self._root / target / _FIRST_POLL, "")

    def check_writable(self) -> None:
        """Raise `WarehouseUnwritable` if a deploy could not be stored."""
        self._write(self._root / ".writable", "")

    def _write(self, path: Path, text: str) -> None:
        write_atomically(path, text, within=self._root.parent)

    def _path(self, event: DeployEvent, suffix: str) -> Path:
        return self._root / event.target / f"{event.commit}{suffix}"

    def _list_waiting_paths(self) -> Iterator[Path]:
        for folder in self._root.glob("*/"):
            names = {path.name for path in folder.iterdir()}
            for name in names:
                done = name.removesuffix(_REPORTED) + _OUTCOME
                if name.endswith(_REPORTED) and not name.startswith(".") and done not in names:
                    yield folder / name

    def _read_deploy(self, path: Path) -> QueuedDeploy | None:
        """Read the deploy of a file; log an error and return ``None`` if it cannot be read."""
        try:
            return QueuedDeploy.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            log.error("%s cannot be read and waits for a person: %s", path, type(error).__name__)  # noqa: TRY400 - no trace helps
            return None


def _read_pull_request(path: Path) -> PullRequest | None:
    try:
        return PullRequest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
