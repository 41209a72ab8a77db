"""A queue of reported deploys, stored as files. A webhook is answered after its deploy is stored.

    deploys/TARGET/COMMIT.json      the first report of this commit without a deployment ID
    deploys/TARGET/COMMIT~ID.json   the first report of this commit with the sender's deployment ID
    deploys/TARGET/COMMIT….run      the outcome: the id of the run; the deploy no longer waits
    deploys/TARGET/COMMIT….open     the newest run of the deploy; deleted when that run has ended
    deploys/TARGET/COMMIT.pull      the pull request, if a later report named it
    deploys/TARGET/first-poll       exists when this target was polled before
    deploys/TARGET/running          the commit that the last poll found running, and since when

A repeated delivery has the same deployment ID as the first delivery. A rollback or a redeploy of a commit has
another ID. A report without an ID is a new deploy if its commit is new. A push and its deployment are the same
deploy, although their IDs have different forms. Therefore the first report with an ID of another form is not a new
deploy if the commit was reported within the last day.

Deploys are files and not journal segments, because several processes must decide without the warehouse's lock
whether a commit is new. Reports are never deleted, because a sender can repeat a delivery much later.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from glob import escape
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, ValidationError

from monitors.records.base import Identifier, Record, Sha256, UtcTime
from monitors.records.targets import PullRequest, ReportedDeploy
from monitors.storage import write_atomically, write_once

FOLDER: Final = "deploys"
"""Name of the folder inside the data folder that contains the queue."""

_REPORTED: Final = ".json"
_OUTCOME: Final = ".run"
_PULL: Final = ".pull"
_OPEN: Final = ".open"
_FIRST_POLL: Final = "first-poll"
_RUNNING: Final = "running"
_ID: Final = "~"
"""The separator between commit and deployment ID in a file name. Neither part contains this character."""
SAME_DEPLOYMENT: Final = timedelta(days=1)
"""Maximum time between two reports of one deploy if their deployment IDs have different forms."""
NOT_FOR_US_PREFIX: Final = "not for us"
"""The receiver's response to a valid delivery that starts no run begins with this text. Drills check this."""

log = logging.getLogger(__name__)


_ID_FORM: Final = re.compile(r"run-\d+|[a-z]*")


def _get_deployment_id_prefix(deploy: ReportedDeploy) -> str | None:
    """Return the prefix that is the same in all deployment IDs of one sender and one kind of event.

    Return ``None`` if the deploy has no deployment ID.
    """
    match = _ID_FORM.match(deploy.deployment) if deploy.deployment is not None else None
    return match[0] if match else None


class QueuedDeploy(Record):
    """A reported deploy, and the time when the deploy was stored."""

    deploy: ReportedDeploy
    stored_at: UtcTime


class DeployOutcome(Record):
    """The run that verifies a deploy. ``run_id`` is ``None`` if the deploy needs no run."""

    run_id: Identifier | None
    at: UtcTime


class DeployAttempt(Record):
    """A run of a deploy that has not ended yet.

    ``number`` counts the runs of this deploy from 1. ``plan_sha256`` is the hash of the configuration and of
    Lookout's version.
    """

    run_id: Identifier
    number: Annotated[int, Field(ge=1)]
    plan_sha256: Sha256


class RunningCommit(Record):
    """The commit that a target serves according to the polls, and since when."""

    commit: str
    since: UtcTime


