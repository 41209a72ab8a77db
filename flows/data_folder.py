"""Returns the paths inside a data folder, and opens its warehouse."""

from __future__ import annotations

import os
import time
from pathlib import Path

from flows.clock import utc_now
from monitors.config.file import Config
from warehouse.data_folder import refuse_symbolic_links
from warehouse.database.connection import WaitPolicy
from warehouse.database.store import Store
from warehouse.journal.journal import Journal

RUNS_FOLDER = "runs"
"""Name of the data folder's subfolder that contains one folder for each run."""

PREFECT_FOLDER = "prefect"
"""Name of the data folder's subfolder that contains the files of the local Prefect server."""


UPKEEP_WAIT_S = 600.0
"""Maximum time in seconds that a daily job waits for another process that uses the warehouse."""


def get_runs_folder(config: Config) -> Path:
    """Return the folder that contains one folder for each run, with the run's screenshots and reports."""
    return config.data_folder / RUNS_FOLDER


def get_prefect_home(config: Config) -> Path:
    """Return the folder where the local Prefect server stores its database."""
    return config.data_folder / PREFECT_FOLDER


def open_store(config: Config) -> Store:
    """Open the warehouse of the configured data folder, with the configured journal."""
    return open_store_in(config.data_folder, config.warehouse.journal)


def open_store_in(data_folder: Path, journal_at: str | None = None) -> Store:
    """Open the warehouse of a data folder. The journal is in this folder, or in the object store ``journal_at``.

    Raises `ConfigError` if the path of the data folder contains a symbolic link.
    """
    refuse_symbolic_links(data_folder)
    journal = None
    if journal_at is not None:
        from warehouse.journal.object_store import ObjectSegments  # this import needs the optional package fsspec

        journal = Journal(ObjectSegments(journal_at), clock=utc_now, entropy=os.urandom)
    patience = WaitPolicy(monotonic=time.monotonic, sleep=time.sleep)
    return Store(data_folder, clock=utc_now, entropy=os.urandom, patience=patience, journal=journal)
