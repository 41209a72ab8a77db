"""Claims a data folder for this installation, and separates a copied folder from its original."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from flows.alerting.notifier import LOCK_WAIT_S
from flows.data_folder import RUNS_FOLDER, open_store_in
from flows.deploys.queue import DeployOutcome, DeployQueue
from monitors.errors import ConfigError
from warehouse.folder_identity import CopiedFolder, assign_new_identity, create_or_check_identity, read_identity
from warehouse.queries.copied_folder import leave_alerting_to_original


def claim_or_separate_data_folder(
    data_folder: Path,
    journal_at: str | None,
    *,
    new_id: str,
    at: datetime,
    moved: bool = False,
    copied: bool = False,
) -> None:
    """Check whether the data folder is a copy, and make the folder usable by this installation.

    A new folder gets the identity ``new_id``. A copy is refused unless ``moved`` or ``copied`` is set. With
    ``moved``, the original is gone, and this folder continues with the original's identity and incidents. With
    ``copied``, both folders are used: this folder gets the identity ``new_id``, and the original sends the alerts
    and finishes the runs that it began. Neither option changes a folder that is not a copy. See `open_store_in` for
    ``journal_at``.

    Raises `ConfigError`, and `WarehouseBusy` if the warehouse of a copy is in use.
    """
    require_valid_copy_options(None, moved=moved, copied=copied)
    if copied:
        try:
            read_identity(data_folder)
        except CopiedFolder:
            _leave_work_to_original(data_folder, journal_at, at)
            assign_new_identity(data_folder, new_id=new_id, at=at)
    create_or_check_identity(data_folder, new_id=new_id, at=at, moved=moved)


def _leave_work_to_original(data_folder: Path, journal_at: str | None, at: datetime) -> None:
    """Remove the waiting alerts, deploys and nightly runs from a copy, because they belong to the original."""
    require_valid_copy_options(journal_at, moved=False, copied=True)
    from flows.nightly.checkpoint import READING_FILE  # this import takes seconds, and only a copy needs it

    store = open_store_in(data_folder)
    leave_alerting_to_original(store, store.journal, at, wait_s=LOCK_WAIT_S)
    for note in (data_folder / RUNS_FOLDER).glob(f"*/{READING_FILE}"):
        note.unlink(missing_ok=True)
    deploys = DeployQueue(data_folder)
    for queued in deploys.list_waiting_deploys():
        deploys.store_outcome(queued.deploy, DeployOutcome(run_id=None, at=at))


def require_valid_copy_options(journal_at: str | None, *, moved: bool, copied: bool) -> None:
    """Raise `ConfigError` if ``moved`` and ``copied`` are both set, or a copy would use the original's journal."""
    if moved and copied:
        raise ConfigError(
            "--moved and --copy cannot be combined: use --moved if the original folder no longer exists, "
            "otherwise --copy"
        )
    if copied and journal_at is not None:
        raise ConfigError(
            f"warehouse.journal = {journal_at!r}: a copy would share this journal with the original. Set "
            "another journal, and start with an empty data folder"
        )
