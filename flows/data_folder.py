"""What a data folder holds, and its warehouse opened on the run's clock."""

from __future__ import annotations

import os
import time
from pathlib import Path

from flows.clock import utc_now
from monitors.config.file import Config
from warehouse.data_folder import refuse_links
from warehouse.database.connection import WaitPolicy
from warehouse.database.store import Store
from warehouse.journal.journal import Journal

RUNS_FOLDER = "runs"
"""Inside the data folder: one folder a run."""

PREFECT_FOLDER = "prefect"
"""Inside the data folder: the local server's home. One server for each data folder, see docs/operations.md."""


def runs_folder(config: Config) -> Path:
    """The folder that holds one folder for each run: screenshots, reports."""
    return config.data_folder / RUNS_FOLDER


def prefect_home(config: Config) -> Path:
    """Where the local Prefect server stores its database."""
    return config.data_folder / PREFECT_FOLDER


def open_store(config: Config) -> Store:
    """The warehouse of the configuration's data folder, with its journal there or in an object store."""
    return store_in(config.data_folder, config.warehouse.journal)


def store_in(data_folder: Path, journal_at: str | None = None) -> Store:
    """The warehouse of a data folder, its journal there or at ``journal_at``. `ConfigError` for a link in it."""
    refuse_links(data_folder)
    journal = None
    if journal_at is not None:
        from warehouse.journal.object_store import ObjectSegments  # fsspec, and only where it is configured

        journal = Journal(ObjectSegments(journal_at), clock=utc_now, entropy=os.urandom)
    patience = WaitPolicy(monotonic=time.monotonic, sleep=time.sleep)
    return Store(data_folder, clock=utc_now, entropy=os.urandom, patience=patience, journal=journal)
