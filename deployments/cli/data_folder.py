"""Functions that find a command's data folder and open its warehouse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from flows.terminal import write_note
from flows.waiting import show_waiting
from monitors.errors import ConfigError, WarehouseError

if TYPE_CHECKING:
    from monitors.config.file import Config  # slow: imports all configuration models
    from warehouse.database.store import Store  # slow: imports duckdb

DEMO_FOLDER = Path(".lookout-demo")
DEFAULT_FOLDER = Path(".lookout")
LOAD_WAIT_S: Final = 10.0
"""Maximum time in seconds that a command waits for a busy warehouse before it skips loading new results."""


def find_data_folder(config: Path, data_folder: Path | None) -> Path:
    """Return the data folder of a command: ``data_folder`` if it is given, and the configured folder otherwise.

    Without a configuration, the default folder or the demo's folder is returned. Raises `ConfigError` if neither
    exists.
    """
    if data_folder is not None:
        return data_folder
    if config.exists():
        from monitors.config.file import load_config  # slow: imports all configuration models

        return load_config(config).data_folder
    for folder in (DEFAULT_FOLDER, DEMO_FOLDER):
        if folder.exists():
            return folder
    raise ConfigError(
        f"this folder has no {config} and no data folder {DEFAULT_FOLDER}. Create a data folder with `lookout "
        "verify` or `lookout demo`, or give another path with --config or --data-folder"
    )


def claim_data_folder(data_folder: Path, configured: Config | None, *, moved: bool, copied: bool) -> None:
    """Claim the data folder for a command that sends alerts.

    Raises `ConfigError` if the folder is a copy that the user has not confirmed.
    """
    from flows.clock import utc_now
    from flows.folder_identity import claim_or_separate_data_folder  # slow: imports duckdb
    from flows.runtime.secrets import generate_nonce

    journal_at = configured.warehouse.journal if configured is not None else None
    claim_or_separate_data_folder(
        data_folder, journal_at, new_id=generate_nonce(), at=utc_now(), moved=moved, copied=copied
    )


def open_warehouse(config: Path, data_folder: Path | None) -> Store:
    """Open the warehouse in the data folder that `find_data_folder` returns.

    The configuration specifies the location of the journal. If the configuration is for another data folder, the
    journal inside the opened folder is used.
    """
    from flows.data_folder import open_store, open_store_in  # slow: imports duckdb
    from monitors.config.file import load_config  # slow import

    folder = find_data_folder(config, data_folder)
    configured = load_config(config) if config.exists() else None
    if configured is not None and configured.data_folder.resolve() == folder.resolve():
        return open_store(configured)
    return open_store_in(folder)


def load_new_results_into_warehouse(store: Store) -> Store:
    """Load the new results of runs into the warehouse, and return the warehouse.

    Print a note for each result that cannot be loaded. Raises `ConfigError` if no run has written anything yet.
    """
    from warehouse.database.store import DATABASE_FILE, JOURNAL_FOLDER  # slow: imports duckdb

    folder = store.database.file.parent
    if not (folder / DATABASE_FILE).exists() and not (folder / JOURNAL_FOLDER).exists():
        raise ConfigError(f"{folder} has no warehouse yet. Run `lookout verify` to create one")
    try:
        with show_waiting("Loading results of runs"):
            report = store.load_pending(LOAD_WAIT_S)
    except WarehouseError as error:
        write_note(
            f"lookout: the newest rows may be missing, because Lookout could not load the newest results: {error}\n"
        )
        return store
    for error_line in report.errors():
        write_note(f"lookout: not loaded: {error_line}\n")
    return store