class DeployQueue:
    """The stored deploys of one data folder. Several threads and processes can use the queue without a lock."""

    def __init__(self, data_folder: Path) -> None:
        self._root = data_folder / FOLDER

    def save_if_new(self, deploy: QueuedDeploy, *, is_running_again: bool = False) -> bool:
        """Store a deploy so that it survives a crash. Return false if the deploy was reported before.

        ``is_running_again`` is true if `build_deployment_id_if_rolled_back` found that the commit runs again. If
        the deploy was reported before, its pull request is still stored, because the first report often comes from
        a poll, which does not know the pull request. Raises `WarehouseUnwritable`; then nothing is stored.
        """
        if not self.confirm_new_or_store_repeat(deploy, is_running_again=is_running_again):
            self._store_pull_request(deploy.deploy)
            return False
        return write_once(
            self._build_path(deploy.deploy, _REPORTED), deploy.model_dump_json(), within=self._root.parent
        )

    def confirm_new_or_store_repeat(self, queued: QueuedDeploy, *, is_running_again: bool = False) -> bool:
        """Return whether a report is about a deploy that was not reported before. Raises `WarehouseUnwritable`.

        An earlier report of the same deploy can have an ID of another form, or no ID. The new report is then stored
        with the outcome that no run is needed.
        """
        deploy = queued.deploy
        reports = self._list_report_paths(deploy.event.target, deploy.event.commit)
        if deploy.deployment is None or not reports:
            return not reports
        if self._build_path(deploy, _REPORTED) in reports:
            return False
        earlier = [report for path in reports if (report := self._read_deploy(path)) is not None]
        form = _get_deployment_id_prefix(deploy)
        newest = max((report.stored_at for report in earlier), default=None)
        if (
            is_running_again
            or newest is None
            or any(_get_deployment_id_prefix(report.deploy) == form for report in earlier)
        ):
            return True
        if queued.stored_at - newest > SAME_DEPLOYMENT:
            return True
        self.store_outcome(deploy, DeployOutcome(run_id=None, at=newest))
        write_once(self._build_path(deploy, _REPORTED), queued.model_dump_json(), within=self._root.parent)
        return False

    def build_deployment_id_if_rolled_back(self, target: str, commit: str) -> str | None:
        """Build a deployment ID if ``target`` serves the earlier commit ``commit`` again.

        Otherwise, return ``None``. The target serves ``commit`` again, for example after a rollback, if the newest
        report of ``commit`` is older than the commit that was served until now. The ID stays the same until the
        next `store_running_commit`.
        """
        before = self._read_running_commit(target)
        if before is None or before.commit == commit:
            return None
        reports = [self._read_deploy(report) for report in self._list_report_paths(target, commit)]
        times = [report.stored_at for report in reports if report is not None]
        return f"after-{before.since:%Y%m%dT%H%M%SZ}" if times and max(times) < before.since else None

    def store_running_commit(self, target: str, commit: str, at: datetime) -> None:
        """Store the commit that a poll found running. Raises `WarehouseUnwritable`."""
        before = self._read_running_commit(target)
        if before is None or before.commit != commit:
            running = RunningCommit(commit=commit, since=at)
            self._write(self._root / target / _RUNNING, running.model_dump_json())

    def _read_running_commit(self, target: str) -> RunningCommit | None:
        try:
            return RunningCommit.model_validate_json((self._root / target / _RUNNING).read_bytes())
        except (OSError, ValidationError):
            return None

    def store_outcome(self, deploy: ReportedDeploy, outcome: DeployOutcome) -> None:
        """Store the outcome of a deploy. Raises `WarehouseUnwritable`."""
        self._write(self._build_path(deploy, _OUTCOME), outcome.model_dump_json())

    def store_attempt(self, deploy: ReportedDeploy, attempt: DeployAttempt) -> None:
        """Store the newest run of a deploy. Raises `WarehouseUnwritable`."""
        self._write(self._build_path(deploy, _OPEN), attempt.model_dump_json())

    def delete_attempt(self, deploy: ReportedDeploy) -> None:
        """Delete the record of a deploy's unfinished run, because the run has ended or will not be restarted."""
        self._build_path(deploy, _OPEN).unlink(missing_ok=True)

    def has_unfinished_attempts(self) -> bool:
        """Return whether any deploy has a run that has not ended. Only file names are read."""
        return next(self._root.glob(f"*/*{_OPEN}"), None) is not None

    def list_unfinished_attempts(self) -> tuple[tuple[QueuedDeploy, DeployAttempt], ...]:
        """List each deploy whose run has not ended, together with the run."""
        attempts: list[tuple[QueuedDeploy, DeployAttempt]] = []
        for path in sorted(self._root.glob(f"*/*{_OPEN}")):
            deploy = self._read_deploy(path.with_suffix(_REPORTED))
            try:
                attempt = DeployAttempt.model_validate_json(path.read_bytes())
            except (OSError, ValidationError) as error:
                log.error("cannot read %s (%s)", path, type(error).__name__)  # noqa: TRY400 - a trace does not help
                continue
            if deploy is not None:
                attempts.append((deploy, attempt))
        return tuple(attempts)

    def find_newest_deploy(self, target: str) -> QueuedDeploy | None:
        """Return the most recently stored deploy of ``target``, or ``None`` if no deploy is stored."""
        paths = (self._root / target).glob(f"*{_REPORTED}")
        deploys = [deploy for path in paths if (deploy := self._read_deploy(path)) is not None]
        return max(deploys, key=lambda deploy: deploy.stored_at, default=None)

    def list_pull_requests(self, target: str, commit: str) -> tuple[PullRequest, ...]:
        """List the pull requests in the reports of this commit."""
        reports = [self._read_deploy(report) for report in self._list_report_paths(target, commit)]
        pulls = [report.deploy.pull_request for report in reports if report is not None]
        pulls.append(_read_pull_request(self._root / target / f"{commit}{_PULL}"))
        return tuple(dict.fromkeys(pull for pull in pulls if pull is not None))

    def _store_pull_request(self, deploy: ReportedDeploy) -> None:
        pull = deploy.pull_request
        if pull is not None and pull not in self.list_pull_requests(deploy.event.target, deploy.event.commit):
            event = deploy.event
            self._write(self._root / event.target / f"{event.commit}{_PULL}", pull.model_dump_json())

    def _list_report_paths(self, target: str, commit: str) -> list[Path]:
        """List the files with reports of a commit. The report without a deployment ID comes first."""
        folder = self._root / target
        plain = folder / f"{commit}{_REPORTED}"
        try:
            with_id = sorted(folder.glob(f"{escape(commit)}{_ID}*{_REPORTED}"))
        except FileNotFoundError:  # the folder was moved away while it was listed
            with_id = []
        return [*([plain] if plain.exists() else ()), *with_id]

    def find_newest_reported_commit(self, target: str) -> str | None:
        """Return the commit of a target's newest report, or ``None`` if there is no report that can be read."""
        files = [path for path in (self._root / target).glob(f"*{_REPORTED}") if not path.name.startswith(".")]
        newest = self._read_deploy(max(files, key=lambda path: path.stat().st_mtime_ns)) if files else None
        return newest.deploy.event.commit if newest is not None else None

    def list_waiting_deploys(self) -> tuple[QueuedDeploy, ...]:
        """List the deploys that wait for a run, oldest first."""
        deploys = (self._read_deploy(path) for path in self._list_waiting_paths())
        return tuple(
            sorted((deploy for deploy in deploys if deploy is not None), key=lambda deploy: deploy.stored_at)
        )

    def has_waiting_deploys(self) -> bool:
        """Return whether any deploy waits for a run. Only file names are read."""
        return next(self._list_waiting_paths(), None) is not None

    def has_polled(self, target: str) -> bool:
        """Return whether this target was polled before."""
        return (self._root / target / _FIRST_POLL).exists()

    def mark_target_as_polled(self, target: str) -> None:
        """Record that this target was polled. From then on, an unreported commit is a new deploy.

        Raises `WarehouseUnwritable`.
        """
        if not self.has_polled(target):
            self._write(self._root / target / _FIRST_POLL, "")

    def require_writable(self) -> None:
        """Raise `WarehouseUnwritable` if the queue cannot store deploys at the moment."""
        self._write(self._root / ".writable", "")

    def _write(self, path: Path, text: str) -> None:
        write_atomically(path, text, within=self._root.parent)

    def _build_path(self, deploy: ReportedDeploy, suffix: str) -> Path:
        name = (
            deploy.event.commit if deploy.deployment is None else f"{deploy.event.commit}{_ID}{deploy.deployment}"
        )
        return self._root / deploy.event.target / f"{name}{suffix}"

    def _list_waiting_paths(self) -> Iterator[Path]:
        for folder in self._root.glob("*/"):
            names = {path.name for path in folder.iterdir()}
            for name in names:
                done = name.removesuffix(_REPORTED) + _OUTCOME
                if name.endswith(_REPORTED) and not name.startswith(".") and done not in names:
                    yield folder / name

    def _read_deploy(self, path: Path) -> QueuedDeploy | None:
        """Read the deploy in a file. If the file cannot be read, log an error and return ``None``."""
        try:
            return QueuedDeploy.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            log.error("cannot read %s (%s); check or delete the file", path, type(error).__name__)  # noqa: TRY400 - a trace does not help
            return None


def _read_pull_request(path: Path) -> PullRequest | None:
    try:
        return PullRequest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
